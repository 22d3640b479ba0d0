// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// An image of CRIU is two magic numbers, then messages of protobuf, each behind its length (32 bits, little-endian).
#include "plugin/criu_images.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <optional>
#include <set>
#include <string>

#include "base/os.h"
#include "base/text_file.h"
#include "base/unique_fd.h"
#include "plugin/image/wire.h"

namespace plugin {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;
using image::WireField;
using image::WireReader;

constexpr std::uint32_t kCommonMagic = 0x54564319;
constexpr std::uint32_t kPstreeMagic = 0x50273030;
constexpr std::uint32_t kIdsMagic = 0x54432030;
constexpr std::uint32_t kFdinfoMagic = 0x56213732;
constexpr std::uint32_t kMmMagic = 0x57492820;
constexpr std::uint32_t kPagemapMagic = 0x56084025;

// Numbers of members, and values of CRIU's enumerations.
constexpr std::uint32_t kPstreePid = 1, kPstreeParent = 2, kPstreeThreads = 5;
constexpr std::uint32_t kIdsFiles = 2;
constexpr std::uint32_t kFdinfoId = 1, kFdinfoFlags = 2, kFdinfoType = 3, kFdinfoFd = 4;
constexpr std::uint64_t kTypeExternal = 16;
constexpr std::uint32_t kMmVmas = 14;
constexpr std::uint32_t kVmaStart = 1, kVmaEnd = 2, kVmaOffset = 3, kVmaFile = 4, kVmaProtection = 5, kVmaStatus = 7,
                        kVmaFlags = 10;
constexpr std::uint64_t kRegular = 1U << 0, kFilePrivate = 1U << 6, kFileShared = 1U << 7, kAnonymousShared = 1U << 8,
                        kSocket = 1U << 11, kMemfd = 1U << 14, kExternalPlugin = 1U << 27;
constexpr std::uint32_t kProtectionWrite = 2;
constexpr std::uint32_t kPagemapFlags = 4;
constexpr std::uint64_t kLazy = 1U << 1, kPresent = 1U << 2;

constexpr std::uint64_t kMaxImage = 1ULL << 30;
constexpr std::uint32_t kFirstFreePid = 300;  // lower ones belong to the system

Error damaged(const std::string& name) { return {EPROTO, name + ": not an image of CRIU that the plugin understands"}; }

Result<std::vector<std::byte>> read_whole(int dir_fd, const std::string& name) {
  const UniqueFd file(os::openat(dir_fd, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  struct stat status {};
  if (!file.valid() || os::fstat(file.get(), &status) != 0) return Error::from_errno(errno, "reading " + name);
  if (!S_ISREG(status.st_mode) || status.st_size < 0 || static_cast<std::uint64_t>(status.st_size) > kMaxImage)
    return damaged(name);
  std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = os::pread(file.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error::from_errno(errno, "reading " + name);
    if (count == 0) return damaged(name);
    done += static_cast<std::size_t>(count);
  }
  return bytes;
}

std::uint32_t little_endian(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * i);
  return value;
}

// Calls `take` with each message of an image; it answers whether it understands the message.
template <typename Take>
Status read_image(int dir_fd, const std::string& name, std::uint32_t magic, Take take) {
  ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, read_whole(dir_fd, name));
  std::span<const std::byte> rest(bytes);
  if (rest.size() < 8 || little_endian(rest) != kCommonMagic || little_endian(rest.subspan(4)) != magic)
    return damaged(name);
  rest = rest.subspan(8);
  while (!rest.empty()) {
    if (rest.size() < 4) return damaged(name);
    const std::uint32_t length = little_endian(rest);
    rest = rest.subspan(4);
    if (length > rest.size()) return damaged(name);
    if (!take(WireReader(rest.first(length)))) return damaged(name);
    rest = rest.subspan(length);
  }
  return {};
}

CriuVma::Source source_of(std::uint64_t status) {
  if ((status & kExternalPlugin) != 0) return CriuVma::Source::kPlugin;
  if ((status & kRegular) == 0) return CriuVma::Source::kNone;
  if ((status & kFileShared) != 0) return CriuVma::Source::kOpened;
  if ((status & kFilePrivate) != 0) return CriuVma::Source::kMaybe;
  if ((status & (kAnonymousShared | kSocket)) != 0) return CriuVma::Source::kSeparate;
  return CriuVma::Source::kNone;
}

std::optional<CriuVma> read_vma(WireReader message) {
  CriuVma vma;
  std::uint64_t status = 0;
  std::uint64_t protection = 0;
  std::optional<std::uint64_t> flags;
  WireField member;
  while (message.next(member)) {
    if (member.number == kVmaStart) vma.start = member.value;
    if (member.number == kVmaEnd) vma.end = member.value;
    if (member.number == kVmaOffset) vma.offset = member.value;
    if (member.number == kVmaFile) vma.file_id = member.value;
    if (member.number == kVmaProtection) protection = member.value;
    if (member.number == kVmaStatus) status = member.value;
    if (member.number == kVmaFlags) flags = member.value;
  }
  if (message.malformed()) return std::nullopt;
  vma.source = source_of(status);
  vma.is_memfd = (status & kMemfd) != 0;
  // Without flags CRIU takes those that the mapping must have had.
  const bool writable = (protection & kProtectionWrite) != 0 && (status & kFileShared) != 0;
  vma.flags = static_cast<std::uint32_t>(flags.value_or(writable ? O_RDWR : O_RDONLY));
  return vma;
}

Result<std::vector<CriuVma>> read_vmas(int dir_fd, std::uint32_t pid) {
  std::vector<CriuVma> vmas;
  TRY(read_image(dir_fd, "mm-" + std::to_string(pid) + ".img", kMmMagic, [&](WireReader message) {
    WireField member;
    while (message.next(member)) {
      if (member.number != kMmVmas) continue;
      const auto vma = read_vma(WireReader(member.payload));
      if (!vma) return false;
      vmas.push_back(*vma);
    }
    return !message.malformed();
  }));
  return vmas;
}

Result<std::vector<ExternalFd>> read_files(int dir_fd, std::uint32_t files_id) {
  std::vector<ExternalFd> files;
  TRY(read_image(dir_fd, "fdinfo-" + std::to_string(files_id) + ".img", kFdinfoMagic, [&](WireReader message) {
    ExternalFd file;
    std::uint64_t type = 0;
    WireField member;
    while (message.next(member)) {
      if (member.number == kFdinfoId) file.file_id = static_cast<std::uint32_t>(member.value);
      if (member.number == kFdinfoFlags) file.close_on_exec = (member.value & FD_CLOEXEC) != 0;
      if (member.number == kFdinfoType) type = member.value;
      if (member.number == kFdinfoFd) file.number = static_cast<int>(member.value);
    }
    if (type == kTypeExternal) files.push_back(file);
    return !message.malformed();
  }));
  return files;
}

// Nothing for a zombie.
Result<std::optional<std::uint32_t>> read_files_id(int dir_fd, std::uint32_t pid) {
  const std::string name = "ids-" + std::to_string(pid) + ".img";
  if (os::faccessat(dir_fd, name.c_str(), F_OK, 0) != 0 && errno == ENOENT) return std::optional<std::uint32_t>();
  std::optional<std::uint32_t> id;
  TRY(read_image(dir_fd, name, kIdsMagic, [&](WireReader message) {
    WireField member;
    while (message.next(member))
      if (member.number == kIdsFiles) id = static_cast<std::uint32_t>(member.value);
    return !message.malformed();
  }));
  return id;
}

struct TreeEntry {
  std::uint32_t pid = 0;
  std::uint32_t parent = 0;
};

Result<std::vector<TreeEntry>> read_tree(int dir_fd, std::set<std::uint32_t>& threads) {
  std::vector<TreeEntry> tree;
  TRY(read_image(dir_fd, "pstree.img", kPstreeMagic, [&](WireReader message) {
    TreeEntry entry;
    WireField member;
    while (message.next(member)) {
      if (member.number == kPstreePid) entry.pid = static_cast<std::uint32_t>(member.value);
      if (member.number == kPstreeParent) entry.parent = static_cast<std::uint32_t>(member.value);
      if (member.number != kPstreeThreads) continue;
      if (member.type == image::kWireVarint) threads.insert(static_cast<std::uint32_t>(member.value));
      WireReader packed(member.payload);
      for (std::uint64_t thread = 0; packed.next_packed(thread);) threads.insert(static_cast<std::uint32_t>(thread));
      if (packed.malformed()) return false;
    }
    tree.push_back(entry);
    threads.insert(entry.pid);
    return !message.malformed();
  }));
  return tree;
}

}  // namespace

Result<bool> lacks_pages(int dir_fd, std::uint32_t pid) {
  bool lacks = false;
  auto status = read_image(dir_fd, "pagemap-" + std::to_string(pid) + ".img", kPagemapMagic, [&](WireReader message) {
    std::uint64_t flags = 0;
    for (WireField field; message.next(field);)
      if (field.number == kPagemapFlags) flags = field.value;
    // CRIU marks as lazy whatever could be served later, in every dump.
    lacks = lacks || (flags & (kLazy | kPresent)) == kLazy;
    return !message.malformed();
  });
  if (!status.ok() && !base::is_absence(status.error())) return std::move(status).error();
  return lacks;
}

Result<CriuImages> CriuImages::read(int dir_fd) {
  CriuImages images;
  ASSIGN_OR_RETURN(const std::vector<TreeEntry> tree, read_tree(dir_fd, images.threads_));
  for (const TreeEntry& entry : tree) {
    CriuTask& task = images.tasks_[entry.pid];
    task.parent = entry.parent;
    ASSIGN_OR_RETURN(const auto files_id, read_files_id(dir_fd, entry.pid));
    if (!files_id) continue;
    ASSIGN_OR_RETURN(task.files, read_files(dir_fd, *files_id));
    ASSIGN_OR_RETURN(task.vmas, read_vmas(dir_fd, entry.pid));
  }
  return images;
}

std::uint32_t CriuImages::unused_pid(std::uint32_t number) const {
  std::uint32_t pid = kFirstFreePid + number;
  for (auto thread = threads_.lower_bound(kFirstFreePid); thread != threads_.end() && *thread <= pid; ++thread) ++pid;
  return pid;
}

const CriuTask* CriuImages::find(std::uint32_t pid) const {
  const auto found = tasks_.find(pid);
  return found == tasks_.end() ? nullptr : &found->second;
}

bool CriuImages::uses_file(std::uint32_t file_id) const {
  for (const auto& [pid, task] : tasks_)
    for (const ExternalFd& file : task.files)
      if (file.file_id == file_id) return true;
  return false;
}

}  // namespace plugin
