// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Contents of one file: what becomes of a chunk, by whatever thread, and where it lies.
#include <algorithm>
#include <array>
#include <cstring>

#include "plugin/image/file_bytes.h"
#include "plugin/image/writer.h"

namespace plugin::image {
namespace {

using base::Error;
using base::Result;
using base::Status;

bool all_zero(std::span<const std::byte> bytes) {
  return bytes[0] == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

// Bit i: piece i is not all zero.
std::uint64_t pieces_to_store(std::span<const std::byte> chunk) {
  std::uint64_t stored = 0;
  for (std::size_t i = 0; i * kPieceSize < chunk.size(); ++i) {
    const auto rest = chunk.subspan(i * kPieceSize);
    if (!all_zero(rest.first(std::min<std::size_t>(kPieceSize, rest.size())))) stored |= 1ULL << i;
  }
  return stored;
}

// Calls `visit` with the bytes of neighbouring pieces that are stored. Ends with the first answer that is an error.
template <typename Visit>
Status for_stored_runs(std::uint64_t stored, std::span<const std::byte> bytes, Visit visit) {
  const std::uint64_t pieces = chunk_count(bytes.size(), kPieceSize);
  for (std::uint64_t i = 0; i < pieces;) {
    std::uint64_t end = i;
    while (end < pieces && ((stored >> end) & 1U) != 0) ++end;
    if (end == i) {
      ++i;
      continue;
    }
    const auto from = static_cast<std::size_t>(i * kPieceSize);
    TRY(visit(bytes.subspan(from, std::min<std::size_t>((end - i) * kPieceSize, bytes.size() - from))));
    i = end;
  }
  return {};
}

// Whether the file has the same bytes at this offset.
Result<bool> is_equal(int fd, std::uint64_t offset, std::span<const std::byte> bytes) {
  std::array<std::byte, kPieceSize> buffer;
  while (!bytes.empty()) {
    const auto part = std::span(buffer).first(std::min(bytes.size(), buffer.size()));
    TRY(read_all(fd, part, offset));
    if (std::memcmp(part.data(), bytes.data(), part.size()) != 0) return false;
    bytes = bytes.subspan(part.size());
    offset += part.size();
  }
  return true;
}

}  // namespace

std::uint64_t FileWriter::begin_bo(const MemoryName& name) {
  const std::uint64_t first = expected_;
  expected_ += chunk_count(name.size, kChunkSize);
  if (session_->earlier_ == nullptr) return first;
  const auto known = session_->earlier_->find(name);
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < known.size(); ++i)
    if (known[i].chunk.stored != 0) known_.emplace(first + i, known[i]);
  return first;
}

Result<std::uint64_t> FileWriter::append(std::uint64_t place, std::span<const std::byte> contents) {
  {
    const std::lock_guard lock(mutex_);
    TRY(status_);
  }
  appended_ += contents.size();
  while (!contents.empty()) {
    const auto chunk = contents.first(std::min<std::size_t>(kChunkSize, contents.size()));
    const std::uint64_t number = begun_++;
    if (session_->workers_ == nullptr)
      write_chunk(number, place, chunk);
    else
      session_->workers_->add([this, number, place, chunk] { write_chunk(number, place, chunk); });
    ++place;
    contents = contents.subspan(chunk.size());
  }
  // With workers it is settle() that answers a failure: some of the bytes may still be in use.
  if (session_->workers_ == nullptr) TRY(status_);
  return std::uint64_t{begun_};
}

Status FileWriter::settle(std::uint64_t number) {
  const auto is_written = [this, number] { return written_up_to_ >= number; };
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (is_written()) return status_;
    }
    if (session_->workers_ == nullptr || !session_->workers_->run_one()) break;
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, is_written);
  return status_;
}

// By any thread. Chunks begin in their order, so that of those which wait for their place the first never waits.
void FileWriter::write_chunk(std::uint64_t number, std::uint64_t place, std::span<const std::byte> bytes) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  Chunk chunk;
  chunk.stored = pieces_to_store(bytes);
  if (chunk.stored != 0) chunk.hash = session_->hash_(bytes);
  Placed found = look_up(place, chunk);
  std::vector<std::byte> packed;
  if (found.is_new) packed = pack_pieces(chunk, bytes);
  if (!packed.empty()) found.chunk.packed = packed.size();
  const auto hashed = Clock::now();
  const auto placed = store(number, std::move(found), bytes);
  const auto stored = Clock::now();
  Status status;
  if (!placed.ok())
    status = placed.error();
  else if (placed->is_new)
    status = write_pieces(placed->chunk, bytes, packed);
  {
    const std::lock_guard lock(mutex_);
    if (!status.ok() && status_.ok()) status_ = std::move(status);
    hashing_ += hashed - begin;
    writing_ += Clock::now() - stored;
    written_.insert(number);
    for (; written_.erase(written_up_to_) != 0; ++written_up_to_) {
    }
  }
  changed_.notify_all();
}

std::vector<std::byte> FileWriter::pack_pieces(const Chunk& chunk, std::span<const std::byte> bytes) {
  const bool disk_is_busy = session_->writeback_ != nullptr && session_->writeback_->is_busy();
  if (!session_->policy_.wants(disk_is_busy)) return {};
  std::vector<std::byte> pieces;
  if (pieces_length(chunk, bytes.size(), kPieceSize) != bytes.size()) {
    // The runs are copied: they are packed as one.
    (void)for_stored_runs(chunk.stored, bytes, [&pieces](std::span<const std::byte> run) -> Status {
      pieces.insert(pieces.end(), run.begin(), run.end());
      return {};
    });
    bytes = pieces;
  }
  std::vector<std::byte> packed = pack(bytes);
  session_->policy_.learn(!packed.empty());
  return packed;
}

FileWriter::Placed FileWriter::look_up(std::uint64_t place, const Chunk& chunk) {
  Placed placed{place, chunk};
  if (chunk.stored == 0) {
    placed.is_new = false;
    return placed;
  }
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(place);
  if (found == known_.end()) return placed;
  const KnownChunk known = found->second;
  known_.erase(found);
  // It is the same memory of the same program, so contents that are others are taken for equal once in 2^64 times.
  if (known.chunk.hash != chunk.hash || known.chunk.stored != chunk.stored) return placed;
  const Target target{Where::kEarlier, known.source};
  if (!add_target(target)) return placed;
  return {place, known.chunk, target, false};
}

bool FileWriter::add_target(Target target) {
  if (targets_.contains(target)) return true;
  if (session_->num_sources_.fetch_add(1) >= kMaxSources) return false;
  targets_.insert(target);
  return true;
}

// Bytes are compared, and not only checksums: what is equal may be memory of another program.
Result<FileWriter::Placed> FileWriter::find_equal(const Placed& wanted, std::span<const std::byte> bytes) {
  const auto found = session_->equal_chunks_.find(wanted.chunk, bytes.size());
  if (!found) return Placed(wanted);
  ASSIGN_OR_RETURN(const bool is_equal, found->file->has_bytes(*found, wanted.chunk.stored, bytes));
  if (!is_equal) return Placed(wanted);
  Placed placed{wanted.place, wanted.chunk, {Where::kOwn, 0}, false};
  placed.chunk.offset = found->offset;
  placed.chunk.packed = found->packed;
  if (found->file == this) return placed;
  placed.target = {Where::kOther, found->file->number_};
  const std::lock_guard lock(mutex_);
  return add_target(placed.target) ? placed : wanted;
}

Result<bool> FileWriter::has_bytes(const EqualChunks::Place& place, std::uint64_t stored,
                                   std::span<const std::byte> bytes) {
  {
    std::unique_lock lock(mutex_);
    const auto is_written = [this, &place] { return place.number < written_up_to_ || written_.contains(place.number); };
    changed_.wait(lock, is_written);
    TRY(status_);
  }
  std::vector<std::byte> unpacked;
  if (place.packed != 0) {
    std::vector<std::byte> packed(place.packed);
    TRY(read_all(pages_.get(), packed, place.offset));
    unpacked.resize(pieces_length({.stored = stored}, bytes.size(), kPieceSize));
    TRY(unpack(packed, unpacked));
  }
  std::uint64_t offset = place.packed != 0 ? 0 : place.offset;
  bool same = true;
  Status status = for_stored_runs(stored, bytes, [&](std::span<const std::byte> run) -> Status {
    if (!same) return {};
    if (place.packed != 0) {
      same = std::memcmp(unpacked.data() + offset, run.data(), run.size()) == 0;
    } else {
      ASSIGN_OR_RETURN(same, is_equal(pages_.get(), offset, run));
    }
    offset += run.size();
    return {};
  });
  TRY(std::move(status));
  return same;
}

// A chunk that is new lies in the pages file behind the chunks before it, whichever of them is written first.
Result<FileWriter::Placed> FileWriter::store(std::uint64_t number, Placed placed, std::span<const std::byte> bytes) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this, number] { return chunks_.size() == number; });
  Status status = status_;
  if (placed.is_new && status.ok()) {
    lock.unlock();
    auto found = find_equal(placed, bytes);
    lock.lock();
    if (found.ok())
      placed = *found;
    else
      status = std::move(found).error();
  }
  if (placed.is_new && status.ok() && !pages_.valid()) {
    auto created = session_->create_file(pages_name());
    if (created.ok()) {
      pages_ = std::move(created).value();
      pages_length_ = kPageSize;  // the header's page
    } else {
      status = std::move(created).error();
    }
  }
  if (placed.is_new && status.ok()) {
    placed.chunk.offset = pages_length_;
    pages_length_ += (stored_length(placed.chunk, bytes.size(), kPieceSize) + kPageSize - 1) / kPageSize * kPageSize;
    session_->equal_chunks_.add(placed.chunk, bytes.size(), {this, number, placed.chunk.offset, placed.chunk.packed});
  }
  if (placed.target.first == Where::kEarlier)
    referred_ += bytes.size();
  else if (placed.chunk.stored != 0 && !placed.is_new)
    equal_ += bytes.size();
  chunks_.push_back(placed);
  lock.unlock();
  changed_.notify_all();
  TRY(std::move(status));
  return placed;
}

Status FileWriter::write_pieces(const Chunk& chunk, std::span<const std::byte> bytes,
                                std::span<const std::byte> packed) {
  std::uint64_t offset = chunk.offset;
  const auto write = [&](std::span<const std::byte> run) -> Status {
    auto written = write_all(pages_.get(), run, offset, pages_name());
    offset += run.size();
    return written;
  };
  TRY(packed.empty() ? for_stored_runs(chunk.stored, bytes, write) : write(packed));
  if (session_->writeback_ == nullptr) return {};
  return session_->writeback_->add(pages_.get(), chunk.offset, offset - chunk.offset);
}

Source FileWriter::source_of(Target target) const {
  if (target.first == Where::kEarlier) return session_->earlier_->sources()[target.second];
  const FileWriter& other = *session_->writers_[target.second];
  return {0, *other.id_, session_->session_id_, other.pages_length_};
}

Result<std::vector<Chunk>> FileWriter::take_chunks(std::vector<Source>& sources) {
  std::map<Target, std::size_t> order;  // of the sources that are needed
  for (const Placed& placed : chunks_)
    if (placed.target.first != Where::kOwn && order.try_emplace(placed.target, sources.size()).second)
      sources.push_back(source_of(placed.target));
  const auto begins = begins_of(pages_length_, sources);
  std::vector<Chunk> chunks(chunks_.size());
  std::vector<bool> has_chunk(chunks_.size());
  for (const Placed& placed : chunks_) {
    if (placed.place >= chunks.size() || has_chunk[placed.place])
      return Error(EINVAL, pages_name() + ": a BO has other contents than it was begun with");
    has_chunk[placed.place] = true;
    chunks[placed.place] = placed.chunk;
    if (placed.target.first != Where::kOwn) chunks[placed.place].offset += begins[order.at(placed.target)];
  }
  chunks_ = {};
  return chunks;
}

}  // namespace plugin::image
