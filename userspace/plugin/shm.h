// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// libhsakmt's files in /dev/shm, and the further names that CRIU's --link-remap gives them.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "plugin/image/format.h"
#include "plugin/roots.h"

namespace plugin {

// The files in /dev/shm that a process uses, and whether its /dev/shm is another than ours.
struct SharedFiles {
  std::vector<image::SharedFile> files;
  bool own_mount_namespace = false;
};

class Shm {
 public:
  explicit Shm(Roots roots) : roots_(std::move(roots)) {}

  // libhsakmt's files that the process uses (or, when it is unknown, that exist).
  [[nodiscard]] base::Result<SharedFiles> read_shared_files(std::optional<pid_t> pid) const;
  // Makes the file if there is none.
  [[nodiscard]] base::Status create_shared_file(const image::SharedFile& file) const;

  // Locks that keep remove_stale_links() away from names that a dump or a restore needs. They end with the descriptors.
  // No lock for a file that does not exist. A file that cannot be locked is among the failures; the others are locked.
  struct Locks {
    std::vector<base::UniqueFd> files;
    std::vector<base::Error> failures;
  };
  [[nodiscard]] Locks lock_links() const;
  // Removes the names that CRIU gave to libhsakmt's files for a dump that was never restored here: the next dump wants
  // the same names, and CRIU would refuse it. The file itself keeps the name that libhsakmt gave it, and a restore of
  // that dump makes the name again. `pid`: in the /dev/shm of this process, else in ours. Answers the names.
  std::vector<std::string> remove_stale_links(std::optional<pid_t> pid) const;

 private:
  [[nodiscard]] std::string directory_of(std::optional<pid_t> pid) const;

  Roots roots_;
};

}  // namespace plugin
