// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Reading order: manifest, metadata against the manifest, values, then the pages file against the manifest.
#include "plugin/image/reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <set>

#include "base/os.h"
#include "plugin/image/codec.h"

namespace plugin::image {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

constexpr std::uint64_t kMaxManifest = 4096;
// What manifest_name() and metadata_name() put before the id.
constexpr const char* kManifestPrefix = "amdgpu-manifest-";
constexpr const char* kMetadataPrefix = "amdgpu-";

Status read_all(int fd, std::span<std::byte> out, std::uint64_t offset) {
  while (!out.empty()) {
    const ssize_t count = os::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error::from_errno(errno, "reading");
    if (count == 0) return Error(EINVAL, "truncated");
    out = out.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return {};
}

Result<std::uint64_t> regular_file_length(int fd) {
  struct stat status {};
  if (os::fstat(fd, &status) != 0) return Error::from_errno(errno, "fstat");
  if (!S_ISREG(status.st_mode)) return Error(EINVAL, "not a regular file");
  return static_cast<std::uint64_t>(status.st_size);
}

Result<std::vector<std::byte>> read_message(int fd, FileKind kind, std::uint64_t limit) {
  ASSIGN_OR_RETURN(const std::uint64_t length, regular_file_length(fd));
  std::array<std::byte, kHeaderSize> bytes{};
  TRY(read_all(fd, std::span(bytes).first(std::min<std::uint64_t>(length, kHeaderSize)), 0));
  ASSIGN_OR_RETURN(const Header header,
                   decode_header(std::span(bytes).first(std::min<std::uint64_t>(length, kHeaderSize)), kind));
  if (header.payload > limit) return Error(EINVAL, "larger than any such file can be");
  if (length != kHeaderSize + header.payload)
    return Error(EINVAL, "truncated or extended: its length is not what it says");
  std::vector<std::byte> payload(header.payload);
  TRY(read_all(fd, payload, kHeaderSize));
  if (hash_bytes(payload) != header.hash) return Error(EINVAL, "damaged: wrong checksum");
  return payload;
}

// Nothing when there is no such file.
Result<std::optional<UniqueFd>> open_if_there(int dir_fd, const std::string& name) {
  UniqueFd fd(os::openat(dir_fd, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (fd.valid()) return std::optional<UniqueFd>(std::move(fd));
  if (errno == ENOENT) return std::optional<UniqueFd>();
  return Error::from_errno(errno, "opening " + name);
}

Result<UniqueFd> open_existing(int dir_fd, const std::string& name) {
  ASSIGN_OR_RETURN(std::optional<UniqueFd> fd, open_if_there(dir_fd, name));
  if (!fd) return Error(ENOENT, name + " is missing: the image directory was not copied completely");
  return std::move(*fd);
}

Result<Manifest> read_manifest(int fd, std::uint32_t id) {
  ASSIGN_OR_RETURN(const auto payload, read_message(fd, FileKind::kManifest, kMaxManifest));
  ASSIGN_OR_RETURN(const Manifest manifest, decode_manifest(payload));
  if (manifest.id != id) return Error(EINVAL, "belongs to another file (renamed?)");
  return manifest;
}

Result<File> read_metadata(int dir_fd, const Manifest& manifest) {
  ASSIGN_OR_RETURN(const UniqueFd fd, open_existing(dir_fd, metadata_name(manifest.id)));
  ASSIGN_OR_RETURN(const auto payload, read_message(fd.get(), FileKind::kMetadata, kMaxMetadata));
  if (payload.size() != manifest.metadata_length || hash_bytes(payload) != manifest.metadata_hash)
    return Error(EINVAL, "is not the one that was committed (of another dump?)");
  ASSIGN_OR_RETURN(File file, decode_file(payload));
  if (file.session_id != manifest.session_id) return Error(EINVAL, "is of another dump than its manifest");
  return file;
}

Result<UniqueFd> open_pages(int dir_fd, const Manifest& manifest) {
  ASSIGN_OR_RETURN(UniqueFd fd, open_existing(dir_fd, pages_name(manifest.id)));
  ASSIGN_OR_RETURN(const std::uint64_t length, regular_file_length(fd.get()));
  if (length != manifest.pages_length)
    return Error(EINVAL, "truncated or extended: has " + std::to_string(length) + " bytes, committed were " +
                             std::to_string(manifest.pages_length));
  std::array<std::byte, kHeaderSize> bytes{};
  TRY(read_all(fd.get(), bytes, 0));
  ASSIGN_OR_RETURN(const Header header, decode_header(bytes, FileKind::kPages));
  if (header.payload != length - kPageSize) return Error(EINVAL, "its length is not what it says");
  return fd;
}

template <typename T>
Result<T> named(const std::string& name, Result<T> result) {
  if (result.ok()) return result;
  return std::move(result).error().wrap(name);
}

// The id in "<prefix><id>.img"; nothing for other names.
std::optional<std::uint32_t> id_after(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  std::uint32_t id = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
  if (error != std::errc() ||
      std::string_view(end, static_cast<std::size_t>(name.data() + name.size() - end)) != ".img")
    return std::nullopt;
  return id;
}

}  // namespace

Status Contents::read_chunk(const Chunk& chunk, std::span<std::byte> out) const {
  if (chunk.offset == 0) {
    std::fill(out.begin(), out.end(), std::byte{0});
    return {};
  }
  const std::string name = pages_name(id_);
  if (auto status = read_all(pages_.get(), out, chunk.offset); !status.ok())
    return std::move(status).error().wrap(name);
  if (hash_bytes(out) != chunk.hash)
    return Error(EINVAL, name + ": damaged: wrong checksum of the chunk at " + std::to_string(chunk.offset));
  return {};
}

Result<std::optional<Loaded>> load(int dir_fd, std::uint32_t id) {
  const std::string name = manifest_name(id);
  ASSIGN_OR_RETURN(std::optional<UniqueFd> manifest_fd, open_if_there(dir_fd, name));
  if (!manifest_fd) {
    ASSIGN_OR_RETURN(const std::optional<UniqueFd> metadata, open_if_there(dir_fd, metadata_name(id)));
    if (!metadata) return std::optional<Loaded>();
    return Error(EINVAL, metadata_name(id) + ": has no " + name + ": its dump did not complete, dump again");
  }
  ASSIGN_OR_RETURN(const Manifest manifest, named(name, read_manifest(manifest_fd->get(), id)));
  ASSIGN_OR_RETURN(File file, named(metadata_name(id), read_metadata(dir_fd, manifest)));
  if (manifest.pages_length != 0 && manifest.pages_length < kPageSize)
    return Error(EINVAL, name + ": impossible length of the pages file");
  if (auto status = validate(file, manifest.pages_length); !status.ok())
    return std::move(status).error().wrap(metadata_name(id));
  return std::optional<Loaded>(Loaded(manifest, std::move(file)));
}

Result<Contents> open_contents(int dir_fd, const Loaded& loaded) {
  const Manifest& manifest = loaded.manifest();
  if (manifest.pages_length == 0) return Contents(manifest.id, UniqueFd());
  ASSIGN_OR_RETURN(UniqueFd pages, named(pages_name(manifest.id), open_pages(dir_fd, manifest)));
  return Contents(manifest.id, std::move(pages));
}

Result<std::vector<std::uint32_t>> list_ids(int dir_fd) {
  UniqueFd copy(os::openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!copy.valid()) return Error::from_errno(errno, "opening the image directory");
  DIR* dir = os::fdopendir(copy.get());
  if (dir == nullptr) return Error::from_errno(errno, "listing the image directory");
  (void)copy.release();  // closedir() closes it
  std::set<std::uint32_t> ids;
  errno = 0;
  while (const dirent* entry = os::readdir(dir)) {
    for (const char* prefix : {kManifestPrefix, kMetadataPrefix})
      if (const auto id = id_after(prefix, entry->d_name)) ids.insert(*id);
    errno = 0;
  }
  const int error = errno;
  os::closedir(dir);
  if (error != 0) return Error::from_errno(error, "listing the image directory");
  return std::vector<std::uint32_t>(ids.begin(), ids.end());
}

}  // namespace plugin::image
