// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tests of vector_move.cc.
#include <gtest/gtest.h>

#include "gcn/vector/vector_test.h"

namespace gcn::vector_move_test {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr Encoding kVop1 = Encoding::kVop1, kVop2 = Encoding::kVop2, kVop3 = Encoding::kVop3, kVop3p = Encoding::kVop3p;

TEST(VectorMove, mov_copies_enabled_lanes) {
  check({Op::kVMovB32, kVop1, 32, {32}, [](u64 a, u64, u64) { return a; }});
}

TEST(VectorMove, cndmask_selects_by_a_mask) {
  VectorMachine m;
  for (const std::uint16_t mask : {std::uint16_t{operand::kVccLo}, kSgprMask}) {
    m.shuffle();
    Instruction in = vector_instruction(Op::kVCndmaskB32, mask == kSgprMask ? kVop3 : kVop2);
    in.src[2] = mask;
    std::vector<Vgpr> expected = m.wave.vgpr;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if (!has_lane(m.wave.exec(), lane)) continue;
      expected[20][lane] = m.wave.vgpr[has_lane(m.wave.scalar64(mask), lane) ? 12 : 8][lane];
    }
    EXPECT_EQ(m.run(in), Outcome::kNext);
    EXPECT_EQ(m.wave.vgpr, expected);
  }
}

TEST(VectorMove, cndmask_negates_what_it_selects) {
  VectorMachine m;
  m.wave.set_exec(3);
  m.wave.set_scalar64(kSgprMask, 2);
  m.fill(8, [](unsigned) { return 0x3f800000; });
  m.fill(12, [](unsigned) { return 0xc0000000; });
  Instruction in = vector_instruction(Op::kVCndmaskB32, kVop3);
  in.src[2] = kSgprMask;
  in.neg = 1;
  in.abs = 2;
  EXPECT_EQ(m.run(in), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr[20][0], 0xbf800000u);
  EXPECT_EQ(m.wave.vgpr[20][1], 0x40000000u);
}

TEST(VectorMove, nop_and_clrexcp_leave_registers_alone) {
  VectorMachine m;
  m.shuffle();
  m.wave.trapsts = 0x10000fff;
  const std::vector<Vgpr> before = m.wave.vgpr;
  EXPECT_EQ(m.run(vector_instruction(Op::kVNop, kVop1)), Outcome::kNext);
  EXPECT_EQ(m.run(vector_instruction(Op::kVClrexcp, kVop1)), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr, before);
  EXPECT_EQ(m.wave.trapsts, 0x10000e00u);
}

TEST(VectorMove, swap_exchanges_enabled_lanes) {
  VectorMachine m;
  m.shuffle();
  std::vector<Vgpr> expected = m.wave.vgpr;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (has_lane(m.wave.exec(), lane)) std::swap(expected[8][lane], expected[20][lane]);
  }
  EXPECT_EQ(m.run(vector_instruction(Op::kVSwapB32, kVop1)), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr, expected);
}

TEST(VectorMove, readlane_and_writelane_ignore_exec) {
  VectorMachine m;
  m.shuffle();
  m.wave.set_exec(0);
  m.wave.scalar[7] = 64 + 41;  // the low six bits count
  Instruction read = vector_instruction(Op::kVReadlaneB32, kVop3);
  read.dst = 30;
  read.src[1] = 7;
  EXPECT_EQ(m.run(read), Outcome::kNext);
  EXPECT_EQ(m.wave.scalar[30], m.wave.vgpr[8][41]);

  Instruction write = vector_instruction(Op::kVWritelaneB32, kVop3);
  write.src = {operand::kIntMinus1, 7, operand::kNone, operand::kNone};
  std::vector<Vgpr> expected = m.wave.vgpr;
  expected[20][41] = ~0u;
  EXPECT_EQ(m.run(write), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr, expected);
}

TEST(VectorMove, readfirstlane_takes_the_lowest_enabled_lane) {
  VectorMachine m;
  m.shuffle();
  Instruction in = vector_instruction(Op::kVReadfirstlaneB32, kVop1);
  in.dst = 30;
  for (const auto& [exec, lane] : {std::pair{u64{0}, 0u}, {u64{0xf00}, 8u}, {u64{1} << 63, 63u}}) {
    m.wave.set_exec(exec);
    EXPECT_EQ(m.run(in), Outcome::kNext);
    EXPECT_EQ(m.wave.scalar[30], m.wave.vgpr[8][lane]);
  }
}

TEST(VectorMove, lane_operations_need_vector_registers) {
  VectorMachine m;
  m.shuffle();
  Instruction read = vector_instruction(Op::kVReadlaneB32, kVop3);
  read.dst = 30;
  EXPECT_EQ(m.run(read), Outcome::kIllegal);  // the lane is in a vector register
  read.src = {3, operand::kInt0, operand::kNone, operand::kNone};
  EXPECT_EQ(m.run(read), Outcome::kIllegal);
  Instruction first = vector_instruction(Op::kVReadfirstlaneB32, kVop1);
  EXPECT_EQ(m.run(first), Outcome::kIllegal);  // to a vector register
  Instruction write = vector_instruction(Op::kVWritelaneB32, kVop3);
  EXPECT_EQ(m.run(write), Outcome::kIllegal);
}

TEST(VectorMove, pk_mov_chooses_a_register_of_each_pair) {
  VectorMachine m;
  for (unsigned op_sel = 0; op_sel < 4; ++op_sel) {
    m.shuffle();
    Instruction in = vector_instruction(Op::kVPkMovB32, kVop3p);
    in.op_sel = static_cast<std::uint8_t>(op_sel);
    in.op_sel_hi = 7;
    std::vector<Vgpr> expected = m.wave.vgpr;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if (!has_lane(m.wave.exec(), lane)) continue;
      expected[20][lane] = m.wave.vgpr[(op_sel & 1) != 0 ? 9 : 8][lane];
      expected[21][lane] = m.wave.vgpr[(op_sel & 2) != 0 ? 13 : 12][lane];
    }
    EXPECT_EQ(m.run(in), Outcome::kNext);
    EXPECT_EQ(m.wave.vgpr, expected) << op_sel;
  }
}

TEST(VectorMove, accumulation_registers) {
  VectorMachine m;
  m.shuffle();
  m.wave.agpr.resize(16);
  m.wave.set_exec(0xff);
  Instruction write = vector_instruction(Op::kVAccvgprWriteB32, kVop3p);
  write.dst = operand::kVgpr0 + 3;
  Instruction mov = vector_instruction(Op::kVAccvgprMovB32, kVop1);
  mov.src[0] = operand::kVgpr0 + 3;
  mov.dst = operand::kVgpr0 + 4;
  Instruction read = vector_instruction(Op::kVAccvgprReadB32, kVop3p);
  read.src[0] = operand::kVgpr0 + 4;
  std::vector<Vgpr> expected = m.wave.vgpr;
  for (unsigned lane = 0; lane < 8; ++lane) expected[20][lane] = expected[8][lane];
  EXPECT_EQ(m.run(write), Outcome::kNext);
  EXPECT_EQ(m.run(mov), Outcome::kNext);
  EXPECT_EQ(m.run(read), Outcome::kNext);
  EXPECT_EQ(m.wave.vgpr, expected);
  read.src[0] = operand::kVgpr0 + 16;
  EXPECT_EQ(m.run(read), Outcome::kIllegal);
}

}  // namespace
}  // namespace gcn::vector_move_test
