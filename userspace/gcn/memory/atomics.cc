// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The atomic sum of packed halves, and the conversions that it needs.
#include "gcn/memory/atomics.h"

namespace gcn::float_atomics {
namespace {

constexpr std::uint32_t kHalfInfinity = 0x7c00;
constexpr std::uint32_t kHalfQuietNan = 0x7e00;
constexpr double kHalfSmallest = 0x1p-24;
constexpr double kHalfSmallestNormal = 0x1p-14;
constexpr double kHalfOverflow = 65520;  // magnitudes from here on round to infinity

}  // namespace

double half_to_double(std::uint32_t half) {
  const std::uint32_t exponent = half >> 10 & 31;
  const std::uint32_t mantissa = half & 0x3ff;
  double value =
      exponent == 0 ? mantissa * kHalfSmallest : std::ldexp(1024 + mantissa, static_cast<int>(exponent) - 25);
  if (exponent == 31) value = mantissa == 0 ? HUGE_VAL : std::nan("");
  return (half & 0x8000) != 0 ? -value : value;
}

std::uint32_t double_to_half(double value) {
  const std::uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return kHalfQuietNan;
  const double magnitude = std::fabs(value);
  if (magnitude >= kHalfOverflow) return sign | kHalfInfinity;
  if (magnitude < kHalfSmallestNormal) {
    // The units of a denormal half are its bits; the rounding may carry into the exponent, which is right.
    return sign | static_cast<std::uint32_t>(std::nearbyint(magnitude / kHalfSmallest));
  }
  int exponent = 0;
  const double fraction = std::frexp(magnitude, &exponent);  // in [0.5, 1)
  const auto mantissa = static_cast<std::uint32_t>(std::nearbyint(fraction * 2048));
  return sign | ((static_cast<std::uint32_t>(exponent + 13) << 10) + mantissa);
}

std::uint32_t pk_add_f16(std::uint32_t old, std::uint32_t data, std::uint32_t /*compare*/) {
  const std::uint32_t low = double_to_half(half_to_double(old & 0xffff) + half_to_double(data & 0xffff));
  const std::uint32_t high = double_to_half(half_to_double(old >> 16) + half_to_double(data >> 16));
  return low | high << 16;
}

}  // namespace gcn::float_atomics
