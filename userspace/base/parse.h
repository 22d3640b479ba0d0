// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Strict text-to-number conversions for options: the whole text is consumed or the result is empty.
// Not here: error messages, which need the option's name.
#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace base {

// Digits of `radix` only; no sign, no blanks. An "0x" prefix is accepted when the radix is 16.
inline std::optional<std::uint64_t> parse_u64(std::string_view text, int radix = 10) {
  if (radix == 16 && (text.starts_with("0x") || text.starts_with("0X"))) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, radix);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A decimal number of bytes with an optional suffix K, M or G (powers of 1024).
inline std::optional<std::uint64_t> parse_size(std::string_view text) {
  unsigned shift = 0;
  if (text.ends_with('K')) shift = 10;
  if (text.ends_with('M')) shift = 20;
  if (text.ends_with('G')) shift = 30;
  if (shift != 0) text.remove_suffix(1);
  const auto value = parse_u64(text);
  if (!value || *value > (std::numeric_limits<std::uint64_t>::max() >> shift)) return std::nullopt;
  return *value << shift;
}

}  // namespace base
