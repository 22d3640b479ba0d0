// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The comparison that PM4 WAIT_REG_MEM and SDMA POLL_REGMEM share (amdgpu/soc15d.h: WAIT_REG_MEM_FUNCTION).
#pragma once

#include <cstdint>

namespace packets {

enum class Compare : std::uint8_t {
  kAlways = 0,
  kLess = 1,
  kLessEqual = 2,
  kEqual = 3,
  kNotEqual = 4,
  kGreaterEqual = 5,
  kGreater = 6,
};
inline constexpr std::uint32_t kCompareMax = 6;

}  // namespace packets
