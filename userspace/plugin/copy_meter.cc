// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "plugin/copy_meter.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace plugin {
namespace {

std::string mib(std::uint64_t bytes) { return std::to_string(bytes >> 20); }

}  // namespace

std::string rate_text(std::uint64_t bytes, std::chrono::duration<double> time) {
  const double mib_per_second = time.count() > 0 ? static_cast<double>(bytes) / (1 << 20) / time.count() : 0;
  char text[32];
  std::snprintf(text, sizeof(text), "%.0f MiB/s", mib_per_second);
  return text;
}

CopyMeter::CopyMeter(const Criu& criu, std::string what, std::uint64_t total, Clock::duration interval)
    : criu_(criu),
      what_(std::move(what)),
      total_(total),
      interval_(interval),
      begin_(Clock::now()),
      next_(begin_ + interval) {}

void CopyMeter::add(std::uint64_t bytes) {
  copied_ += bytes;
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + interval_;
  criu_.inform(text(now - begin_));
}

void CopyMeter::end() const {
  if (copied_ == 0) return;
  const auto time = Clock::now() - begin_;
  criu_.inform(what_ + ": " + mib(copied_) + " MiB in " +
               std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) + " ms, " +
               rate_text(copied_, time));
}

std::string CopyMeter::text(Clock::duration time) const {
  const std::chrono::duration<double> seconds = time;
  std::string line =
      what_ + ": " + mib(copied_) + " of " + mib(std::max(total_, copied_)) + " MiB, " + rate_text(copied_, seconds);
  if (copied_ != 0 && copied_ < total_) {
    const double left = seconds.count() * static_cast<double>(total_ - copied_) / static_cast<double>(copied_);
    line += ", " + std::to_string(static_cast<std::uint64_t>(std::ceil(left))) + " s left";
  }
  return line;
}

}  // namespace plugin
