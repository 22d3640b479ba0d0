// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tests of dot.h. The reference for a sum with one rounding adds integers of 768 bits; that for a sum with many has the
// functions of float.h for each step.
#include "gcn/float/dot.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <random>

#include "gcn/float/float.h"

namespace gcn {
namespace {

// A number with a fixed point: an integer of 768 bits times 2^-400, in two's complement.
class Fixed {
 public:
  static constexpr int kPoint = 400;
  void add(double value) {
    if (value == 0) return;
    const Exact e = exact(value);
    const auto place = static_cast<unsigned>(e.exponent + kPoint);
    std::array<std::uint64_t, 12> term{};
    term[place / 64] = e.significand << (place % 64);
    if (place % 64 != 0) term[place / 64 + 1] = e.significand >> (64 - place % 64);
    unsigned carry = e.negative ? 1 : 0;
    for (std::size_t i = 0; i < limbs_.size(); ++i) {
      const std::uint64_t word = e.negative ? ~term[i] : term[i];
      const std::uint64_t sum = limbs_[i] + word;
      const unsigned carry_out = sum < word ? 1 : 0;
      limbs_[i] = sum + carry;
      carry = carry_out | (limbs_[i] < carry ? 1 : 0);
    }
  }
  [[nodiscard]] std::uint32_t rounded() const {
    Exact result;
    std::array<std::uint64_t, 12> magnitude = limbs_;
    result.negative = limbs_.back() >> 63 != 0;
    if (result.negative) {
      unsigned carry = 1;
      for (std::uint64_t& limb : magnitude) {
        limb = ~limb + carry;
        carry = carry != 0 && limb == 0 ? 1 : 0;
      }
    }
    std::size_t top = magnitude.size();
    while (top > 0 && magnitude[top - 1] == 0) --top;
    if (top == 0) return 0;
    // The upper 32 bits of the two upper limbs and all of the second one are more than enough; the rest is sticky.
    const auto shift = static_cast<unsigned>(std::countl_zero(magnitude[top - 1]));
    const std::uint64_t next = top > 1 ? magnitude[top - 2] : 0;
    result.significand = shift == 0 ? magnitude[top - 1] : magnitude[top - 1] << shift | next >> (64 - shift);
    result.sticky = shift == 0 ? next != 0 : next << shift != 0;
    for (std::size_t i = 0; i + 2 < top; ++i) result.sticky = result.sticky || magnitude[i] != 0;
    result.exponent = static_cast<int>(64 * (top - 1)) - static_cast<int>(shift) - kPoint;
    return round_to<Fp32>(result, {});
  }

 private:
  std::array<std::uint64_t, 12> limbs_{};
};

struct Terms {
  std::array<float, 4> a, b;
  float c;
};

// Magnitudes are often close to each other, and often far from each other; some products cancel.
class RandomTerms {
 public:
  Terms halves() {
    return terms([this] { return static_cast<float>(to_double<Fp16>(static_cast<Fp16::Bits>(finite(0x7c00)))); });
  }
  Terms brains() {
    return terms([this] { return brain_float(static_cast<std::uint16_t>(finite(0x7f80))); });
  }

 private:
  // 16 bits whose exponent, under this mask, is not that of infinity and NaN, and in every second case near one.
  std::uint32_t finite(std::uint32_t exponent) {
    const auto bits = static_cast<std::uint32_t>(random_() & 0xffff);
    const std::uint32_t near = (bits & ~exponent) | ((exponent / 2) & exponent);
    const std::uint32_t value = random_() % 2 == 0 ? near : bits;
    return (value & exponent) == exponent ? value & ~exponent : value;
  }
  template <class Make>
  Terms terms(const Make& make) {
    Terms t{};
    for (unsigned k = 0; k < 4; ++k) {
      t.a[k] = make();
      t.b[k] = make();
    }
    if (random_() % 4 == 0) {
      t.a[3] = -t.a[0];
      t.b[3] = t.b[0];
    }
    const float product = t.a[1] * t.b[1];
    switch (random_() % 4) {
      case 0:
        t.c = std::isfinite(product) ? -product : 0;
        break;
      case 1:
        t.c = 0;
        break;
      default:
        t.c = make() * 0x1.555556p+0F;
    }
    if (!std::isfinite(t.c)) t.c = 1;
    return t;
  }
  std::mt19937_64 random_{7};
};

constexpr unsigned kTurns = 200000;

void check_fused(const Terms& t, std::size_t count) {
  Fixed sum;
  sum.add(static_cast<double>(t.c));
  for (std::size_t k = 0; k < count; ++k) sum.add(static_cast<double>(t.a[k]) * static_cast<double>(t.b[k]));
  const std::uint32_t got = fused_dot({t.a.data(), count}, {t.b.data(), count}, std::bit_cast<std::uint32_t>(t.c));
  // The sum of the reference has no sign when it is zero.
  const std::uint32_t expected = sum.rounded();
  ASSERT_TRUE(got == expected || (is_zero<Fp32>(got) && is_zero<Fp32>(expected)))
      << std::hex << got << ' ' << expected << " of " << t.c;
}

TEST(Dot, a_fused_sum_is_rounded_once) {
  RandomTerms random;
  for (unsigned turn = 0; turn < kTurns; ++turn) {
    ASSERT_NO_FATAL_FAILURE(check_fused(random.halves(), 4));
    ASSERT_NO_FATAL_FAILURE(check_fused(random.brains(), 2));
  }
}

// A half of the last place, and a bit far below it that decides.
TEST(Dot, a_bit_far_below_decides_a_tie) {
  const std::array<float, 4> a = {1, 0x1p-12F, 0x1p-60F, 0};
  const std::array<float, 4> b = {1, 0x1p-12F, 0x1p-60F, 0};
  const auto dot = [&](float sign) {
    const std::array<float, 4> signs = {b[0], b[1], sign * b[2], b[3]};
    return std::bit_cast<float>(fused_dot(a, signs, 0));
  };
  EXPECT_EQ(dot(0), 1);
  EXPECT_EQ(dot(1), 1 + 0x1p-23F);
  EXPECT_EQ(dot(-1), 1);
}

std::uint32_t flushing_reference(const Terms& t, std::size_t count) {
  const FloatMode m = flushing({});
  const auto product = [&](std::size_t k) {
    return mul<Fp32>(std::bit_cast<std::uint32_t>(t.a[k]), std::bit_cast<std::uint32_t>(t.b[k]), m);
  };
  std::uint32_t sum = add<Fp32>(product(0), product(1), m);
  if (count == 4) sum = add<Fp32>(sum, add<Fp32>(product(2), product(3), m), m);
  return add<Fp32>(std::bit_cast<std::uint32_t>(t.c), sum, m);
}

TEST(Dot, a_flushing_sum_is_rounded_at_each_step) {
  RandomTerms random;
  for (unsigned turn = 0; turn < kTurns; ++turn) {
    for (const std::size_t count : {std::size_t{2}, std::size_t{4}}) {
      Terms t = count == 4 ? random.halves() : random.brains();
      for (float* each : {&t.a[0], &t.a[1], &t.a[2], &t.a[3], &t.b[0], &t.b[1], &t.b[2], &t.b[3], &t.c})
        if (is_denormal<Fp32>(std::bit_cast<std::uint32_t>(*each))) *each = 0;
      const std::uint32_t expected = flushing_reference(t, count);
      ASSERT_EQ(flushing_dot({t.a.data(), count}, {t.b.data(), count}, std::bit_cast<std::uint32_t>(t.c)),
                is_nan<Fp32>(expected) ? Fp32::kNan : expected);
    }
  }
}

TEST(Dot, infinity_and_nan) {
  constexpr float kInf = INFINITY;
  const std::array<float, 4> ones = {1, 1, 1, 1};
  for (const auto dot : {fused_dot, flushing_dot}) {
    EXPECT_EQ(dot(std::array{1.0F, kInf, 1.0F, 1.0F}, ones, 0), Fp32::kInf);
    EXPECT_EQ(dot(std::array{kInf, -kInf, 1.0F, 1.0F}, ones, 0), Fp32::kNan);
    EXPECT_EQ(dot(std::array{1.0F, 1.0F, 1.0F, 1.0F}, ones, 0x7fc00123), Fp32::kNan);
    EXPECT_EQ(dot(std::array{0x1p127F, 0x1p127F, 0x1p127F, 0x1p127F}, ones, 0), Fp32::kInf);
  }
}

}  // namespace
}  // namespace gcn
