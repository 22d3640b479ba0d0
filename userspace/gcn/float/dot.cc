// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Products of fp16 or bfloat16 are exact as doubles, and far from the ends of a double's range.
#include "gcn/float/dot.h"

#include <array>
#include <bit>
#include <cmath>

#include "gcn/float/float.h"

namespace gcn {
namespace {

// A sum of two doubles, and what rounding has taken from it.
struct Sum {
  double value;
  double error;
};

Sum exact_sum(double a, double b) {
  const double value = a + b;
  const double part = value - a;
  return {value, (a - (value - part)) + (b - part)};
}

// Numbers of which none has a bit in common with another one, the least first. Together they are an exact sum.
class Expansion {
 public:
  void add(double number) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      const Sum sum = exact_sum(parts_[i], number);
      if (sum.error != 0) parts_[kept++] = sum.error;
      number = sum.value;
    }
    parts_[kept] = number;
    count_ = kept + 1;
  }

  // The sum, rounded to odd: rounding that to a format of at most 51 bits gives what rounding the sum would give.
  [[nodiscard]] double rounded_to_odd() const {
    std::size_t left = count_ - 1;
    Sum sum{parts_[left], 0};
    while (left > 0 && sum.error == 0) sum = exact_sum(sum.value, parts_[--left]);
    const auto bits = std::bit_cast<std::uint64_t>(sum.value);
    if (sum.error == 0 || (bits & 1) != 0) return sum.value;
    return std::bit_cast<double>((sum.error < 0) != (sum.value < 0) ? bits - 1 : bits + 1);
  }

 private:
  std::array<double, kMostFactors + 1> parts_{};
  std::size_t count_ = 0;
};

float single(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t bits_of(float value) { return std::isnan(value) ? Fp32::kNan : std::bit_cast<std::uint32_t>(value); }

float without_denormals(float value) { return single(flushed<Fp32>(std::bit_cast<std::uint32_t>(value), true)); }

}  // namespace

float brain_float(std::uint16_t bits) { return single(std::uint32_t{bits} << 16); }

std::uint32_t fused_dot(std::span<const float> a, std::span<const float> b, std::uint32_t c) {
  double sum = single(c);
  double error = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    const Sum next = exact_sum(sum, static_cast<double>(a[k]) * static_cast<double>(b[k]));
    sum = next.value;
    error = next.error == 0 ? error : 1;
  }
  // Most sums are exact as doubles; and infinity and NaN have no error that means something.
  if (error == 0 || !std::isfinite(sum)) return bits_of(static_cast<float>(sum));
  Expansion expansion;
  expansion.add(single(c));
  for (std::size_t k = 0; k < a.size(); ++k) expansion.add(static_cast<double>(a[k]) * static_cast<double>(b[k]));
  return bits_of(static_cast<float>(expansion.rounded_to_odd()));
}

std::uint32_t flushing_dot(std::span<const float> a, std::span<const float> b, std::uint32_t c) {
  std::array<float, kMostFactors> sums{};
  for (std::size_t k = 0; k < a.size(); ++k) sums[k] = without_denormals(a[k] * b[k]);
  for (std::size_t count = a.size(); count > 1; count /= 2)
    for (std::size_t i = 0; i < count / 2; ++i) sums[i] = without_denormals(sums[2 * i] + sums[2 * i + 1]);
  return bits_of(without_denormals(single(c) + sums[0]));
}

}  // namespace gcn
