// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What atomic operations make of a value in memory, of the lane's data and, for a comparison, of its second data. The
// same for SMEM, FLAT, GLOBAL and MUBUF; LDS shares the integer ones.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "gcn/memory/lane_memory.h"

namespace gcn {

// T is std::uint32_t or std::uint64_t.
template <typename T>
struct AtomicFunctions {
  using Signed = std::make_signed_t<T>;
  static constexpr bool less(T a, T b) { return static_cast<Signed>(a) < static_cast<Signed>(b); }

  static constexpr T swap(T /*old*/, T data, T /*compare*/) { return data; }
  static constexpr T cmpswap(T old, T data, T compare) { return old == compare ? data : old; }
  static constexpr T add(T old, T data, T /*compare*/) { return old + data; }
  static constexpr T sub(T old, T data, T /*compare*/) { return old - data; }
  static constexpr T rsub(T old, T data, T /*compare*/) { return data - old; }
  static constexpr T smin(T old, T data, T /*compare*/) { return less(data, old) ? data : old; }
  static constexpr T umin(T old, T data, T /*compare*/) { return data < old ? data : old; }
  static constexpr T smax(T old, T data, T /*compare*/) { return less(old, data) ? data : old; }
  static constexpr T umax(T old, T data, T /*compare*/) { return old < data ? data : old; }
  static constexpr T bit_and(T old, T data, T /*compare*/) { return old & data; }
  static constexpr T bit_or(T old, T data, T /*compare*/) { return old | data; }
  static constexpr T bit_xor(T old, T data, T /*compare*/) { return old ^ data; }
  // Both wrap around at the data, not at the width.
  static constexpr T inc(T old, T data, T /*compare*/) { return old >= data ? 0 : old + 1; }
  static constexpr T dec(T old, T data, T /*compare*/) { return old == 0 || old > data ? data : old - 1; }
};

// Floats round to nearest even, whatever MODE says. The units in the cache take and give denormals of fp64 and fp16,
// and zeroes in place of those of fp32.
namespace float_atomics {

[[nodiscard]] inline float flush(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0F, value) : value;
}

inline std::uint32_t add_f32(std::uint32_t old, std::uint32_t data, std::uint32_t /*compare*/) {
  return std::bit_cast<std::uint32_t>(flush(flush(std::bit_cast<float>(old)) + flush(std::bit_cast<float>(data))));
}

inline std::uint64_t add_f64(std::uint64_t old, std::uint64_t data, std::uint64_t /*compare*/) {
  return std::bit_cast<std::uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(data));
}

// A number wins against NaN, and stays if it is no greater (no less) than the data.
template <typename Float, typename T>
T minimum(T old, T data, T /*compare*/) {
  const auto a = std::bit_cast<Float>(old);
  const auto b = std::bit_cast<Float>(data);
  return b < a || (std::isnan(a) && !std::isnan(b)) ? data : old;
}
template <typename Float, typename T>
T maximum(T old, T data, T /*compare*/) {
  const auto a = std::bit_cast<Float>(old);
  const auto b = std::bit_cast<Float>(data);
  return b > a || (std::isnan(a) && !std::isnan(b)) ? data : old;
}

[[nodiscard]] double half_to_double(std::uint32_t half);
// To nearest even.
[[nodiscard]] std::uint32_t double_to_half(double value);

// Two halves. A sum of two halves is exact as a double, so it is rounded once.
std::uint32_t pk_add_f16(std::uint32_t old, std::uint32_t data, std::uint32_t compare);

}  // namespace float_atomics

// *bytes = F(*bytes, data, compare) in one step that all others see in one order; gives what was there. `bytes` is
// aligned to T.
template <typename T, auto F>
T modify(std::byte* bytes, T data, T compare) {
  auto* const word = reinterpret_cast<typename host::Word<sizeof(T)>::Type*>(bytes);
  T old = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &old, F(old, data, compare), true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
  return old;
}

}  // namespace gcn
