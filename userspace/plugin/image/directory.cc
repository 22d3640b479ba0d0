// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "plugin/image/directory.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/os.h"
#include "base/unique_fd.h"

namespace plugin::image {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

Result<std::vector<std::pair<Name, std::string>>> list_names(int dir_fd) {
  // A file of its own: listing moves the position, which the caller's descriptor shares with CRIU's.
  base::UniqueFd copy(os::openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!copy.valid()) return Error::from_errno(errno, "opening the image directory");
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(os::fdopendir(copy.get()), os::closedir);
  if (dir == nullptr) return Error::from_errno(errno, "listing the image directory");
  (void)copy.release();  // closedir() closes it
  std::vector<std::pair<Name, std::string>> names;
  errno = 0;
  while (const dirent* entry = os::readdir(dir.get())) {
    if (const auto name = parse_name(entry->d_name)) names.emplace_back(*name, entry->d_name);
    errno = 0;
  }
  if (errno != 0) return Error::from_errno(errno, "listing the image directory");
  std::sort(names.begin(), names.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.kind, a.first.id) < std::pair(b.first.kind, b.first.id);
  });
  return names;
}

Result<UniqueFd> open_parent(int dir_fd) {
  UniqueFd parent(os::openat(dir_fd, std::string(kParentName).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent.valid()) return Error::from_errno(errno, "opening the directory of the dump before");
  return parent;
}

Status remove_if_there(int dir_fd, const std::string& name) {
  if (os::unlinkat(dir_fd, name.c_str(), 0) != 0 && errno != ENOENT)
    return Error::from_errno(errno, "removing " + name + " from the image directory");
  return {};
}

Status sync_directory(int dir_fd) {
  // CRIU's descriptor may be one that only names the directory.
  const UniqueFd dir(os::openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir.valid()) return Error::from_errno(errno, "opening the image directory");
  // A directory or pipe-like file system may not know fsync; that is no loss of data.
  if (os::fsync(dir.get()) != 0 && errno != EINVAL && errno != EROFS)
    return Error::from_errno(errno, "fsync of the image directory");
  return {};
}

}  // namespace plugin::image
