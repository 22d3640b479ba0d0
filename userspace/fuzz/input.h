// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A fuzzer's input as a sequence of choices, and the check that ends a run. Behind the end of the input every choice
// is zero, so that any prefix is an input too.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

namespace fuzz {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}

  [[nodiscard]] bool empty() const { return rest_.empty(); }

  template <typename T>
  T take() {
    T value{};
    const std::size_t n = std::min(sizeof(T), rest_.size());
    std::memcpy(&value, rest_.data(), n);
    rest_ = rest_.subspan(n);
    return value;
  }
  std::uint8_t u8() { return take<std::uint8_t>(); }
  std::uint16_t u16() { return take<std::uint16_t>(); }
  std::uint32_t u32() { return take<std::uint32_t>(); }
  std::uint64_t u64() { return take<std::uint64_t>(); }
  // 0..n-1, from one byte if that is enough.
  std::uint32_t below(std::uint32_t n) { return n <= 256 ? u8() % n : u32() % n; }
  bool flag() { return (u8() & 1u) != 0; }
  template <typename T>
  const T& pick(std::span<const T> choices) {
    return choices[below(static_cast<std::uint32_t>(choices.size()))];
  }
  // At most n bytes, as many as there are.
  std::span<const std::uint8_t> bytes(std::size_t n) {
    const auto first = rest_.first(std::min(n, rest_.size()));
    rest_ = rest_.subspan(first.size());
    return first;
  }

 private:
  std::span<const std::uint8_t> rest_;
};

// Ends the run as a crash, so that libFuzzer keeps the input.
inline void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: violated: %s\n", what);
  std::abort();
}

}  // namespace fuzz
