// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tests of float.cc. They compare fp32 and fp64 with the host's arithmetic in the host's rounding modes, and fp16 with
// the result of a search among all halves.
#include "gcn/float/float.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cfenv>
#include <cmath>
#include <random>
#include <vector>

namespace gcn::float_test {
namespace {

using Quad = __float128;

constexpr std::array kRounds = {Round::kNearest, Round::kUp, Round::kDown, Round::kZero};
constexpr FloatMode kIeeeNearest = {.ieee = true};

FloatMode in(Round round) { return rounding(FloatMode{}, round); }

template <class F>
using Host = std::conditional_t<std::is_same_v<F, Fp32>, float, double>;

// Sets the host's rounding mode for the lifetime of the object.
class HostRounding {
 public:
  explicit HostRounding(Round round) {
    constexpr std::array kHost = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    std::fesetround(kHost[static_cast<std::size_t>(round)]);
  }
  ~HostRounding() { std::fesetround(FE_TONEAREST); }
  HostRounding(const HostRounding&) = delete;
  HostRounding& operator=(const HostRounding&) = delete;
};

// Keeps the compiler from computing with a value at compile time, and from moving operations on it.
template <class T>
T opaque(T value) {
  volatile T copy = value;
  return copy;
}

template <class F>
typename F::Bits host_add(typename F::Bits a, typename F::Bits b, Round round) {
  const HostRounding scope(round);
  return std::bit_cast<typename F::Bits>(opaque(opaque(std::bit_cast<Host<F>>(a)) + opaque(std::bit_cast<Host<F>>(b))));
}
template <class F>
typename F::Bits host_mul(typename F::Bits a, typename F::Bits b, Round round) {
  const HostRounding scope(round);
  return std::bit_cast<typename F::Bits>(opaque(opaque(std::bit_cast<Host<F>>(a)) * opaque(std::bit_cast<Host<F>>(b))));
}
template <class F>
typename F::Bits host_fma(typename F::Bits a, typename F::Bits b, typename F::Bits c, Round round) {
  const HostRounding scope(round);
  return std::bit_cast<typename F::Bits>(opaque(std::fma(
      opaque(std::bit_cast<Host<F>>(a)), opaque(std::bit_cast<Host<F>>(b)), opaque(std::bit_cast<Host<F>>(c)))));
}

// Makes numbers whose operations are interesting: edges, and random ones whose exponents are often close.
template <class F>
class Numbers {
 public:
  using Bits = typename F::Bits;
  Bits next() {
    const std::uint64_t kind = random_() % 16;
    const auto bits = static_cast<Bits>(random_());
    if (kind == 0) return static_cast<Bits>(edges()[random_() % edges().size()] ^ (bits & F::kSign));
    if (kind == 1) return static_cast<Bits>(bits & (F::kSign | (F::kMinNormal - 1u)));  // denormal
    if (kind < 8) {                                                                     // near 1
      const auto field = static_cast<std::uint64_t>(F::kBias - 3) + random_() % 7;
      return static_cast<Bits>((bits & (F::kSign | (F::kMinNormal - 1u))) | field << F::kFraction);
    }
    if (kind < 11) return static_cast<Bits>(bits & ~(F::kMinNormal / 4u - 1u));  // few bits: halfway cases
    return bits;
  }
  static const std::vector<Bits>& edges() {
    static const std::vector<Bits> all = {0,
                                          1,
                                          2,
                                          3,
                                          F::kMinNormal - 1,
                                          F::kMinNormal,
                                          F::kMinNormal + 1,
                                          F::kOne - 1,
                                          F::kOne,
                                          F::kOne + 1,
                                          F::kMax - 1,
                                          F::kMax,
                                          F::kInf,
                                          static_cast<Bits>(F::kInf | F::kQuiet),
                                          static_cast<Bits>(F::kInf + 1),
                                          static_cast<Bits>(F::kOne + F::kMinNormal),
                                          static_cast<Bits>(F::kMax - F::kMinNormal)};
    return all;
  }

 private:
  std::mt19937_64 random_{1};
};

// Returns whether both are equal or both are NaN: the host chooses other payloads.
template <class F>
::testing::AssertionResult same(typename F::Bits expected, typename F::Bits actual) {
  if (expected == actual || (is_nan<F>(expected) && is_nan<F>(actual))) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << std::hex << +actual << ", expected " << +expected;
}

template <class F>
class HostFloat : public ::testing::Test {};
using HostFormats = ::testing::Types<Fp32, Fp64>;
TYPED_TEST_SUITE(HostFloat, HostFormats);

constexpr int kPairs = 40000;

TYPED_TEST(HostFloat, add_rounds_as_the_host) {
  for (const Round round : kRounds) {
    Numbers<TypeParam> numbers;
    for (int n = 0; n < kPairs; ++n) {
      const auto a = numbers.next();
      const auto b = numbers.next();
      ASSERT_TRUE(same<TypeParam>(host_add<TypeParam>(a, b, round), add<TypeParam>(a, b, in(round))))
          << std::hex << +a << " + " << +b << " round " << static_cast<int>(round);
    }
  }
}

TYPED_TEST(HostFloat, mul_rounds_as_the_host) {
  for (const Round round : kRounds) {
    Numbers<TypeParam> numbers;
    for (int n = 0; n < kPairs; ++n) {
      const auto a = numbers.next();
      const auto b = numbers.next();
      ASSERT_TRUE(same<TypeParam>(host_mul<TypeParam>(a, b, round), mul<TypeParam>(a, b, in(round))))
          << std::hex << +a << " * " << +b << " round " << static_cast<int>(round);
    }
  }
}

TYPED_TEST(HostFloat, fma_rounds_once_as_the_host) {
  for (const Round round : kRounds) {
    Numbers<TypeParam> numbers;
    for (int n = 0; n < kPairs; ++n) {
      const auto a = numbers.next();
      const auto b = numbers.next();
      const auto c = n % 4 == 0 ? negated<TypeParam>(mul<TypeParam>(a, b, FloatMode{})) : numbers.next();
      const auto expected = host_fma<TypeParam>(a, b, c, round);
      ASSERT_TRUE(same<TypeParam>(expected, fma<TypeParam>(a, b, c, in(round))))
          << std::hex << +a << " * " << +b << " + " << +c << " round " << static_cast<int>(round);
      ASSERT_TRUE(same<TypeParam>(expected, fma_scaled<TypeParam>(a, b, c, 0, in(round)))) << "without the host";
    }
  }
}

TYPED_TEST(HostFloat, edges_meet_edges) {
  const auto& edges = Numbers<TypeParam>::edges();
  for (const Round round : kRounds) {
    for (const auto a : edges) {
      for (const auto b : edges) {
        const auto n = negated<TypeParam>(b);
        EXPECT_TRUE(same<TypeParam>(host_add<TypeParam>(a, b, round), add<TypeParam>(a, b, in(round))));
        EXPECT_TRUE(same<TypeParam>(host_add<TypeParam>(a, n, round), add<TypeParam>(a, n, in(round))));
        EXPECT_TRUE(same<TypeParam>(host_mul<TypeParam>(a, n, round), mul<TypeParam>(a, n, in(round))));
        for (const auto c : edges) {
          EXPECT_TRUE(same<TypeParam>(host_fma<TypeParam>(a, n, c, round), fma<TypeParam>(a, n, c, in(round))));
          EXPECT_TRUE(same<TypeParam>(host_fma<TypeParam>(a, b, c, round), fma<TypeParam>(a, b, c, in(round))));
        }
      }
    }
  }
}

TYPED_TEST(HostFloat, from_double_and_convert_round_as_the_host) {
  for (const Round round : kRounds) {
    Numbers<Fp64> numbers;
    for (int n = 0; n < kPairs; ++n) {
      const std::uint64_t a =
          n % 2 == 0 ? numbers.next() : numbers.next() % (std::uint64_t{1} << 60) + (std::uint64_t{400} << 52);
      const HostRounding scope(round);
      const auto expected = std::bit_cast<std::uint32_t>(opaque(static_cast<float>(opaque(std::bit_cast<double>(a)))));
      std::fesetround(FE_TONEAREST);
      ASSERT_TRUE(same<Fp32>(expected, convert<Fp32, Fp64>(a, FloatMode{}, in(round)))) << std::hex << a;
    }
  }
}

// --- fp16 ---

double half_value(Fp16::Bits a) {
  const int field = a >> 10 & 31;
  const double fraction = a & 1023;
  const double size = field == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, field - 25);
  return (a & 0x8000) != 0 ? -size : size;
}

// Returns the half that `exact` rounds to, found by a search among all of them. The caller handles zero.
Fp16::Bits searched_half(Quad exact, Round round) {
  const bool negative = exact < 0;
  const Quad size = negative ? -exact : exact;
  unsigned low = 0;  // the largest half that is not above
  unsigned high = 0x7c00;
  while (high - low > 1) {
    const unsigned middle = (low + high) / 2;
    (static_cast<Quad>(half_value(static_cast<Fp16::Bits>(middle))) <= size ? low : high) = middle;
  }
  const Quad below = half_value(static_cast<Fp16::Bits>(low));
  const Quad above = high == 0x7c00 ? Quad{65536} : Quad{half_value(static_cast<Fp16::Bits>(high))};
  bool up = false;
  if (size != below) {
    const bool nearer = size - below > above - size || (size - below == above - size && (low & 1) != 0);
    up = round == Round::kNearest ? nearer : round == (negative ? Round::kDown : Round::kUp);
  }
  return static_cast<Fp16::Bits>((up ? low + 1 : low) | (negative ? 0x8000 : 0));
}

bool finite(Fp16::Bits a) { return magnitude<Fp16>(a) < Fp16::kInf; }
Quad quad(Fp16::Bits a) { return half_value(a); }

TEST(HalfFloat, values_are_those_of_the_format) {
  for (unsigned a = 0; a < 0x10000; ++a) {
    const auto bits = static_cast<Fp16::Bits>(a);
    if (finite(bits)) {
      ASSERT_EQ(to_double<Fp16>(bits), half_value(bits));
      ASSERT_EQ(from_double<Fp16>(half_value(bits), FloatMode{}), (bits == 0x8000 ? 0x8000 : bits));
    } else {
      ASSERT_EQ(std::isnan(to_double<Fp16>(bits)), is_nan<Fp16>(bits));
    }
  }
}

TEST(HalfFloat, arithmetic_rounds_once) {
  for (const Round round : kRounds) {
    Numbers<Fp16> numbers;
    for (int n = 0; n < kPairs; ++n) {
      const Fp16::Bits a = numbers.next();
      const Fp16::Bits b = numbers.next();
      const Fp16::Bits c = numbers.next();
      if (!finite(a) || !finite(b) || !finite(c)) continue;
      const auto check = [&](Quad exact, Fp16::Bits actual) {
        return exact == 0 ? is_zero<Fp16>(actual) : searched_half(exact, round) == actual;
      };
      ASSERT_TRUE(check(quad(a) + quad(b), add<Fp16>(a, b, in(round)))) << std::hex << a << " + " << b;
      ASSERT_TRUE(check(quad(a) * quad(b), mul<Fp16>(a, b, in(round)))) << std::hex << a << " * " << b;
      ASSERT_TRUE(check(quad(a) * quad(b) + quad(c), fma<Fp16>(a, b, c, in(round))))
          << std::hex << a << ' ' << b << ' ' << c;
    }
  }
}

// Adds a number far below a product of 22 bits: the sum needs more bits than a double has, and rounded to a double it
// would be halfway between two halves.
TEST(HalfFloat, fma_is_not_rounded_to_a_double_first) {
  const Fp16::Bits a = 0x7801;  // 32800 = 2^15 + 2^5
  const Fp16::Bits b = 0x3c00;
  EXPECT_EQ(fma<Fp16>(a, b, 1, in(Round::kUp)), 0x7802);
  const Quad tie = quad(0x6401) * quad(0x1001) + quad(0x0001);
  EXPECT_EQ(fma<Fp16>(0x6401, 0x1001, 0x0001, in(Round::kNearest)), searched_half(tie, Round::kNearest));
  for (unsigned n = 0; n < 0x400; ++n) {  // 2^-24 or less decides next to a tie of 2^15
    const auto x = static_cast<Fp16::Bits>(0x7800 + n);
    const Quad exact = quad(x) * quad(0x3c01) + quad(0x8001);
    ASSERT_EQ(fma<Fp16>(x, 0x3c01, 0x8001, in(Round::kNearest)), searched_half(exact, Round::kNearest));
  }
}

TEST(HalfFloat, conversion_from_single_is_rounded_by_mode) {
  for (const Round round : kRounds) {
    Numbers<Fp32> numbers;
    for (int n = 0; n < kPairs; ++n) {
      const std::uint32_t a = n % 2 == 0 ? numbers.next() : (numbers.next() & 0x8fffffffu) | 0x30000000u;
      const float value = std::bit_cast<float>(a);
      if (!std::isfinite(value) || value == 0) continue;
      ASSERT_EQ((convert<Fp16, Fp32>(a, FloatMode{}, in(round))), searched_half(Quad{value}, round)) << std::hex << a;
    }
  }
}

TEST(HalfFloat, overflow_mode_stops_at_the_largest_half) {
  const FloatMode m = {.f16_overflow = true};
  EXPECT_EQ(add<Fp16>(0x7bff, 0x7bff, FloatMode{}), 0x7c00);
  EXPECT_EQ(add<Fp16>(0x7bff, 0x7bff, m), 0x7bff);
  EXPECT_EQ(mul<Fp16>(0x7bff, 0xfbff, m), 0xfbff);
  EXPECT_EQ(add<Fp16>(0x7c00, 0x3c00, m), 0x7c00);
  EXPECT_EQ((convert<Fp16, Fp32>(0x7f800000, FloatMode{}, m)), 0x7c00);
  EXPECT_EQ((convert<Fp16, Fp32>(0x7f7fffff, FloatMode{}, m)), 0x7bff);
}

// --- Denormals ---

template <class F>
class AnyFloat : public ::testing::Test {};
using AllFormats = ::testing::Types<Fp16, Fp32, Fp64>;
TYPED_TEST_SUITE(AnyFloat, AllFormats);

TYPED_TEST(AnyFloat, denormal_sources_and_results_are_flushed_by_mode) {
  using F = TypeParam;
  using Bits = typename F::Bits;
  const FloatMode in_only = {.flush_in = true};
  const FloatMode out_only = {.flush_out = true};
  const auto denormal = static_cast<Bits>(F::kSign | (F::kMinNormal - 1u));
  const auto zero = F::kSign;
  const auto half = static_cast<Bits>(F::kOne - F::kMinNormal);
  EXPECT_EQ(mul<F>(denormal, F::kOne, FloatMode{}), denormal);
  EXPECT_EQ(mul<F>(denormal, F::kOne, in_only), zero);
  EXPECT_EQ(mul<F>(denormal, F::kOne, out_only), zero);
  EXPECT_EQ(mul<F>(F::kMinNormal, half, in_only), F::kMinNormal / 2);
  EXPECT_EQ(mul<F>(F::kMinNormal, half, out_only), 0);
  EXPECT_EQ(fma<F>(denormal, F::kOne, zero, in_only), zero);
  EXPECT_EQ(fma<F>(denormal, F::kOne, zero, FloatMode{}), denormal);
  EXPECT_EQ(fma<F>(denormal, F::kOne, zero, out_only), zero);
  EXPECT_EQ(add<F>(denormal, zero, in_only), zero);
  EXPECT_EQ(add<F>(denormal, zero, FloatMode{}), denormal);
  EXPECT_EQ(add<F>(F::kMinNormal, denormal, out_only), 0);
  EXPECT_EQ(add<F>(F::kMinNormal, denormal, FloatMode{}), 1);
  EXPECT_EQ(mad<F>(denormal, F::kOne, F::kOne, FloatMode{}), F::kOne);
  EXPECT_EQ(max<F>(denormal, F::kSign | F::kOne, in_only), zero);
  EXPECT_EQ(floor<F>(denormal, FloatMode{}), static_cast<Bits>(F::kSign | F::kOne));
  EXPECT_EQ(floor<F>(denormal, in_only), zero);
}

TYPED_TEST(AnyFloat, classes_are_those_of_v_cmp_class) {
  using F = TypeParam;
  using Bits = typename F::Bits;
  EXPECT_EQ(class_of<F>(static_cast<Bits>(F::kInf + 1)), 0U);
  EXPECT_EQ(class_of<F>(static_cast<Bits>(F::kSign | F::kInf | F::kQuiet)), 1U);
  const std::array<Bits, 4> sizes = {F::kInf, F::kOne, 1, 0};
  for (unsigned n = 0; n < 4; ++n) {
    EXPECT_EQ(class_of<F>(negated<F>(sizes[n])), 2 + n);
    EXPECT_EQ(class_of<F>(sizes[n]), 9 - n);
  }
}

// --- NaN ---

TYPED_TEST(AnyFloat, arithmetic_makes_nans_quiet_and_keeps_the_first) {
  using F = TypeParam;
  using Bits = typename F::Bits;
  const auto signalling = static_cast<Bits>(F::kInf | 5u);
  const auto quiet = static_cast<Bits>(F::kInf | F::kQuiet | 5u);
  const auto other = static_cast<Bits>(F::kInf | F::kQuiet | 9u);
  EXPECT_EQ(add<F>(signalling, other, kIeeeNearest), quiet);
  EXPECT_EQ(add<F>(F::kOne, signalling, kIeeeNearest), quiet);
  EXPECT_EQ(mul<F>(other, signalling, kIeeeNearest), other);
  EXPECT_EQ(fma<F>(F::kOne, F::kOne, signalling, kIeeeNearest), quiet);
  EXPECT_EQ(fma<F>(0, F::kInf, signalling, kIeeeNearest), quiet);
  EXPECT_EQ(mul<F>(0, F::kInf, kIeeeNearest), F::kNan);
  EXPECT_EQ(fma<F>(F::kInf, F::kOne, negated<F>(F::kInf), kIeeeNearest), F::kNan);
}

TYPED_TEST(AnyFloat, min_and_max_prefer_numbers_unless_ieee_signals) {
  using F = TypeParam;
  using Bits = typename F::Bits;
  const auto signalling = static_cast<Bits>(F::kInf | 5u);
  const auto quiet = static_cast<Bits>(F::kInf | F::kQuiet | 5u);
  for (const auto op : {min<F>, max<F>}) {
    EXPECT_EQ(op(signalling, F::kOne, kIeeeNearest), quiet);
    EXPECT_EQ(op(F::kOne, signalling, kIeeeNearest), quiet);
    EXPECT_EQ(op(signalling, F::kOne, FloatMode{}), F::kOne);
    EXPECT_EQ(op(F::kOne, signalling, FloatMode{}), F::kOne);
    EXPECT_EQ(op(quiet, F::kOne, kIeeeNearest), F::kOne);
    EXPECT_EQ(op(F::kOne, quiet, kIeeeNearest), F::kOne);
  }
  EXPECT_EQ(min<F>(0, F::kSign, kIeeeNearest), F::kSign);
  EXPECT_EQ(min<F>(F::kSign, 0, kIeeeNearest), F::kSign);
  EXPECT_EQ(max<F>(0, F::kSign, kIeeeNearest), 0);
  EXPECT_EQ(max<F>(F::kSign, 0, kIeeeNearest), 0);
  EXPECT_EQ(min<F>(F::kOne, F::kInf, kIeeeNearest), F::kOne);
  EXPECT_EQ(max<F>(F::kOne, negated<F>(F::kInf), kIeeeNearest), F::kOne);
}

TYPED_TEST(AnyFloat, med3_is_the_one_in_the_middle) {
  using F = TypeParam;
  using Bits = typename F::Bits;
  const auto two = static_cast<Bits>(F::kOne + F::kMinNormal);
  std::array<Bits, 3> s = {negated<F>(two), F::kOne, two};
  std::sort(s.begin(), s.end());
  do {
    EXPECT_EQ(med3<F>(s[0], s[1], s[2], kIeeeNearest), F::kOne);
  } while (std::next_permutation(s.begin(), s.end()));
  EXPECT_EQ(med3<F>(F::kNan, F::kOne, two, kIeeeNearest), F::kOne);  // min3
}

// --- Output modifiers ---

TYPED_TEST(AnyFloat, clamp_limits_to_zero_and_one) {
  using F = TypeParam;
  using Bits = typename F::Bits;
  const OutputModifiers clamp = {.clamp = true};
  const FloatMode dx10 = {.dx10_clamp = true};
  const auto two = static_cast<Bits>(F::kOne + F::kMinNormal);
  EXPECT_EQ(modified<F>(two, clamp, dx10), F::kOne);
  EXPECT_EQ(modified<F>(negated<F>(two), clamp, dx10), 0);
  EXPECT_EQ(modified<F>(F::kSign, clamp, dx10), 0);
  EXPECT_EQ(modified<F>(F::kOne - 1, clamp, dx10), F::kOne - 1);
  EXPECT_EQ(modified<F>(F::kInf, clamp, dx10), F::kOne);
  EXPECT_EQ(modified<F>(F::kNan, clamp, dx10), 0);
  EXPECT_EQ(modified<F>(F::kNan, clamp, FloatMode{}), F::kNan);
}

TYPED_TEST(AnyFloat, omod_scales_unless_ieee_or_denormal_results) {
  using F = TypeParam;
  using Bits = typename F::Bits;
  const FloatMode flush = {.flush_out = true};
  const auto by = [](std::uint8_t omod) { return OutputModifiers{.omod = omod}; };
  const auto power = [](int n) { return static_cast<Bits>(F::kOne + static_cast<Bits>(n) * F::kMinNormal); };
  EXPECT_EQ(modified<F>(F::kOne, by(1), flush), power(1));
  EXPECT_EQ(modified<F>(F::kOne, by(2), flush), power(2));
  EXPECT_EQ(modified<F>(F::kOne, by(3), flush), F::kOne - F::kMinNormal);
  EXPECT_EQ(modified<F>(F::kOne, by(1), FloatMode{}), F::kOne);
  EXPECT_EQ(modified<F>(F::kOne, by(1), {.flush_out = true, .ieee = true}), F::kOne);
  EXPECT_EQ(modified<F>(F::kSign, by(1), flush), 0);
  EXPECT_EQ(modified<F>(F::kMinNormal, by(3), flush), 0);
  EXPECT_EQ(modified<F>(F::kMax, by(2), flush), F::kInf);
  EXPECT_EQ(modified<F>(power(1), {.omod = 1, .clamp = true}, flush), F::kOne);
}

TEST(FloatMode, fields_are_those_of_the_format) {
  const std::uint32_t mode = 1u << mode::kRound32Shift | 2u << mode::kRound64Shift | mode::kDenormIn32 |
                             mode::kDenormOut64 | mode::kIeee | mode::kFp16Overflow;
  const FloatMode single = float_mode<Fp32>(mode);
  EXPECT_EQ(single.round, Round::kUp);
  EXPECT_FALSE(single.flush_in);
  EXPECT_TRUE(single.flush_out);
  EXPECT_TRUE(single.ieee);
  EXPECT_FALSE(single.f16_overflow);
  const FloatMode half = float_mode<Fp16>(mode);
  EXPECT_EQ(half.round, Round::kDown);
  EXPECT_TRUE(half.flush_in);
  EXPECT_FALSE(half.flush_out);
  EXPECT_TRUE(half.f16_overflow);
  EXPECT_FALSE(float_mode<Fp64>(mode).f16_overflow);
}

}  // namespace
}  // namespace gcn::float_test
