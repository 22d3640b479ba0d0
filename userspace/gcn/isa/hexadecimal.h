// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// How machine code is written in messages and in text: hexadecimal numbers without leading zeroes.
#pragma once

#include <cstdint>
#include <string>

namespace gcn {

[[nodiscard]] inline std::string hexadecimal(std::uint32_t value) {
  std::string digits;
  do {
    digits.insert(digits.begin(), "0123456789abcdef"[value & 15]);
    value >>= 4;
  } while (value != 0);
  return "0x" + digits;
}

}  // namespace gcn
