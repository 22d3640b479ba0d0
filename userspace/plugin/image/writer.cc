// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Order of writes and syncs. A short write, ENOSPC or a failed sync is an error, never a smaller image.
#include "plugin/image/writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/os.h"
#include "plugin/image/codec.h"
#include "plugin/image/directory.h"

namespace plugin::image {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

constexpr mode_t kImageMode = 0600;  // the memory of a program, which only its owner may read
// Files that prepare() keeps open before it syncs them: many small ones share the cost of a journal's commit.
constexpr std::size_t kMaxUnsynced = 32;

Status write_all(int fd, std::span<const std::byte> bytes, std::uint64_t offset, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t written = os::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Error::from_errno(errno, "writing " + name);
    if (written == 0) return Error(EIO, "writing " + name + ": wrote nothing");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

Status sync_file(int fd, const std::string& name) {
  // A directory or pipe-like file system may not know fsync; that is no loss of data.
  if (os::fsync(fd) != 0 && errno != EINVAL && errno != EROFS) return Error::from_errno(errno, "fsync of " + name);
  return {};
}

Status sync_directory(int dir_fd) {
  // CRIU's descriptor may be one that only names the directory.
  const UniqueFd dir(os::openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir.valid()) return Error::from_errno(errno, "opening the image directory");
  return sync_file(dir.get(), "the image directory");
}

Status remove_if_there(int dir_fd, const std::string& name) {
  if (os::unlinkat(dir_fd, name.c_str(), 0) != 0 && errno != ENOENT)
    return Error::from_errno(errno, "removing " + name + " from the image directory");
  return {};
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

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

Error named(Error error, const std::string& name) { return std::move(error).wrap(name); }

}  // namespace

// ---- contents ----

Status FileWriter::append(std::span<const std::byte> contents) {
  while (!contents.empty()) {
    const auto chunk = contents.first(std::min<std::size_t>(kChunkSize, contents.size()));
    TRY(append_chunk(chunk));
    contents = contents.subspan(chunk.size());
  }
  return {};
}

Status FileWriter::append_chunk(std::span<const std::byte> bytes) {
  appended_ += bytes.size();
  Chunk chunk;
  chunk.stored = pieces_to_store(bytes);
  if (chunk.stored == 0) {
    chunks_.push_back(chunk);
    return {};
  }
  const std::string name = pages_name(id_);
  if (!pages_.valid()) {
    ASSIGN_OR_RETURN(pages_, session_->create_file(name));
    pages_length_ = kPageSize;  // the header's page
  }
  chunk.offset = pages_length_;
  chunk.hash = hash_bytes(bytes);
  const std::uint64_t pieces = chunk_count(bytes.size(), kPieceSize);
  std::uint64_t at = chunk.offset;
  for (std::uint64_t i = 0; i < pieces;) {
    std::uint64_t end = i;
    while (end < pieces && ((chunk.stored >> end) & 1U) != 0) ++end;
    if (end == i) {
      ++i;
      continue;
    }
    const auto from = static_cast<std::size_t>(i * kPieceSize);
    const auto run = bytes.subspan(from, std::min<std::size_t>((end - i) * kPieceSize, bytes.size() - from));
    TRY(write_all(pages_.get(), run, at, name));
    at += run.size();
    i = end;
  }
  pages_length_ = (at + kPageSize - 1) / kPageSize * kPageSize;
  chunks_.push_back(chunk);
  return {};
}

// ---- the dump ----

Result<std::unique_ptr<SessionWriter>> SessionWriter::create(int dir_fd, std::uint64_t session_id) {
  // The commit marks of earlier dumps go first, or a crash now would leave one together with half of a new image.
  ASSIGN_OR_RETURN(const auto names, list_names(dir_fd));
  for (const auto& [name, spelled] : names) TRY(remove_if_there(dir_fd, spelled));
  return std::unique_ptr<SessionWriter>(new SessionWriter(dir_fd, session_id));
}

SessionWriter::~SessionWriter() {
  if (state_ == State::kOpen || state_ == State::kPrepared) (void)discard();
}

Result<std::uint64_t> SessionWriter::free_space(int dir_fd) {
  struct statvfs status {};
  if (os::fstatvfs(dir_fd, &status) != 0) return Error::from_errno(errno, "statvfs of the image directory");
  if (status.f_blocks == 0) return std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize;
}

FileWriter& SessionWriter::file(std::uint32_t id) {
  return writers_.try_emplace(id, FileWriter(*this, id)).first->second;
}

Status SessionWriter::add(File file) {
  if (std::any_of(files_.begin(), files_.end(), [&file](const File& other) { return other.id == file.id; }))
    return Error(EINVAL, "file " + std::to_string(file.id) + " was saved already");
  files_.push_back(std::move(file));
  return {};
}

Result<UniqueFd> SessionWriter::create_file(const std::string& name) {
  // O_EXCL: a file that somebody else prepared under this name would keep its owner and its mode.
  UniqueFd fd(os::openat(dir_fd_, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kImageMode));
  if (!fd.valid()) return Error::from_errno(errno, "creating " + name + " in the image directory");
  created_.insert(name);
  return fd;
}

Result<std::uint64_t> SessionWriter::write_payload(const std::string& name, FileKind kind,
                                                   std::span<const std::byte> payload) {
  ASSIGN_OR_RETURN(UniqueFd fd, create_file(name));
  const std::uint64_t hash = hash_bytes(payload);
  TRY(write_all(fd.get(), encode_header({kind, payload.size(), hash}), 0, name));
  TRY(write_all(fd.get(), payload, kHeaderSize, name));
  unsynced_.emplace_back(name, std::move(fd));
  if (unsynced_.size() >= kMaxUnsynced) TRY(sync_all());
  return hash;
}

Status SessionWriter::sync_all() {
  for (const auto& [name, fd] : unsynced_) TRY(sync_file(fd.get(), name));
  unsynced_.clear();
  return {};
}

Status SessionWriter::finish_pages(FileWriter& contents) {
  const std::string name = pages_name(contents.id_);
  // The last chunk's padding is part of the file, so that its length says whether it is complete.
  if (os::ftruncate(contents.pages_.get(), static_cast<off_t>(contents.pages_length_)) != 0)
    return Error::from_errno(errno, "setting the length of " + name);
  const Header header{FileKind::kPages, contents.stored(), pages_tag(session_id_, contents.id_)};
  TRY(write_all(contents.pages_.get(), encode_header(header), 0, name));
  unsynced_.emplace_back(name, std::move(contents.pages_));
  return {};
}

Status SessionWriter::write_index(std::span<const BoRecord> bos, FileWriter* contents, FileEntry& entry) {
  Index index;
  index.bos.assign(bos.begin(), bos.end());
  if (contents != nullptr) {
    index.chunks = std::move(contents->chunks_);
    entry.pages_length = contents->pages_length_;
    if (contents->pages_.valid()) TRY(finish_pages(*contents));
  }
  const std::string name = index_name(entry.id);
  if (auto status = validate(index, entry.pages_length, Version::k2); !status.ok())
    return named(std::move(status).error(), name);
  const auto payload = encode_index(index);
  if (payload.size() > kMaxIndex) return Error(EFBIG, name + " would be larger than a reader accepts");
  entry.index_length = payload.size();
  ASSIGN_OR_RETURN(entry.index_hash, write_payload(name, FileKind::kIndex, payload));
  return {};
}

Result<FileEntry> SessionWriter::write_file(const File& file) {
  FileEntry entry;
  entry.id = file.id;
  entry.kind = kind_of(file);
  const auto writer = writers_.find(file.id);
  FileWriter* contents = writer == writers_.end() ? nullptr : &writer->second;
  if (has_index(file))
    TRY(write_index(bos_of(file), contents, entry));
  else if (contents != nullptr && contents->appended() != 0)
    return Error(EINVAL, metadata_name(file.id) + ": contents for a file that has none");
  const std::string metadata = encode(file, session_id_);
  if (metadata.size() > kMaxMetadata)
    return Error(EFBIG, metadata_name(file.id) + " would be larger than a reader accepts");
  if (auto read_back = decode_file(bytes_of(metadata)); !read_back.ok())
    return named(std::move(read_back).error(), metadata_name(file.id));
  entry.metadata_length = metadata.size();
  ASSIGN_OR_RETURN(entry.metadata_hash, write_payload(metadata_name(file.id), FileKind::kMetadata, bytes_of(metadata)));
  return entry;
}

Status SessionWriter::prepare(Session session) {
  if (state_ != State::kOpen) return Error(EINVAL, "the dump is complete already");
  Manifest manifest;
  manifest.session = std::move(session);
  manifest.session.id = session_id_;
  manifest.session.version = Version::k2;
  for (const File& file : files_)
    if (auto status = validate(file, manifest.session); !status.ok())
      return named(std::move(status).error(), metadata_name(file.id));
  for (const File& file : files_) {
    ASSIGN_OR_RETURN(const FileEntry entry, write_file(file));
    manifest.files.push_back(entry);
  }
  const std::string name(kManifestName);
  if (auto status = validate(manifest); !status.ok()) return named(std::move(status).error(), name);
  const std::string payload = encode(manifest);
  if (payload.size() > kMaxManifest) return Error(EFBIG, name + " would be larger than a reader accepts");
  if (auto read_back = decode_manifest(bytes_of(payload)); !read_back.ok())
    return named(std::move(read_back).error(), name);
  TRY(write_payload(std::string(kUnfinishedManifestName), FileKind::kManifest, bytes_of(payload)));
  TRY(sync_all());
  TRY(sync_directory(dir_fd_));
  state_ = State::kPrepared;
  return {};
}

Status SessionWriter::commit() {
  if (state_ != State::kPrepared) return Error(EINVAL, "the dump is not complete");
  const std::string unfinished(kUnfinishedManifestName);
  const std::string name(kManifestName);
  if (os::renameat(dir_fd_, unfinished.c_str(), dir_fd_, name.c_str()) != 0)
    return Error::from_errno(errno, "renaming " + unfinished);
  created_.erase(unfinished);
  created_.insert(name);
  TRY(sync_directory(dir_fd_));
  state_ = State::kCommitted;
  return {};
}

Status SessionWriter::discard() {
  const bool visible = created_.contains(std::string(kManifestName));
  state_ = State::kDiscarded;
  Status first;
  const auto keep_first = [&first](Status status) {
    if (!status.ok() && first.ok()) first = std::move(status);
  };
  for (const std::string_view name : {kManifestName, kUnfinishedManifestName})
    if (created_.erase(std::string(name)) != 0) keep_first(remove_if_there(dir_fd_, std::string(name)));
  // A crash could else bring the manifest back together with a part of its files.
  if (visible) keep_first(sync_directory(dir_fd_));
  for (const std::string& name : created_) keep_first(remove_if_there(dir_fd_, name));
  created_.clear();
  unsynced_.clear();
  writers_.clear();
  files_.clear();
  return first;
}

}  // namespace plugin::image
