// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// System: sysfs for devices, procfs for processes. See the header for contracts.
#include "plugin/system.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <set>
#include <sstream>

#include "base/os.h"
#include "base/text_file.h"
#include "plugin/topology/snapshot.h"

namespace plugin {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

constexpr std::string_view kRenderName = "renderD";
constexpr std::string_view kDriver = "amdgpu";
constexpr std::string_view kShm = "/shm/";

std::string base_name(std::string_view path) {
  const auto slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

std::string read_link(const std::string& path) {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = os::readlink(path.c_str(), target.data(), target.size());
  return length < 0 ? std::string() : std::string(target.data(), static_cast<std::size_t>(length));
}

std::string device_number(dev_t device) { return std::to_string(major(device)) + ":" + std::to_string(minor(device)); }

std::string first_word(const std::string& path) {
  std::istringstream in(base::read_text_or_empty(path));
  std::string word;
  in >> word;
  return word;
}

template <typename T>
std::optional<T> parse(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Entries of a directory that are numbers.
template <typename T>
std::vector<T> numbers_in(const std::string& path) {
  std::vector<T> numbers;
  DIR* dir = os::opendir(path.c_str());
  if (dir == nullptr) return numbers;
  while (const dirent* entry = os::readdir(dir))
    if (const auto number = parse<T>(entry->d_name)) numbers.push_back(*number);
  os::closedir(dir);
  return numbers;
}

// The rest of the line that begins with `key` and a colon.
std::string field(const std::string& path, std::string_view key) {
  std::istringstream in(base::read_text_or_empty(path));
  std::string line;
  while (std::getline(in, line))
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ':')
      return line.substr(key.size() + 1);
  return {};
}

std::vector<std::uint32_t> numbers_of(const std::string& text) {
  std::vector<std::uint32_t> numbers;
  std::istringstream in(text);
  for (std::uint32_t number = 0; in >> number;) numbers.push_back(number);
  return numbers;
}

Result<image::SharedFile> read_shared_file(const std::string& path, const std::string& name) {
  image::SharedFile file;
  file.name = name;
  const UniqueFd fd(os::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!fd.valid() || os::fstat(fd.get(), &status) != 0) return Error::from_errno(errno, "reading " + path);
  if (!S_ISREG(status.st_mode) || status.st_size < 0 ||
      static_cast<std::size_t>(status.st_size) > image::kMaxSharedFile)
    return Error(EFBIG, path + ": not a small regular file");
  file.contents.resize(static_cast<std::size_t>(status.st_size));
  const ssize_t count = os::pread(fd.get(), file.contents.data(), file.contents.size(), 0);
  if (count != static_cast<ssize_t>(file.contents.size())) return Error(EIO, "reading " + path + ": short");
  file.mode = status.st_mode & 0777U;
  file.uid = status.st_uid;
  file.gid = status.st_gid;
  return file;
}

// Whether a mapping of `maps` (as in proc(5)) is of this file in /dev/shm, under whatever name. sem_open() of glibc
// maps the semaphore it makes under a name that is gone by then.
bool maps_inode(const std::string& maps, const std::string& shm, ino_t inode) {
  std::istringstream in(maps);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string range, mode, offset, device, path;
    ino_t mapped = 0;
    if (words >> range >> mode >> offset >> device >> mapped >> path && mapped == inode && path.starts_with(shm))
      return true;
  }
  return false;
}

// The names that CRIU's --link-remap gave to the inode.
std::vector<std::string> link_remaps(const std::string& directory, ino_t inode) {
  std::vector<std::string> names;
  DIR* dir = os::opendir(directory.c_str());
  if (dir == nullptr) return names;
  while (const dirent* entry = os::readdir(dir))
    if (entry->d_ino == inode && image::is_link_remap(entry->d_name)) names.emplace_back(entry->d_name);
  os::closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

// Leaves an existing file alone: another program may be using it.
Status create_file(const std::string& path, const image::SharedFile& file) {
  // Complete before it has its name: another ROCm program may be starting.
  const std::string unfinished = path + "." + std::to_string(os::getpid());
  if (os::access(path.c_str(), F_OK) == 0) return {};
  (void)os::unlink(unfinished.c_str());
  const UniqueFd fd(os::open(unfinished.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, file.mode));
  if (!fd.valid()) return Error::from_errno(errno, "creating " + unfinished);
  const ssize_t count = os::pwrite(fd.get(), file.contents.data(), file.contents.size(), 0);
  const bool written = count == static_cast<ssize_t>(file.contents.size()) && os::fchmod(fd.get(), file.mode) == 0 &&
                       os::fchown(fd.get(), file.uid, file.gid) == 0;
  const bool named = written && (os::link(unfinished.c_str(), path.c_str()) == 0 || errno == EEXIST);
  const int error = errno;
  (void)os::unlink(unfinished.c_str());
  if (!named) return Error::from_errno(error, "creating " + path);
  return {};
}

Status make_link(const std::string& path, const std::string& link) {
  if (os::link(path.c_str(), link.c_str()) == 0) return {};
  if (errno != EEXIST) return Error::from_errno(errno, "linking " + path + " to " + link);
  struct stat file {};
  struct stat other {};
  if (os::stat(path.c_str(), &file) != 0 || os::stat(link.c_str(), &other) != 0)
    return Error::from_errno(errno, "looking at " + link);
  if (file.st_ino != other.st_ino || file.st_dev != other.st_dev)
    return Error(EEXIST, link + " is left from another restore; remove it and try again");
  return {};
}

}  // namespace

DeviceFile System::identify(const struct stat& status) const {
  if (!S_ISCHR(status.st_mode)) return {};
  const std::string number = device_number(status.st_rdev);
  if (number == first_word(roots_.sys + "/class/kfd/kfd/dev")) return {DeviceKind::kKfd, 0};
  const std::string node = roots_.sys + "/dev/char/" + number;
  const std::string name = base_name(read_link(node));
  if (!name.starts_with(kRenderName)) return {};
  const auto minor_number = parse<std::uint32_t>(std::string_view(name).substr(kRenderName.size()));
  if (!minor_number || base_name(read_link(node + "/device/driver")) != kDriver) return {};
  return {DeviceKind::kRender, *minor_number};
}

DeviceFile System::identify_path(std::string_view path) const {
  while (path.starts_with("//")) path.remove_prefix(1);
  if (path == "/dev/kfd") return {DeviceKind::kKfd, 0};
  const std::string prefix = "/dev/dri/" + std::string(kRenderName);
  if (!path.starts_with(prefix)) return {};
  const auto minor_number = parse<std::uint32_t>(path.substr(prefix.size()));
  if (!minor_number) return {};
  return {DeviceKind::kRender, *minor_number};
}

Result<UniqueFd> System::open_kfd() const {
  const std::string path = roots_.dev + "/kfd";
  UniqueFd fd(os::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid())
    return Error::from_errno(errno, "opening " + path + " (is amdgpu loaded, is the device permitted here?)");
  return fd;
}

Result<UniqueFd> System::open_render(std::uint32_t minor_number, int extra_flags) const {
  const std::string path = roots_.dev + "/dri/renderD" + std::to_string(minor_number);
  UniqueFd fd(os::open(path.c_str(), O_RDWR | O_CLOEXEC | extra_flags));
  if (!fd.valid())
    return Error::from_errno(errno, "opening " + path + " (does it exist and is it permitted in this container?)");
  return fd;
}

Result<std::vector<topology::Node>> System::topology() const {
  return topology::snapshot(roots_.sys + "/class/kfd/kfd/topology");
}

image::Binding System::render_binding(int fd) const {
  // KFD gives the VM that it uses the PASID of its process.
  const auto pasid = numbers_of(field(roots_.proc + "/self/fdinfo/" + std::to_string(fd), "pasid"));
  const std::string processes = roots_.sys + "/class/kfd/kfd/proc";
  const auto pids = numbers_in<pid_t>(processes);
  if (pasid.empty() || pasid[0] == 0 || pids.empty()) return image::Binding::kUnknown;
  for (const pid_t pid : pids)
    if (first_word(processes + "/" + std::to_string(pid) + "/pasid") == std::to_string(pasid[0]))
      return image::Binding::kKfd;
  return image::Binding::kOther;
}

std::vector<std::uint32_t> System::namespace_pids(pid_t pid) const {
  return numbers_of(field(roots_.proc + "/" + std::to_string(pid) + "/status", "NSpid"));
}

std::optional<pid_t> System::find_tracee(std::uint32_t innermost) const {
  const auto self = static_cast<std::uint32_t>(os::gettid());
  for (const pid_t pid : numbers_in<pid_t>(roots_.proc)) {
    const auto tracer = numbers_of(field(roots_.proc + "/" + std::to_string(pid) + "/status", "TracerPid"));
    if (tracer.empty() || tracer[0] != self) continue;
    const auto pids = namespace_pids(pid);
    if (!pids.empty() && pids.back() == innermost) return pid;
  }
  return std::nullopt;
}

Result<SharedFiles> System::read_shared_files(std::optional<pid_t> pid) const {
  SharedFiles result;
  std::string shm = roots_.dev;
  std::string maps;
  if (pid) {
    const std::string process = roots_.proc + "/" + std::to_string(*pid);
    result.own_mount_namespace = read_link(process + "/ns/mnt") != read_link(roots_.proc + "/self/ns/mnt");
    shm = process + "/root" + roots_.dev;
    maps = base::read_text_or_empty(process + "/maps");
    // A descriptor that is open but not mapped counts as well.
    for (const int fd : numbers_in<int>(process + "/fd"))
      maps += read_link(process + "/fd/" + std::to_string(fd)) + "\n";
  }
  shm += kShm;
  for (const std::string_view name_view : image::kSharedFileNames) {
    const std::string name(name_view);
    struct stat status {};
    if (os::stat((shm + name).c_str(), &status) != 0) continue;  // deleted: CRIU keeps such files itself
    const std::string directory = roots_.dev + std::string(kShm);
    if (pid && maps.find(directory + name + "\n") == std::string::npos && !maps_inode(maps, directory, status.st_ino))
      continue;
    ASSIGN_OR_RETURN(image::SharedFile file, read_shared_file(shm + name, name));
    file.links = link_remaps(shm, status.st_ino);
    result.files.push_back(std::move(file));
  }
  return result;
}

Status System::create_shared_file(const image::SharedFile& file) const {
  const std::string directory = roots_.dev + std::string(kShm);
  TRY(create_file(directory + file.name, file));
  for (const std::string& link : file.links) TRY(make_link(directory + file.name, directory + link));
  return {};
}

std::optional<int> System::find_duplicate(int fd) const {
  const pid_t self = os::getpid();
  for (const int other : numbers_in<int>(roots_.proc + "/self/fd")) {
    if (other == fd) continue;
    if (os::kcmp(self, self, KCMP_FILE, static_cast<unsigned long>(fd), static_cast<unsigned long>(other)) == 0)
      return other;
  }
  return std::nullopt;
}

}  // namespace plugin
