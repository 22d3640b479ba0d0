// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Floating point as the VALU computes it: pure functions of bits and of MODE. These functions know no waves, lanes or
// operands: vector/vector_float*.cc make handlers of them, and vector/vector_fast.h computes the common ones faster,
// for a whole wave.
//
// NaNs: an arithmetic operation returns its first source that is NaN, made quiet; a NaN that it generates itself is the
// negative quiet one without payload, as with v_div_fixup. Hardware leaves signalling NaNs alone if MODE.IEEE is off;
// only min, max and med3 tell the difference here. Denormals are flushed after rounding.
// Source: chapters "Vector ALU operations" and "Instructions" of the ISA documents.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "gcn/isa/wave.h"

namespace gcn {

// Rounding modes, with the numbers that they have in MODE's fields.
enum class Round : std::uint8_t { kNearest, kUp, kDown, kZero };

// The part of MODE that concerns one format.
struct FloatMode {
  Round round = Round::kNearest;
  bool flush_in = false;   // denormal sources are zero
  bool flush_out = false;  // denormal results are zero
  bool ieee = false;
  bool dx10_clamp = false;    // clamp makes NaN 0
  bool f16_overflow = false;  // FP16_OVFL: finite sources give at most the largest fp16
};

// The layout of a binary interchange format.
template <class BitsType, int kFractionBits, int kExponentBits>
struct Format {
  using Bits = BitsType;
  static constexpr int kFraction = kFractionBits;
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kMaxField = (1 << kExponentBits) - 1;
  static constexpr Bits kSign = static_cast<Bits>(std::uint64_t{1} << (kFractionBits + kExponentBits));
  static constexpr Bits kInf = static_cast<Bits>(std::uint64_t{kMaxField} << kFractionBits);
  static constexpr Bits kQuiet = static_cast<Bits>(std::uint64_t{1} << (kFractionBits - 1));
  static constexpr Bits kNan = static_cast<Bits>(kSign | kInf | kQuiet);
  static constexpr Bits kMax = static_cast<Bits>(kInf - 1);
  static constexpr Bits kMinNormal = static_cast<Bits>(std::uint64_t{1} << kFractionBits);
  static constexpr Bits kOne = static_cast<Bits>(std::uint64_t{kBias} << kFractionBits);
};
using Fp16 = Format<std::uint16_t, 10, 5>;
using Fp32 = Format<std::uint32_t, 23, 8>;
using Fp64 = Format<std::uint64_t, 52, 11>;

// Decodes MODE's fields for the format F.
template <class F>
[[nodiscard]] constexpr FloatMode float_mode(std::uint32_t mode) {
  constexpr bool kSingle = std::is_same_v<F, Fp32>;
  FloatMode m;
  m.round = static_cast<Round>(mode >> (kSingle ? mode::kRound32Shift : mode::kRound64Shift) & mode::kRoundMask);
  m.flush_in = (mode & (kSingle ? mode::kDenormIn32 : mode::kDenormIn64)) == 0;
  m.flush_out = (mode & (kSingle ? mode::kDenormOut32 : mode::kDenormOut64)) == 0;
  m.ieee = (mode & mode::kIeee) != 0;
  m.dx10_clamp = (mode & mode::kDx10Clamp) != 0;
  m.f16_overflow = std::is_same_v<F, Fp16> && (mode & mode::kFp16Overflow) != 0;
  return m;
}
// Returns the mode of v_mad_f32, v_rcp_f32 and others, which never see or make denormals.
[[nodiscard]] constexpr FloatMode flushing(FloatMode m) {
  m.flush_in = m.flush_out = true;
  return m;
}
[[nodiscard]] constexpr FloatMode rounding(FloatMode m, Round round) {
  m.round = round;
  return m;
}

// --- Bits ---
template <class F>
[[nodiscard]] constexpr typename F::Bits magnitude(typename F::Bits a) {
  return static_cast<typename F::Bits>(a & (F::kSign - 1u));
}
template <class F>
[[nodiscard]] constexpr bool is_negative(typename F::Bits a) {
  return (a & F::kSign) != 0;
}
template <class F>
[[nodiscard]] constexpr bool is_nan(typename F::Bits a) {
  return magnitude<F>(a) > F::kInf;
}
template <class F>
[[nodiscard]] constexpr bool is_signalling(typename F::Bits a) {
  return is_nan<F>(a) && (a & F::kQuiet) == 0;
}
template <class F>
[[nodiscard]] constexpr bool is_inf(typename F::Bits a) {
  return magnitude<F>(a) == F::kInf;
}
template <class F>
[[nodiscard]] constexpr bool is_zero(typename F::Bits a) {
  return magnitude<F>(a) == 0;
}
template <class F>
[[nodiscard]] constexpr bool is_denormal(typename F::Bits a) {
  return magnitude<F>(a) < F::kMinNormal && !is_zero<F>(a);
}
template <class F>
[[nodiscard]] constexpr int exponent_field(typename F::Bits a) {
  return static_cast<int>(magnitude<F>(a) >> F::kFraction);
}
template <class F>
[[nodiscard]] constexpr typename F::Bits negated(typename F::Bits a) {
  return static_cast<typename F::Bits>(a ^ F::kSign);
}
template <class F>
[[nodiscard]] constexpr typename F::Bits with_sign(typename F::Bits a, bool negative) {
  return static_cast<typename F::Bits>(magnitude<F>(a) | (negative ? F::kSign : 0));
}
template <class F>
[[nodiscard]] constexpr typename F::Bits quieted(typename F::Bits a) {
  return static_cast<typename F::Bits>(a | (is_nan<F>(a) ? F::kQuiet : 0));
}
template <class F>
[[nodiscard]] constexpr typename F::Bits flushed(typename F::Bits a, bool flush) {
  return flush && magnitude<F>(a) < F::kMinNormal ? static_cast<typename F::Bits>(a & F::kSign) : a;
}
// Returns the bit of v_cmp_class that `a` has: 0 signalling, 1 quiet, 2 -inf, 3 -normal, 4 -denormal, 5 -0, 6 +0,
// 7 +denormal, 8 +normal, 9 +inf.
template <class F>
[[nodiscard]] unsigned class_of(typename F::Bits a);

[[nodiscard]] inline double as_double(std::uint64_t bits) { return std::bit_cast<double>(bits); }
// Converts to a double, which is exact; signalling NaNs may become quiet.
template <class F>
[[nodiscard]] inline double to_double(typename F::Bits a) {
  if constexpr (std::is_same_v<F, Fp64>) {
    return std::bit_cast<double>(a);
  } else if constexpr (std::is_same_v<F, Fp32>) {
    return static_cast<double>(std::bit_cast<float>(a));
  } else {
    const std::uint32_t sign = (a & 0x8000u) << 16;
    const std::uint32_t rest = a & 0x7fffu;
    // The fraction is in its place and the exponent too small by 127 - 15; the product corrects it, for denormals too.
    const float finite = std::bit_cast<float>(rest << 13) * 0x1p112f;
    const std::uint32_t bits = rest >= Fp16::kInf ? 0x7f800000u | rest << 13 : std::bit_cast<std::uint32_t>(finite);
    return static_cast<double>(std::bit_cast<float>(sign | bits));
  }
}

// --- Rounding ---
// A number that is not zero: (significand + e) * 2^exponent, where 0 < e < 1 if `sticky`, else e = 0.
struct Exact {
  bool negative = false;
  bool sticky = false;
  int exponent = 0;
  std::uint64_t significand = 0;
};
[[nodiscard]] Exact exact(double value);  // finite, not zero
template <class F>
[[nodiscard]] typename F::Bits round_to(const Exact& value, const FloatMode& m);
// Returns the result of an operation whose exact result is too large for the format.
template <class F>
[[nodiscard]] typename F::Bits overflow(bool negative, const FloatMode& m);
// Rounds any double, including zero, infinity and NaN.
template <class F>
[[nodiscard]] typename F::Bits from_double(double value, const FloatMode& m);

// --- Arithmetic ---
template <class F>
[[nodiscard]] typename F::Bits add(typename F::Bits a, typename F::Bits b, const FloatMode& m);
template <class F>
[[nodiscard]] typename F::Bits mul(typename F::Bits a, typename F::Bits b, const FloatMode& m);
// Computes a * b + c with one rounding.
template <class F>
[[nodiscard]] typename F::Bits fma(typename F::Bits a, typename F::Bits b, typename F::Bits c, const FloatMode& m);
// Computes (a * b + c) * 2^scale with one rounding.
template <class F>
[[nodiscard]] typename F::Bits fma_scaled(typename F::Bits a, typename F::Bits b, typename F::Bits c, int scale,
                                          const FloatMode& m);
// Computes a * b + c with two roundings and without denormals.
template <class F>
[[nodiscard]] typename F::Bits mad(typename F::Bits a, typename F::Bits b, typename F::Bits c, const FloatMode& m) {
  const FloatMode f = flushing(m);
  return add<F>(mul<F>(a, b, f), c, f);
}
// Multiplies, but 0 * anything is +0.
[[nodiscard]] std::uint32_t mul_legacy(std::uint32_t a, std::uint32_t b, const FloatMode& m);

template <class F>
[[nodiscard]] bool less(typename F::Bits a, typename F::Bits b) {
  return to_double<F>(a) < to_double<F>(b);
}
template <class F>
[[nodiscard]] bool equal(typename F::Bits a, typename F::Bits b) {
  return to_double<F>(a) == to_double<F>(b);
}
template <class F>
[[nodiscard]] typename F::Bits min(typename F::Bits a, typename F::Bits b, const FloatMode& m);
template <class F>
[[nodiscard]] typename F::Bits max(typename F::Bits a, typename F::Bits b, const FloatMode& m);
template <class F>
[[nodiscard]] typename F::Bits med3(typename F::Bits a, typename F::Bits b, typename F::Bits c, const FloatMode& m);

// --- Integral and fractional parts ---
template <class F>
[[nodiscard]] typename F::Bits trunc(typename F::Bits a, const FloatMode& m);
template <class F>
[[nodiscard]] typename F::Bits ceil(typename F::Bits a, const FloatMode& m);
template <class F>
[[nodiscard]] typename F::Bits floor(typename F::Bits a, const FloatMode& m);
template <class F>
[[nodiscard]] typename F::Bits rndne(typename F::Bits a, const FloatMode& m);
// Returns a - floor(a), or the largest number below 1 where that would round to 1.
template <class F>
[[nodiscard]] typename F::Bits fract(typename F::Bits a, const FloatMode& m);
template <class F>
[[nodiscard]] typename F::Bits frexp_mant(typename F::Bits a, const FloatMode& m);
template <class F>
[[nodiscard]] std::int32_t frexp_exp(typename F::Bits a, const FloatMode& m);
template <class F>
[[nodiscard]] typename F::Bits ldexp(typename F::Bits a, std::int32_t n, const FloatMode& m);

// --- Transcendental: correctly rounded or nearly so, to nearest. Those of fp32 know no denormals. ---
template <class F>
[[nodiscard]] typename F::Bits rcp(typename F::Bits a, const FloatMode& m);
template <class F>
[[nodiscard]] typename F::Bits rsq(typename F::Bits a, const FloatMode& m);
template <class F>
[[nodiscard]] typename F::Bits sqrt(typename F::Bits a, const FloatMode& m);
template <class F>
[[nodiscard]] typename F::Bits exp2(typename F::Bits a, const FloatMode& m);
template <class F>
[[nodiscard]] typename F::Bits log2(typename F::Bits a, const FloatMode& m);
// The argument of sin and cos counts revolutions; beyond 256 of them the results are 0 and 1. Unlike the other
// functions of this section, these accept denormals of fp32.
template <class F>
[[nodiscard]] typename F::Bits sin(typename F::Bits a, const FloatMode& m);
template <class F>
[[nodiscard]] typename F::Bits cos(typename F::Bits a, const FloatMode& m);
// Returns 53 bits of 2/pi, from the place on that the exponent of `a` and the segment select.
[[nodiscard]] std::uint64_t trig_preop(std::uint64_t a, std::uint32_t segment);

// --- Division ---
template <class F>
struct Scaled {
  typename F::Bits value;
  bool scaled;  // v_div_fmas has to scale the quotient back
};
// The caller passes the denominator or the numerator as `a`, once more.
template <class F>
[[nodiscard]] Scaled<F> div_scale(typename F::Bits a, typename F::Bits denominator, typename F::Bits numerator,
                                  const FloatMode& m);
template <class F>
[[nodiscard]] typename F::Bits div_fmas(typename F::Bits a, typename F::Bits b, typename F::Bits c, bool scaled,
                                        const FloatMode& m);
template <class F>
[[nodiscard]] typename F::Bits div_fixup(typename F::Bits quotient, typename F::Bits denominator,
                                         typename F::Bits numerator, const FloatMode& m);

// --- Conversions ---
// Converts between formats; `from` and `to` are the modes of the two.
template <class To, class From>
[[nodiscard]] typename To::Bits convert(typename From::Bits a, const FloatMode& from, const FloatMode& to);
// Convert to integers: they round to zero and saturate, and NaN becomes 0.
[[nodiscard]] std::int32_t to_int(double a, std::int32_t low, std::int32_t high);
[[nodiscard]] std::int32_t to_i32(double a);
[[nodiscard]] std::uint32_t to_u32(double a);
template <class F>
[[nodiscard]] typename F::Bits from_int(std::int64_t a, const FloatMode& m);
// Rounds `a` to an integer by `round` and returns it as a double. Infinities and NaN are returned as they are.
[[nodiscard]] double to_integral(double a, Round round);
// Map [-1, 1] to [-32767, 32767] and [0, 1] to [0, 65535], to nearest; NaN becomes 0.
[[nodiscard]] std::uint16_t to_snorm16(double a);
[[nodiscard]] std::uint16_t to_unorm16(double a);

// --- Output modifiers ---
struct OutputModifiers {
  std::uint8_t omod = 0;  // as in Instruction
  bool clamp = false;
};
// Applies OMOD, if the mode has neither IEEE nor denormal results, and then clamp.
template <class F>
[[nodiscard]] typename F::Bits modified(typename F::Bits a, OutputModifiers modifiers, const FloatMode& m);

// --- Cube maps ---
struct Cube {
  std::uint32_t id, sc, tc, ma;
};
[[nodiscard]] Cube cube(std::uint32_t x, std::uint32_t y, std::uint32_t z, const FloatMode& m);

// Returns whether the host's processor has fused multiply-add instructions and vectors of 256 bits.
[[nodiscard]] bool host_has_fma();

}  // namespace gcn
