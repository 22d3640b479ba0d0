// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tests of float_functions.cc, with all numbers of fp16. Transcendental functions are compared with long doubles.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "gcn/float/float.h"

namespace gcn::float_functions_test {
namespace {

constexpr FloatMode kPlain = {};

double half_value(unsigned a) {
  const auto field = static_cast<int>(a >> 10 & 31);
  const double fraction = a & 1023;
  const double size = field == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, field - 25);
  return (a & 0x8000) != 0 ? -size : size;
}

std::uint32_t bits_of(float a) { return std::bit_cast<std::uint32_t>(a); }
std::uint64_t bits_of(double a) { return std::bit_cast<std::uint64_t>(a); }
float single(std::uint32_t a) { return std::bit_cast<float>(a); }

// --- Transcendental functions ---

using Function = std::uint32_t (*)(std::uint32_t, const FloatMode&);
using HalfFunction = std::uint16_t (*)(std::uint16_t, const FloatMode&);
using Exactly = long double (*)(long double);

constexpr long double kTurn = 2 * std::numbers::pi_v<long double>;
long double exact_rcp(long double a) { return 1 / a; }
long double exact_rsq(long double a) { return 1 / std::sqrt(a); }
long double exact_sqrt(long double a) { return std::sqrt(a); }
long double exact_exp(long double a) { return std::exp2(a); }
long double exact_log(long double a) { return std::log2(a); }
// Computes the sine of a quarter of a revolution at most, where the error of the long double is in its own last bits.
long double exact_sin(long double a) {
  const long double part = std::remainder(a, 1.0L);
  return std::fabs(part) > 0.25L ? std::sin(kTurn * (std::copysign(0.5L, part) - part)) : std::sin(kTurn * part);
}
long double exact_cos(long double a) { return std::sin(kTurn * (0.25L - std::fabs(std::remainder(a, 1.0L)))); }

struct Case {
  const char* name;
  Function function;
  HalfFunction half;
  Exactly exactly;
};
const std::array kFunctions = {
    Case{"rcp", rcp<Fp32>, rcp<Fp16>, exact_rcp},     Case{"rsq", rsq<Fp32>, rsq<Fp16>, exact_rsq},
    Case{"sqrt", sqrt<Fp32>, sqrt<Fp16>, exact_sqrt}, Case{"exp", exp2<Fp32>, exp2<Fp16>, exact_exp},
    Case{"log", log2<Fp32>, log2<Fp16>, exact_log},   Case{"sin", sin<Fp32>, sin<Fp16>, exact_sin},
    Case{"cos", cos<Fp32>, cos<Fp16>, exact_cos},
};

// The permitted error: a little more than half a unit in the last place.
template <class F>
long double tolerance(long double exact) {
  int exponent = 0;
  static_cast<void>(std::frexp(exact, &exponent));
  const int last = std::max(exponent - 1, 1 - F::kBias) - F::kFraction;
  return 0.5001L * std::ldexp(1.0L, last);
}

TEST(Transcendental, singles_are_within_half_a_last_place) {
  for (const Case& c : kFunctions) {
    std::mt19937 random(1);
    for (int n = 0; n < 60000; ++n) {
      const auto a = static_cast<std::uint32_t>(random());
      const float value = single(n % 2 == 0 ? a : (a & 0x83ffffff) | 0x3c000000);
      if (!std::isnormal(value) || (value < 0 && std::isnan(c.exactly(-1.25L)))) continue;
      const bool periodic = c.exactly == exact_sin || c.exactly == exact_cos;
      if (periodic && std::fabs(value) > 256) continue;
      const long double exact = c.exactly(value);
      const float result = single(c.function(bits_of(value), kPlain));
      if (std::fabs(exact) < 0x1p-126L && !periodic) {
        ASSERT_EQ(result, 0) << c.name << ' ' << value;
      } else if (std::fabs(exact) >= 0x1.ffffffp127L) {
        ASSERT_TRUE(std::isinf(result)) << c.name << ' ' << value;
      } else {
        ASSERT_LE(std::fabs(exact - result), tolerance<Fp32>(exact)) << c.name << ' ' << std::hexfloat << value;
      }
    }
  }
}

TEST(Transcendental, all_halves_are_within_half_a_last_place) {
  for (const Case& c : kFunctions) {
    for (unsigned a = 0; a < 0x10000; ++a) {
      const double value = half_value(a);
      if ((a & 0x7c00) == 0x7c00 || value == 0 || (value < 0 && std::isnan(c.exactly(-1.25L)))) continue;
      const bool periodic = c.exactly == exact_sin || c.exactly == exact_cos;
      if (periodic && std::fabs(value) > 256) continue;
      const long double exact = c.exactly(value);
      const std::uint16_t result = c.half(static_cast<std::uint16_t>(a), kPlain);
      if (std::fabs(exact) >= 65520) {
        ASSERT_EQ(result & 0x7fff, 0x7c00) << c.name << ' ' << value;
      } else {
        ASSERT_LE(std::fabs(exact - static_cast<long double>(half_value(result))), tolerance<Fp16>(exact))
            << c.name << ' ' << value;
      }
    }
  }
}

struct Known {
  Function function;
  std::uint32_t source;
  std::uint32_t result;
};
constexpr std::uint32_t kNan = 0xffc00000;
constexpr std::uint32_t kInf = 0x7f800000;
constexpr std::uint32_t kMinusInf = 0xff800000;
constexpr std::uint32_t kMinusZero = 0x80000000;
constexpr std::uint32_t kOne = 0x3f800000;
const std::array kKnown = {
    Known{exp2<Fp32>, kMinusInf, 0},
    Known{exp2<Fp32>, kMinusZero, kOne},
    Known{exp2<Fp32>, kInf, kInf},
    Known{exp2<Fp32>, 0x007fffff, kOne},
    Known{exp2<Fp32>, 0xc2fe0000, 0},  // 2^-127 is a denormal
    Known{log2<Fp32>, kMinusInf, kNan},
    Known{log2<Fp32>, 0xbf800000, kNan},
    Known{log2<Fp32>, kMinusZero, kMinusInf},
    Known{log2<Fp32>, 0, kMinusInf},
    Known{log2<Fp32>, kOne, 0},
    Known{log2<Fp32>, kInf, kInf},
    Known{log2<Fp32>, 0x00000001, kMinusInf},
    Known{rcp<Fp32>, kMinusInf, kMinusZero},
    Known{rcp<Fp32>, 0xc0000000, 0xbf000000},
    Known{rcp<Fp32>, kMinusZero, kMinusInf},
    Known{rcp<Fp32>, 0, kInf},
    Known{rcp<Fp32>, kInf, 0},
    Known{rcp<Fp32>, 0x80000001, kMinusInf},
    Known{rcp<Fp32>, 0x7f000001, 0},
    Known{rsq<Fp32>, kMinusInf, kNan},
    Known{rsq<Fp32>, kMinusZero, kMinusInf},
    Known{rsq<Fp32>, 0, kInf},
    Known{rsq<Fp32>, 0x40800000, 0x3f000000},
    Known{rsq<Fp32>, kInf, 0},
    Known{sqrt<Fp32>, kMinusInf, kNan},
    Known{sqrt<Fp32>, kMinusZero, kMinusZero},
    Known{sqrt<Fp32>, 0x40800000, 0x40000000},
    Known{sqrt<Fp32>, kInf, kInf},
    Known{sin<Fp32>, kMinusInf, kNan},
    Known{sin<Fp32>, 0xff7fffff, 0},
    Known{sin<Fp32>, kMinusZero, kMinusZero},
    Known{sin<Fp32>, 0x3e800000, kOne},
    Known{sin<Fp32>, 0x7f7fffff, 0},
    Known{sin<Fp32>, kInf, kNan},
    Known{sin<Fp32>, 0x3f000000, 0},
    Known{cos<Fp32>, kInf, kNan},
    Known{cos<Fp32>, 0xff7fffff, kOne},
    Known{cos<Fp32>, kMinusZero, kOne},
    Known{cos<Fp32>, 0x3e800000, 0},
    Known{cos<Fp32>, 0x3f000000, 0xbf800000},
    Known{rcp<Fp32>, 0x7f800001, 0x7fc00001},
};

TEST(Transcendental, special_values_are_those_of_the_isa) {
  for (const Known& known : kKnown) {
    EXPECT_EQ(known.function(known.source, kPlain), known.result)
        << std::hex << known.source << " n " << &known - kKnown.data();
  }
}

TEST(Transcendental, doubles_are_near) {
  std::mt19937_64 random(1);
  for (int n = 0; n < 20000; ++n) {
    const double a = std::fabs(std::bit_cast<double>(random()));
    if (!std::isnormal(a) || a > 0x1p1020) continue;
    const auto near = [](long double exact, std::uint64_t bits) {
      return std::fabs(std::bit_cast<double>(bits) / exact - 1) < 0x1p-52L;
    };
    ASSERT_TRUE(near(1.0L / a, rcp<Fp64>(bits_of(a), kPlain)));
    ASSERT_TRUE(near(std::sqrt(static_cast<long double>(a)), sqrt<Fp64>(bits_of(a), kPlain)));
    ASSERT_TRUE(near(1 / std::sqrt(static_cast<long double>(a)), rsq<Fp64>(bits_of(a), kPlain)));
  }
}

// --- Integral parts ---

TEST(Integral, halves_are_as_the_host_has_them) {
  for (unsigned n = 0; n < 0x10000; ++n) {
    const auto a = static_cast<std::uint16_t>(n);
    const double value = half_value(a);
    if ((a & 0x7c00) == 0x7c00) continue;
    const auto check = [&](double expected, std::uint16_t result) {
      return half_value(result) == expected && std::signbit(half_value(result)) == std::signbit(value);
    };
    ASSERT_TRUE(check(std::trunc(value), trunc<Fp16>(a, kPlain)));
    ASSERT_TRUE(check(std::rint(value), rndne<Fp16>(a, kPlain)));
    ASSERT_EQ(half_value(floor<Fp16>(a, kPlain)), std::floor(value));
    ASSERT_EQ(half_value(ceil<Fp16>(a, kPlain)), std::ceil(value));
    const double part = half_value(fract<Fp16>(a, kPlain));
    ASSERT_NEAR(part, value - std::floor(value), 0x1p-11);
    ASSERT_LT(part, 1);
    int exponent = 0;
    ASSERT_EQ(half_value(frexp_mant<Fp16>(a, kPlain)), std::frexp(value, &exponent));
    ASSERT_EQ(frexp_exp<Fp16>(a, kPlain), exponent);
  }
}

TEST(Integral, infinities_and_nans_stay) {
  for (const auto op : {trunc<Fp32>, ceil<Fp32>, floor<Fp32>, rndne<Fp32>, frexp_mant<Fp32>}) {
    EXPECT_EQ(op(kMinusInf, kPlain), kMinusInf);
    EXPECT_EQ(op(0x7f800001, kPlain), 0x7fc00001U);
    EXPECT_EQ(op(kMinusZero, kPlain), kMinusZero);
  }
  EXPECT_EQ(frexp_exp<Fp32>(kInf, kPlain), 0);
  EXPECT_EQ(frexp_exp<Fp32>(0x7fc00000, kPlain), 0);
  EXPECT_EQ(frexp_exp<Fp32>(1, kPlain), -148);
  EXPECT_EQ(frexp_exp<Fp64>(1, kPlain), -1073);
  EXPECT_EQ(fract<Fp32>(kInf, kPlain), kNan);
  EXPECT_EQ(fract<Fp32>(0x80000001, kPlain), 0x3f7fffffU);
  EXPECT_EQ(fract<Fp64>(bits_of(-1.25), kPlain), bits_of(0.75));
}

TEST(Integral, ldexp_rounds_once) {
  std::mt19937 random(1);
  for (int n = 0; n < 50000; ++n) {
    const auto a = static_cast<std::uint32_t>(random());
    const int power = static_cast<int>(random() % 600) - 300;
    if (std::isnan(single(a))) continue;
    ASSERT_EQ(ldexp<Fp32>(a, power, kPlain), bits_of(std::ldexp(single(a), power))) << std::hex << a << ' ' << power;
    const std::uint64_t d = static_cast<std::uint32_t>(random()) | std::uint64_t{a} << 32;
    if (std::isnan(std::bit_cast<double>(d))) continue;
    ASSERT_EQ(ldexp<Fp64>(d, 8 * power, kPlain), bits_of(std::ldexp(std::bit_cast<double>(d), 8 * power)));
  }
  EXPECT_EQ(ldexp<Fp32>(kOne, INT32_MAX, kPlain), kInf);
  EXPECT_EQ(ldexp<Fp32>(kOne, INT32_MIN, kPlain), 0U);
  EXPECT_EQ(ldexp<Fp16>(0x3c00, -25, kPlain), 0);
  EXPECT_EQ(ldexp<Fp16>(0x3c00, -24, kPlain), 1);
}

// --- Division, as compilers expand it ---

float divided(float x, float y) {
  const std::uint32_t n = bits_of(x);
  const std::uint32_t d = bits_of(y);
  const Scaled<Fp32> denominator = div_scale<Fp32>(d, d, n, kPlain);
  const Scaled<Fp32> numerator = div_scale<Fp32>(n, d, n, kPlain);
  const std::uint32_t reciprocal = rcp<Fp32>(denominator.value, kPlain);
  const std::uint32_t minus = negated<Fp32>(denominator.value);
  const std::uint32_t error = fma<Fp32>(minus, reciprocal, kOne, kPlain);
  const std::uint32_t better = fma<Fp32>(error, reciprocal, reciprocal, kPlain);
  const std::uint32_t first = mul<Fp32>(numerator.value, better, kPlain);
  const std::uint32_t rest = fma<Fp32>(minus, first, numerator.value, kPlain);
  const std::uint32_t second = fma<Fp32>(rest, better, first, kPlain);
  const std::uint32_t last = fma<Fp32>(minus, second, numerator.value, kPlain);
  return single(div_fixup<Fp32>(div_fmas<Fp32>(last, better, second, numerator.scaled, kPlain), d, n, kPlain));
}

double divided(double x, double y) {
  const std::uint64_t n = bits_of(x);
  const std::uint64_t d = bits_of(y);
  const std::uint64_t one = bits_of(1.0);
  const Scaled<Fp64> denominator = div_scale<Fp64>(d, d, n, kPlain);
  const std::uint64_t minus = negated<Fp64>(denominator.value);
  const std::uint64_t reciprocal = rcp<Fp64>(denominator.value, kPlain);
  const std::uint64_t error = fma<Fp64>(minus, reciprocal, one, kPlain);
  const std::uint64_t better = fma<Fp64>(reciprocal, error, reciprocal, kPlain);
  const std::uint64_t error2 = fma<Fp64>(minus, better, one, kPlain);
  const Scaled<Fp64> numerator = div_scale<Fp64>(n, d, n, kPlain);
  const std::uint64_t best = fma<Fp64>(better, error2, better, kPlain);
  const std::uint64_t first = mul<Fp64>(numerator.value, best, kPlain);
  const std::uint64_t rest = fma<Fp64>(minus, first, numerator.value, kPlain);
  const std::uint64_t fmas = div_fmas<Fp64>(rest, best, first, numerator.scaled, kPlain);
  return std::bit_cast<double>(div_fixup<Fp64>(fmas, d, n, kPlain));
}

template <class T>
void expect_quotient(T x, T y) {
  const T expected = x / y;
  const T actual = divided(x, y);
  if (std::isnan(expected)) {
    ASSERT_TRUE(std::isnan(actual)) << std::hexfloat << x << " / " << y;
  } else {
    ASSERT_EQ(bits_of(expected), bits_of(actual))
        << std::hexfloat << x << " / " << y << " = " << expected << ", not " << actual;
  }
}

template <class T>
class Division : public ::testing::Test {};
using Quotients = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Division, Quotients);

TYPED_TEST(Division, of_random_bits_is_as_the_hosts) {
  using Bits = decltype(bits_of(TypeParam{}));
  std::mt19937_64 random(1);
  for (int n = 0; n < 200000; ++n) {
    expect_quotient(std::bit_cast<TypeParam>(static_cast<Bits>(random())),
                    std::bit_cast<TypeParam>(static_cast<Bits>(random())));
  }
}

// Tests operands of all sizes, including those whose quotients are denormal or overflow.
TYPED_TEST(Division, with_quotients_at_the_ends_is_as_the_hosts) {
  constexpr bool kSingle = sizeof(TypeParam) == 4;
  constexpr int kLeast = kSingle ? -149 : -1074;
  constexpr int kMost = kSingle ? 127 : 1023;
  std::mt19937_64 random(2);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto significand = [&] {
    const TypeParam all = 1 + static_cast<TypeParam>(random() >> 11) * static_cast<TypeParam>(0x1p-53);
    return below(2) == 0 ? all : 1 + static_cast<TypeParam>(below(64)) / 64;
  };
  for (int n = 0; n < 400000; ++n) {
    const int quotient = below(2) == 0 ? kLeast - 2 + below(60) : kMost - 2 + below(5);
    const int denominator = kLeast + below(kMost - kLeast + 1);
    const TypeParam y = std::ldexp(significand(), denominator);
    expect_quotient(std::ldexp(significand(), std::clamp(quotient + denominator, kLeast, kMost)), y);
  }
}

TYPED_TEST(Division, of_edges_is_as_the_hosts) {
  using Limits = std::numeric_limits<TypeParam>;
  const std::array<TypeParam, 11> edges = {0,
                                           1,
                                           3,
                                           -2,
                                           Limits::denorm_min(),
                                           Limits::min(),
                                           Limits::max(),
                                           -Limits::max(),
                                           Limits::infinity(),
                                           Limits::quiet_NaN(),
                                           Limits::min() - Limits::denorm_min()};
  for (const TypeParam x : edges) {
    for (const TypeParam y : edges) expect_quotient(x, y);
  }
}

TEST(Division, fixup_of_nans_prefers_the_numerator) {
  EXPECT_EQ(div_fixup<Fp32>(kOne, 0x7f800001, 0x7f800002, kPlain), 0x7fc00002U);
  EXPECT_EQ(div_fixup<Fp32>(kOne, 0x7f800001, kOne, kPlain), 0x7fc00001U);
  EXPECT_EQ(div_fixup<Fp32>(kOne, 0, 0, kPlain), kNan);
  EXPECT_EQ(div_fixup<Fp16>(0x3c00, 0x8000, 0x3c00, kPlain), 0xfc00);
  EXPECT_EQ(div_fixup<Fp16>(0x3c00, 0x7c00, 0xfc00, kPlain), 0xfe00);
  EXPECT_EQ(div_fixup<Fp16>(0x3c00, 0xc000, 0x3c00, kPlain), 0xbc00);
}

// --- 2 / pi ---

// Computes x * 2 / pi modulo 4 from three segments, for numbers that long doubles can reduce too.
TEST(TrigPreop, segments_add_up_to_two_over_pi) {
  std::mt19937_64 random(1);
  for (int n = 0; n < 1000; ++n) {
    const double x = std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 8) - 52);
    long double sum = 0;
    for (std::uint32_t segment = 0; segment < 3; ++segment) {
      sum += static_cast<long double>(std::bit_cast<double>(trig_preop(bits_of(x), segment)));
    }
    ASSERT_NEAR(static_cast<double>(sum * std::numbers::pi_v<long double>), 2.0, 1e-18);
  }
}

// The segments of large numbers start further right: the bits before them contribute only multiples of 4.
TEST(TrigPreop, large_numbers_skip_whole_periods) {
  for (int exponent = 54; exponent < 1024; exponent += 7) {
    const double x = std::ldexp(1.0, exponent);
    const double first = std::bit_cast<double>(trig_preop(bits_of(x), 0));
    const double scaled = exponent >= 945 ? std::ldexp(x, -128) : x;
    ASSERT_LT(first * scaled, 0x1p55) << exponent;
    // The next segment continues where this one ends.
    const double second = std::bit_cast<double>(trig_preop(bits_of(x), 1));
    ASSERT_LT(second * scaled, 0x1p2) << exponent;
  }
  EXPECT_EQ(trig_preop(bits_of(0x1p1023), 31), 0U);
  EXPECT_EQ(trig_preop(bits_of(1.0), 0), bits_of(0x1.45f306dc9c882p-1));
}

// --- Integers ---

TEST(ToInteger, saturates_and_cuts) {
  EXPECT_EQ(to_i32(-1.9), -1);
  EXPECT_EQ(to_i32(1e300), INT32_MAX);
  EXPECT_EQ(to_i32(-1e300), INT32_MIN);
  EXPECT_EQ(to_i32(std::nan("")), 0);
  EXPECT_EQ(to_i32(HUGE_VAL), INT32_MAX);
  EXPECT_EQ(to_u32(4294967295.9), 0xffffffffU);
  EXPECT_EQ(to_u32(1e10), 0xffffffffU);
  EXPECT_EQ(to_u32(-0.5), 0U);
  EXPECT_EQ(to_u32(-5.0), 0U);
  EXPECT_EQ(to_u32(std::nan("")), 0U);
  EXPECT_EQ(to_snorm16(1.0), 0x7fff);
  EXPECT_EQ(to_snorm16(-2.0), 0x8001);
  EXPECT_EQ(to_snorm16(std::nan("")), 0);
  EXPECT_EQ(to_unorm16(0.5), 0x8000);
  EXPECT_EQ(to_unorm16(-1.0), 0);
  EXPECT_EQ(to_unorm16(2.0), 0xffff);
}

TEST(FromInteger, rounds_by_mode) {
  EXPECT_EQ(from_int<Fp32>(0x01000001, kPlain), 0x4b800000U);
  EXPECT_EQ(from_int<Fp32>(0x01000001, rounding(kPlain, Round::kUp)), 0x4b800001U);
  EXPECT_EQ(from_int<Fp32>(-0x01000001, rounding(kPlain, Round::kUp)), 0xcb800000U);
  EXPECT_EQ(from_int<Fp32>(INT32_MIN, kPlain), 0xcf000000U);
  EXPECT_EQ(from_int<Fp64>(UINT32_MAX, kPlain), bits_of(4294967295.0));
  EXPECT_EQ(from_int<Fp16>(65535, kPlain), 0x7c00);
  EXPECT_EQ(from_int<Fp16>(65535, rounding(kPlain, Round::kZero)), 0x7bff);
  EXPECT_EQ(from_int<Fp32>(0, kPlain), 0U);
  std::mt19937 random(1);
  for (int n = 0; n < 20000; ++n) {
    const auto a = static_cast<std::int32_t>(random()) >> (n % 32);
    ASSERT_EQ(from_int<Fp32>(a, kPlain), bits_of(static_cast<float>(a)));
  }
}

// --- Cube maps ---

TEST(Cube, faces_follow_the_largest_coordinate) {
  const auto at = [](float x, float y, float z) { return cube(bits_of(x), bits_of(y), bits_of(z), kPlain); };
  const auto is = [](const Cube& c, float id, float sc, float tc, float ma) {
    return single(c.id) == id && single(c.sc) == sc && single(c.tc) == tc && single(c.ma) == ma;
  };
  EXPECT_TRUE(is(at(3, 1, 2), 0, -2, -1, 6));
  EXPECT_TRUE(is(at(-3, 1, 2), 1, 2, -1, -6));
  EXPECT_TRUE(is(at(1, 3, 2), 2, 1, 2, 6));
  EXPECT_TRUE(is(at(1, -3, 2), 3, 1, -2, -6));
  EXPECT_TRUE(is(at(1, 2, 3), 4, 1, -2, 6));
  EXPECT_TRUE(is(at(1, 2, -3), 5, -1, -2, -6));
  EXPECT_TRUE(is(at(2, 2, 2), 4, 2, -2, 4));
  EXPECT_TRUE(is(at(2, 2, 1), 2, 2, 1, 4));
}

}  // namespace
}  // namespace gcn::float_functions_test
