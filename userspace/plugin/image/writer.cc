// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Writer: order of writes and syncs. A short write, ENOSPC or a failed sync is an error, never a smaller image.
#include "plugin/image/writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/os.h"
#include "plugin/image/codec.h"

namespace plugin::image {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

constexpr mode_t kImageMode = 0600;  // the memory of a program, which only its owner may read

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

Status sync(int fd, const std::string& name) {
  // A directory or pipe-like file system may not know fsync; that is no loss of data.
  if (os::fsync(fd) != 0 && errno != EINVAL && errno != EROFS) return Error::from_errno(errno, "fsync of " + name);
  return {};
}

Result<UniqueFd> create_file(int dir_fd, const std::string& name) {
  UniqueFd fd(os::openat(dir_fd, name.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, kImageMode));
  if (!fd.valid()) return Error::from_errno(errno, "creating " + name + " in the image directory");
  return fd;
}

std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

// Header and payload into a new file, durable.
Status write_message(int dir_fd, const std::string& name, FileKind kind, const std::string& payload) {
  ASSIGN_OR_RETURN(UniqueFd fd, create_file(dir_fd, name));
  const auto header = encode_header({kind, payload.size(), hash_bytes(as_bytes(payload))});
  TRY(write_all(fd.get(), header, 0, name));
  TRY(write_all(fd.get(), as_bytes(payload), kHeaderSize, name));
  return sync(fd.get(), name);
}

Status remove_if_there(int dir_fd, const std::string& name) {
  if (os::unlinkat(dir_fd, name.c_str(), 0) != 0 && errno != ENOENT)
    return Error::from_errno(errno, "removing an old " + name);
  return {};
}

bool all_zero(std::span<const std::byte> bytes) {
  return bytes[0] == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

}  // namespace

Result<Writer> Writer::create(int dir_fd, std::uint32_t id) {
  // The commit mark of an earlier dump goes first, or a crash now would leave it together with half of a new image.
  TRY(remove_if_there(dir_fd, manifest_name(id)));
  TRY(remove_if_there(dir_fd, pages_name(id)));
  return Writer(dir_fd, id);
}

Status Writer::open_pages() {
  ASSIGN_OR_RETURN(pages_, create_file(dir_fd_, pages_name(id_)));
  pages_length_ = kPageSize;  // the header's page
  return {};
}

Status Writer::append(std::span<const std::byte> contents, std::vector<Chunk>& chunks) {
  if (!pages_.valid()) TRY(open_pages());
  while (!contents.empty()) {
    const auto piece = contents.first(std::min<std::size_t>(kChunkSize, contents.size()));
    contents = contents.subspan(piece.size());
    if (all_zero(piece)) {
      chunks.push_back({});
      continue;
    }
    TRY(write_all(pages_.get(), piece, pages_length_, pages_name(id_)));
    chunks.push_back({pages_length_, hash_bytes(piece)});
    pages_length_ += (piece.size() + kPageSize - 1) / kPageSize * kPageSize;
  }
  return {};
}

Status Writer::finish_pages() {
  const std::string name = pages_name(id_);
  // The last chunk's padding is part of the file, so that its length says whether it is complete.
  if (os::ftruncate(pages_.get(), static_cast<off_t>(pages_length_)) != 0)
    return Error::from_errno(errno, "setting the length of " + name);
  TRY(write_all(pages_.get(), encode_header({FileKind::kPages, pages_length_ - kPageSize, 0}), 0, name));
  TRY(sync(pages_.get(), name));
  pages_.reset();
  return {};
}

Status Writer::commit(const File& file) {
  if (pages_.valid()) TRY(finish_pages());
  const std::string metadata = encode(file);
  if (metadata.size() > kMaxMetadata)
    return Error(EFBIG, metadata_name(id_) + " would be larger than a reader accepts");
  TRY(write_message(dir_fd_, metadata_name(id_), FileKind::kMetadata, metadata));

  const Manifest manifest{file.session_id, id_, metadata.size(), hash_bytes(as_bytes(metadata)), pages_length_};
  const std::string name = manifest_name(id_);
  const std::string unfinished = name + ".tmp";
  TRY(write_message(dir_fd_, unfinished, FileKind::kManifest, encode(manifest)));
  if (os::renameat(dir_fd_, unfinished.c_str(), dir_fd_, name.c_str()) != 0)
    return Error::from_errno(errno, "renaming " + unfinished);
  return sync(dir_fd_, "the image directory");
}

}  // namespace plugin::image
