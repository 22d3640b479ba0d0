// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The one SDMA packet that the plugin sends: linear copy, of GFX9 and later (SDMA 4.0 to 6.x).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace plugin::copy {

inline constexpr std::uint32_t kCopyDwords = 7;
inline constexpr std::uint32_t kMaxCopyBytes = 4U << 20;  // COUNT has 22 bits and holds bytes - 1
inline constexpr std::uint32_t kCopyHeader = 1;           // opcode COPY, sub-opcode LINEAR
inline constexpr std::uint32_t kNop = 0;
inline constexpr std::uint32_t kIbAlignDwords = 8;

// Packets that copy `bytes` from `from` to `to`, padded to what the ring wants.
inline std::vector<std::uint32_t> linear_copy(std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
  std::vector<std::uint32_t> dwords;
  while (bytes != 0) {
    const auto step = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, kMaxCopyBytes));
    dwords.insert(dwords.end(), {kCopyHeader, step - 1, 0, static_cast<std::uint32_t>(from & 0xffffffffU),
                                 static_cast<std::uint32_t>(from >> 32), static_cast<std::uint32_t>(to & 0xffffffffU),
                                 static_cast<std::uint32_t>(to >> 32)});
    from += step;
    to += step;
    bytes -= step;
  }
  while (dwords.size() % kIbAlignDwords != 0) dwords.push_back(kNop);
  return dwords;
}

}  // namespace plugin::copy
