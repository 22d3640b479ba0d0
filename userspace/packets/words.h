// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What all packet formats share: a growing list of dwords to encode into, a span of dwords to decode from, and
// bit fields. Little endian throughout, as the GPU is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace packets {

using Words = std::vector<std::uint32_t>;
using WordView = std::span<const std::uint32_t>;

constexpr std::uint32_t lo32(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
constexpr std::uint32_t hi32(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }
constexpr std::uint64_t join(std::uint32_t lo, std::uint32_t hi) { return lo | (static_cast<std::uint64_t>(hi) << 32); }

// `width` bits at `shift` of a dword.
struct Field {
  unsigned shift;
  unsigned width;

  [[nodiscard]] constexpr std::uint32_t max() const {
    return width >= 32 ? 0xffffffffu : (std::uint32_t{1} << width) - 1;
  }
  [[nodiscard]] constexpr std::uint32_t mask() const { return max() << shift; }
  [[nodiscard]] constexpr std::uint32_t get(std::uint32_t word) const { return (word >> shift) & max(); }
  // Excess bits of `value` are dropped.
  [[nodiscard]] constexpr std::uint32_t put(std::uint32_t value) const { return (value & max()) << shift; }
  [[nodiscard]] constexpr std::uint32_t set(std::uint32_t word, std::uint32_t value) const {
    return (word & ~mask()) | put(value);
  }
};

inline void append(Words& out, std::initializer_list<std::uint32_t> words) { out.insert(out.end(), words); }
inline void append(Words& out, WordView words) { out.insert(out.end(), words.begin(), words.end()); }

}  // namespace packets
