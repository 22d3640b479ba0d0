// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The new value that an atomic operation computes from the value in memory, from the lane's data and, in a comparison,
// from its second data. SMEM, FLAT, GLOBAL and MUBUF use all of these functions, LDS uses the integer ones.
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
  // inc and dec wrap around at the data, not at the width of the type.
  static constexpr T inc(T old, T data, T /*compare*/) { return old >= data ? 0 : old + 1; }
  static constexpr T dec(T old, T data, T /*compare*/) { return old == 0 || old > data ? data : old - 1; }
};

// Floating-point atomics round to nearest even, whatever MODE says. The units in the cache accept and return denormals
// of fp64 and fp16, but treat denormals of fp32 as zero.
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

// minimum() and maximum() prefer a number to NaN, and keep the old value if both are equal.
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
// Rounds to nearest even.
[[nodiscard]] std::uint32_t double_to_half(double value);

// Adds two pairs of halves. The sum of two halves is exact as a double, so it is rounded once.
std::uint32_t pk_add_f16(std::uint32_t old, std::uint32_t data, std::uint32_t compare);

}  // namespace float_atomics

// Does *bytes = F(*bytes, data, compare) in one sequentially consistent step and returns the old value. The caller
// passes `bytes` aligned to T.
template <typename T, auto F>
T modify(std::byte* bytes, T data, T compare) {
  auto* const word = reinterpret_cast<typename host::Word<sizeof(T)>::Type*>(bytes);
  T old = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &old, F(old, data, compare), true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
  return old;
}

}  // namespace gcn
