// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The clock and the pause behind deadline.h.
#include "kfdtest-criu/env/deadline.h"

namespace kfdtest {
namespace {

constexpr long kPollPauseNs = 50'000;
constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

}  // namespace

std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<std::uint64_t>(now.tv_nsec);
}

void poll_pause() {
  const timespec pause{.tv_sec = 0, .tv_nsec = kPollPauseNs};
  nanosleep(&pause, nullptr);
}

}  // namespace kfdtest
