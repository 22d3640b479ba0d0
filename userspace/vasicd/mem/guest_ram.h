// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Guest RAM as the host sees it: one file, of which the first `low_size` bytes are at guest-physical address 0 and
// the rest at 4 GiB, as QEMU's pc machine lays it out. Does not own the bytes, knows nothing of devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace vasicd {

class GuestRam {
 public:
  static constexpr std::uint64_t kHighBase = std::uint64_t{4} << 30;

  // `low_size` above bytes.size() means that all RAM is low.
  GuestRam(std::span<std::byte> bytes, std::uint64_t low_size);

  // The longest run of RAM that starts at guest-physical address `gpa`, at most `limit` bytes; empty if none is there.
  [[nodiscard]] std::span<std::byte> at(std::uint64_t gpa, std::uint64_t limit) const;
  // Whether any byte of [gpa, gpa + size) is RAM.
  [[nodiscard]] bool overlaps(std::uint64_t gpa, std::uint64_t size) const;

 private:
  std::span<std::byte> low_;
  std::span<std::byte> high_;
};

}  // namespace vasicd
