// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Seeded data whose every byte depends on seed and position, so that a copy from the wrong place, of the wrong length
// or of zeroes is found; and a checksum. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace kfdtest {

// Byte `offset` of the stream `seed`.
[[nodiscard]] std::byte pattern_byte(std::uint64_t seed, std::uint64_t offset);

// bytes[i] = pattern_byte(seed, first + i)
void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed, std::uint64_t first = 0);

// Index of the first byte that differs from the pattern.
[[nodiscard]] std::optional<std::size_t> find_mismatch(std::span<const std::byte> bytes, std::uint64_t seed,
                                                       std::uint64_t first = 0);

// Index of the first 32-bit word that is not `word`. The size is a multiple of 4.
[[nodiscard]] std::optional<std::size_t> find_other_word(std::span<const std::byte> bytes, std::uint32_t word);

// FNV-1a over 64-bit little-endian lanes (the last one zero-padded), then over the length.
class Checksum {
 public:
  void add(std::span<const std::byte> bytes);
  [[nodiscard]] std::uint64_t value() const { return state_; }
  // 16 hexadecimal digits.
  [[nodiscard]] std::string hex() const;

 private:
  void add_lane(std::uint64_t lane);
  std::uint64_t state_ = 0xcbf29ce484222325;
};

}  // namespace kfdtest
