// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Functions of one number, division, and conversions to integers. Transcendental functions of fp32 and fp16 are
// computed as doubles, whose last bits do not reach the result, those of fp64 as long doubles. They round to nearest
// whatever MODE says.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "gcn/float/float.h"

namespace gcn {
namespace {

template <class F>
using Bits = typename F::Bits;

// Applies a function of the host that returns an integer: NaN becomes quiet and all other results are exact.
template <class F, double (*kFunction)(double)>
Bits<F> integral(Bits<F> a, const FloatMode& m) {
  return from_double<F>(kFunction(to_double<F>(flushed<F>(a, m.flush_in))), m);
}

double trunc_double(double a) { return std::trunc(a); }
double ceil_double(double a) { return std::ceil(a); }
double floor_double(double a) { return std::floor(a); }
double rndne_double(double a) { return std::nearbyint(a); }

// Returns the mode of a transcendental function: those of fp32 have no denormals.
template <class F>
FloatMode approximate(const FloatMode& m) {
  return rounding(std::is_same_v<F, Fp32> ? flushing(m) : m, Round::kNearest);
}

// Rounds the host's result; a NaN that the host generated becomes the one that gfx9 operations generate.
template <class F>
Bits<F> rounded(double value, const FloatMode& m) {
  return std::isnan(value) ? F::kNan : from_double<F>(value, m);
}

template <class F, double (*kFunction)(double)>
Bits<F> transcendental(Bits<F> a, const FloatMode& mode) {
  const FloatMode m = approximate<F>(mode);
  a = flushed<F>(a, m.flush_in);
  return is_nan<F>(a) ? quieted<F>(a) : rounded<F>(kFunction(to_double<F>(a)), m);
}

double rcp_double(double a) { return 1.0 / a; }
// Keeps the sign of zero: -inf for -0. The division is one of long doubles because one of doubles would round twice.
double rsq_double(double a) {
  return a == 0 ? 1.0 / a : static_cast<double>(1.0L / std::sqrt(static_cast<long double>(a)));
}
double sqrt_double(double a) { return std::sqrt(a); }
double exp2_double(double a) { return std::exp2(a); }
double log2_double(double a) { return std::log2(a); }

constexpr double kRevolutions = 256;

// Computes sin(2 pi a) after whole revolutions are removed. All steps before the product are exact, so that results of
// 0 and 1 are exact too.
double sin_revolutions(double a) {
  if (std::isinf(a)) return std::nan("");
  if (std::fabs(a) > kRevolutions) return 0;
  double part = a - std::nearbyint(a);
  if (std::fabs(part) > 0.25) part = std::copysign(0.5, part) - part;
  if (part == 0) return std::copysign(0.0, a);
  return std::sin(2 * std::numbers::pi * part);
}
double cos_revolutions(double a) {
  if (std::isinf(a)) return std::nan("");
  if (std::fabs(a) > kRevolutions) return 1;
  const double part = std::fabs(a - std::nearbyint(a));
  return part == 0.25 ? 0.0 : std::sin(2 * std::numbers::pi * (0.25 - part));
}

// The largest number below 1.
template <class F>
constexpr Bits<F> kBelowOne = static_cast<Bits<F>>(F::kOne - 1);

// 2 / pi, the first 1201 bits of its fraction.
constexpr int kTwoOverPiBits = 1201;
constexpr std::array<std::uint64_t, 20> kTwoOverPi = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
    0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4,
    0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b0000, 0};

// Constants of v_div_scale, as exponents: from which quotient on the operands are scaled, by how much, and up to which
// numerator the remainder would be inexact.
template <class F>
struct Division {
  static constexpr int kLarge = std::is_same_v<F, Fp32> ? 96 : 768;
  static constexpr int kScale = std::is_same_v<F, Fp32> ? 64 : 128;
  static constexpr int kTiny = std::is_same_v<F, Fp32> ? 23 : 53;
  static constexpr int kUnderflow = F::kFraction + F::kBias;  // 2 to its negative is half a denormal, or less
};

// The largest denominator whose reciprocal is a normal number.
template <class F>
constexpr Bits<F> kLeastReciprocal = static_cast<Bits<F>>(static_cast<Bits<F>>(2 * F::kBias - 1) << F::kFraction);

// Returns whether the quotient, before rounding, is below the smallest normal number and not zero.
template <class F>
bool is_small_quotient(Bits<F> numerator, Bits<F> denominator) {
  const auto n = static_cast<long double>(to_double<F>(numerator));
  const auto d = static_cast<long double>(to_double<F>(denominator));
  const long double quotient = std::fabs(n / d);
  return quotient != 0 && quotient < static_cast<long double>(to_double<F>(F::kMinNormal));
}

}  // namespace

template <class F>
Bits<F> trunc(Bits<F> a, const FloatMode& m) {
  return integral<F, trunc_double>(a, m);
}
template <class F>
Bits<F> ceil(Bits<F> a, const FloatMode& m) {
  return integral<F, ceil_double>(a, m);
}
template <class F>
Bits<F> floor(Bits<F> a, const FloatMode& m) {
  return integral<F, floor_double>(a, m);
}
template <class F>
Bits<F> rndne(Bits<F> a, const FloatMode& m) {
  return integral<F, rndne_double>(a, m);
}

template <class F>
Bits<F> fract(Bits<F> a, const FloatMode& m) {
  a = flushed<F>(a, m.flush_in);
  if (is_nan<F>(a)) return quieted<F>(a);
  const Bits<F> part = add<F>(a, negated<F>(floor<F>(a, m)), m);
  return is_nan<F>(part) || is_zero<F>(part) ? part : std::min<Bits<F>>(part, kBelowOne<F>);
}

template <class F>
Bits<F> frexp_mant(Bits<F> a, const FloatMode& m) {
  a = flushed<F>(a, m.flush_in);
  if (is_nan<F>(a)) return quieted<F>(a);
  if (is_inf<F>(a) || is_zero<F>(a)) return a;
  int exponent = 0;
  return from_double<F>(std::frexp(to_double<F>(a), &exponent), m);
}

template <class F>
std::int32_t frexp_exp(Bits<F> a, const FloatMode& m) {
  a = flushed<F>(a, m.flush_in);
  if (is_nan<F>(a) || is_inf<F>(a) || is_zero<F>(a)) return 0;
  int exponent = 0;
  static_cast<void>(std::frexp(to_double<F>(a), &exponent));
  return exponent;
}

template <class F>
Bits<F> ldexp(Bits<F> a, std::int32_t n, const FloatMode& m) {
  constexpr int kEnough = 5000;  // from the smallest fp64 beyond the largest, and back
  a = flushed<F>(a, m.flush_in);
  if (is_nan<F>(a)) return quieted<F>(a);
  if (is_inf<F>(a) || is_zero<F>(a)) return a;
  Exact e = exact(to_double<F>(a));
  e.exponent += std::clamp(n, -kEnough, kEnough);
  return round_to<F>(e, m);
}

template <class F>
Bits<F> rcp(Bits<F> a, const FloatMode& m) {
  return transcendental<F, rcp_double>(a, m);
}
template <class F>
Bits<F> rsq(Bits<F> a, const FloatMode& m) {
  return transcendental<F, rsq_double>(a, m);
}
template <class F>
Bits<F> sqrt(Bits<F> a, const FloatMode& m) {
  return transcendental<F, sqrt_double>(a, m);
}
template <class F>
Bits<F> exp2(Bits<F> a, const FloatMode& m) {
  return transcendental<F, exp2_double>(a, m);
}
template <class F>
Bits<F> log2(Bits<F> a, const FloatMode& m) {
  return transcendental<F, log2_double>(a, m);
}

template <class F>
Bits<F> sin(Bits<F> a, const FloatMode& mode) {
  const FloatMode m = rounding(mode, Round::kNearest);
  a = flushed<F>(a, m.flush_in);
  return is_nan<F>(a) ? quieted<F>(a) : rounded<F>(sin_revolutions(to_double<F>(a)), m);
}
template <class F>
Bits<F> cos(Bits<F> a, const FloatMode& mode) {
  const FloatMode m = rounding(mode, Round::kNearest);
  a = flushed<F>(a, m.flush_in);
  return is_nan<F>(a) ? quieted<F>(a) : rounded<F>(cos_revolutions(to_double<F>(a)), m);
}

std::uint64_t trig_preop(std::uint64_t a, std::uint32_t segment) {
  constexpr int kSegment = 53;
  constexpr int kWhole = 1077;  // exponents up to here lose no bit of 2 / pi
  constexpr int kLarge = 1968;  // numbers from here are to be scaled by 2^-128, their segments are by 2^128
  const int exponent = exponent_field<Fp64>(a);
  const int skipped = static_cast<int>(segment & 31) * kSegment + std::max(0, exponent - kWhole);
  if (skipped >= kTwoOverPiBits) return 0;
  const auto word = static_cast<unsigned>(skipped) / 64;
  const unsigned bit = static_cast<unsigned>(skipped) % 64;
  const std::uint64_t top = kTwoOverPi[word] << bit | (bit == 0 ? 0 : kTwoOverPi[word + 1] >> (64 - bit));
  const std::uint64_t bits = top >> (64 - kSegment);
  if (bits == 0) return 0;
  const int scale = -kSegment - skipped + (exponent >= kLarge ? 128 : 0);
  return round_to<Fp64>({false, false, scale, bits}, {.round = Round::kZero});
}

template <class F>
Scaled<F> div_scale(Bits<F> a, Bits<F> denominator, Bits<F> numerator, const FloatMode& mode) {
  using D = Division<F>;
  const FloatMode m = rounding(mode, Round::kNearest);
  a = flushed<F>(a, m.flush_in);
  denominator = flushed<F>(denominator, m.flush_in);
  numerator = flushed<F>(numerator, m.flush_in);
  if (is_zero<F>(denominator) || is_zero<F>(numerator)) return {F::kNan, false};

  const bool is_denominator = a == denominator;
  const auto up = [&] { return ldexp<F>(a, D::kScale, m); };
  const auto down = [&] { return ldexp<F>(a, -D::kScale, m); };
  const int difference = exponent_field<F>(numerator) - exponent_field<F>(denominator);
  const bool small_quotient = difference < 2 - F::kBias && is_small_quotient<F>(numerator, denominator);
  const bool small_reciprocal = magnitude<F>(denominator) > kLeastReciprocal<F> && !is_inf<F>(denominator);
  if (difference >= D::kLarge) {
    return {is_denominator ? up() : a, true};
  }
  if (is_denormal<F>(denominator)) return {up(), false};
  if (small_reciprocal && small_quotient) return {is_denominator ? down() : a, true};
  if (small_reciprocal) return {down(), false};
  if (small_quotient) return {a == numerator ? up() : a, true};
  if (exponent_field<F>(numerator) <= D::kTiny) return {up(), false};
  return {a, false};
}

// The size of the quotient of scaled operands shows in which direction they were scaled.
template <class F>
Bits<F> div_fmas(Bits<F> a, Bits<F> b, Bits<F> c, bool scaled, const FloatMode& m) {
  if (!scaled) return fma<F>(a, b, c, m);
  return fma_scaled<F>(a, b, c, exponent_field<F>(c) > F::kBias ? Division<F>::kScale : -Division<F>::kScale, m);
}

template <class F>
Bits<F> div_fixup(Bits<F> quotient, Bits<F> denominator, Bits<F> numerator, const FloatMode& m) {
  quotient = flushed<F>(quotient, m.flush_in);
  denominator = flushed<F>(denominator, m.flush_in);
  numerator = flushed<F>(numerator, m.flush_in);
  if (is_nan<F>(numerator)) return quieted<F>(numerator);
  if (is_nan<F>(denominator)) return quieted<F>(denominator);
  const bool negative = is_negative<F>(numerator) != is_negative<F>(denominator);
  if (is_zero<F>(denominator) && is_zero<F>(numerator)) return F::kNan;
  if (is_inf<F>(denominator) && is_inf<F>(numerator)) return F::kNan;
  if (is_zero<F>(denominator) || is_inf<F>(numerator)) return with_sign<F>(F::kInf, negative);
  if (is_inf<F>(denominator) || is_zero<F>(numerator)) return with_sign<F>(0, negative);
  if constexpr (!std::is_same_v<F, Fp16>) {
    if (exponent_field<F>(numerator) - exponent_field<F>(denominator) < -Division<F>::kUnderflow) {
      return round_to<F>({negative, true, -2 * F::kMaxField, 1}, m);
    }
    // The scaled quotient overflowed, and the remainder with it.
    if (is_nan<F>(quotient)) return overflow<F>(negative, m);
  }
  return with_sign<F>(flushed<F>(quotient, m.flush_out), negative);
}

std::int32_t to_int(double a, std::int32_t low, std::int32_t high) {
  if (std::isnan(a)) return 0;
  return static_cast<std::int32_t>(
      std::clamp(std::trunc(a), double{static_cast<double>(low)}, static_cast<double>(high)));
}
std::int32_t to_i32(double a) { return to_int(a, INT32_MIN, INT32_MAX); }
std::uint32_t to_u32(double a) {
  return std::isnan(a) ? 0 : static_cast<std::uint32_t>(std::clamp(std::trunc(a), 0.0, 4294967295.0));
}

double to_integral(double a, Round round) {
  switch (round) {
    case Round::kUp:
      return std::ceil(a);
    case Round::kDown:
      return std::floor(a);
    case Round::kZero:
      return std::trunc(a);
    case Round::kNearest:
      break;
  }
  return std::nearbyint(a);
}

std::uint16_t to_snorm16(double a) {
  return std::isnan(a) ? 0 : static_cast<std::uint16_t>(to_i32(std::nearbyint(std::clamp(a, -1.0, 1.0) * 32767)));
}
std::uint16_t to_unorm16(double a) {
  return std::isnan(a) ? 0 : static_cast<std::uint16_t>(to_i32(std::nearbyint(std::clamp(a, 0.0, 1.0) * 65535)));
}

Cube cube(std::uint32_t x, std::uint32_t y, std::uint32_t z, const FloatMode& m) {
  x = flushed<Fp32>(x, m.flush_in);
  y = flushed<Fp32>(y, m.flush_in);
  z = flushed<Fp32>(z, m.flush_in);
  const auto size = [](std::uint32_t a) { return std::bit_cast<float>(magnitude<Fp32>(a)); };
  const auto is_below_zero = [](std::uint32_t a) { return std::bit_cast<float>(a) < 0; };
  const auto flipped = [](std::uint32_t a, bool flip) { return flip ? negated<Fp32>(a) : a; };
  const auto face = [](int number) { return std::bit_cast<std::uint32_t>(static_cast<float>(number)); };
  const auto twice = [&](std::uint32_t a) { return mul<Fp32>(a, std::bit_cast<std::uint32_t>(2.0F), m); };
  if (size(z) >= size(x) && size(z) >= size(y)) {
    const bool below = is_below_zero(z);
    return {face(below ? 5 : 4), flipped(x, below), negated<Fp32>(y), twice(z)};
  }
  if (size(y) >= size(x)) {
    const bool below = is_below_zero(y);
    return {face(below ? 3 : 2), x, flipped(z, below), twice(y)};
  }
  const bool below = is_below_zero(x);
  return {face(below ? 1 : 0), flipped(z, !below), negated<Fp32>(y), twice(x)};
}

#define GCN_FORMAT(F)                                                 \
  template Bits<F> trunc<F>(Bits<F>, const FloatMode&);               \
  template Bits<F> ceil<F>(Bits<F>, const FloatMode&);                \
  template Bits<F> floor<F>(Bits<F>, const FloatMode&);               \
  template Bits<F> rndne<F>(Bits<F>, const FloatMode&);               \
  template Bits<F> fract<F>(Bits<F>, const FloatMode&);               \
  template Bits<F> frexp_mant<F>(Bits<F>, const FloatMode&);          \
  template std::int32_t frexp_exp<F>(Bits<F>, const FloatMode&);      \
  template Bits<F> ldexp<F>(Bits<F>, std::int32_t, const FloatMode&); \
  template Bits<F> rcp<F>(Bits<F>, const FloatMode&);                 \
  template Bits<F> rsq<F>(Bits<F>, const FloatMode&);                 \
  template Bits<F> sqrt<F>(Bits<F>, const FloatMode&);                \
  template Bits<F> exp2<F>(Bits<F>, const FloatMode&);                \
  template Bits<F> log2<F>(Bits<F>, const FloatMode&);                \
  template Bits<F> sin<F>(Bits<F>, const FloatMode&);                 \
  template Bits<F> cos<F>(Bits<F>, const FloatMode&);                 \
  template Bits<F> div_fixup<F>(Bits<F>, Bits<F>, Bits<F>, const FloatMode&);
GCN_FORMAT(Fp16)
GCN_FORMAT(Fp32)
GCN_FORMAT(Fp64)
#undef GCN_FORMAT
template Scaled<Fp32> div_scale<Fp32>(Bits<Fp32>, Bits<Fp32>, Bits<Fp32>, const FloatMode&);
template Scaled<Fp64> div_scale<Fp64>(Bits<Fp64>, Bits<Fp64>, Bits<Fp64>, const FloatMode&);
template Bits<Fp32> div_fmas<Fp32>(Bits<Fp32>, Bits<Fp32>, Bits<Fp32>, bool, const FloatMode&);
template Bits<Fp64> div_fmas<Fp64>(Bits<Fp64>, Bits<Fp64>, Bits<Fp64>, bool, const FloatMode&);

}  // namespace gcn
