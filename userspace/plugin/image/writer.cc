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
#include <limits>

#include "base/os.h"
#include "plugin/image/codec.h"
#include "plugin/image/directory.h"
#include "plugin/image/file_bytes.h"
#include "plugin/image/reader.h"

namespace plugin::image {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

constexpr mode_t kImageMode = 0600;  // the memory of a program, which only its owner may read
// One writes what others hash. More than this many do not make one file system faster, and take processors from others.
constexpr int kMostWorkers = 4;
// Files that prepare() keeps open before it syncs them: many small ones share the cost of a journal's commit.
constexpr std::size_t kMaxUnsynced = 32;

Status sync_file(int fd, const std::string& name) {
  // A directory or pipe-like file system may not know fsync; that is no loss of data.
  if (os::fsync(fd) != 0 && errno != EINVAL && errno != EROFS) return Error::from_errno(errno, "fsync of " + name);
  return {};
}

// What `kfd-criu flatten` leaves when it is killed must not take the place of a newer dump.
Status remove_flattened(int dir_fd) {
  const std::string folder(kFlattenFolder);
  const UniqueFd dir(os::openat(dir_fd, folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!dir.valid() && errno == ENOENT) return {};
  if (!dir.valid()) return Error::from_errno(errno, "opening " + folder + " of the image directory");
  ASSIGN_OR_RETURN(const auto names, list_names(dir.get()));
  for (const auto& [name, spelled] : names) TRY(remove_if_there(dir.get(), spelled));
  if (os::unlinkat(dir_fd, folder.c_str(), AT_REMOVEDIR) != 0)
    return Error::from_errno(errno, "removing " + folder + " from the image directory");
  return {};
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

Error named(Error error, const std::string& name) { return std::move(error).wrap(name); }

}  // namespace

Result<std::unique_ptr<SessionWriter>> SessionWriter::create(int dir_fd, std::uint64_t session_id) {
  // The commit marks of earlier dumps go first, or a crash now would leave one together with half of a new image.
  ASSIGN_OR_RETURN(const auto names, list_names(dir_fd));
  for (const auto& [name, spelled] : names) TRY(remove_if_there(dir_fd, spelled));
  TRY(remove_flattened(dir_fd));
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

void SessionWriter::start_workers() {
  writeback_ = std::make_unique<Writeback>(most_waiting_, wait_);
  workers_ = std::make_unique<base::Workers>(std::clamp(os::get_nprocs(), 1, kMostWorkers));
}

void SessionWriter::stop_workers() {
  workers_.reset();
  if (writeback_ == nullptr) return;
  auto status = writeback_->end();
  if (disk_.ok()) disk_ = std::move(status);
  writeback_.reset();
}

void SessionWriter::write_back_by(std::uint64_t most, Writeback::Wait wait) {
  most_waiting_ = most;
  wait_ = std::move(wait);
}

FileWriter* SessionWriter::find_writer(std::uint32_t id) const {
  const auto found = std::find_if(writers_.begin(), writers_.end(), [id](const auto& each) { return each->id_ == id; });
  return found == writers_.end() ? nullptr : found->get();
}

FileWriter& SessionWriter::file(std::uint32_t id) {
  if (FileWriter* found = find_writer(id)) return *found;
  FileWriter& file = nameless_file();
  file.id_ = id;
  return file;
}

FileWriter& SessionWriter::nameless_file() {
  const auto number = static_cast<std::uint32_t>(writers_.size());
  return *writers_.emplace_back(new FileWriter(*this, number, std::nullopt));
}

Status SessionWriter::give_id(FileWriter& file, std::uint32_t id) {
  TRY(file.settle_all());
  const std::string unfinished = file.pages_name();
  const std::string name = pages_name(id);
  if (file.id_ || find_writer(id) != nullptr) return Error(EEXIST, name + " has contents already");
  if (file.pages_.valid()) {
    if (os::renameat(dir_fd_, unfinished.c_str(), dir_fd_, name.c_str()) != 0)
      return Error::from_errno(errno, "renaming " + unfinished + " to " + name);
    const std::lock_guard lock(created_mutex_);
    created_.insert(name);
    created_.erase(unfinished);
  }
  file.id_ = id;
  return {};
}

void SessionWriter::add_to(Timing& timing) const {
  const auto us = [](std::chrono::nanoseconds time) {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
  };
  for (const auto& writer : writers_) {
    timing.copied_bytes += writer->appended();
    timing.stored_bytes += writer->stored();
    timing.referred_bytes += writer->referred();
    timing.equal_bytes += writer->equal();
    timing.hashing_us += us(writer->hashing());
    timing.writing_us += us(writer->writing());
  }
  timing.syncing_us += us(syncing_);
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
  const std::lock_guard lock(created_mutex_);
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
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& [name, fd] : unsynced_) TRY(sync_file(fd.get(), name));
  unsynced_.clear();
  syncing_ += std::chrono::steady_clock::now() - begin;
  return {};
}

Status SessionWriter::finish_pages(FileWriter& contents) {
  const std::string name = contents.pages_name();
  // The last chunk's padding is part of the file, so that its length says whether it is complete.
  if (os::ftruncate(contents.pages_.get(), static_cast<off_t>(contents.pages_length_)) != 0)
    return Error::from_errno(errno, "setting the length of " + name);
  const Header header{FileKind::kPages, contents.stored(), pages_tag(session_id_, *contents.id_)};
  TRY(write_all(contents.pages_.get(), encode_header(header), 0, name));
  unsynced_.emplace_back(name, std::move(contents.pages_));
  return {};
}

Status SessionWriter::write_index(std::span<const BoRecord> bos, FileWriter* contents, FileEntry& entry) {
  Index index;
  index.bos.assign(bos.begin(), bos.end());
  if (contents != nullptr) {
    TRY(contents->settle_all());
    ASSIGN_OR_RETURN(index.chunks, contents->take_chunks(entry.sources));
    entry.pages_length = contents->pages_length_;
    if (contents->pages_.valid()) TRY(finish_pages(*contents));
  }
  const std::string name = index_name(entry.id);
  if (auto status = validate(index, entry.pages_length, Version::k2, entry.sources); !status.ok())
    return named(std::move(status).error(), name);
  const auto payload = encode_index(index);
  if (payload.size() > kMaxIndex) return Error(EFBIG, name + " would be larger than a reader accepts");
  entry.index_length = payload.size();
  entry.packed = is_packed(index);
  ASSIGN_OR_RETURN(entry.index_hash,
                   write_payload(name, entry.packed ? FileKind::kPackedIndex : FileKind::kIndex, payload));
  return {};
}

Result<FileEntry> SessionWriter::write_file(const File& file) {
  FileEntry entry;
  entry.id = file.id;
  entry.kind = kind_of(file);
  FileWriter* contents = find_writer(file.id);
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

Status SessionWriter::prepare(Session session, const std::function<Timing()>& timing) {
  if (state_ != State::kOpen) return Error(EINVAL, "the dump is complete already");
  Manifest manifest;
  manifest.session = std::move(session);
  manifest.session.id = session_id_;
  manifest.session.version = Version::k2;
  // A file reads chunks of others before these are closed.
  for (const auto& writer : writers_) {
    TRY(writer->settle_all());
    if (!writer->id_) return Error(EINVAL, writer->pages_name() + " has the contents of a file without an id");
  }
  stop_workers();
  TRY(disk_);
  for (const File& file : files_)
    if (auto status = validate(file, manifest.session); !status.ok())
      return named(std::move(status).error(), metadata_name(file.id));
  for (const File& file : files_) {
    ASSIGN_OR_RETURN(const FileEntry entry, write_file(file));
    manifest.files.push_back(entry);
  }
  TRY(sync_all());
  if (timing) manifest.session.timing = timing();
  const std::string name(kManifestName);
  if (auto status = validate(manifest); !status.ok()) return named(std::move(status).error(), name);
  const std::string payload = encode(manifest);
  if (payload.size() > kMaxManifest) return Error(EFBIG, name + " would be larger than a reader accepts");
  if (auto read_back = decode_manifest(bytes_of(payload)); !read_back.ok())
    return named(std::move(read_back).error(), name);
  TRY(write_payload(std::string(kUnfinishedManifestName), FileKind::kManifest, bytes_of(payload)));
  TRY(sync_all());
  TRY(sync_directory(dir_fd_));
  entries_ = std::move(manifest.files);
  state_ = State::kPrepared;
  return {};
}

Status SessionWriter::commit() {
  if (state_ != State::kPrepared) return Error(EINVAL, "the dump is not complete");
  for (const FileEntry& entry : entries_)
    if (auto status = check_sources(dir_fd_, entry); !status.ok())
      return std::move(status).error().wrap("a file that this dump refers to has changed since");
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
  stop_workers();
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
