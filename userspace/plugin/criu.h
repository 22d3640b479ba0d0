// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What the plugin asks of the CRIU that loaded it. criu_api.h has the real one; tests have another.
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "base/os.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace plugin {

class Criu {
 public:
  Criu() = default;
  Criu(const Criu&) = delete;
  Criu& operator=(const Criu&) = delete;
  virtual ~Criu() = default;

  // A directory descriptor; CRIU's, never to be closed. Images go here and nowhere else: the current directory differs.
  [[nodiscard]] virtual int image_dir() const = 0;
  // In a task being restored: one more than the highest descriptor number of the program, always the same answer;
  // negative when unknown. Lower numbers may be free now and the program's later.
  [[nodiscard]] virtual int unused_fd() const = 0;
  // The command line without the name of the program, and the options of CRIU's configuration files.
  [[nodiscard]] virtual base::Result<std::vector<std::string>> arguments() const { return std::vector<std::string>(); }
  // To CRIU's log; an empty message is none.
  virtual void inform(std::string_view /*message*/) const {}
  virtual void warn(std::string_view /*message*/) const {}
  // The pid of this process; in a task being restored, the one that the program knows.
  [[nodiscard]] virtual pid_t pid() const { return os::getpid(); }
  // Whether the tasks of a restore can pass descriptors to each other.
  [[nodiscard]] virtual bool passes_files() const { return false; }
  // In a task being restored: keeps a file for all tasks of the restore, under the number that this answers. `fd` stays
  // the caller's.
  [[nodiscard]] virtual base::Result<int> keep_file(int /*fd*/) const { return base::Error(ENOSYS, "keep_file"); }
  // A descriptor of a kept file.
  [[nodiscard]] virtual base::Result<base::UniqueFd> kept_file(int /*number*/) const {
    return base::Error(ENOSYS, "kept_file");
  }
  // Who owns the descriptor that UPDATE_VMA_MAP answers: CRIU (3.19 and later) or the plugin (before).
  [[nodiscard]] virtual bool takes_vma_fd() const = 0;
};

}  // namespace plugin
