// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tests of vector_int*.cc. They compare every operation with its definition, written in another way than in the
// handler.
#include <gtest/gtest.h>

#include <algorithm>

#include "gcn/vector/vector_test.h"

namespace gcn::vector_int_test {
namespace {

using u64 = std::uint64_t;
using i64 = std::int64_t;
using u128 = unsigned __int128;

constexpr Encoding kVop2 = Encoding::kVop2, kVop3 = Encoding::kVop3;

u64 low(i64 value, unsigned bits = 32) {
  return static_cast<u64>(value) & (bits == 64 ? ~u64{0} : (u64{1} << bits) - 1);
}
u64 low(u64 value, unsigned bits = 32) { return low(static_cast<i64>(value), bits); }

// Returns the number that `bits` bits represent in two's complement.
i64 sign(u64 value, unsigned bits = 32) {
  const u64 weight = u64{1} << (bits - 1);
  return static_cast<i64>(value & (weight - 1)) - static_cast<i64>(value & weight);
}

i64 between(i64 least, i64 value, i64 most) { return value < least ? least : value > most ? most : value; }
u64 to_u32(i64 value) { return low(between(0, value, 0xffffffff)); }
u64 to_i32(i64 value) { return low(between(-0x80000000LL, value, 0x7fffffff)); }
u64 to_u16(i64 value) { return low(between(0, value, 0xffff), 16); }
u64 to_i16(i64 value) { return low(between(-0x8000, value, 0x7fff), 16); }

u64 middle(std::array<i64, 3> values, unsigned bits) {
  std::sort(values.begin(), values.end());
  return low(values[1], bits);
}
i64 least(i64 a, i64 b, i64 c) { return std::min({a, b, c}); }
i64 most(i64 a, i64 b, i64 c) { return std::max({a, b, c}); }

u64 power(u64 exponent) { return u64{1} << exponent; }
u64 times(i64 a, i64 b) { return static_cast<u64>(a * b); }

void check_all(std::initializer_list<VectorCase> cases) {
  for (const VectorCase& c : cases) check(c);
}

TEST(VectorInt, sums) {
  check_all({
      {Op::kVAddU32, kVop2, 32, {32, 32}, [](u64 a, u64 b, u64) { return low(a + b); }},
      {Op::kVSubU32, kVop2, 32, {32, 32}, [](u64 a, u64 b, u64) { return low(a - b); }},
      {Op::kVSubrevU32, kVop2, 32, {32, 32}, [](u64 a, u64 b, u64) { return low(b - a); }},
      {Op::kVAddI32, kVop3, 32, {32, 32}, [](u64 a, u64 b, u64) { return low(a + b); }},
      {Op::kVSubI32, kVop3, 32, {32, 32}, [](u64 a, u64 b, u64) { return low(a - b); }},
      {Op::kVAddU16, kVop2, 16, {16, 16}, [](u64 a, u64 b, u64) { return low(a + b, 16); }},
      {Op::kVSubU16, kVop2, 16, {16, 16}, [](u64 a, u64 b, u64) { return low(a - b, 16); }},
      {Op::kVSubrevU16, kVop2, 16, {16, 16}, [](u64 a, u64 b, u64) { return low(b - a, 16); }},
      {Op::kVAddI16, kVop3, 16, {16, 16}, [](u64 a, u64 b, u64) { return low(a + b, 16); }, true},
      {Op::kVSubI16, kVop3, 16, {16, 16}, [](u64 a, u64 b, u64) { return low(a - b, 16); }, true},
      {Op::kVAdd3U32, kVop3, 32, {32, 32, 32}, [](u64 a, u64 b, u64 c) { return low(a + b + c); }},
      {Op::kVXadU32, kVop3, 32, {32, 32, 32}, [](u64 a, u64 b, u64 c) { return low((a ^ b) + c); }},
  });
}

TEST(VectorInt, sums_that_saturate) {
  check_all({
      {Op::kVAddU32, kVop3, 32, {32, 32}, [](u64 a, u64 b, u64) { return to_u32(i64(a + b)); }, false, true},
      {Op::kVSubU32, kVop3, 32, {32, 32}, [](u64 a, u64 b, u64) { return to_u32(i64(a - b)); }, false, true},
      {Op::kVSubrevU32, kVop3, 32, {32, 32}, [](u64 a, u64 b, u64) { return to_u32(i64(b - a)); }, false, true},
      {Op::kVAddI32, kVop3, 32, {32, 32}, [](u64 a, u64 b, u64) { return to_i32(sign(a) + sign(b)); }, false, true},
      {Op::kVSubI32, kVop3, 32, {32, 32}, [](u64 a, u64 b, u64) { return to_i32(sign(a) - sign(b)); }, false, true},
      {Op::kVAddU16, kVop3, 16, {16, 16}, [](u64 a, u64 b, u64) { return to_u16(i64(a + b)); }, false, true},
      {Op::kVSubU16, kVop3, 16, {16, 16}, [](u64 a, u64 b, u64) { return to_u16(i64(a - b)); }, false, true},
      {Op::kVSubrevU16, kVop3, 16, {16, 16}, [](u64 a, u64 b, u64) { return to_u16(i64(b - a)); }, false, true},
      {Op::kVAddI16,
       kVop3,
       16,
       {16, 16},
       [](u64 a, u64 b, u64) { return to_i16(sign(a, 16) + sign(b, 16)); },
       true,
       true},
      {Op::kVSubI16,
       kVop3,
       16,
       {16, 16},
       [](u64 a, u64 b, u64) { return to_i16(sign(a, 16) - sign(b, 16)); },
       true,
       true},
      {Op::kVMadU16, kVop3, 16, {16, 16, 16}, [](u64 a, u64 b, u64 c) { return to_u16(i64(a * b + c)); }, true, true},
      {Op::kVMadI16,
       kVop3,
       16,
       {16, 16, 16},
       [](u64 a, u64 b, u64 c) { return to_i16(sign(a, 16) * sign(b, 16) + sign(c, 16)); },
       true,
       true},
  });
}

TEST(VectorInt, products) {
  check_all({
      {Op::kVMulLoU32, kVop3, 32, {32, 32}, [](u64 a, u64 b, u64) { return low(a * b); }},
      {Op::kVMulHiU32, kVop3, 32, {32, 32}, [](u64 a, u64 b, u64) { return a * b / power(32); }},
      {Op::kVMulHiI32, kVop3, 32, {32, 32}, [](u64 a, u64 b, u64) { return times(sign(a), sign(b)) / power(32); }},
      {Op::kVMulLoU16, kVop2, 16, {16, 16}, [](u64 a, u64 b, u64) { return low(a * b, 16); }},
      {Op::kVMulU32U24, kVop2, 32, {32, 32}, [](u64 a, u64 b, u64) { return low(low(a, 24) * low(b, 24)); }},
      {Op::kVMulHiU32U24, kVop2, 32, {32, 32}, [](u64 a, u64 b, u64) { return low(a, 24) * low(b, 24) / power(32); }},
      {Op::kVMulI32I24, kVop2, 32, {32, 32}, [](u64 a, u64 b, u64) { return low(times(sign(a, 24), sign(b, 24))); }},
      {Op::kVMulHiI32I24,
       kVop2,
       32,
       {32, 32},
       [](u64 a, u64 b, u64) { return times(sign(a, 24), sign(b, 24)) / power(32); }},
      {Op::kVMadU32U24, kVop3, 32, {32, 32, 32}, [](u64 a, u64 b, u64 c) { return low(low(a, 24) * low(b, 24) + c); }},
      {Op::kVMadI32I24,
       kVop3,
       32,
       {32, 32, 32},
       [](u64 a, u64 b, u64 c) { return low(times(sign(a, 24), sign(b, 24)) + c); }},
      {Op::kVMadU32U16, kVop3, 32, {16, 16, 32}, [](u64 a, u64 b, u64 c) { return low(a * b + c); }},
      {Op::kVMadI32I16,
       kVop3,
       32,
       {16, 16, 32},
       [](u64 a, u64 b, u64 c) { return low(times(sign(a, 16), sign(b, 16)) + c); }},
      {Op::kVMadU16, kVop3, 16, {16, 16, 16}, [](u64 a, u64 b, u64 c) { return low(a * b + c, 16); }, true},
      {Op::kVMadI16, kVop3, 16, {16, 16, 16}, [](u64 a, u64 b, u64 c) { return low(a * b + c, 16); }, true},
      {Op::kVMadLegacyU16, kVop3, 16, {16, 16, 16}, [](u64 a, u64 b, u64 c) { return low(a * b + c, 16); }},
      {Op::kVMadLegacyI16, kVop3, 16, {16, 16, 16}, [](u64 a, u64 b, u64 c) { return low(a * b + c, 16); }},
  });
}

TEST(VectorInt, order) {
  check_all({
      {Op::kVMinI32, kVop2, 32, {32, 32}, [](u64 a, u64 b, u64) { return low(std::min(sign(a), sign(b))); }},
      {Op::kVMaxI32, kVop2, 32, {32, 32}, [](u64 a, u64 b, u64) { return low(std::max(sign(a), sign(b))); }},
      {Op::kVMinU32, kVop2, 32, {32, 32}, [](u64 a, u64 b, u64) { return std::min(a, b); }},
      {Op::kVMaxU32, kVop2, 32, {32, 32}, [](u64 a, u64 b, u64) { return std::max(a, b); }},
      {Op::kVMinI16,
       kVop2,
       16,
       {16, 16},
       [](u64 a, u64 b, u64) { return low(std::min(sign(a, 16), sign(b, 16)), 16); }},
      {Op::kVMaxI16,
       kVop2,
       16,
       {16, 16},
       [](u64 a, u64 b, u64) { return low(std::max(sign(a, 16), sign(b, 16)), 16); }},
      {Op::kVMinU16, kVop2, 16, {16, 16}, [](u64 a, u64 b, u64) { return std::min(a, b); }},
      {Op::kVMaxU16, kVop2, 16, {16, 16}, [](u64 a, u64 b, u64) { return std::max(a, b); }},
      {Op::kVMin3U32,
       kVop3,
       32,
       {32, 32, 32},
       [](u64 a, u64 b, u64 c) {
         return std::min({a, b, c});
       }},
      {Op::kVMax3U32,
       kVop3,
       32,
       {32, 32, 32},
       [](u64 a, u64 b, u64 c) {
         return std::max({a, b, c});
       }},
      {Op::kVMed3U32,
       kVop3,
       32,
       {32, 32, 32},
       [](u64 a, u64 b, u64 c) {
         return middle({i64(a), i64(b), i64(c)}, 32);
       }},
      {Op::kVMin3I32,
       kVop3,
       32,
       {32, 32, 32},
       [](u64 a, u64 b, u64 c) { return low(least(sign(a), sign(b), sign(c))); }},
      {Op::kVMax3I32,
       kVop3,
       32,
       {32, 32, 32},
       [](u64 a, u64 b, u64 c) { return low(most(sign(a), sign(b), sign(c))); }},
      {Op::kVMed3I32,
       kVop3,
       32,
       {32, 32, 32},
       [](u64 a, u64 b, u64 c) {
         return middle({sign(a), sign(b), sign(c)}, 32);
       }},
      {Op::kVMin3U16,
       kVop3,
       16,
       {16, 16, 16},
       [](u64 a, u64 b, u64 c) {
         return std::min({a, b, c});
       },
       true},
      {Op::kVMax3U16,
       kVop3,
       16,
       {16, 16, 16},
       [](u64 a, u64 b, u64 c) {
         return std::max({a, b, c});
       },
       true},
      {Op::kVMed3U16,
       kVop3,
       16,
       {16, 16, 16},
       [](u64 a, u64 b, u64 c) {
         return middle({i64(a), i64(b), i64(c)}, 16);
       },
       true},
      {Op::kVMin3I16,
       kVop3,
       16,
       {16, 16, 16},
       [](u64 a, u64 b, u64 c) { return low(least(sign(a, 16), sign(b, 16), sign(c, 16)), 16); },
       true},
      {Op::kVMax3I16,
       kVop3,
       16,
       {16, 16, 16},
       [](u64 a, u64 b, u64 c) { return low(most(sign(a, 16), sign(b, 16), sign(c, 16)), 16); },
       true},
      {Op::kVMed3I16,
       kVop3,
       16,
       {16, 16, 16},
       [](u64 a, u64 b, u64 c) {
         return middle({sign(a, 16), sign(b, 16), sign(c, 16)}, 16);
       },
       true},
  });
}

// Tests an operation with a carry or borrow.
struct CarryCase {
  Op op;
  bool carry_in;
  u64 (*value)(u64 a, u64 b, u64 carry);
  bool (*bit)(u64 a, u64 b, u64 carry);
  bool clamp = false;
};

void check_carry(const CarryCase& c) {
  VectorMachine m;
  for (unsigned round = 0; round < 24; ++round) {
    m.shuffle();
    const bool vop2 = round % 2 == 0 && !c.clamp;
    Instruction in = vector_instruction(c.op, vop2 ? kVop2 : kVop3);
    in.clamp = c.clamp;
    in.src[2] = !c.carry_in ? operand::kNone : vop2 ? operand::kVccLo : std::uint16_t{30};
    in.sdst = vop2 ? operand::kVccLo : kSgprMask;
    const u64 carries = c.carry_in ? m.wave.scalar64(in.src[2]) : 0;
    std::vector<Vgpr> expected = m.wave.vgpr;
    u64 mask = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if (!has_lane(m.wave.exec(), lane)) continue;
      const u64 a = VectorMachine::get(m.wave.vgpr, kVgprA, 32, lane);
      const u64 b = VectorMachine::get(m.wave.vgpr, kVgprB, 32, lane);
      const u64 carry = has_lane(carries, lane) ? 1 : 0;
      VectorMachine::put(expected, kVgprD, 32, lane, c.value(a, b, carry));
      if (c.bit(a, b, carry)) mask |= power(lane);
    }
    ASSERT_EQ(m.run(in), Outcome::kNext) << name(c.op);
    ASSERT_EQ(m.wave.vgpr, expected) << name(c.op);
    ASSERT_EQ(m.wave.scalar64(in.sdst), mask) << name(c.op);
  }
}

TEST(VectorInt, carries) {
  const auto sum = [](u64 a, u64 b, u64 carry) { return low(a + b + carry); };
  const auto carry_out = [](u64 a, u64 b, u64 carry) { return a + b + carry >= power(32); };
  const auto difference = [](u64 a, u64 b, u64 carry) { return low(a - b - carry); };
  const auto borrow_out = [](u64 a, u64 b, u64 carry) { return i64(a) - i64(b) - i64(carry) < 0; };
  const auto reverse = [](u64 a, u64 b, u64 carry) { return low(b - a - carry); };
  const auto reverse_borrow_out = [](u64 a, u64 b, u64 carry) { return i64(b) - i64(a) - i64(carry) < 0; };
  check_carry({Op::kVAddCoU32, false, sum, carry_out});
  check_carry({Op::kVSubCoU32, false, difference, borrow_out});
  check_carry({Op::kVSubrevCoU32, false, reverse, reverse_borrow_out});
  check_carry({Op::kVAddcCoU32, true, sum, carry_out});
  check_carry({Op::kVSubbCoU32, true, difference, borrow_out});
  check_carry({Op::kVSubbrevCoU32, true, reverse, reverse_borrow_out});
  check_carry({Op::kVAddcCoU32, true, [](u64 a, u64 b, u64 c) { return to_u32(i64(a + b + c)); }, carry_out, true});
  check_carry({Op::kVSubbCoU32, true, [](u64 a, u64 b, u64 c) { return to_u32(i64(a - b - c)); }, borrow_out, true});
}

TEST(VectorInt, mad_of_64_bits_has_a_65th) {
  VectorMachine m;
  for (unsigned round = 0; round < 48; ++round) {
    m.shuffle();
    const bool is_signed = round % 2 != 0;
    Instruction in = vector_instruction(is_signed ? Op::kVMadI64I32 : Op::kVMadU64U32, kVop3);
    in.sdst = kSgprMask;
    std::vector<Vgpr> expected = m.wave.vgpr;
    u64 mask = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if (!has_lane(m.wave.exec(), lane)) continue;
      const u64 a = VectorMachine::get(m.wave.vgpr, kVgprA, 32, lane);
      const u64 b = VectorMachine::get(m.wave.vgpr, kVgprB, 32, lane);
      const u64 c = VectorMachine::get(m.wave.vgpr, kVgprC, 64, lane);
      const u128 sum = is_signed ? static_cast<u128>(static_cast<__int128>(sign(a)) * sign(b) + static_cast<i64>(c))
                                 : static_cast<u128>(a) * b + c;
      VectorMachine::put(expected, kVgprD, 64, lane, static_cast<u64>(sum));
      if ((sum >> 64 & 1) != 0) mask |= power(lane);
    }
    ASSERT_EQ(m.run(in), Outcome::kNext);
    ASSERT_EQ(m.wave.vgpr, expected);
    ASSERT_EQ(m.wave.scalar64(kSgprMask), mask);
  }
}

TEST(VectorInt, clamp_is_illegal_where_it_is_not_known_to_saturate) {
  VectorMachine m;
  m.shuffle();
  Instruction in = vector_instruction(Op::kVMulU32U24, kVop3);
  in.clamp = true;
  const std::vector<Vgpr> before = m.wave.vgpr;
  EXPECT_EQ(m.run(in), Outcome::kIllegal);
  EXPECT_EQ(m.wave.vgpr, before);
}

// Comparisons in the order of the ISA.
template <unsigned kBits, bool kSigned>
bool compare(unsigned which, u64 a, u64 b) {
  const bool is_less = kSigned && kBits < 64 ? sign(a, kBits) < sign(b, kBits)
                       : kSigned             ? static_cast<i64>(a) < static_cast<i64>(b)
                                             : a < b;
  const std::array<bool, 8> results = {false,  is_less,  a == b, is_less || a == b, !is_less && a != b,
                                       a != b, !is_less, true};
  return results[which];
}

template <unsigned kBits, bool kSigned>
void check_comparisons(Op first, bool sets_exec) {
  VectorMachine m;
  for (unsigned round = 0; round < 48; ++round) {
    m.shuffle();
    for (unsigned lane = 0; lane < kLanes; lane += 3)
      m.wave.vgpr[12][lane] = m.wave.vgpr[8][lane];  // some lanes have equal sources
    Instruction in = vector_instruction(static_cast<Op>(static_cast<unsigned>(first) + round % 8), Encoding::kVopc);
    in.dst = operand::kNone;
    in.sdst = round % 3 == 0 ? operand::kVccLo : kSgprMask;
    in.src[2] = operand::kNone;
    u64 mask = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const u64 a = VectorMachine::get(m.wave.vgpr, kVgprA, kBits, lane);
      const u64 b = VectorMachine::get(m.wave.vgpr, kVgprB, kBits, lane);
      if (has_lane(m.wave.exec(), lane) && compare<kBits, kSigned>(round % 8, a, b)) mask |= power(lane);
    }
    const u64 exec = sets_exec ? mask : m.wave.exec();
    const std::vector<Vgpr> before = m.wave.vgpr;
    ASSERT_EQ(m.run(in), Outcome::kNext) << name(in.op);
    ASSERT_EQ(m.wave.scalar64(in.sdst), mask) << name(in.op);
    ASSERT_EQ(m.wave.exec(), exec) << name(in.op);
    ASSERT_EQ(m.wave.vgpr, before);
  }
}

TEST(VectorInt, comparisons) {
  check_comparisons<16, true>(Op::kVCmpFI16, false);
  check_comparisons<16, false>(Op::kVCmpFU16, false);
  check_comparisons<32, true>(Op::kVCmpFI32, false);
  check_comparisons<32, false>(Op::kVCmpFU32, false);
  check_comparisons<64, true>(Op::kVCmpFI64, false);
  check_comparisons<64, false>(Op::kVCmpFU64, false);
}

TEST(VectorInt, comparisons_that_set_exec) {
  check_comparisons<16, true>(Op::kVCmpxFI16, true);
  check_comparisons<16, false>(Op::kVCmpxFU16, true);
  check_comparisons<32, true>(Op::kVCmpxFI32, true);
  check_comparisons<32, false>(Op::kVCmpxFU32, true);
  check_comparisons<64, true>(Op::kVCmpxFI64, true);
  check_comparisons<64, false>(Op::kVCmpxFU64, true);
}

}  // namespace
}  // namespace gcn::vector_int_test
