// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Reads the kernel log from "now" on and tells splats (WARN, BUG, KASAN, lockdep, leaks) from ordinary lines.
// A splat fails the test during which it appeared. Not here: which test that is; see test_listener.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace kfdtest {

// Whether one line of the kernel log begins a report of a kernel bug.
[[nodiscard]] bool is_splat(std::string_view line);

// The text of a /dev/kmsg record, "priority,sequence,time,flags;text\n key=value...".
[[nodiscard]] std::string_view kmsg_text(std::string_view record);

class KernelLog {
 public:
  // Positions behind the last record that exists now.
  static base::Result<KernelLog> open();

  // All lines since the last call (or since open()).
  std::vector<std::string> new_lines();

 private:
  explicit KernelLog(base::UniqueFd fd) : fd_(std::move(fd)) {}
  base::UniqueFd fd_;
};

}  // namespace kfdtest
