// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tests of vector_int_bits.cc. They compute the expected results bit by bit and byte by byte.
#include <gtest/gtest.h>

#include "gcn/vector/vector_test.h"

namespace gcn::vector_int_bits_test {
namespace {

using u64 = std::uint64_t;

constexpr Encoding kVop1 = Encoding::kVop1, kVop2 = Encoding::kVop2, kVop3 = Encoding::kVop3;
constexpr u64 kNothing = 0xffffffff;  // result of a search that finds no bit

void check_all(std::initializer_list<VectorCase> cases) {
  for (const VectorCase& c : cases) check(c);
}

bool bit(u64 value, u64 n) { return n < 64 && (value >> n & 1) != 0; }
u64 byte(u64 value, unsigned n) { return value / (u64{1} << (8 * n)) % 256; }

// Returns the number of `bits` bits whose bit n is f(n).
template <typename F>
u64 number(unsigned bits, F f) {
  u64 value = 0;
  for (unsigned n = bits; n-- > 0;) value = 2 * value + (f(n) ? 1 : 0);
  return value;
}

u64 left(u64 value, u64 amount, unsigned bits) {
  return number(bits, [=](unsigned n) { return n >= amount && bit(value, n - amount); });
}
u64 right(u64 value, u64 amount, unsigned bits, bool fill) {
  return number(bits, [=](unsigned n) { return n + amount < bits ? bit(value, n + amount) : fill; });
}
u64 low32(u64 value) { return value & 0xffffffff; }

TEST(VectorIntBits, logic) {
  check_all({
      {Op::kVAndB32, kVop2, 32, {32, 32}, [](u64 a, u64 b, u64) { return a & b; }},
      {Op::kVOrB32, kVop2, 32, {32, 32}, [](u64 a, u64 b, u64) { return a | b; }},
      {Op::kVXorB32, kVop2, 32, {32, 32}, [](u64 a, u64 b, u64) { return (a | b) - (a & b); }},
      {Op::kVXnorB32, kVop2, 32, {32, 32}, [](u64 a, u64 b, u64) { return 0xffffffff - (a | b) + (a & b); }},
      {Op::kVNotB32, kVop1, 32, {32}, [](u64 a, u64, u64) { return 0xffffffff - a; }},
      {Op::kVOr3B32, kVop3, 32, {32, 32, 32}, [](u64 a, u64 b, u64 c) { return a | b | c; }},
      {Op::kVAndOrB32, kVop3, 32, {32, 32, 32}, [](u64 a, u64 b, u64 c) { return (a & b) | c; }},
      {Op::kVBfiB32,
       kVop3,
       32,
       {32, 32, 32},
       [](u64 a, u64 b, u64 c) { return number(32, [=](unsigned n) { return bit(a, n) ? bit(b, n) : bit(c, n); }); }},
  });
}

TEST(VectorIntBits, shifts) {
  check_all({
      {Op::kVLshlrevB32, kVop2, 32, {32, 32}, [](u64 a, u64 b, u64) { return left(b, a % 32, 32); }},
      {Op::kVLshrrevB32, kVop2, 32, {32, 32}, [](u64 a, u64 b, u64) { return right(b, a % 32, 32, false); }},
      {Op::kVAshrrevI32, kVop2, 32, {32, 32}, [](u64 a, u64 b, u64) { return right(b, a % 32, 32, bit(b, 31)); }},
      {Op::kVLshlrevB16, kVop2, 16, {16, 16}, [](u64 a, u64 b, u64) { return left(b, a % 16, 16); }},
      {Op::kVLshrrevB16, kVop2, 16, {16, 16}, [](u64 a, u64 b, u64) { return right(b, a % 16, 16, false); }},
      {Op::kVAshrrevI16, kVop2, 16, {16, 16}, [](u64 a, u64 b, u64) { return right(b, a % 16, 16, bit(b, 15)); }},
      {Op::kVLshlrevB64, kVop3, 64, {32, 64}, [](u64 a, u64 b, u64) { return left(b, a % 64, 64); }},
      {Op::kVLshrrevB64, kVop3, 64, {32, 64}, [](u64 a, u64 b, u64) { return right(b, a % 64, 64, false); }},
      {Op::kVAshrrevI64, kVop3, 64, {32, 64}, [](u64 a, u64 b, u64) { return right(b, a % 64, 64, bit(b, 63)); }},
      {Op::kVLshlAddU32, kVop3, 32, {32, 32, 32}, [](u64 a, u64 b, u64 c) { return low32(left(a, b % 32, 32) + c); }},
      {Op::kVAddLshlU32, kVop3, 32, {32, 32, 32}, [](u64 a, u64 b, u64 c) { return left(a + b, c % 32, 32); }},
      {Op::kVLshlOrB32, kVop3, 32, {32, 32, 32}, [](u64 a, u64 b, u64 c) { return left(a, b % 32, 32) | c; }},
      {Op::kVAlignbitB32,
       kVop3,
       32,
       {32, 32, 32},
       [](u64 a, u64 b, u64 c) { return low32(right(a * 0x100000000 + b, c % 32, 64, false)); }},
      {Op::kVAlignbyteB32,
       kVop3,
       32,
       {32, 32, 32},
       [](u64 a, u64 b, u64 c) { return low32(right(a * 0x100000000 + b, c % 4 * 8, 64, false)); }},
  });
}

TEST(VectorIntBits, fields) {
  check_all({
      {Op::kVBfeU32,
       kVop3,
       32,
       {32, 32, 32},
       [](u64 a, u64 b, u64 c) {
         return number(32, [=](unsigned n) { return n < c % 32 && n + b % 32 < 32 && bit(a, n + b % 32); });
       }},
      {Op::kVBfeI32,
       kVop3,
       32,
       {32, 32, 32},
       [](u64 a, u64 b, u64 c) {
         const u64 last = c % 32 == 0 ? 0 : std::min<u64>(c % 32 - 1 + b % 32, 31);
         return number(32, [=](unsigned n) { return c % 32 != 0 && bit(a, std::min(n + b % 32, last)); });
       }},
      {Op::kVBfmB32,
       kVop2,
       32,
       {32, 32},
       [](u64 a, u64 b, u64) { return number(32, [=](unsigned n) { return n >= b % 32 && n < b % 32 + a % 32; }); }},
      {Op::kVBfrevB32,
       kVop1,
       32,
       {32},
       [](u64 a, u64, u64) { return number(32, [=](unsigned n) { return bit(a, 31 - n); }); }},
  });
}

TEST(VectorIntBits, searches_and_counts) {
  check_all({
      {Op::kVFfbhU32,
       kVop1,
       32,
       {32},
       [](u64 a, u64, u64) {
         for (u64 n = 0; n < 32; ++n) {
           if (bit(a, 31 - n)) return n;
         }
         return kNothing;
       }},
      {Op::kVFfblB32,
       kVop1,
       32,
       {32},
       [](u64 a, u64, u64) {
         for (u64 n = 0; n < 32; ++n) {
           if (bit(a, n)) return n;
         }
         return kNothing;
       }},
      {Op::kVFfbhI32,
       kVop1,
       32,
       {32},
       [](u64 a, u64, u64) {
         for (u64 n = 1; n < 32; ++n) {
           if (bit(a, 31 - n) != bit(a, 31)) return n;
         }
         return kNothing;
       }},
      {Op::kVBcntU32B32,
       kVop3,
       32,
       {32, 32},
       [](u64 a, u64 b, u64) {
         u64 count = b;
         for (u64 n = 0; n < 32; ++n) count += bit(a, n) ? 1 : 0;
         return low32(count);
       }},
  });
}

// Programs use both operations together to count the lanes of a mask that come before a lane.
TEST(VectorIntBits, mbcnt_counts_lanes_before) {
  VectorMachine m;
  m.shuffle();
  m.wave.set_exec(~u64{0});
  const u64 mask = 0x8100'f00f'dead'beef;
  m.wave.set_scalar64(4, mask);
  Instruction lo = vector_instruction(Op::kVMbcntLoU32B32, kVop3);
  lo.src = {4, operand::kInt0, operand::kNone, operand::kNone};
  Instruction hi = vector_instruction(Op::kVMbcntHiU32B32, kVop3);
  hi.src = {5, kVgprD, operand::kNone, operand::kNone};
  ASSERT_EQ(m.run(lo), Outcome::kNext);
  ASSERT_EQ(m.run(hi), Outcome::kNext);
  unsigned before = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    EXPECT_EQ(m.wave.vgpr[20][lane], before) << lane;
    if (has_lane(mask, lane)) ++before;
  }
}

u64 distance(u64 a, u64 b) { return a > b ? a - b : b - a; }
u64 sad(u64 a, u64 b, unsigned first, bool masked) {
  u64 sum = 0;
  for (unsigned n = 0; n < 4; ++n) {
    if (!masked || byte(b, n) != 0) sum += distance(byte(a, n + first), byte(b, n));
  }
  return sum;
}
u64 quad(u64 a, u64 b, u64 c, bool masked) {
  u64 result = 0;
  for (unsigned n = 0; n < 4; ++n) result |= ((sad(a, b, n, masked) + (c >> (16 * n))) & 0xffff) << (16 * n);
  return result;
}

TEST(VectorIntBits, sums_of_absolute_differences) {
  check_all({
      {Op::kVSadU8, kVop3, 32, {32, 32, 32}, [](u64 a, u64 b, u64 c) { return low32(sad(a, b, 0, false) + c); }},
      {Op::kVSadHiU8,
       kVop3,
       32,
       {32, 32, 32},
       [](u64 a, u64 b, u64 c) { return low32(sad(a, b, 0, false) * 0x10000 + c); }},
      {Op::kVMsadU8, kVop3, 32, {32, 32, 32}, [](u64 a, u64 b, u64 c) { return low32(sad(a, b, 0, true) + c); }},
      {Op::kVSadU16,
       kVop3,
       32,
       {32, 32, 32},
       [](u64 a, u64 b, u64 c) { return low32(distance(a % 65536, b % 65536) + distance(a / 65536, b / 65536) + c); }},
      {Op::kVSadU32, kVop3, 32, {32, 32, 32}, [](u64 a, u64 b, u64 c) { return low32(distance(a, b) + c); }},
      {Op::kVQsadPkU16U8, kVop3, 64, {64, 32, 64}, [](u64 a, u64 b, u64 c) { return quad(a, b, c, false); }},
      {Op::kVMqsadPkU16U8, kVop3, 64, {64, 32, 64}, [](u64 a, u64 b, u64 c) { return quad(a, b, c, true); }},
  });
}

TEST(VectorIntBits, mqsad_u32_u8_has_four_sums) {
  VectorMachine m;
  m.shuffle();
  std::vector<Vgpr> expected = m.wave.vgpr;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (!has_lane(m.wave.exec(), lane)) continue;
    const u64 a = VectorMachine::get(m.wave.vgpr, kVgprA, 64, lane);
    const u64 b = VectorMachine::get(m.wave.vgpr, kVgprB, 32, lane);
    for (unsigned n = 0; n < 4; ++n) {
      expected[20 + n][lane] = static_cast<std::uint32_t>(sad(a, b, n, true) + m.wave.vgpr[16 + n][lane]);
    }
  }
  EXPECT_EQ(m.run(vector_instruction(Op::kVMqsadU32U8, kVop3)), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr, expected);
}

TEST(VectorIntBits, mqsad_u32_u8_beyond_the_registers_is_illegal) {
  VectorMachine m;
  m.shuffle();
  Instruction in = vector_instruction(Op::kVMqsadU32U8, kVop3);
  in.dst = operand::kVgpr0 + 29;
  const std::vector<Vgpr> before = m.wave.vgpr;
  EXPECT_EQ(m.run(in), Outcome::kIllegal);
  EXPECT_EQ(m.wave.vgpr, before);
}

u64 selected_byte(u64 high, u64 low, u64 selector) {
  if (selector < 4) return byte(low, static_cast<unsigned>(selector));
  if (selector < 8) return byte(high, static_cast<unsigned>(selector - 4));
  const std::array<bool, 4> signs = {bit(low, 15), bit(low, 31), bit(high, 15), bit(high, 31)};
  if (selector < 12) return signs[selector - 8] ? 255 : 0;
  return selector == 12 ? 0 : 255;
}

TEST(VectorIntBits, bytes) {
  check({Op::kVLerpU8, kVop3, 32, {32, 32, 32}, [](u64 a, u64 b, u64 c) {
           u64 result = 0;
           for (unsigned n = 4; n-- > 0;) result = result * 256 + (byte(a, n) + byte(b, n) + byte(c, n) % 2) / 2;
           return result;
         }});
  for (unsigned times = 0; times < 4; ++times) {
    check({Op::kVPermB32, kVop3, 32, {32, 32, 32}, [](u64 a, u64 b, u64 c) {
             u64 result = 0;
             for (unsigned n = 4; n-- > 0;) result = result * 256 + selected_byte(a, b, byte(c, n));
             return result;
           }});
  }
}

TEST(VectorIntBits, perm_has_constants) {
  VectorMachine m;
  m.shuffle();
  m.wave.set_exec(1);
  m.wave.vgpr[8][0] = 0x80112233;
  m.wave.vgpr[12][0] = 0x44558677;
  const auto perm = [&m](std::uint32_t selectors) {
    m.wave.vgpr[16][0] = selectors;
    EXPECT_EQ(m.run(vector_instruction(Op::kVPermB32, kVop3)), Outcome::kNext);
    return m.wave.vgpr[20][0];
  };
  EXPECT_EQ(perm(0x07060504), 0x80112233u);
  EXPECT_EQ(perm(0x00010203), 0x77865544u);
  EXPECT_EQ(perm(0x0b0a0908), 0xff0000ffu);
  EXPECT_EQ(perm(0x0c0dff0c), 0x00ffff00u);
}

}  // namespace
}  // namespace gcn::vector_int_bits_test
