// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A link or a disk that moves so many bytes a second, whoever uses it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>

namespace plugin::bench {

class Rate {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Rate(double bytes_per_second) : bytes_per_second_(bytes_per_second) {}

  [[nodiscard]] Clock::duration time_of(std::uint64_t bytes) const {
    return std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(static_cast<double>(bytes) / bytes_per_second_));
  }
  // Begins to move bytes behind those of all earlier calls, and answers when they will have passed.
  Clock::time_point begin(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    free_at_ = std::max(Clock::now(), free_at_) + time_of(bytes);
    return free_at_;
  }

 private:
  double bytes_per_second_;
  std::mutex mutex_;
  Clock::time_point free_at_;
};

}  // namespace plugin::bench
