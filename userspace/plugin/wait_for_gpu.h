// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Waits, before a dump, for what the GPU has under way.
#pragma once

#include <cerrno>
#include <chrono>
#include <ctime>
#include <string>

#include "base/os.h"
#include "base/result.h"

namespace plugin {

using Deadline = std::chrono::steady_clock::time_point;

// Asks until the answer is true. EOPNOTSUPP, after the deadline: `what` is not finished.
template <typename Ask>
base::Status wait_for_gpu(Deadline deadline, const std::string& what, const Ask& ask) {
  constexpr timespec kPause{0, 1'000'000};
  for (;;) {
    ASSIGN_OR_RETURN(const bool done, ask());
    if (done) return {};
    if (std::chrono::steady_clock::now() >= deadline)
      return base::Error(EOPNOTSUPP,
                         what + " has work that the GPU does not finish; let the program wait for it before the dump");
    (void)os::nanosleep(&kPause);
  }
}

}  // namespace plugin
