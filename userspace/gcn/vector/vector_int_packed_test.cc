// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tests of vector_int_packed.cc.
#include <gtest/gtest.h>

#include <algorithm>

#include "gcn/vector/vector_test.h"

namespace gcn::vector_int_packed_test {
namespace {

using u64 = std::uint64_t;
using i64 = std::int64_t;

constexpr Encoding kVop1 = Encoding::kVop1, kVop2 = Encoding::kVop2, kVop3 = Encoding::kVop3, kVop3p = Encoding::kVop3p;

i64 sign(u64 value, unsigned bits) {
  const u64 weight = u64{1} << (bits - 1);
  return static_cast<i64>(value & (weight - 1)) - static_cast<i64>(value & weight);
}
i64 plain(u64 value, unsigned bits) { return static_cast<i64>(value & ((u64{1} << bits) - 1)); }

// Computes one half of a packed operation on signed or unsigned numbers.
struct PackedCase {
  Op op;
  bool is_signed;
  unsigned sources;
  i64 (*expected)(i64 a, i64 b, i64 c);
  bool clamp = false;
};

u64 half(const PackedCase& c, const std::array<u64, 3>& values) {
  std::array<i64, 3> v = {};
  for (unsigned n = 0; n < 3; ++n) v[n] = c.is_signed ? sign(values[n], 16) : plain(values[n], 16);
  i64 result = c.expected(v[0], v[1], v[2]);
  if (c.clamp) result = std::clamp<i64>(result, c.is_signed ? -0x8000 : 0, c.is_signed ? 0x7fff : 0xffff);
  return static_cast<u64>(result) & 0xffff;
}

// Tests a packed operation with random choices of halves.
void check_packed(const PackedCase& c) {
  VectorMachine m;
  for (unsigned round = 0; round < 24; ++round) {
    m.shuffle();
    Instruction in = vector_instruction(c.op, kVop3p);
    in.clamp = c.clamp;
    in.op_sel = static_cast<std::uint8_t>(m.random.below(8));
    in.op_sel_hi = static_cast<std::uint8_t>(m.random.below(8));
    if (c.sources == 2) in.src[2] = operand::kNone;
    std::vector<Vgpr> expected = m.wave.vgpr;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if (!has_lane(m.wave.exec(), lane)) continue;
      std::array<u64, 3> lows = {};
      std::array<u64, 3> highs = {};
      for (unsigned n = 0; n < c.sources; ++n) {
        const u64 value = VectorMachine::get(m.wave.vgpr, in.src[n], 32, lane);
        lows[n] = has_lane(in.op_sel, n) ? value >> 16 : value & 0xffff;
        highs[n] = has_lane(in.op_sel_hi, n) ? value >> 16 : value & 0xffff;
      }
      VectorMachine::put(expected, kVgprD, 32, lane, half(c, lows) | half(c, highs) << 16);
    }
    ASSERT_EQ(m.run(in), Outcome::kNext) << name(c.op);
    ASSERT_EQ(m.wave.vgpr, expected) << name(c.op);
  }
}

TEST(VectorIntPacked, arithmetic) {
  for (const bool clamp : {false, true}) {
    for (const auto& [op, is_signed] : {std::pair{Op::kVPkAddU16, false}, {Op::kVPkAddI16, true}}) {
      check_packed({op, is_signed, 2, [](i64 a, i64 b, i64) { return a + b; }, clamp});
    }
    for (const auto& [op, is_signed] : {std::pair{Op::kVPkSubU16, false}, {Op::kVPkSubI16, true}}) {
      check_packed({op, is_signed, 2, [](i64 a, i64 b, i64) { return a - b; }, clamp});
    }
    for (const auto& [op, is_signed] : {std::pair{Op::kVPkMadU16, false}, {Op::kVPkMadI16, true}}) {
      check_packed({op, is_signed, 3, [](i64 a, i64 b, i64 c) { return a * b + c; }, clamp});
    }
  }
  check_packed({Op::kVPkMulLoU16, false, 2, [](i64 a, i64 b, i64) { return a * b; }});
}

TEST(VectorIntPacked, order_and_shifts) {
  check_packed({Op::kVPkMinU16, false, 2, [](i64 a, i64 b, i64) { return std::min(a, b); }});
  check_packed({Op::kVPkMaxU16, false, 2, [](i64 a, i64 b, i64) { return std::max(a, b); }});
  check_packed({Op::kVPkMinI16, true, 2, [](i64 a, i64 b, i64) { return std::min(a, b); }});
  check_packed({Op::kVPkMaxI16, true, 2, [](i64 a, i64 b, i64) { return std::max(a, b); }});
  check_packed({Op::kVPkLshlrevB16, false, 2, [](i64 a, i64 b, i64) { return b * (i64{1} << a % 16); }});
  check_packed({Op::kVPkLshrrevB16, false, 2, [](i64 a, i64 b, i64) { return b / (i64{1} << a % 16); }});
  check_packed({Op::kVPkAshrrevI16, true, 2, [](i64 a, i64 b, i64) {
                  const i64 divisor = i64{1} << (a & 15);
                  return (b - (b % divisor + divisor) % divisor) / divisor;
                }});
}

TEST(VectorIntPacked, constants_are_dwords) {
  VectorMachine m;
  m.shuffle();
  m.wave.set_exec(1);
  m.wave.vgpr[12][0] = 0x00100020;
  Instruction in = vector_instruction(Op::kVPkAddU16, kVop3p);
  in.op_sel_hi = 7;
  const auto add = [&](std::uint16_t constant) {
    in.src[0] = constant;
    EXPECT_EQ(m.run(in), Outcome::kNext);
    return m.wave.vgpr[20][0];
  };
  EXPECT_EQ(add(operand::kInt0 + 1), 0x00100021u);
  EXPECT_EQ(add(operand::kIntMinus1), 0x000f001fu);
  EXPECT_EQ(add(operand::kFloatHalf + 2), 0x3f900020u);  // 1.0 as a float: its halves are 0x3f80 and 0
}

template <unsigned kBits, bool kSigned>
i64 dot(u64 a, u64 b, u64 c) {
  i64 sum = kSigned ? sign(c, 32) : plain(c, 32);
  for (unsigned n = 0; n < 32; n += kBits) {
    sum += kSigned ? sign(a >> n, kBits) * sign(b >> n, kBits) : plain(a >> n, kBits) * plain(b >> n, kBits);
  }
  return sum;
}
template <unsigned kBits, bool kSigned>
u64 dot_wrapped(u64 a, u64 b, u64 c) {
  return static_cast<u64>(dot<kBits, kSigned>(a, b, c)) & 0xffffffff;
}
template <unsigned kBits, bool kSigned>
u64 dot_clamped(u64 a, u64 b, u64 c) {
  const i64 sum =
      std::clamp<i64>(dot<kBits, kSigned>(a, b, c), kSigned ? -0x80000000LL : 0, kSigned ? 0x7fffffffLL : 0xffffffffLL);
  return static_cast<u64>(sum) & 0xffffffff;
}

template <unsigned kBits, bool kSigned>
void check_dot(Op op) {
  check({op, kVop3p, 32, {32, 32, 32}, dot_wrapped<kBits, kSigned>});
  check({op, kVop3p, 32, {32, 32, 32}, dot_clamped<kBits, kSigned>, false, true});
}

TEST(VectorIntPacked, dot_products) {
  check_dot<16, true>(Op::kVDot2I32I16);
  check_dot<16, false>(Op::kVDot2U32U16);
  check_dot<8, true>(Op::kVDot4I32I8);
  check_dot<8, false>(Op::kVDot4U32U8);
  check_dot<4, true>(Op::kVDot8I32I4);
  check_dot<4, false>(Op::kVDot8U32U4);
}

void check_accumulating_dot(Op op, u64 (*expected_of)(u64 a, u64 b, u64 c)) {
  VectorMachine m;
  for (unsigned round = 0; round < 12; ++round) {
    m.shuffle();
    Instruction in = vector_instruction(op, kVop2);
    in.src[2] = operand::kNone;
    std::vector<Vgpr> expected = m.wave.vgpr;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if (!has_lane(m.wave.exec(), lane)) continue;
      const u64 a = VectorMachine::get(m.wave.vgpr, kVgprA, 32, lane);
      const u64 b = VectorMachine::get(m.wave.vgpr, kVgprB, 32, lane);
      const u64 d = VectorMachine::get(m.wave.vgpr, kVgprD, 32, lane);
      VectorMachine::put(expected, kVgprD, 32, lane, expected_of(a, b, d));
    }
    ASSERT_EQ(m.run(in), Outcome::kNext) << name(op);
    ASSERT_EQ(m.wave.vgpr, expected) << name(op);
  }
}

TEST(VectorIntPacked, dot_products_that_accumulate) {
  check_accumulating_dot(Op::kVDot2cI32I16, dot_wrapped<16, true>);
  check_accumulating_dot(Op::kVDot4cI32I8, dot_wrapped<8, true>);
  check_accumulating_dot(Op::kVDot8cI32I4, dot_wrapped<4, true>);
}

TEST(VectorIntPacked, narrowing) {
  check({Op::kVCvtPkU16U32, kVop3, 32, {32, 32}, [](u64 a, u64 b, u64) {
           return std::min<u64>(a, 0xffff) + 0x10000 * std::min<u64>(b, 0xffff);
         }});
  check({Op::kVCvtPkI16I32, kVop3, 32, {32, 32}, [](u64 a, u64 b, u64) {
           const auto narrow = [](u64 value) {
             return static_cast<u64>(std::clamp<i64>(sign(value, 32), -0x8000, 0x7fff)) & 0xffff;
           };
           return narrow(a) + 0x10000 * narrow(b);
         }});
  check({Op::kVSatPkU8I16, kVop1, 32, {32}, [](u64 a, u64, u64) {
           const auto narrow = [](u64 value) { return static_cast<u64>(std::clamp<i64>(sign(value, 16), 0, 255)); };
           return narrow(a) + 256 * narrow(a >> 16);
         }});
  check({Op::kVPackB32F16, kVop3, 32, {16, 16}, [](u64 a, u64 b, u64) { return a + 0x10000 * b; }});
}

TEST(VectorIntPacked, pack_takes_halves_and_signs) {
  VectorMachine m;
  m.shuffle();
  m.wave.set_exec(1);
  m.wave.vgpr[8][0] = 0x12349876;
  m.wave.vgpr[12][0] = 0xabcd5678;
  Instruction in = vector_instruction(Op::kVPackB32F16, kVop3);
  in.op_sel = 1;
  in.neg = 2;
  EXPECT_EQ(m.run(in), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr[20][0], 0xd6781234u);
}

}  // namespace
}  // namespace gcn::vector_int_packed_test
