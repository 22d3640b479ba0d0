// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Atomic operation codes that PM4 ATOMIC_MEM and SDMA ATOMIC share (amd/include/vega10_enum.h: TC_OP). A code is an
// operation plus kAtomic64 for 64-bit operands; kAtomicNoReturn variants differ only in what hardware returns.
#pragma once

#include <cstdint>

namespace packets {

enum class AtomicOp : std::uint8_t {
  kSwap = 0x07,
  kCompareSwap = 0x08,
  kAdd = 0x0f,
  kSub = 0x10,
  kSignedMin = 0x11,
  kUnsignedMin = 0x12,
  kSignedMax = 0x13,
  kUnsignedMax = 0x14,
  kAnd = 0x15,
  kOr = 0x16,
  kXor = 0x17,
  kIncrement = 0x18,
  kDecrement = 0x19,
};
inline constexpr std::uint32_t kAtomic64 = 0x20;
inline constexpr std::uint32_t kAtomicNoReturn = 0x40;

constexpr std::uint32_t atomic_code32(AtomicOp op) { return static_cast<std::uint32_t>(op); }
constexpr std::uint32_t atomic_code64(AtomicOp op) { return static_cast<std::uint32_t>(op) | kAtomic64; }

}  // namespace packets
