// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The two pieces of guest RAM.
#include "vasicd/mem/guest_ram.h"

#include <algorithm>

namespace vasicd {

GuestRam::GuestRam(std::span<std::byte> bytes, std::uint64_t low_size) {
  const auto low = static_cast<std::size_t>(std::min<std::uint64_t>({low_size, bytes.size(), kHighBase}));
  low_ = bytes.first(low);
  high_ = bytes.subspan(low);
}

std::span<std::byte> GuestRam::at(std::uint64_t gpa, std::uint64_t limit) const {
  const bool is_high = gpa >= kHighBase;
  const auto piece = is_high ? high_ : low_;
  const std::uint64_t offset = is_high ? gpa - kHighBase : gpa;
  if (offset >= piece.size()) return {};
  const auto run = piece.subspan(static_cast<std::size_t>(offset));
  return run.first(static_cast<std::size_t>(std::min<std::uint64_t>(run.size(), limit)));
}

bool GuestRam::overlaps(std::uint64_t gpa, std::uint64_t size) const {
  const auto hits = [&](std::uint64_t base, std::uint64_t length) {
    return size != 0 && length != 0 && gpa < base + length && base - std::min(base, gpa) < size;
  };
  return hits(0, low_.size()) || hits(kHighBase, high_.size());
}

}  // namespace vasicd
