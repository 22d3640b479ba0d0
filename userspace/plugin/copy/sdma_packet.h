// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The SDMA packets that the plugin sends: linear copies, and fills with zeros. The layouts of each generation are those
// of packets/sdma.h; here is how much one packet may move, and how an indirect buffer is filled up.
#pragma once

#include <algorithm>
#include <cstdint>

#include "packets/sdma.h"

namespace plugin::copy {

inline constexpr std::size_t kIbAlignDwords = 8;
inline constexpr std::size_t kMaxPacketDwords = 8;  // of the longest of these packets

// amdgpu gives one packet of SDMA 2 at most 0x1fffff bytes, one of SDMA 3 0x3fffe0, and newer ones 4 MiB.
constexpr std::uint64_t max_packet_bytes(const packets::sdma::Format& format) {
  return format.generation < 4 ? 1U << 20 : 4U << 20;
}

// How many packets move `bytes`.
constexpr std::size_t packet_count(std::uint64_t bytes, const packets::sdma::Format& format) {
  return static_cast<std::size_t>((bytes + max_packet_bytes(format) - 1) / max_packet_bytes(format));
}

inline void append_copy(packets::Words& words, std::uint64_t from, std::uint64_t to, std::uint64_t bytes,
                        const packets::sdma::Format& format) {
  while (bytes != 0) {
    const std::uint64_t step = std::min(bytes, max_packet_bytes(format));
    packets::sdma::copy_linear(words, to, from, static_cast<std::uint32_t>(step), format);
    from += step;
    to += step;
    bytes -= step;
  }
}

// As amdgpu fills memory: by bytes.
inline void append_zeros(packets::Words& words, std::uint64_t to, std::uint64_t bytes,
                         const packets::sdma::Format& format) {
  while (bytes != 0) {
    const std::uint64_t step = std::min(bytes, max_packet_bytes(format));
    packets::sdma::const_fill(words, to, 0, static_cast<std::uint32_t>(step), packets::sdma::FillSize::kByte, format);
    to += step;
    bytes -= step;
  }
}

// To what the ring wants.
inline void pad(packets::Words& words) {
  while (words.size() % kIbAlignDwords != 0) packets::sdma::nop(words);
}

}  // namespace plugin::copy
