// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "plugin/image/contents.h"

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "base/os.h"
#include "plugin/image/file_bytes.h"
#include "plugin/image/pack.h"

namespace plugin::image {

namespace {

using base::Error;
using base::Result;
using base::Status;

// How much the kernel reads ahead, so that the disk works while this thread and the GPU do. By itself the kernel reads
// much less ahead.
constexpr std::uint64_t kAhead = 16U << 20;

}  // namespace

Loaded::Loaded(std::shared_ptr<const Session> session, FileEntry entry, File file, Index index)
    : session_(std::move(session)), entry_(std::move(entry)), file_(std::move(file)), index_(std::move(index)) {
  if (auto* kfd = std::get_if<KfdFile>(&file_.contents)) kfd->bos = std::move(index_.bos);
  if (auto* render = std::get_if<RenderFile>(&file_.contents)) render->bos = std::move(index_.bos);
  if (auto* dmabuf = std::get_if<DmabufFile>(&file_.contents)) dmabuf->bos = std::move(index_.bos);
  index_.bos.clear();
}

Contents::Contents(const Loaded& loaded, std::vector<Pages> pages) : loaded_(&loaded), pages_(std::move(pages)) {
  first_.reserve(bos().size() + 1);
  std::uint64_t next = 0;
  for (const BoRecord& record : bos()) {
    first_.push_back(next);
    if (stores_contents(record)) next += chunk_count(record.bo.size, chunk_size());
  }
  first_.push_back(next);
}

std::span<const Chunk> Contents::chunks(std::size_t bo) const {
  return std::span(loaded_->index().chunks).subspan(first_[bo], first_[bo + 1] - first_[bo]);
}

const Contents::Pages& Contents::pages_at(std::uint64_t offset) const {
  const auto next = std::upper_bound(pages_.begin(), pages_.end(), offset,
                                     [](std::uint64_t value, const Pages& pages) { return value < pages.begin; });
  return *(next - 1);
}

// Chunks are read in the order of the index, or nearly so. Those of one BO need not be neighbours in the pages file.
void Contents::read_ahead(const Chunk& chunk) const {
  const std::vector<Chunk>& all = loaded_->index().chunks;
  const auto here = static_cast<std::uint64_t>(&chunk - all.data());
  const std::uint64_t most = std::max<std::uint64_t>(kAhead / chunk_size(), 1);
  std::uint64_t ahead = ahead_->load(std::memory_order_relaxed);
  if (here + most / 2 < ahead) return;
  const std::uint64_t begin = std::max(ahead, here);
  const std::uint64_t end = std::min<std::uint64_t>(here + most, all.size());
  // Another thread may have asked meanwhile.
  if (!ahead_->compare_exchange_strong(ahead, end, std::memory_order_relaxed)) return;
  const std::uint32_t piece_size = loaded_->index().piece_size;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  const auto ask = [&] {
    if (from == to) return;
    const Pages& pages = pages_at(from);
    (void)os::posix_fadvise(pages.fd.get(), static_cast<off_t>(from - pages.begin), static_cast<off_t>(to - from),
                            POSIX_FADV_WILLNEED);
  };
  for (std::uint64_t i = begin; i < end; ++i) {
    if (all[i].stored == 0) continue;
    const std::uint64_t bytes =
        all[i].packed != 0 ? all[i].packed : static_cast<std::uint64_t>(std::popcount(all[i].stored)) * piece_size;
    if (all[i].offset != to) {
      ask();
      from = all[i].offset;
    }
    to = all[i].offset + (bytes + kPageSize - 1) / kPageSize * kPageSize;
  }
  ask();
}

Result<std::vector<std::byte>> Contents::unpack_pieces(const Chunk& chunk, std::uint64_t length) const {
  const Pages& pages = pages_at(chunk.offset);
  std::vector<std::byte> packed(chunk.packed);
  TRY(read_all(pages.fd.get(), packed, chunk.offset - pages.begin));
  std::vector<std::byte> pieces(pieces_length(chunk, length, loaded_->index().piece_size));
  TRY(unpack(packed, pieces));
  return pieces;
}

Status Contents::read_pieces(const Chunk& chunk, std::span<std::byte> out) const {
  // In version 1 a stored chunk is one piece, whatever its length.
  const std::uint32_t piece_size = loaded_->index().piece_size;
  const std::uint64_t pieces = chunk_count(out.size(), piece_size);
  const Pages* pages = chunk.stored == 0 ? nullptr : &pages_at(chunk.offset);
  std::uint64_t at = pages == nullptr ? 0 : chunk.offset - pages->begin;
  if (pages != nullptr) read_ahead(chunk);
  std::vector<std::byte> unpacked;
  if (chunk.packed != 0) {
    ASSIGN_OR_RETURN(unpacked, unpack_pieces(chunk, out.size()));
  }
  auto next = unpacked.begin();
  for (std::uint64_t i = 0; i < pieces;) {
    const bool stored = ((chunk.stored >> i) & 1U) != 0;
    std::uint64_t end = i;
    while (end < pieces && (((chunk.stored >> end) & 1U) != 0) == stored) ++end;
    const auto from = static_cast<std::size_t>(i * piece_size);
    const auto run = out.subspan(from, std::min<std::size_t>((end - i) * piece_size, out.size() - from));
    if (stored && chunk.packed != 0) {
      const auto end_of_run = next + static_cast<std::ptrdiff_t>(run.size());
      std::copy(next, end_of_run, run.begin());
      next = end_of_run;
    } else if (stored) {
      TRY(read_all(pages->fd.get(), run, at));
      at += run.size();
    } else {
      std::fill(run.begin(), run.end(), std::byte{0});
    }
    i = end;
  }
  return {};
}

Status Contents::check_padding(const Chunk& chunk, std::uint64_t length) const {
  const std::uint64_t end = chunk.offset + stored_length(chunk, length, loaded_->index().piece_size);
  const std::uint64_t used = end % kPageSize;
  const Pages& pages = pages_at(chunk.offset);
  return used == 0 ? Status() : check_zeros(pages.fd.get(), end - pages.begin, kPageSize - used);
}

Status Contents::read_chunk(const Chunk& chunk, std::span<std::byte> out) const {
  auto status = read_pieces(chunk, out);
  const Version version = loaded_->session().version;
  const bool checked = chunk.stored != 0 && version != Version::kUpstream;
  if (status.ok() && checked && hash_bytes(out) != chunk.hash)
    status = Error(EINVAL, "damaged: wrong checksum of the chunk at " + std::to_string(chunk.offset));
  if (status.ok() && checked && version != Version::k1) status = check_padding(chunk, out.size());
  // Only the bytes of a stored chunk can be wrong, so there is a pages file.
  if (!status.ok()) return std::move(status).error().wrap(pages_at(chunk.offset).name);
  return {};
}

Status Contents::verify() const {
  std::vector<std::byte> buffer;
  for (std::size_t bo = 0; bo < bos().size(); ++bo) {
    const auto list = chunks(bo);
    for (std::size_t i = 0; i < list.size(); ++i) {
      buffer.resize(chunk_length(bos()[bo].bo.size, chunk_size(), i));
      if (auto status = read_chunk(list[i], buffer); !status.ok())
        return std::move(status).error().wrap("BO " + std::to_string(bo));
    }
  }
  return {};
}

BoReader::BoReader(const Contents& contents, std::size_t bo)
    : contents_(contents), chunks_(contents.chunks(bo)), size_(contents.bos()[bo].bo.size) {}

std::uint64_t BoReader::skip_zeros(std::uint64_t limit) {
  std::uint64_t skipped = 0;
  for (; used_ == partial_.size() && next_ < chunks_.size() && chunks_[next_].stored == 0; ++next_) {
    const std::uint64_t length = chunk_length(size_, contents_.chunk_size(), next_);
    if (length > limit - skipped) break;
    skipped += length;
  }
  return skipped;
}

Status BoReader::read(std::span<std::byte> out) {
  while (!out.empty()) {
    if (used_ < partial_.size()) {
      const std::size_t part = std::min(out.size(), partial_.size() - used_);
      std::copy_n(partial_.begin() + static_cast<std::ptrdiff_t>(used_), part, out.begin());
      used_ += part;
      out = out.subspan(part);
      continue;
    }
    if (next_ >= chunks_.size()) return Error(EINVAL, "reading behind the end of a BO");
    const auto length = static_cast<std::size_t>(chunk_length(size_, contents_.chunk_size(), next_));
    const Chunk& chunk = chunks_[next_++];
    if (length <= out.size()) {
      TRY(contents_.read_chunk(chunk, out.first(length)));
      out = out.subspan(length);
    } else {
      partial_.resize(length);
      used_ = 0;
      TRY(contents_.read_chunk(chunk, partial_));
    }
  }
  return {};
}

}  // namespace plugin::image
