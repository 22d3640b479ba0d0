// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Waiting for a condition with a deadline; the only place of the suite that lets time pass.
// Polling yields the CPU: under TCG the guest shares two cores with the device process it waits for.
#pragma once

#include <time.h>

#include <chrono>
#include <cstdint>

namespace kfdtest {

using Duration = std::chrono::nanoseconds;

// Generous: a wait that ends with its deadline is a failure, so only failing tests ever spend it.
inline constexpr Duration kDeadline = std::chrono::seconds(20);
// How long something that must not happen is watched for; spent by every test that proves an absence.
inline constexpr Duration kQuietPeriod = std::chrono::milliseconds(150);

[[nodiscard]] std::uint64_t monotonic_ns();

// Lets other threads and the device run for a moment.
void poll_pause();

// True as soon as `condition` holds, false when `limit` has passed without it.
template <typename Condition>
[[nodiscard]] bool wait_until(Condition condition, Duration limit = kDeadline) {
  const std::uint64_t end = monotonic_ns() + static_cast<std::uint64_t>(limit.count());
  while (!condition()) {
    if (monotonic_ns() >= end) return condition();
    poll_pause();
  }
  return true;
}

// True if `condition` held during all of `limit`.
template <typename Condition>
[[nodiscard]] bool stays(Condition condition, Duration limit = kQuietPeriod) {
  return !wait_until([&] { return !condition(); }, limit);
}

}  // namespace kfdtest
