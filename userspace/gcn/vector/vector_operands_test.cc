// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tests of vector_operands.h. They execute operations whose results show what was read.
#include "gcn/vector/vector_operands.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <optional>

#include "gcn/vector/vector_test.h"

namespace gcn::vector_operands_test {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

// Returns the source of a lane by the definition of DPP_CTRL, or nothing if the lane has none.
std::optional<unsigned> dpp_lane(unsigned ctrl, unsigned lane) {
  const int row = static_cast<int>(lane) / 16 * 16;
  const int place = static_cast<int>(lane) % 16;
  const int n = static_cast<int>(ctrl) % 16;
  const auto in_row = [row](int p) -> std::optional<unsigned> {
    if (p < 0 || p > 15) return std::nullopt;
    return static_cast<unsigned>(row + p);
  };
  const auto in_wave = [](int p) -> std::optional<unsigned> {
    if (p < 0 || p > 63) return std::nullopt;
    return static_cast<unsigned>(p);
  };
  if (ctrl <= 0xff) {
    const std::array<unsigned, 4> quad = {ctrl & 3, ctrl >> 2 & 3, ctrl >> 4 & 3, ctrl >> 6 & 3};
    return lane / 4 * 4 + quad[lane % 4];
  }
  if (ctrl >= 0x101 && ctrl <= 0x10f) return in_row(place + n);
  if (ctrl >= 0x111 && ctrl <= 0x11f) return in_row(place - n);
  if (ctrl >= 0x121 && ctrl <= 0x12f) return in_row((place + 16 - n) % 16);
  if (ctrl == 0x130) return in_wave(static_cast<int>(lane) + 1);
  if (ctrl == 0x134) return in_wave((static_cast<int>(lane) + 1) % 64);
  if (ctrl == 0x138) return in_wave(static_cast<int>(lane) - 1);
  if (ctrl == 0x13c) return in_wave((static_cast<int>(lane) + 63) % 64);
  if (ctrl == 0x140) return in_row(15 - place);
  if (ctrl == 0x141) return in_row(place < 8 ? 7 - place : 23 - place);
  if (ctrl == 0x142) return in_wave(row - 1);
  if (ctrl == 0x143) return lane < 32 ? std::nullopt : in_wave(31);
  return in_row(n);
}

void check_dpp(VectorMachine& m, unsigned ctrl) {
  m.shuffle();
  Instruction in = vector_instruction(Op::kVSubU32, Encoding::kVop2);
  in.bytes = 8;
  in.lanes = LaneMode::kDpp;
  in.dpp.ctrl = static_cast<std::uint16_t>(ctrl);
  in.dpp.bound_ctrl = m.random.below(2) != 0;
  in.dpp.row_mask = static_cast<std::uint8_t>(m.random.below(2) != 0 ? 15 : m.random.below(16));
  in.dpp.bank_mask = static_cast<std::uint8_t>(m.random.below(2) != 0 ? 15 : m.random.below(16));
  if (ctrl % 5 == 0) in.dst = kVgprA;  // reads what it writes
  std::vector<Vgpr> expected = m.wave.vgpr;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const std::optional<unsigned> from = dpp_lane(ctrl, lane);
    const bool readable = from && has_lane(m.wave.exec(), *from);
    const bool enabled = has_lane(in.dpp.row_mask, lane / 16) && has_lane(in.dpp.bank_mask, lane / 4 % 4);
    if (!has_lane(m.wave.exec(), lane) || !enabled || (!readable && !in.dpp.bound_ctrl)) continue;
    const u32 a = readable ? m.wave.vgpr[8][*from] : 0;
    expected[in.dst - operand::kVgpr0][lane] = a - m.wave.vgpr[12][lane];
  }
  ASSERT_EQ(m.run(in), Outcome::kNext) << std::hex << ctrl;
  ASSERT_EQ(m.wave.vgpr, expected) << std::hex << ctrl;
}

TEST(VectorOperands, dpp_reads_other_lanes) {
  VectorMachine m;
  for (unsigned ctrl = 0; ctrl <= 0x143; ++ctrl) {
    const bool shift = ctrl > 0x100 && ctrl < 0x130 && ctrl % 16 != 0;
    const bool wave = ctrl >= 0x130 && ctrl < 0x140 && ctrl % 4 == 0;
    if (ctrl > 0xff && !shift && !wave && ctrl < 0x140) continue;
    for (unsigned times = 0; times < 4; ++times) check_dpp(m, ctrl);
  }
}

TEST(VectorOperands, gfx90a_broadcasts_a_lane_of_each_row) {
  VectorMachine m;
  m.wave.isa = Isa::kGfx90a;
  for (unsigned ctrl = 0x150; ctrl < 0x160; ++ctrl) check_dpp(m, ctrl);
}

TEST(VectorOperands, reserved_dpp_controls_are_illegal) {
  VectorMachine m;
  m.shuffle();
  const std::vector<Vgpr> before = m.wave.vgpr;
  Instruction in = vector_instruction(Op::kVMovB32, Encoding::kVop1);
  in.lanes = LaneMode::kDpp;
  for (const std::uint16_t ctrl :
       std::to_array<std::uint16_t>({0x100, 0x110, 0x120, 0x131, 0x13f, 0x144, 0x150, 0x15f, 0x160, 0x1ff})) {
    in.dpp.ctrl = ctrl;
    EXPECT_EQ(m.run(in), Outcome::kIllegal) << std::hex << ctrl;
  }
  EXPECT_EQ(m.wave.vgpr, before);
}

u32 selected(u32 value, SubDword sel, bool sext) {
  switch (sel) {
    case SubDword::kByte0:
    case SubDword::kByte1:
    case SubDword::kByte2:
    case SubDword::kByte3: {
      const u32 byte = value >> (8 * static_cast<unsigned>(sel)) & 0xff;
      return sext && byte > 0x7f ? byte | 0xffffff00 : byte;
    }
    case SubDword::kWord0:
    case SubDword::kWord1: {
      const u32 word = sel == SubDword::kWord1 ? value >> 16 : value & 0xffff;
      return sext && word > 0x7fff ? word | 0xffff0000 : word;
    }
    case SubDword::kDword:
      break;
  }
  return value;
}

// Computes the expected destination byte by byte.
u32 placed(u32 old, u32 result, const Sdwa& sdwa) {
  const auto sel = static_cast<unsigned>(sdwa.dst_sel);
  const unsigned first = sel < 4 ? sel : sel == 5 ? 2 : 0;
  const unsigned count = sel < 4 ? 1 : sel < 6 ? 2 : 4;
  const bool negative = (result >> (8 * count - 1) & 1) != 0;
  u32 value = 0;
  for (unsigned n = 0; n < 4; ++n) {
    u32 byte = 0;
    if (n >= first && n < first + count) {
      byte = result >> (8 * (n - first)) & 0xff;
    } else if (sdwa.dst_unused == DstUnused::kPreserve) {
      byte = old >> (8 * n) & 0xff;
    } else if (sdwa.dst_unused == DstUnused::kSext && n > first) {
      byte = negative ? 0xff : 0;
    }
    value |= byte << (8 * n);
  }
  return value;
}

Sdwa random_sdwa(Random& random) {
  Sdwa sdwa;
  sdwa.dst_sel = static_cast<SubDword>(random.below(7));
  sdwa.dst_unused = static_cast<DstUnused>(random.below(3));
  sdwa.src_sel = {static_cast<SubDword>(random.below(7)), static_cast<SubDword>(random.below(7))};
  sdwa.sext = static_cast<std::uint8_t>(random.below(4));
  return sdwa;
}

TEST(VectorOperands, sdwa_selects_parts_of_registers) {
  VectorMachine m;
  for (unsigned round = 0; round < 400; ++round) {
    m.shuffle();
    const bool words = round % 2 != 0;
    Instruction in = vector_instruction(words ? Op::kVAddU16 : Op::kVAddU32, Encoding::kVop2);
    in.bytes = 8;
    in.lanes = LaneMode::kSdwa;
    in.sdwa = random_sdwa(m.random);
    if (round % 3 == 0) in.src[0] = 6;  // a scalar register
    std::vector<Vgpr> expected = m.wave.vgpr;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if (!has_lane(m.wave.exec(), lane)) continue;
      const u32 a = selected(round % 3 == 0 ? m.wave.scalar[6] : m.wave.vgpr[8][lane], in.sdwa.src_sel[0],
                             (in.sdwa.sext & 1) != 0);
      const u32 b = selected(m.wave.vgpr[12][lane], in.sdwa.src_sel[1], (in.sdwa.sext & 2) != 0);
      const u32 sum = words ? (a + b) & 0xffff : a + b;
      expected[20][lane] = placed(expected[20][lane], sum, in.sdwa);
    }
    ASSERT_EQ(m.run(in), Outcome::kNext);
    ASSERT_EQ(m.wave.vgpr, expected) << round;
  }
}

TEST(VectorOperands, op_sel_chooses_halves_of_16_bit_operands) {
  VectorMachine m;
  for (unsigned op_sel = 0; op_sel < 16; ++op_sel) {
    m.shuffle();
    Instruction in = vector_instruction(Op::kVMadU16, Encoding::kVop3);
    in.op_sel = static_cast<std::uint8_t>(op_sel);
    std::vector<Vgpr> expected = m.wave.vgpr;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if (!has_lane(m.wave.exec(), lane)) continue;
      const u32 a = m.wave.vgpr[8][lane] >> ((op_sel & 1) != 0 ? 16 : 0) & 0xffff;
      const u32 b = m.wave.vgpr[12][lane] >> ((op_sel & 2) != 0 ? 16 : 0) & 0xffff;
      const u32 c = m.wave.vgpr[16][lane] >> ((op_sel & 4) != 0 ? 16 : 0) & 0xffff;
      const u32 result = (a * b + c) & 0xffff;
      const u32 old = expected[20][lane];
      expected[20][lane] = (op_sel & 8) != 0 ? (old & 0xffff) | result << 16 : (old & 0xffff0000) | result;
    }
    ASSERT_EQ(m.run(in), Outcome::kNext);
    ASSERT_EQ(m.wave.vgpr, expected) << op_sel;
  }
}

TEST(VectorOperands, op_sel_of_the_destination_keeps_the_low_half) {
  VectorMachine m;
  m.shuffle();
  m.wave.set_exec(1);
  m.wave.vgpr[8][0] = 0x10001;
  m.wave.vgpr[12][0] = 0x20002;
  m.wave.vgpr[20][0] = 0xaaaabbbb;
  Instruction in = vector_instruction(Op::kVAddU16, Encoding::kVop3);
  in.op_sel = 8;
  EXPECT_EQ(m.run(in), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr[20][0], 0x0003bbbbu);
}

TEST(VectorOperands, abs_comes_before_neg) {
  VectorMachine m;
  m.shuffle();
  m.wave.set_exec(1);
  Instruction in = vector_instruction(Op::kVMovB32, Encoding::kVop3);
  const auto mov = [&](u32 value, std::uint8_t abs, std::uint8_t neg) {
    m.wave.vgpr[8][0] = value;
    in.abs = abs;
    in.neg = neg;
    EXPECT_EQ(m.run(in), Outcome::kNext);
    return m.wave.vgpr[20][0];
  };
  EXPECT_EQ(mov(0xbf800000, 1, 0), 0x3f800000u);
  EXPECT_EQ(mov(0xbf800000, 0, 1), 0x3f800000u);
  EXPECT_EQ(mov(0xbf800000, 1, 1), 0xbf800000u);
  EXPECT_EQ(mov(0x3f800000, 2, 2), 0x3f800000u);
}

// Tests the values that a function of one lane gets for each element.
template <typename E, auto kBits>
u64 seen(VectorMachine& m, const Instruction& in) {
  EXPECT_EQ((vector<U64(E), kBits>(in, m.machine)), Outcome::kNext);
  return VectorMachine::get(m.wave.vgpr, kVgprD, 64, 0);
}
u64 bits64(u64 value) { return value; }
u64 bits_i64(std::int64_t value) { return static_cast<u64>(value); }
u64 bits_f64(double value) { return std::bit_cast<u64>(value); }
u64 bits_f32(float value) { return std::bit_cast<u32>(value); }
u64 bits32(u32 value) { return value; }
u64 bits16(std::uint16_t value) { return value; }

TEST(VectorOperands, inline_floats_have_the_size_of_the_operand) {
  VectorMachine m;
  m.wave.set_exec(1);
  Instruction in = vector_instruction(Op::kVMovB32, Encoding::kVop3);
  const std::array<double, 8> values = {0.5, -0.5, 1, -1, 2, -2, 4, -4};
  for (unsigned n = 0; n < values.size(); ++n) {
    in.src[0] = static_cast<std::uint16_t>(operand::kFloatHalf + n);
    EXPECT_EQ((seen<F64, bits_f64>(m, in)), std::bit_cast<u64>(values[n]));
    EXPECT_EQ((seen<U64, bits64>(m, in)), std::bit_cast<u64>(values[n]));
    EXPECT_EQ((seen<F32, bits_f32>(m, in)), std::bit_cast<u32>(static_cast<float>(values[n])));
    EXPECT_EQ((seen<U32, bits32>(m, in)), std::bit_cast<u32>(static_cast<float>(values[n])));
    EXPECT_EQ((seen<U16, bits16>(m, in)), 0u);
  }
  EXPECT_EQ((seen<F16, bits16>(m, in)), 0xc400u);
  in.src[0] = operand::kInv2Pi;
  EXPECT_EQ((seen<F16, bits16>(m, in)), 0x3118u);
  EXPECT_EQ((seen<F32, bits_f32>(m, in)), 0x3e22f983u);
  EXPECT_EQ((seen<F64, bits_f64>(m, in)), 0x3fc45f306dc9c882u);
}

TEST(VectorOperands, literals_are_extended_as_the_operand_says) {
  VectorMachine m;
  m.wave.set_exec(1);
  Instruction in = vector_instruction(Op::kVMovB32, Encoding::kVop3);
  in.src[0] = operand::kLiteral;
  in.literal = 0xbff00001;
  EXPECT_EQ((seen<F64, bits_f64>(m, in)), 0xbff0000100000000u);
  EXPECT_EQ((seen<U64, bits64>(m, in)), 0xbff00001u);
  EXPECT_EQ((seen<I64, bits_i64>(m, in)), 0xffffffffbff00001u);
  EXPECT_EQ((seen<U32, bits32>(m, in)), 0xbff00001u);
  EXPECT_EQ((seen<F16, bits16>(m, in)), 1u);
  in.src[0] = operand::kIntMinus1 + 1;
  EXPECT_EQ((seen<F64, bits_f64>(m, in)), ~u64{1});
  EXPECT_EQ((seen<U64, bits64>(m, in)), ~u64{1});
}

TEST(VectorOperands, conditions_and_apertures_are_sources) {
  VectorMachine m;
  m.wave.set_exec(1);
  m.wave.scc = true;
  Instruction in = vector_instruction(Op::kVMovB32, Encoding::kVop3);
  const auto read = [&](std::uint16_t number) {
    in.src[0] = number;
    return seen<U64, bits64>(m, in);
  };
  EXPECT_EQ(read(operand::kScc), 1u);
  EXPECT_EQ(read(operand::kVccz), 1u);
  EXPECT_EQ(read(operand::kExecz), 0u);
  EXPECT_EQ(read(operand::kSharedBase), FakeMachine::kSharedBase);
  EXPECT_EQ(read(operand::kPrivateLimit), FakeMachine::kPrivateBase + 0xffffffff);
  for (const std::uint16_t number : std::to_array<std::uint16_t>({209, 234, 239, 249, 254, 512, 0xffff})) {
    in.src[0] = number;
    EXPECT_EQ((vector<U64(U64), bits64>(in, m.machine)), Outcome::kIllegal) << number;
  }
}

TEST(VectorOperands, registers_beyond_those_allocated_are_illegal) {
  VectorMachine m;
  m.shuffle();
  const std::vector<Vgpr> before = m.wave.vgpr;
  const auto outcome = [&](Op op, std::uint16_t a, std::uint16_t b, std::uint16_t d) {
    Instruction in = vector_instruction(op, Encoding::kVop3);
    in.src = {a, b, operand::kNone, operand::kNone};
    in.dst = d;
    return m.run(in);
  };
  constexpr std::uint16_t kLast = operand::kVgpr0 + 31, kBeyond = operand::kVgpr0 + 32;
  EXPECT_EQ(outcome(Op::kVAddU32, kBeyond, kVgprB, kVgprD), Outcome::kIllegal);
  EXPECT_EQ(outcome(Op::kVAddU32, kVgprA, kBeyond, kVgprD), Outcome::kIllegal);
  EXPECT_EQ(outcome(Op::kVAddU32, kVgprA, kVgprB, kBeyond), Outcome::kIllegal);
  EXPECT_EQ(outcome(Op::kVLshlrevB64, kVgprA, kLast, kVgprD), Outcome::kIllegal);
  EXPECT_EQ(outcome(Op::kVLshlrevB64, kVgprA, kVgprB, kLast), Outcome::kIllegal);
  EXPECT_EQ(outcome(Op::kVAddU32, kVgprA, kVgprB, 5), Outcome::kIllegal);  // not a vector register
  EXPECT_EQ(m.wave.vgpr, before);
  EXPECT_EQ(outcome(Op::kVAddU32, kLast, kLast, kLast), Outcome::kNext);
}

TEST(VectorOperands, relative_registers) {
  VectorMachine m;
  for (unsigned which = 0; which < 16; ++which) {
    m.shuffle();
    m.wave.set_exec(~u64{0});
    m.wave.mode |= mode::kGprIdxEnable;
    m.wave.gpr_idx = 3 | which << 12;
    const unsigned a = 8 + ((which & 1) != 0 ? 3 : 0);
    const unsigned b = 12 + ((which & 2) != 0 ? 3 : 0);
    const unsigned c = 16 + ((which & 4) != 0 ? 3 : 0);
    const unsigned d = 20 + ((which & 8) != 0 ? 3 : 0);
    std::vector<Vgpr> expected = m.wave.vgpr;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      expected[d][lane] = m.wave.vgpr[a][lane] + m.wave.vgpr[b][lane] + m.wave.vgpr[c][lane];
    }
    ASSERT_EQ(m.run(vector_instruction(Op::kVAdd3U32, Encoding::kVop3)), Outcome::kNext);
    ASSERT_EQ(m.wave.vgpr, expected) << which;
  }
  m.wave.gpr_idx = 12 | 8u << 12;
  EXPECT_EQ(m.run(vector_instruction(Op::kVAdd3U32, Encoding::kVop3)), Outcome::kIllegal);
}

TEST(VectorOperands, masks_go_round) {
  Random random;
  for (unsigned round = 0; round < 100; ++round) {
    const u64 mask = random.mask();
    Vgpr flags;
    expand_mask(mask, flags);
    for (unsigned lane = 0; lane < kLanes; ++lane) EXPECT_EQ(flags[lane], mask >> lane & 1);
    EXPECT_EQ(mask_of(flags), mask);
  }
}

float add_f32(float a, float b) { return a + b; }

TEST(VectorOperands, packed_floats_come_from_pairs) {
  VectorMachine m;
  m.wave.set_exec(1);
  m.wave.vgpr[8][0] = std::bit_cast<u32>(1.0f);
  m.wave.vgpr[9][0] = std::bit_cast<u32>(2.0f);
  m.wave.vgpr[12][0] = std::bit_cast<u32>(10.0f);
  m.wave.vgpr[13][0] = std::bit_cast<u32>(20.0f);
  Instruction in = vector_instruction(Op::kVPkAddF32, Encoding::kVop3p);
  in.op_sel = 1;     // low result: high of a, low of b
  in.op_sel_hi = 2;  // high result: low of a, high of b
  in.abs = 2;        // neg_hi of b
  EXPECT_EQ((packed<F32(F32, F32), add_f32>(in, m.machine)), Outcome::kNext);
  EXPECT_EQ(std::bit_cast<float>(m.wave.vgpr[20][0]), 12.0f);
  EXPECT_EQ(std::bit_cast<float>(m.wave.vgpr[21][0]), -19.0f);
}

}  // namespace
}  // namespace gcn::vector_operands_test
