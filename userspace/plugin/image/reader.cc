// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Reading order: the manifest; metadata and index against it; values; then the pages file against manifest and index.
#include "plugin/image/reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>

#include "base/os.h"
#include "plugin/image/codec.h"
#include "plugin/image/directory.h"
#include "plugin/image/file_bytes.h"
#include "plugin/image/upstream.h"

namespace plugin::image {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

constexpr std::uint64_t kMaxManifest1 = 4096;

Result<std::uint64_t> regular_file_length(int fd) {
  struct stat status {};
  if (os::fstat(fd, &status) != 0) return Error::from_errno(errno, "fstat");
  if (!S_ISREG(status.st_mode)) return Error(EINVAL, "not a regular file");
  return static_cast<std::uint64_t>(status.st_size);
}

// Nothing when there is no such file. O_NONBLOCK because opening a FIFO would wait for its writer.
Result<std::optional<UniqueFd>> open_if_there(int dir_fd, const std::string& name) {
  UniqueFd fd(os::openat(dir_fd, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (fd.valid()) return std::optional<UniqueFd>(std::move(fd));
  if (errno == ENOENT) return std::optional<UniqueFd>();
  if (errno == ELOOP) return Error(ELOOP, "is a symbolic link, and no image of this plugin");
  return Error::from_errno(errno, "opening");
}

Result<UniqueFd> open_existing(int dir_fd, const std::string& name) {
  ASSIGN_OR_RETURN(std::optional<UniqueFd> fd, open_if_there(dir_fd, name));
  if (!fd) return Error(ENOENT, "is missing: the image directory was not copied completely");
  return std::move(*fd);
}

struct Payload {
  std::vector<std::byte> bytes;
  std::uint64_t hash = 0;
};

// Header and payload; nothing is allocated before the header's checksum and all lengths agree.
Result<Payload> read_payload(int fd, FileKind kind, Version version, std::uint64_t limit) {
  ASSIGN_OR_RETURN(const std::uint64_t length, regular_file_length(fd));
  std::array<std::byte, kHeaderSize> head{};
  const auto present = std::span(head).first(std::min<std::uint64_t>(length, kHeaderSize));
  TRY(read_all(fd, present, 0));
  ASSIGN_OR_RETURN(const Header header, decode_header(present, kind, version));
  if (header.payload > limit) return Error(EINVAL, "larger than any such file can be");
  if (length != kHeaderSize + header.payload)
    return Error(EINVAL, "truncated or extended: its length is not what it says");
  Payload payload{std::vector<std::byte>(header.payload), header.hash};
  TRY(read_all(fd, payload.bytes, kHeaderSize));
  if (hash_bytes(payload.bytes) != header.hash) return Error(EINVAL, "damaged: wrong checksum");
  return payload;
}

// A file that the manifest describes by length and checksum.
Result<std::vector<std::byte>> read_committed(int dir_fd, const std::string& name, FileKind kind, Version version,
                                              std::uint64_t length, std::uint64_t hash) {
  ASSIGN_OR_RETURN(const UniqueFd fd, open_existing(dir_fd, name));
  ASSIGN_OR_RETURN(Payload payload, read_payload(fd.get(), kind, version, length));
  if (payload.bytes.size() != length || payload.hash != hash)
    return Error(EINVAL, "is not the one that was committed (of another dump?)");
  return std::move(payload.bytes);
}

template <typename T>
Result<T> in_file(const std::string& name, Result<T> result) {
  if (result.ok()) return result;
  return std::move(result).error().wrap(name);
}

// ---- version 2 ----

Result<Manifest> read_manifest(int fd) {
  ASSIGN_OR_RETURN(const Payload payload, read_payload(fd, FileKind::kManifest, Version::k2, kMaxManifest));
  ASSIGN_OR_RETURN(Manifest manifest, decode_manifest(payload.bytes));
  TRY(validate(manifest));
  return manifest;
}

Result<File> read_metadata(int dir_fd, const Session& session, const FileEntry& entry) {
  ASSIGN_OR_RETURN(const auto bytes, read_committed(dir_fd, metadata_name(entry.id), FileKind::kMetadata, Version::k2,
                                                    entry.metadata_length, entry.metadata_hash));
  ASSIGN_OR_RETURN(DecodedFile decoded, decode_file(bytes));
  if (decoded.session_id != session.id) return Error(EINVAL, "is of another dump than its manifest");
  if (decoded.file.id != entry.id || kind_of(decoded.file) != entry.kind)
    return Error(EINVAL, "describes another file than its manifest says");
  return std::move(decoded.file);
}

Result<Index> read_index(int dir_fd, const FileEntry& entry) {
  const FileKind kind = entry.packed ? FileKind::kPackedIndex : FileKind::kIndex;
  ASSIGN_OR_RETURN(const auto bytes, read_committed(dir_fd, index_name(entry.id), kind, Version::k2, entry.index_length,
                                                    entry.index_hash));
  ASSIGN_OR_RETURN(Index index, decode_index(bytes, entry.packed));
  TRY(validate(index, entry.pages_length, Version::k2, entry.sources));
  return index;
}

// ---- version 1 ----

Result<DecodedFile1> read_metadata_1(int dir_fd, const FileEntry& entry, std::uint64_t session_id) {
  if (entry.metadata_length > kMaxMetadata) return Error(EINVAL, "larger than any such file can be");
  ASSIGN_OR_RETURN(const auto bytes, read_committed(dir_fd, metadata_name(entry.id), FileKind::kMetadata, Version::k1,
                                                    entry.metadata_length, entry.metadata_hash));
  ASSIGN_OR_RETURN(DecodedFile1 decoded, decode_file_1(bytes));
  if (decoded.session_id != session_id) return Error(EINVAL, "is of another dump than its manifest");
  decoded.file.id = entry.id;
  if (kind_of(decoded.file) == Kind::kKfd) TRY(validate(decoded.index, entry.pages_length, Version::k1));
  return decoded;
}

Result<Manifest1> read_manifest_1(int dir_fd, std::uint32_t id) {
  ASSIGN_OR_RETURN(const UniqueFd fd, open_existing(dir_fd, manifest_name_1(id)));
  ASSIGN_OR_RETURN(const Payload payload, read_payload(fd.get(), FileKind::kManifest, Version::k1, kMaxManifest1));
  ASSIGN_OR_RETURN(const Manifest1 manifest, decode_manifest_1(payload.bytes));
  if (manifest.file.id != id) return Error(EINVAL, "belongs to another file (renamed?)");
  if (manifest.file.pages_length != 0 && manifest.file.pages_length < kPageSize)
    return Error(EINVAL, "impossible length of the pages file");
  return manifest;
}

// ---- pages ----

// `length` bytes of the file `id` of a session.
struct PagesFile {
  Version version = Version::k2;
  std::uint64_t session_id = 0;
  std::uint32_t id = 0;
  std::uint64_t length = 0;
};

Result<UniqueFd> open_pages(int dir_fd, const PagesFile& expected) {
  ASSIGN_OR_RETURN(UniqueFd fd, open_existing(dir_fd, pages_name(expected.id)));
  ASSIGN_OR_RETURN(const std::uint64_t length, regular_file_length(fd.get()));
  if (length != expected.length)
    return Error(EINVAL, "truncated or extended: has " + std::to_string(length) + " bytes, committed were " +
                             std::to_string(expected.length));
  std::array<std::byte, kHeaderSize> head{};
  TRY(read_all(fd.get(), head, 0));
  ASSIGN_OR_RETURN(const Header header, decode_header(head, FileKind::kPages, expected.version));
  if (header.payload != length - kPageSize) return Error(EINVAL, "its length is not what it says");
  if (expected.version == Version::k1) return fd;
  if (header.hash != pages_tag(expected.session_id, expected.id))
    return Error(EINVAL, "is of another dump or another file than its manifest");
  TRY(check_zeros(fd.get(), kHeaderSize, kPageSize - kHeaderSize));
  return fd;
}

// Step by step: Linux follows at most 40 links in one path. Not valid: the directory itself.
Result<UniqueFd> open_earlier(int dir_fd, std::uint32_t depth) {
  UniqueFd dir;
  for (std::uint32_t i = 0; i < depth; ++i) {
    ASSIGN_OR_RETURN(dir, open_parent(dir.valid() ? dir.get() : dir_fd));
  }
  return dir;
}

// Appends the pages files of other files.
Status open_sources(int dir_fd, const FileEntry& entry, std::vector<Contents::Pages>& pages) {
  const auto begins = begins_of(entry.pages_length, entry.sources);
  for (std::size_t i = 0; i < entry.sources.size(); ++i) {
    const Source& source = entry.sources[i];
    const std::string name = source_name(source);
    ASSIGN_OR_RETURN(const UniqueFd dir, in_file(name, open_earlier(dir_fd, source.depth)));
    ASSIGN_OR_RETURN(UniqueFd fd,
                     in_file(name, open_pages(dir.valid() ? dir.get() : dir_fd,
                                              {Version::k2, source.session_id, source.id, source.pages_length})));
    pages.push_back({name, std::move(fd), begins[i]});
  }
  return {};
}

}  // namespace

Status check_sources(int dir_fd, const FileEntry& entry) {
  std::vector<Contents::Pages> sources;
  return open_sources(dir_fd, entry, sources);
}

Result<Contents> open_contents(int dir_fd, const Loaded& loaded) {
  const FileEntry& entry = loaded.entry();
  if (!has_index(loaded.file())) return Error(EINVAL, metadata_name(entry.id) + ": has no contents");
  if (loaded.session().version == Version::kUpstream) return upstream::open_contents(dir_fd, loaded);
  std::vector<Contents::Pages> pages;
  if (entry.pages_length != 0) {
    const Session& session = loaded.session();
    ASSIGN_OR_RETURN(
        UniqueFd fd,
        in_file(pages_name(entry.id), open_pages(dir_fd, {session.version, session.id, entry.id, entry.pages_length})));
    pages.push_back({pages_name(entry.id), std::move(fd), 0});
  }
  TRY(open_sources(dir_fd, entry, pages));
  return Contents(loaded, std::move(pages));
}

// ---- loading ----

Result<std::optional<Manifest>> load_manifest(int dir_fd) {
  const std::string name(kManifestName);
  ASSIGN_OR_RETURN(const std::optional<UniqueFd> fd, in_file(name, open_if_there(dir_fd, name)));
  if (!fd) return std::optional<Manifest>();
  ASSIGN_OR_RETURN(Manifest manifest, in_file(name, read_manifest(fd->get())));
  return std::optional<Manifest>(std::move(manifest));
}

Result<Loaded> load_file(int dir_fd, const std::shared_ptr<const Session>& session, const FileEntry& entry) {
  const std::string name = metadata_name(entry.id);
  ASSIGN_OR_RETURN(File file, in_file(name, read_metadata(dir_fd, *session, entry)));
  Index index;
  if (has_index(file) != (entry.index_length != 0))
    return Error(EINVAL, name + ": has objects and no index, or an index and no objects");
  if (has_index(file)) {
    ASSIGN_OR_RETURN(index, in_file(index_name(entry.id), read_index(dir_fd, entry)));
  }
  // Before anything is restored: a dump without the ones that it refers to is no dump.
  if (auto status = check_sources(dir_fd, entry); !status.ok()) return std::move(status).error().wrap(name);
  Loaded loaded(session, entry, std::move(file), std::move(index));
  if (auto status = validate(loaded.file(), *session); !status.ok()) return std::move(status).error().wrap(name);
  return loaded;
}

Result<Loaded> load_file_1(int dir_fd, std::uint32_t id) {
  const std::string name = metadata_name(id);
  ASSIGN_OR_RETURN(Manifest1 manifest, in_file(manifest_name_1(id), read_manifest_1(dir_fd, id)));
  ASSIGN_OR_RETURN(DecodedFile1 decoded, in_file(name, read_metadata_1(dir_fd, manifest.file, manifest.session_id)));
  auto session = std::make_shared<Session>();
  session->id = manifest.session_id;
  session->version = Version::k1;
  session->nodes = std::move(decoded.nodes);
  if (const auto* kfd = std::get_if<KfdFile>(&decoded.file.contents)) session->processes.push_back({kfd->pid, {}});
  manifest.file.kind = kind_of(decoded.file);
  Loaded loaded(session, manifest.file, std::move(decoded.file), std::move(decoded.index));
  if (auto status = validate(loaded.file(), *session); !status.ok()) return std::move(status).error().wrap(name);
  return loaded;
}

}  // namespace plugin::image
