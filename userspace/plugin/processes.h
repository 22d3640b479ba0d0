// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Processes as procfs shows them: who they are in which namespace, their descriptors, their memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "plugin/roots.h"

namespace plugin {

class Processes {
 public:
  explicit Processes(Roots roots) : roots_(std::move(roots)) {}

  // The pids of a process from this namespace inwards; empty when there is no such process.
  [[nodiscard]] base::Result<std::vector<std::uint32_t>> namespace_pids(pid_t pid) const;

  // Another descriptor of this process for the same open file.
  [[nodiscard]] base::Result<std::optional<int>> find_duplicate(int fd) const;
  // False as well when one of them is not open.
  [[nodiscard]] base::Result<bool> same_file(int first, int second) const;
  // All descriptors of this process but the one that lists them; none when its /proc does not show them.
  [[nodiscard]] base::Result<std::vector<int>> descriptors() const;
  // What the descriptor's file is called; empty when it is not open.
  [[nodiscard]] base::Result<std::string> descriptor_path(int fd) const;
  // A copy of another process's descriptor; the caller must be permitted to trace it.
  [[nodiscard]] base::Result<base::UniqueFd> copy_descriptor(pid_t pid, int number) const;

  // Reads all memory of the process that userfaultfd(2) still has to fill, so that it is there. Answers the bytes.
  [[nodiscard]] base::Result<std::uint64_t> fill_missing_memory(pid_t pid) const;

 private:
  Roots roots_;
};

}  // namespace plugin
