// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tests of scalar*.cc.
#include <gtest/gtest.h>

#include <optional>

#include "gcn/fake_memory.h"
#include "gcn/scalar/scalar_operand.h"

namespace gcn::scalar_test {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

constexpr std::uint16_t kA = 10, kB = 12, kD = 14;

Instruction sop(Op op, std::uint16_t dst, std::uint16_t s0 = operand::kNone, std::uint16_t s1 = operand::kNone) {
  Instruction instruction;
  instruction.op = op;
  instruction.encoding = Encoding::kSop2;
  instruction.dst = dst;
  instruction.src[0] = s0;
  instruction.src[1] = s1;
  return instruction;
}

Instruction sopk(Op op, std::uint16_t dst, std::uint16_t s0, int simm16) {
  Instruction instruction = sop(op, dst, s0);
  instruction.encoding = Encoding::kSopk;
  instruction.offset = simm16;
  return instruction;
}

struct Result {
  U64 value;
  bool scc;
  bool operator==(const Result&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Result& result) {
  return out << std::hex << result.value << (result.scc ? " scc" : "");
}

// Executes d = op(a, b) with a given SCC; the sources are register pairs.
Result run(Op op, U64 a, U64 b, bool scc = false, U64 before = 0) {
  FakeMachine m;
  m.wave.set_scalar64(kA, a);
  m.wave.set_scalar64(kB, b);
  m.wave.set_scalar64(kD, before);
  m.wave.scc = scc;
  EXPECT_EQ(m.run(sop(op, kD, kA, kB)), Outcome::kNext) << name(op);
  EXPECT_EQ(m.wave.pc, 0x1004u);
  return {m.wave.scalar64(kD), m.wave.scc};
}

struct Case {
  Op op;
  U64 a, b;
  Result expected;
  bool scc = false;
};

void check(std::initializer_list<Case> cases) {
  for (const Case& c : cases) {
    EXPECT_EQ(run(c.op, c.a, c.b, c.scc), c.expected) << name(c.op) << std::hex << ' ' << c.a << ' ' << c.b;
  }
}

TEST(Scalar, additions_set_scc_to_carry_or_overflow) {
  check({{Op::kSAddU32, 0xffffffff, 1, {0, true}},
         {Op::kSAddU32, 0x7fffffff, 1, {0x80000000, false}, true},
         {Op::kSSubU32, 1, 2, {0xffffffff, true}},
         {Op::kSSubU32, 2, 2, {0, false}, true},
         {Op::kSAddI32, 0x7fffffff, 1, {0x80000000, true}},
         {Op::kSAddI32, 0xffffffff, 1, {0, false}, true},
         {Op::kSSubI32, 0x80000000, 1, {0x7fffffff, true}},
         {Op::kSSubI32, 1, 2, {0xffffffff, false}},
         {Op::kSAddcU32, 0xffffffff, 0, {0, true}, true},
         {Op::kSAddcU32, 0xffffffff, 0xffffffff, {0xffffffff, true}, true},
         {Op::kSAddcU32, 1, 2, {3, false}},
         {Op::kSSubbU32, 5, 5, {0xffffffff, true}, true},
         {Op::kSSubbU32, 0, 0xffffffff, {0, true}, true},
         {Op::kSSubbU32, 5, 3, {1, false}, true}});
}

TEST(Scalar, multiplications_leave_scc) {
  check({{Op::kSMulI32, 0xffffffff, 7, {0xfffffff9, true}, true},
         {Op::kSMulHiU32, 0xffffffff, 0xffffffff, {0xfffffffe, false}},
         {Op::kSMulHiI32, 0xffffffff, 0xffffffff, {0, true}, true},
         {Op::kSMulHiI32, 0x80000000, 2, {0xffffffff, false}}});
}

TEST(Scalar, shift_and_add_carries_out_of_shift_and_sum) {
  check({{Op::kSLshl1AddU32, 0x80000000, 1, {1, true}},
         {Op::kSLshl2AddU32, 3, 4, {16, false}},
         {Op::kSLshl3AddU32, 1, 0xffffffff, {7, true}},
         {Op::kSLshl4AddU32, 2, 1, {33, false}, true}});
}

TEST(Scalar, minimum_and_maximum_tell_which_source_was_taken) {
  check({{Op::kSMinI32, 0xffffffff, 1, {0xffffffff, true}},
         {Op::kSMinI32, 1, 1, {1, false}, true},
         {Op::kSMinU32, 0xffffffff, 1, {1, false}},
         {Op::kSMaxI32, 0xffffffff, 1, {1, false}, true},
         {Op::kSMaxU32, 0xffffffff, 1, {0xffffffff, true}},
         {Op::kSMaxU32, 1, 1, {1, false}}});
}

TEST(Scalar, select_takes_what_scc_says) {
  check({{Op::kSCselectB32, 1, 2, {1, true}, true},
         {Op::kSCselectB32, 1, 2, {2, false}},
         {Op::kSCselectB64, 0x100000001, 2, {0x100000001, true}, true},
         {Op::kSCselectB64, 1, 0x200000002, {0x200000002, false}}});
  EXPECT_EQ(run(Op::kSCmovB32, 7, 0, false, 9), (Result{9, false}));
  EXPECT_EQ(run(Op::kSCmovB32, 7, 0, true, 9), (Result{7, true}));
  EXPECT_EQ(run(Op::kSCmovB64, 0x700000007, 0, true, 9), (Result{0x700000007, true}));
}

TEST(Scalar, logic_sets_scc_if_a_bit_is_left) {
  constexpr U64 kX = 0xff00ff00'0f0f0f0f, kY = 0xf0f0f0f0'00ff00ff;
  check({{Op::kSAndB32, kX, kY, {0x000f000f, true}},
         {Op::kSAndB64, kX, kY, {0xf000f000'000f000f, true}},
         {Op::kSAndB32, 1, 2, {0, false}, true},
         {Op::kSOrB32, kX, kY, {0x0fff0fff, true}},
         {Op::kSOrB64, kX, kY, {0xfff0fff0'0fff0fff, true}},
         {Op::kSXorB32, kX, kY, {0x0ff00ff0, true}},
         {Op::kSXorB64, kX, kX, {0, false}, true},
         {Op::kSAndn2B32, kX, kY, {0x0f000f00, true}},
         {Op::kSAndn2B64, kX, kY, {0x0f000f00'0f000f00, true}},
         {Op::kSOrn2B32, kX, kY, {0xff0fff0f, true}},
         {Op::kSOrn2B64, 0, ~U64{0}, {0, false}, true},
         {Op::kSNandB32, kX, kY, {0xfff0fff0, true}},
         {Op::kSNandB64, ~U64{0}, ~U64{0}, {0, false}, true},
         {Op::kSNorB32, kX, kY, {0xf000f000, true}},
         {Op::kSNorB64, kX, kY, {0x000f000f'f000f000, true}},
         {Op::kSXnorB32, kX, kY, {0xf00ff00f, true}},
         {Op::kSXnorB64, kX, kX, {~U64{0}, true}},
         {Op::kSNotB32, 0xffffffff, 0, {0, false}, true},
         {Op::kSNotB64, 0xffffffff, 0, {0xffffffff00000000, true}}});
}

TEST(Scalar, shifts_take_the_count_modulo_the_width) {
  check({{Op::kSLshlB32, 3, 33, {6, true}},
         {Op::kSLshlB32, 0x80000000, 1, {0, false}, true},
         {Op::kSLshlB64, 3, 63, {U64{1} << 63, true}},
         {Op::kSLshrB32, 0x80000000, 31, {1, true}},
         {Op::kSLshrB64, U64{1} << 63, 127, {1, true}},
         {Op::kSAshrI32, 0x80000000, 31, {0xffffffff, true}},
         {Op::kSAshrI64, U64{1} << 63, 62, {~U64{1}, true}}});
}

TEST(Scalar, bit_fields) {
  check({{Op::kSBfmB32, 4, 8, {0xf00, true}, true},
         {Op::kSBfmB32, 0, 8, {0, false}},
         {Op::kSBfmB64, 40, 4, {0xffffffffff0, false}},
         {Op::kSBfeU32, 0x12345678, 8 | 12 << 16, {0x456, true}},
         {Op::kSBfeU32, 0x12345678, 8 | 64 << 16, {0x123456, true}},
         {Op::kSBfeU32, 0x12345678, 8, {0, false}, true},
         {Op::kSBfeI32, 0x0000f800, 8 | 8 << 16, {0xfffffff8, true}},
         {Op::kSBfeI32, 0x80000000, 28 | 8 << 16, {0xfffffff8, true}},
         {Op::kSBfeU64, 0x123456789abcdef0, 36 | 16 << 16, {0x4567, true}},
         {Op::kSBfeI64, 0x8000000000000000, 60 | 4 << 16, {~U64{7}, true}},
         {Op::kSBfeI64, 0x00000000fff00000, 20 | 12 << 16, {~U64{0}, true}}});
}

TEST(Scalar, absolute_values) {
  check({{Op::kSAbsdiffI32, 3, 0xffffffff, {4, true}},
         {Op::kSAbsdiffI32, 0x80000000, 0x7fffffff, {0xffffffff, true}},
         {Op::kSAbsdiffI32, 5, 5, {0, false}, true},
         {Op::kSAbsI32, 0x80000000, 0, {0x80000000, true}},
         {Op::kSAbsI32, 0xfffffffe, 0, {2, true}}});
}

TEST(Scalar, packing_and_extending) {
  check({{Op::kSPackLlB32B16, 0x11112222, 0x33334444, {0x44442222, false}},
         {Op::kSPackLhB32B16, 0x11112222, 0x33334444, {0x33332222, false}},
         {Op::kSPackHhB32B16, 0x11112222, 0x33334444, {0x33331111, true}, true},
         {Op::kSSextI32I8, 0x180, 0, {0xffffff80, false}},
         {Op::kSSextI32I16, 0x18000, 0, {0xffff8000, true}, true},
         {Op::kSBitreplicateB64B32, 0x80000005, 0, {0xc000000000000033, false}}});
}

TEST(Scalar, counting_and_searching_bits) {
  check({{Op::kSBcnt0I32B32, 0xffffffff, 0, {0, false}, true},
         {Op::kSBcnt0I32B64, 1, 0, {63, true}},
         {Op::kSBcnt1I32B32, 0xf0, 0, {4, true}},
         {Op::kSBcnt1I32B64, 0xf0000000f0, 0, {8, true}},
         {Op::kSFf0I32B32, 0xff, 0, {8, false}},
         {Op::kSFf0I32B32, 0xffffffff, 0, {0xffffffff, false}},
         {Op::kSFf0I32B64, 0xffffffff, 0, {32, false}},
         {Op::kSFf1I32B32, 0x100, 0, {8, false}},
         {Op::kSFf1I32B64, 0, 0, {0xffffffff, false}},
         {Op::kSFlbitI32B32, 0x00ffffff, 0, {8, false}},
         {Op::kSFlbitI32B32, 0, 0, {0xffffffff, false}},
         {Op::kSFlbitI32B64, 1, 0, {63, false}},
         {Op::kSFlbitI32, 0xff000000, 0, {8, false}},
         {Op::kSFlbitI32, 0x7fffffff, 0, {1, false}},
         {Op::kSFlbitI32, 0xffffffff, 0, {0xffffffff, false}},
         {Op::kSFlbitI32I64, 0xfffffffe00000000, 0, {31, false}},
         {Op::kSBrevB32, 0x1, 0, {0x80000000, false}},
         {Op::kSBrevB64, 0x3, 0, {U64{3} << 62, false}}});
}

TEST(Scalar, quads) {
  check({{Op::kSWqmB32, 0x00100802, 0, {0x00f00f0f, true}},
         {Op::kSWqmB64, 0x8000000000000001, 0, {0xf00000000000000f, true}},
         {Op::kSWqmB32, 0, 0, {0, false}, true},
         {Op::kSQuadmaskB32, 0x00100802, 0, {0x25, true}},
         {Op::kSQuadmaskB64, 0x8000000000000001, 0, {0x8001, true}}});
}

TEST(Scalar, setting_single_bits) {
  EXPECT_EQ(run(Op::kSBitset1B32, 33, 0, true, 0), (Result{2, true}));
  EXPECT_EQ(run(Op::kSBitset0B32, 4, 0, false, 0xff), (Result{0xef, false}));
  EXPECT_EQ(run(Op::kSBitset1B64, 40, 0, false, 1), (Result{(U64{1} << 40) + 1, false}));
  EXPECT_EQ(run(Op::kSBitset0B64, 40, 0, false, ~U64{0}), (Result{~(U64{1} << 40), false}));
}

bool compares(Op op, U64 a, U64 b) {
  FakeMachine m;
  m.wave.set_scalar64(kA, a);
  m.wave.set_scalar64(kB, b);
  EXPECT_EQ(m.run(sop(op, operand::kNone, kA, kB)), Outcome::kNext);
  return m.wave.scc;
}

TEST(Scalar, comparisons) {
  constexpr U64 kMinus = 0xffffffff;
  EXPECT_TRUE(compares(Op::kSCmpEqI32, 5, 5) && compares(Op::kSCmpLgI32, 5, 6));
  EXPECT_TRUE(compares(Op::kSCmpGtI32, 1, kMinus) && !compares(Op::kSCmpGtU32, 1, kMinus));
  EXPECT_TRUE(compares(Op::kSCmpGeI32, 1, 1) && !compares(Op::kSCmpGeI32, kMinus, 1));
  EXPECT_TRUE(compares(Op::kSCmpLtI32, kMinus, 1) && !compares(Op::kSCmpLtU32, kMinus, 1));
  EXPECT_TRUE(compares(Op::kSCmpLeI32, kMinus, 1) && compares(Op::kSCmpLeU32, 1, 1));
  EXPECT_TRUE(compares(Op::kSCmpEqU32, 1, 1) && compares(Op::kSCmpLgU32, 1, 2) && compares(Op::kSCmpGeU32, 2, 1));
  EXPECT_TRUE(compares(Op::kSCmpEqU64, U64{1} << 40, U64{1} << 40) && !compares(Op::kSCmpEqU64, U64{1} << 40, 0));
  EXPECT_TRUE(compares(Op::kSCmpLgU64, U64{1} << 40, 0));
  EXPECT_TRUE(compares(Op::kSBitcmp1B32, 4, 34) && compares(Op::kSBitcmp0B32, 4, 3));
  EXPECT_TRUE(compares(Op::kSBitcmp1B64, U64{1} << 35, 35) && compares(Op::kSBitcmp0B64, U64{1} << 35, 3));
}

TEST(Scalar, constants_of_16_bits) {
  FakeMachine m;
  EXPECT_EQ(m.run(sopk(Op::kSMovkI32, kD, operand::kNone, -2)), Outcome::kNext);
  EXPECT_EQ(m.wave.scalar[kD], 0xfffffffeu);
  m.run(sopk(Op::kSCmovkI32, kD, operand::kNone, 5));
  EXPECT_EQ(m.wave.scalar[kD], 0xfffffffeu);
  m.run(sopk(Op::kSAddkI32, kD, kD, 5));
  EXPECT_EQ(m.wave.scalar[kD], 3u);
  EXPECT_FALSE(m.wave.scc);
  m.run(sopk(Op::kSMulkI32, kD, kD, -3));
  EXPECT_EQ(m.wave.scalar[kD], 0xfffffff7u);
  m.wave.scalar[kD] = 0x7fffffff;
  m.run(sopk(Op::kSAddkI32, kD, kD, 1));
  EXPECT_TRUE(m.wave.scc);
  m.run(sopk(Op::kSCmovkI32, kD, operand::kNone, 5));
  EXPECT_EQ(m.wave.scalar[kD], 5u);
}

bool compares_constant(Op op, U32 a, int simm16) {
  FakeMachine m;
  m.wave.scalar[kA] = a;
  EXPECT_EQ(m.run(sopk(op, operand::kNone, kA, simm16)), Outcome::kNext);
  return m.wave.scc;
}

TEST(Scalar, comparisons_with_constants_extend_them_as_the_operation_says) {
  EXPECT_TRUE(compares_constant(Op::kSCmpkEqI32, 0xffffffff, -1));
  EXPECT_FALSE(compares_constant(Op::kSCmpkEqU32, 0xffffffff, -1));
  EXPECT_TRUE(compares_constant(Op::kSCmpkEqU32, 0xffff, -1));
  EXPECT_TRUE(compares_constant(Op::kSCmpkLgI32, 1, 2) && compares_constant(Op::kSCmpkLgU32, 1, 2));
  EXPECT_TRUE(compares_constant(Op::kSCmpkGtI32, 1, -1) && !compares_constant(Op::kSCmpkGtU32, 1, -1));
  EXPECT_TRUE(compares_constant(Op::kSCmpkGeI32, 1, 1) && compares_constant(Op::kSCmpkGeU32, 1, 1));
  EXPECT_TRUE(compares_constant(Op::kSCmpkLtI32, 0x80000000, 1) && compares_constant(Op::kSCmpkLtU32, 1, -1));
  EXPECT_TRUE(compares_constant(Op::kSCmpkLeI32, 1, 1) && compares_constant(Op::kSCmpkLeU32, 1, 1));
}

struct ExecCase {
  Op op;
  U64 exec, d;
};

TEST(Scalar, exec_is_combined_and_saved) {
  constexpr U64 kS = 0b0011, kExec = 0b0101;
  const ExecCase cases[] = {{Op::kSAndSaveexecB64, 0b0001, kExec},       {Op::kSOrSaveexecB64, 0b0111, kExec},
                            {Op::kSXorSaveexecB64, 0b0110, kExec},       {Op::kSAndn1SaveexecB64, 0b0100, kExec},
                            {Op::kSAndn2SaveexecB64, 0b0010, kExec},     {Op::kSOrn1SaveexecB64, ~U64{0b0010}, kExec},
                            {Op::kSOrn2SaveexecB64, ~U64{0b100}, kExec}, {Op::kSNandSaveexecB64, ~U64{1}, kExec},
                            {Op::kSNorSaveexecB64, ~U64{0b111}, kExec},  {Op::kSXnorSaveexecB64, ~U64{0b110}, kExec},
                            {Op::kSAndn1WrexecB64, 0b0100, 0b0100},      {Op::kSAndn2WrexecB64, 0b0010, 0b0010}};
  for (const ExecCase& c : cases) {
    FakeMachine m;
    m.wave.set_exec(kExec);
    m.wave.set_scalar64(kA, kS);
    EXPECT_EQ(m.run(sop(c.op, kD, kA)), Outcome::kNext);
    EXPECT_EQ(m.wave.exec(), c.exec) << name(c.op);
    EXPECT_EQ(m.wave.scalar64(kD), c.d) << name(c.op);
    EXPECT_TRUE(m.wave.scc);
  }
}

TEST(Scalar, no_lane_left_clears_scc) {
  FakeMachine m;
  m.wave.scc = true;
  m.run(sop(Op::kSAndSaveexecB64, kD, operand::kInt0));
  EXPECT_EQ(m.wave.exec(), 0u);
  EXPECT_FALSE(m.wave.scc);
}

TEST(Scalar, m0_selects_registers) {
  FakeMachine m;
  m.wave.scalar[operand::kM0] = 4;
  m.wave.scalar[24] = 77;
  m.run(sop(Op::kSMovrelsB32, kD, 20));
  EXPECT_EQ(m.wave.scalar[kD], 77u);
  m.wave.set_scalar64(kA, 0x500000006);
  m.run(sop(Op::kSMovreldB64, 30, kA));
  EXPECT_EQ(m.wave.scalar64(34), 0x500000006u);
  m.run(sop(Op::kSMovrelsB64, 40, 30));
  EXPECT_EQ(m.wave.scalar64(40), 0x500000006u);
  m.wave.scalar[operand::kM0] = 0xfffffff0;
  m.run(sop(Op::kSMovreldB32, 30, kA));
  m.run(sop(Op::kSMovrelsB32, kD, 20));
  EXPECT_EQ(m.wave.scalar[kD], 0u);
}

// Returns what s_mov_b32 or s_mov_b64 reads from an operand.
U32 moved32(FakeMachine& m, std::uint16_t source, U32 literal = 0) {
  Instruction instruction = sop(Op::kSMovB32, kD, source);
  instruction.literal = literal;
  m.run(instruction);
  return m.wave.scalar[kD];
}
U64 moved64(FakeMachine& m, std::uint16_t source, U32 literal = 0) {
  Instruction instruction = sop(Op::kSMovB64, kD, source);
  instruction.literal = literal;
  m.run(instruction);
  return m.wave.scalar64(kD);
}

TEST(Scalar, constants_are_as_wide_as_the_operand) {
  FakeMachine m;
  EXPECT_EQ(moved32(m, 128), 0u);
  EXPECT_EQ(moved32(m, 192), 64u);
  EXPECT_EQ(moved32(m, 193), 0xffffffffu);
  EXPECT_EQ(moved64(m, 208), static_cast<U64>(-16));
  EXPECT_EQ(moved32(m, 242), 0x3f800000u);
  EXPECT_EQ(moved64(m, 247), 0xc010000000000000u);
  EXPECT_EQ(moved32(m, 248), 0x3e22f983u);
  EXPECT_EQ(moved64(m, 248), 0x3fc45f306dc9c882u);
  EXPECT_EQ(moved32(m, 255, 0x89abcdef), 0x89abcdefu);
  EXPECT_EQ(moved64(m, 255, 0x89abcdef), 0x89abcdefu);
}

TEST(Scalar, conditions_are_operands) {
  FakeMachine m;
  EXPECT_EQ(moved32(m, operand::kVccz), 1u);
  EXPECT_EQ(moved32(m, operand::kExecz), 0u);
  EXPECT_EQ(moved32(m, operand::kScc), 0u);
  m.wave.set_vcc(U64{1} << 63);
  m.wave.set_exec(0);
  m.wave.scc = true;
  EXPECT_EQ(moved32(m, operand::kVccz), 0u);
  EXPECT_EQ(moved64(m, operand::kExecz), 1u);
  EXPECT_EQ(moved64(m, operand::kScc), 1u);
}

TEST(Scalar, apertures_are_whole_as_pairs_and_low_as_dwords) {
  FakeMachine m;
  EXPECT_EQ(moved64(m, operand::kSharedBase), FakeMachine::kSharedBase);
  EXPECT_EQ(moved64(m, operand::kSharedLimit), FakeMachine::kSharedBase + 0xffffffff);
  EXPECT_EQ(moved64(m, operand::kPrivateBase), FakeMachine::kPrivateBase);
  EXPECT_EQ(moved64(m, operand::kPrivateLimit), FakeMachine::kPrivateBase + 0xffffffff);
  EXPECT_EQ(moved32(m, operand::kSharedBase), 0u);
  EXPECT_EQ(moved32(m, operand::kPrivateLimit), 0xffffffffu);
}

TEST(Scalar, registers_that_were_not_allocated_are_zero) {
  FakeMachine m;
  m.wave.sgprs = 16;
  m.wave.scalar[16] = 9;
  EXPECT_EQ(moved32(m, 16), 0u);
  m.run(sop(Op::kSMovB32, 16, 192));
  EXPECT_EQ(m.wave.scalar[16], 9u);
  m.run(sop(Op::kSMovB64, operand::kVccLo, 192));
  EXPECT_EQ(m.wave.vcc(), 64u);
}

TEST(Scalar, trap_temporaries_belong_to_the_trap_handler) {
  FakeMachine m;
  m.run(sop(Op::kSMovB32, operand::kTtmp0, 192));
  EXPECT_EQ(m.wave.scalar[operand::kTtmp0], 0u);
  m.wave.status |= status::kPrivileged;
  m.run(sop(Op::kSMovB32, operand::kTtmp0, 192));
  EXPECT_EQ(moved32(m, operand::kTtmp0), 64u);
}

Instruction sopp(Op op, int simm16 = 0) {
  Instruction instruction;
  instruction.op = op;
  instruction.offset = simm16;
  return instruction;
}

// Returns the pc at which the wave continues.
Address after(FakeMachine& m, const Instruction& instruction) {
  m.wave.pc = 0x1000;
  EXPECT_EQ(m.run(instruction), Outcome::kNext);
  return m.wave.pc;
}

TEST(Scalar, branches_count_dwords_from_the_next_instruction) {
  FakeMachine m;
  EXPECT_EQ(after(m, sopp(Op::kSBranch, 3)), 0x1010u);
  EXPECT_EQ(after(m, sopp(Op::kSBranch, -1)), 0x1000u);
  EXPECT_EQ(after(m, sopp(Op::kSBranch, -32768)), Address{0x1004} - 0x20000);
  EXPECT_EQ(after(m, sopp(Op::kSCbranchScc0, 3)), 0x1010u);
  EXPECT_EQ(after(m, sopp(Op::kSCbranchScc1, 3)), 0x1004u);
  EXPECT_EQ(after(m, sopp(Op::kSCbranchVccz, 3)), 0x1010u);
  EXPECT_EQ(after(m, sopp(Op::kSCbranchVccnz, 3)), 0x1004u);
  EXPECT_EQ(after(m, sopp(Op::kSCbranchExecz, 3)), 0x1004u);
  EXPECT_EQ(after(m, sopp(Op::kSCbranchExecnz, 3)), 0x1010u);
  EXPECT_EQ(after(m, sopp(Op::kSCbranchCdbguser, 3)), 0x1004u);
  m.wave.status |= status::kConditionalDebugUser;
  EXPECT_EQ(after(m, sopp(Op::kSCbranchCdbgsysOrUser, 3)), 0x1010u);
  EXPECT_EQ(after(m, sopp(Op::kSCbranchCdbgsysAndUser, 3)), 0x1004u);
}

TEST(Scalar, calls_leave_the_way_back) {
  FakeMachine m;
  EXPECT_EQ(after(m, sop(Op::kSGetpcB64, kD)), 0x1004u);
  EXPECT_EQ(m.wave.scalar64(kD), 0x1004u);
  m.wave.set_scalar64(kA, 0x123456789abc);
  EXPECT_EQ(after(m, sop(Op::kSSetpcB64, operand::kNone, kA)), 0x123456789abcu);
  EXPECT_EQ(after(m, sop(Op::kSSwappcB64, kA, kA)), 0x123456789abcu);
  EXPECT_EQ(m.wave.scalar64(kA), 0x1004u);
  EXPECT_EQ(after(m, sopk(Op::kSCallB64, kD, operand::kNone, 4)), 0x1014u);
  EXPECT_EQ(m.wave.scalar64(kD), 0x1004u);
}

TEST(Scalar, outcomes_tell_what_the_wave_waits_for) {
  FakeMachine m;
  EXPECT_EQ(m.run(sopp(Op::kSEndpgm)), Outcome::kEnd);
  EXPECT_EQ(m.run(sopp(Op::kSBarrier)), Outcome::kBarrier);
  EXPECT_EQ(m.run(sopp(Op::kSSleep, 0x85)), Outcome::kSleep);
  EXPECT_EQ(m.wave.sleep, 5u);
  EXPECT_EQ(m.run(sopp(Op::kSSendmsg, 1)), Outcome::kMessage);
  EXPECT_EQ(m.wave.message, 1u);
  EXPECT_EQ(m.run(sopp(Op::kSSethalt, 0)), Outcome::kNext);
  EXPECT_EQ(m.run(sopp(Op::kSSethalt, 1)), Outcome::kHalt);
  EXPECT_EQ(m.wave.message, 0u);
  EXPECT_EQ(m.run(sopp(Op::kSSendmsghalt, -1)), Outcome::kHalt);
  EXPECT_EQ(m.wave.message, 0xffffu);
  EXPECT_EQ(m.wave.pc, 0x1000u + 7 * 4);
  EXPECT_EQ(m.run(sopp(Op::kSTrap, 2)), Outcome::kTrap);
  EXPECT_EQ(m.wave.trap_id, 2);
  EXPECT_EQ(m.wave.pc, 0x1000u + 7 * 4);
}

TEST(Scalar, hints_do_nothing) {
  FakeMachine m;
  for (const Op op : {Op::kSNop, Op::kSWaitcnt, Op::kSIcacheInv, Op::kSIncperflevel, Op::kSDecperflevel,
                      Op::kSTtracedata, Op::kSWakeup, Op::kSSetprio}) {
    EXPECT_EQ(after(m, sopp(op)), 0x1004u);
  }
}

constexpr int hwreg(int id, int first, int bits) {
  return static_cast<std::int16_t>(id | first << 6 | (bits - 1) << 11);
}

U32 getreg(FakeMachine& m, int simm16) {
  EXPECT_EQ(m.run(sopk(Op::kSGetregB32, kD, operand::kNone, simm16)), Outcome::kNext);
  return m.wave.scalar[kD];
}

TEST(Scalar, mode_is_written_field_by_field) {
  FakeMachine m;
  m.wave.mode = 0xf0;
  m.wave.scalar[kA] = 0xff;
  m.run(sopk(Op::kSSetregB32, operand::kNone, kA, hwreg(1, 0, 4)));
  EXPECT_EQ(m.wave.mode, 0xffu);
  Instruction instruction = sopk(Op::kSSetregImm32B32, operand::kNone, operand::kLiteral, hwreg(1, 4, 2));
  instruction.literal = 0;
  instruction.bytes = 8;
  m.run(instruction);
  EXPECT_EQ(m.wave.mode, 0xcfu);
  EXPECT_EQ(getreg(m, hwreg(1, 2, 6)), 0x33u);
  EXPECT_EQ(getreg(m, hwreg(1, 0, 32)), 0xcfu);
}

TEST(Scalar, other_hardware_registers_are_only_read) {
  FakeMachine m;
  m.wave.status = 0x10000;
  m.wave.hw_id = 0x12345;
  m.wave.scalar[kA] = 0xffffffff;
  for (const int id : {2, 3, 4, 5, 6, 7, 15, 63}) {
    m.run(sopk(Op::kSSetregB32, operand::kNone, kA, hwreg(id, 0, 32)));
  }
  EXPECT_EQ(getreg(m, hwreg(2, 0, 32)), 0x10000u | 1u << 10);
  EXPECT_EQ(getreg(m, hwreg(3, 0, 32)), 0x1ffu);
  EXPECT_EQ(getreg(m, hwreg(4, 0, 32)), 0x12345u);
  EXPECT_EQ(getreg(m, hwreg(5, 8, 6)), 15u);
  EXPECT_EQ(getreg(m, hwreg(5, 24, 4)), 7u);
  EXPECT_EQ(getreg(m, hwreg(6, 12, 9)), 16u);
  EXPECT_EQ(getreg(m, hwreg(15, 16, 16)), 1u);
  EXPECT_EQ(getreg(m, hwreg(15, 0, 16)), 2u);
  EXPECT_EQ(getreg(m, hwreg(63, 0, 32)), 0u);
}

TEST(Scalar, indexing_mode_lives_in_m0) {
  FakeMachine m;
  m.wave.scalar[operand::kM0] = 0xffff0f00;
  m.wave.scalar[kA] = 0x105;
  m.run(sop(Op::kSSetGprIdxOn, operand::kNone, kA, 9));
  EXPECT_EQ(m.wave.mode, mode::kGprIdxEnable);
  EXPECT_EQ(m.wave.scalar[operand::kM0], 0xffff9f05u);
  EXPECT_EQ(m.wave.gpr_idx, 0x9005u);
  m.wave.scalar[kA] = 7;
  m.run(sop(Op::kSSetGprIdxIdx, operand::kNone, kA));
  EXPECT_EQ(m.wave.gpr_idx, 0x9007u);
  m.run(sopp(Op::kSSetGprIdxMode, 2));
  EXPECT_EQ(m.wave.gpr_idx, 0x2007u);
  m.run(sopp(Op::kSSetGprIdxOff));
  EXPECT_EQ(m.wave.mode, 0u);
}

TEST(Scalar, any_operand_number_is_safe) {
  for (unsigned number = 0; number < 512; ++number) {
    FakeMachine m;
    const auto n = static_cast<std::uint16_t>(number);
    EXPECT_EQ(m.run(sop(Op::kSAddU32, n, n, n)), Outcome::kNext);
    EXPECT_EQ(m.run(sop(Op::kSOrB64, n, n, n)), Outcome::kNext);
    EXPECT_EQ(m.run(sop(Op::kSBitset1B64, n, n)), Outcome::kNext);
    EXPECT_EQ(m.run(sop(Op::kSMovreldB64, n, n)), Outcome::kNext);
  }
}

}  // namespace
}  // namespace gcn::scalar_test
