// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "vasicd/context/link.h"

#include <algorithm>
#include <limits>

namespace vasicd {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kQuantumsPerSecond = 2000;
constexpr std::uint64_t kPage = 4096;
// The device's thread may sleep, or not be scheduled, while bytes wait for the link. So much of that time is made up
// for afterwards.
constexpr std::uint64_t kCatchUp = 50'000'000;

}  // namespace

void Link::limit(std::uint64_t bytes_per_second) {
  rate_ = bytes_per_second;
  free_at_ns_ = 0;
  refused_at_ns_ = 0;
}

std::uint64_t Link::quantum() const {
  if (rate_ == 0) return std::numeric_limits<std::uint64_t>::max();
  return std::max(kPage, (rate_ / kQuantumsPerSecond) & ~(kPage - 1));
}

bool Link::ready(std::uint64_t now_ns) {
  if (rate_ == 0 || now_ns >= free_at_ns_) return true;
  refused_at_ns_ = now_ns;
  return false;
}

void Link::spend(std::uint64_t bytes, std::uint64_t now_ns) {
  crossed_ += bytes;
  if (rate_ == 0) return;
  // Time during which no copy waited for the link does not count.
  const bool awaited = refused_at_ns_ != 0 && now_ns - refused_at_ns_ <= kCatchUp;
  const std::uint64_t begin = std::max(free_at_ns_, awaited ? now_ns - std::min(now_ns, kCatchUp) : now_ns);
  const auto cost = static_cast<unsigned __int128>(bytes) * kSecond / rate_;
  free_at_ns_ = begin + static_cast<std::uint64_t>(std::min<unsigned __int128>(cost, 3600 * kSecond));
  // The time that was lost has been made up for.
  if (free_at_ns_ > now_ns) refused_at_ns_ = 0;
}

}  // namespace vasicd
