// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "plugin/shm.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <sstream>

#include "base/os.h"
#include "plugin/proc_text.h"

namespace plugin {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

constexpr std::string_view kShm = "/shm/";

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
Result<std::vector<std::string>> link_remaps(const std::string& directory, ino_t inode) {
  std::vector<std::string> names;
  DIR* dir = os::opendir(directory.c_str());
  if (dir == nullptr) return Error::from_errno(errno, directory);
  errno = 0;  // tells a failure from the end
  while (const dirent* entry = os::readdir(dir)) {
    if (entry->d_ino == inode && image::is_link_remap(entry->d_name)) names.emplace_back(entry->d_name);
    errno = 0;
  }
  const int code = errno;
  os::closedir(dir);
  if (code != 0) return Error::from_errno(code, directory);
  std::sort(names.begin(), names.end());
  return names;
}

// Leaves an existing file alone: another program may be using it.
Status create_file(const std::string& path, const image::SharedFile& file) {
  // Complete before it has its name: another ROCm program may be starting. Not O_TMPFILE, because a file without a name
  // can be linked only with CAP_DAC_READ_SEARCH or through a /proc that shows this task, and not in every file system.
  const std::string unfinished = path + "." + std::to_string(os::getpid());
  if (os::access(path.c_str(), F_OK) == 0) return {};
  if (errno != ENOENT) return Error::from_errno(errno, "looking for " + path);
  (void)os::unlink(unfinished.c_str());
  const UniqueFd fd(os::open(unfinished.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, file.mode));
  if (!fd.valid()) return Error::from_errno(errno, "creating " + unfinished);
  const ssize_t count = os::pwrite(fd.get(), file.contents.data(), file.contents.size(), 0);
  const bool written = count == static_cast<ssize_t>(file.contents.size()) && os::fchmod(fd.get(), file.mode) == 0 &&
                       os::fchown(fd.get(), file.uid, file.gid) == 0;
  const bool named = written && (os::link(unfinished.c_str(), path.c_str()) == 0 || errno == EEXIST);
  const int error = errno;
  const bool removed = os::unlink(unfinished.c_str()) == 0;
  if (named && !removed) return Error::from_errno(errno, "removing " + unfinished);
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

std::string Shm::directory_of(std::optional<pid_t> pid) const {
  if (!pid) return roots_.dev + std::string(kShm);
  return roots_.proc + "/" + std::to_string(*pid) + "/root" + roots_.dev + std::string(kShm);
}

Result<SharedFiles> Shm::read_shared_files(std::optional<pid_t> pid) const {
  SharedFiles result;
  std::string shm = roots_.dev;
  std::string maps;
  if (pid) {
    const std::string process = roots_.proc + "/" + std::to_string(*pid);
    ASSIGN_OR_RETURN(const std::string its_namespace, read_link(process + "/ns/mnt"));
    ASSIGN_OR_RETURN(const std::string our_namespace, read_link(roots_.proc + "/self/ns/mnt"));
    result.own_mount_namespace = its_namespace != our_namespace;
    shm = process + "/root" + roots_.dev;
    ASSIGN_OR_RETURN(maps, base::read_text(process + "/maps"));
    // A descriptor that is open but not mapped counts as well.
    ASSIGN_OR_RETURN(const std::vector<int> descriptors, numbers_in<int>(process + "/fd"));
    for (const int fd : descriptors) {
      ASSIGN_OR_RETURN(const std::string target, read_link_if_there(process + "/fd/" + std::to_string(fd)));
      maps += target + "\n";
    }
  }
  shm += kShm;
  for (const std::string_view name_view : image::kSharedFileNames) {
    const std::string name(name_view);
    struct stat status {};
    if (os::stat((shm + name).c_str(), &status) != 0) {
      const Error error = Error::from_errno(errno, shm + name);
      if (base::is_absence(error)) continue;  // deleted: CRIU keeps such files itself
      return error;
    }
    const std::string directory = roots_.dev + std::string(kShm);
    if (pid && maps.find(directory + name + "\n") == std::string::npos && !maps_inode(maps, directory, status.st_ino))
      continue;
    ASSIGN_OR_RETURN(image::SharedFile file, read_shared_file(shm + name, name));
    ASSIGN_OR_RETURN(file.links, link_remaps(shm, status.st_ino));
    result.files.push_back(std::move(file));
  }
  return result;
}

Status Shm::create_shared_file(const image::SharedFile& file) const {
  const std::string directory = roots_.dev + std::string(kShm);
  TRY(create_file(directory + file.name, file));
  for (const std::string& link : file.links) TRY(make_link(directory + file.name, directory + link));
  return {};
}

Shm::Locks Shm::lock_links() const {
  Locks locks;
  for (const std::string_view name : image::kSharedFileNames) {
    const std::string path = directory_of({}) + std::string(name);
    UniqueFd fd(os::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd.valid() && errno == ENOENT) continue;
    if (!fd.valid() || os::flock(fd.get(), LOCK_SH | LOCK_NB) != 0)
      locks.failures.push_back(
          Error::from_errno(errno, "locking " + path + " against the removal of CRIU's names for it"));
    else
      locks.files.push_back(std::move(fd));
  }
  return locks;
}

std::vector<std::string> Shm::remove_stale_links(std::optional<pid_t> pid) const {
  std::vector<std::string> removed;
  const std::string directory = directory_of(pid);
  for (const std::string_view name : image::kSharedFileNames) {
    const UniqueFd fd(
        os::open((directory + std::string(name)).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat status {};
    if (!fd.valid() || os::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_nlink < 2) continue;
    if (os::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) continue;  // a dump or a restore is under way
    const auto links = link_remaps(directory, status.st_ino);
    for (const std::string& link : links.ok() ? *links : std::vector<std::string>())
      if (os::unlink((directory + link).c_str()) == 0) removed.push_back(link);
  }
  return removed;
}

}  // namespace plugin
