// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tells in CRIU's log how far contents of GPU memory are copied, every few seconds: how much, how fast, and how long
// the rest will take at this rate.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "plugin/criu.h"

namespace plugin {

class CopyMeter {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kInterval{5};

  // `criu` is borrowed; `what` begins each line. `total` bytes will be copied, as far as is known.
  CopyMeter(const Criu& criu, std::string what, std::uint64_t total, Clock::duration interval = kInterval);
  // `bytes` more are copied.
  void add(std::uint64_t bytes);
  // All is copied: says how much that was, and how fast; nothing if it was nothing.
  void end() const;
  [[nodiscard]] std::uint64_t copied() const { return copied_; }

 private:
  [[nodiscard]] std::string text(Clock::duration time) const;

  const Criu& criu_;
  std::string what_;
  std::uint64_t total_;
  Clock::duration interval_;
  std::uint64_t copied_ = 0;
  Clock::time_point begin_;
  Clock::time_point next_;
};

// "1536 MiB/s" for so many bytes in this time.
[[nodiscard]] std::string rate_text(std::uint64_t bytes, std::chrono::duration<double> time);

}  // namespace plugin
