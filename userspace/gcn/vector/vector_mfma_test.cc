// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tests of vector_mfma.cc. They lay matrices out by tables of the documented positions, execute the instruction, and
// compare the results with products of small integers, which are exact.
#include <algorithm>
#include <functional>

#include "gcn/vector/vector_float_test.h"

namespace gcn::vector_mfma_test {
namespace {

struct Where {
  unsigned reg;
  unsigned lane;
  unsigned part;  // which element of the registers of a lane that hold several
};

enum class Of : std::uint8_t { kBytes, kHalves, kBrains, kSingles, kDoubles };

unsigned bits_of(Of of) {
  switch (of) {
    case Of::kBytes:
      return 8;
    case Of::kHalves:
    case Of::kBrains:
      return 16;
    case Of::kSingles:
      return 32;
    case Of::kDoubles:
      return 64;
  }
  return 0;
}

struct Matrix {
  Op op;
  unsigned m, k, blocks;
  Of of;                                                                // the elements of A and B
  std::function<Where(unsigned block, unsigned m, unsigned k)> factor;  // A by row, B by column
  std::function<Where(unsigned block, unsigned m, unsigned n)> result;
};

// The places of the elements by the tables of the ISA documents.
const auto kBlocked = [](unsigned size) {
  return [size](unsigned b, unsigned i, unsigned k) { return Where{0, size * b + i, k}; };
};
const auto kSingleBlock = [](unsigned size, unsigned pack) {
  return [size, pack](unsigned, unsigned i, unsigned k) { return Where{0, size * (k / pack) + i, k % pack}; };
};
const auto kRows32 = [](unsigned b, unsigned i, unsigned j) {
  return Where{16 * b + 4 * (i / 8) + i % 4, j + 32 * (i / 4 % 2), 0};
};
const auto kRows16 = [](unsigned b, unsigned i, unsigned j) { return Where{4 * b + i % 4, j + 16 * (i / 4), 0}; };
const auto kRows4 = [](unsigned b, unsigned i, unsigned j) { return Where{i, 4 * b + j, 0}; };
const auto kRows64 = [](unsigned, unsigned i, unsigned j) { return Where{i / 4, 16 * (i % 4) + j, 0}; };
const auto kSmall64 = [](unsigned b, unsigned i, unsigned k) { return Where{0, 4 * b + i + 16 * k, 0}; };
const auto kSmallRows64 = [](unsigned b, unsigned i, unsigned j) { return Where{0, 16 * i + 4 * b + j, 0}; };

const Matrix kMatrices[] = {
    {Op::kVMfmaF3232x32x1f32, 32, 1, 2, Of::kSingles, kBlocked(32), kRows32},
    {Op::kVMfmaF3216x16x1f32, 16, 1, 4, Of::kSingles, kBlocked(16), kRows16},
    {Op::kVMfmaF324x4x1f32, 4, 1, 16, Of::kSingles, kBlocked(4), kRows4},
    {Op::kVMfmaF3232x32x2f32, 32, 2, 1, Of::kSingles, kSingleBlock(32, 1), kRows32},
    {Op::kVMfmaF3216x16x4f32, 16, 4, 1, Of::kSingles, kSingleBlock(16, 1), kRows16},
    {Op::kVMfmaF3232x32x4f16, 32, 4, 2, Of::kHalves, kBlocked(32), kRows32},
    {Op::kVMfmaF3216x16x4f16, 16, 4, 4, Of::kHalves, kBlocked(16), kRows16},
    {Op::kVMfmaF324x4x4f16, 4, 4, 16, Of::kHalves, kBlocked(4), kRows4},
    {Op::kVMfmaF3232x32x8f16, 32, 8, 1, Of::kHalves, kSingleBlock(32, 4), kRows32},
    {Op::kVMfmaF3216x16x16f16, 16, 16, 1, Of::kHalves, kSingleBlock(16, 4), kRows16},
    {Op::kVMfmaF3232x32x4bf161k, 32, 4, 2, Of::kBrains, kBlocked(32), kRows32},
    {Op::kVMfmaF3216x16x4bf161k, 16, 4, 4, Of::kBrains, kBlocked(16), kRows16},
    {Op::kVMfmaF324x4x4bf161k, 4, 4, 16, Of::kBrains, kBlocked(4), kRows4},
    {Op::kVMfmaF3232x32x8bf161k, 32, 8, 1, Of::kBrains, kSingleBlock(32, 4), kRows32},
    {Op::kVMfmaF3216x16x16bf161k, 16, 16, 1, Of::kBrains, kSingleBlock(16, 4), kRows16},
    {Op::kVMfmaF3232x32x2bf16, 32, 2, 2, Of::kBrains, kBlocked(32), kRows32},
    {Op::kVMfmaF3216x16x2bf16, 16, 2, 4, Of::kBrains, kBlocked(16), kRows16},
    {Op::kVMfmaF324x4x2bf16, 4, 2, 16, Of::kBrains, kBlocked(4), kRows4},
    {Op::kVMfmaF3232x32x4bf16, 32, 4, 1, Of::kBrains, kSingleBlock(32, 2), kRows32},
    {Op::kVMfmaF3216x16x8bf16, 16, 8, 1, Of::kBrains, kSingleBlock(16, 2), kRows16},
    {Op::kVMfmaI3232x32x4i8, 32, 4, 2, Of::kBytes, kBlocked(32), kRows32},
    {Op::kVMfmaI3216x16x4i8, 16, 4, 4, Of::kBytes, kBlocked(16), kRows16},
    {Op::kVMfmaI324x4x4i8, 4, 4, 16, Of::kBytes, kBlocked(4), kRows4},
    {Op::kVMfmaI3232x32x8i8, 32, 8, 1, Of::kBytes, kSingleBlock(32, 4), kRows32},
    {Op::kVMfmaI3216x16x16i8, 16, 16, 1, Of::kBytes, kSingleBlock(16, 4), kRows16},
    {Op::kVMfmaF6416x16x4f64, 16, 4, 1, Of::kDoubles, kSingleBlock(16, 1), kRows64},
    {Op::kVMfmaF644x4x4f64, 4, 4, 4, Of::kDoubles, kSmall64, kSmallRows64},
};

std::uint64_t encoded_factor(Of of, int value) {
  switch (of) {
    case Of::kBytes:
      return static_cast<std::uint8_t>(value);
    case Of::kHalves:
      return from_double<Fp16>(value, {});
    case Of::kBrains:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16;
    case Of::kSingles:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case Of::kDoubles:
      return std::bit_cast<std::uint64_t>(static_cast<double>(value));
  }
  return 0;
}

std::uint64_t encoded_sum(Of of, int value) {
  if (of == Of::kBytes) return static_cast<std::uint32_t>(value);
  return encoded_factor(of == Of::kDoubles ? of : Of::kSingles, value);
}

int row(unsigned b, unsigned m, unsigned k) { return static_cast<int>((7 * b + 3 * m + 5 * k) % 23) - 11; }
int column(unsigned b, unsigned n, unsigned k) { return static_cast<int>((5 * b + 11 * n + 3 * k) % 19) - 9; }
int addend(unsigned b, unsigned m, unsigned n) { return static_cast<int>((b + 13 * m + 7 * n) % 101) - 50; }

class MfmaMachine : public FloatMachine {
 public:
  static constexpr unsigned kA = 0, kB = 2, kC = 0, kD = 32;  // C and D are accumulation registers

  MfmaMachine() {
    wave.isa = Isa::kGfx90a;
    wave.agpr.resize(64);
    wave.set_exec(0x1234);  // the instruction ignores it
    wave.mode = 0x303;
  }
  void fill(const Matrix& x) {
    for (unsigned b = 0; b < x.blocks; ++b) {
      for (unsigned m = 0; m < x.m; ++m) {
        for (unsigned k = 0; k < x.k; ++k) {
          store(wave.vgpr, kA, x.factor(b, m, k), bits_of(x.of), encoded_factor(x.of, row(b, m, k)));
          store(wave.vgpr, kB, x.factor(b, m, k), bits_of(x.of), encoded_factor(x.of, column(b, m, k)));
        }
        for (unsigned n = 0; n < x.m; ++n)
          store(wave.agpr, kC, x.result(b, m, n), x.of == Of::kDoubles ? 64 : 32, encoded_sum(x.of, addend(b, m, n)));
      }
    }
  }
  [[nodiscard]] std::uint64_t result(const Matrix& x, Where w) const {
    if (x.of != Of::kDoubles) return wave.agpr[kD + w.reg][w.lane];
    return wave.agpr[kD + 2 * w.reg][w.lane] | std::uint64_t{wave.agpr[kD + 2 * w.reg + 1][w.lane]} << 32;
  }
  // Sets one element of registers that are 0.
  static void store(std::vector<Vgpr>& file, unsigned first, Where w, unsigned bits, std::uint64_t value) {
    const unsigned place = (w.reg * 32 * (bits == 64 ? 2 : 1)) + w.part * bits;
    file[first + place / 32][w.lane] |= static_cast<std::uint32_t>(value << (place % 32));
    if (bits == 64) file[first + place / 32 + 1][w.lane] = static_cast<std::uint32_t>(value >> 32);
  }
};

Instruction mfma_instruction(Op op) {
  Instruction in = float_instruction(op, Encoding::kVop3p);
  in.agpr = true;
  in.src = {operand::kVgpr0 + MfmaMachine::kA, operand::kVgpr0 + MfmaMachine::kB, operand::kVgpr0 + MfmaMachine::kC,
            operand::kNone};
  in.dst = operand::kVgpr0 + MfmaMachine::kD;
  return in;
}

void check_product(const Matrix& x, bool with_addend) {
  MfmaMachine m;
  m.fill(x);
  Instruction in = mfma_instruction(x.op);
  if (!with_addend) in.src[2] = operand::kInt0;
  ASSERT_EQ(m.run(in), Outcome::kNext) << name(x.op);
  for (unsigned b = 0; b < x.blocks; ++b) {
    for (unsigned i = 0; i < x.m; ++i) {
      for (unsigned j = 0; j < x.m; ++j) {
        int sum = with_addend ? addend(b, i, j) : 0;
        for (unsigned k = 0; k < x.k; ++k) sum += row(b, i, k) * column(b, j, k);
        ASSERT_EQ(m.result(x, x.result(b, i, j)), encoded_sum(x.of, sum))
            << name(x.op) << ' ' << b << ' ' << i << ' ' << j;
      }
    }
  }
}

TEST(VectorMfma, products_are_those_of_matrices) {
  for (const Matrix& x : kMatrices) {
    check_product(x, true);
    check_product(x, false);
  }
}

TEST(VectorMfma, the_destination_may_be_the_addend) {
  MfmaMachine m;
  m.wave.vgpr[0].fill(std::bit_cast<std::uint32_t>(2.0F));
  m.wave.vgpr[2].fill(std::bit_cast<std::uint32_t>(3.0F));
  Instruction in = mfma_instruction(Op::kVMfmaF3216x16x4f32);
  in.src[2] = in.dst;
  ASSERT_EQ(m.run(in), Outcome::kNext);
  ASSERT_EQ(m.run(in), Outcome::kNext);
  EXPECT_EQ(m.wave.agpr[MfmaMachine::kD + 3][63], std::bit_cast<std::uint32_t>(48.0F));
}

TEST(VectorMfma, registers_that_are_not_there_are_illegal) {
  MfmaMachine m;
  Instruction in = mfma_instruction(Op::kVMfmaF3232x32x1f32);
  in.dst = operand::kVgpr0 + 33;
  EXPECT_EQ(m.run(in), Outcome::kIllegal);
  in = mfma_instruction(Op::kVMfmaF3232x32x1f32);
  in.op_sel_hi = 1;
  in.src[0] = operand::kVgpr0 + 64;
  EXPECT_EQ(m.run(in), Outcome::kIllegal);
  in = mfma_instruction(Op::kVMfmaF3232x32x1f32);
}

// CBSZ 2, ABID 1: of each four blocks, the second one's rows are those of all.
TEST(VectorMfma, a_block_of_a_stands_for_others) {
  const Matrix& x = *std::ranges::find(kMatrices, Op::kVMfmaF324x4x4f16, &Matrix::op);
  MfmaMachine m;
  m.fill(x);
  Instruction in = mfma_instruction(x.op);
  in.abs = 2;
  in.op_sel = 1;
  ASSERT_EQ(m.run(in), Outcome::kNext);
  for (unsigned b = 0; b < x.blocks; ++b) {
    for (unsigned i = 0; i < x.m; ++i) {
      for (unsigned j = 0; j < x.m; ++j) {
        int sum = addend(b, i, j);
        for (unsigned k = 0; k < x.k; ++k) sum += row(b / 4 * 4 + 1, i, k) * column(b, j, k);
        ASSERT_EQ(m.result(x, x.result(b, i, j)), encoded_sum(x.of, sum)) << b << ' ' << i << ' ' << j;
      }
    }
  }
}

TEST(VectorMfma, lanes_of_b_are_permuted) {
  // For each BLGP: the group of 16 lanes that each group of 16 lanes has its columns from.
  const std::array<unsigned, 4> sources[] = {{0, 1, 2, 3}, {0, 1, 0, 1}, {2, 3, 2, 3}, {1, 2, 3, 0},
                                             {0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}};
  const Matrix& x = *std::ranges::find(kMatrices, Op::kVMfmaF3216x16x1f32, &Matrix::op);
  for (std::uint8_t blgp = 0; blgp < 8; ++blgp) {
    MfmaMachine m;
    m.fill(x);
    Instruction in = mfma_instruction(x.op);
    in.neg = blgp;
    ASSERT_EQ(m.run(in), Outcome::kNext);
    for (unsigned b = 0; b < x.blocks; ++b) {
      for (unsigned i = 0; i < x.m; ++i) {
        for (unsigned j = 0; j < x.m; ++j) {
          const int sum = addend(b, i, j) + row(b, i, 0) * column(sources[blgp][b], j, 0);
          ASSERT_EQ(m.result(x, x.result(b, i, j)), encoded_sum(x.of, sum)) << blgp << ' ' << b << ' ' << i << ' ' << j;
        }
      }
    }
  }
}

TEST(VectorMfma, modifiers_that_a_shape_does_not_have_are_illegal) {
  const auto outcome = [](Op op, unsigned cbsz, unsigned abid, unsigned blgp) {
    MfmaMachine m;
    Instruction in = mfma_instruction(op);
    in.abs = static_cast<std::uint8_t>(cbsz);
    in.op_sel = static_cast<std::uint8_t>(abid);
    in.neg = static_cast<std::uint8_t>(blgp);
    return m.run(in);
  };
  EXPECT_EQ(outcome(Op::kVMfmaF3232x32x2f32, 1, 0, 0), Outcome::kIllegal) << "one block";
  EXPECT_EQ(outcome(Op::kVMfmaF3232x32x1f32, 2, 0, 0), Outcome::kIllegal) << "two blocks";
  EXPECT_EQ(outcome(Op::kVMfmaF3232x32x1f32, 1, 2, 0), Outcome::kIllegal) << "the third of two";
  EXPECT_EQ(outcome(Op::kVMfmaF3232x32x1f32, 1, 1, 7), Outcome::kNext);
  EXPECT_EQ(outcome(Op::kVMfmaF644x4x4f64, 1, 0, 0), Outcome::kIllegal);
  EXPECT_EQ(outcome(Op::kVMfmaF6416x16x4f64, 0, 0, 1), Outcome::kIllegal);
}

// The first product of two halves: both denormal, or a large one that the others are lost in.
TEST(VectorMfma, sums_of_halves_are_those_of_the_chip) {
  const auto run = [](Isa isa, std::array<std::uint16_t, 4> a, std::array<std::uint16_t, 4> b, float c) {
    MfmaMachine m;
    m.wave.isa = isa;
    for (unsigned i = 0; i < 4; ++i) {
      m.store(m.wave.vgpr, MfmaMachine::kA, {0, 0, i}, 16, a[i]);
      m.store(m.wave.vgpr, MfmaMachine::kB, {0, 0, i}, 16, b[i]);
    }
    m.wave.agpr[MfmaMachine::kC][0] = std::bit_cast<std::uint32_t>(c);
    EXPECT_EQ(m.run(mfma_instruction(Op::kVMfmaF3216x16x16f16)), Outcome::kNext);
    return std::bit_cast<float>(m.wave.agpr[MfmaMachine::kD][0]);
  };
  constexpr std::uint16_t kOne = 0x3c00, kDenormal = 0x0001, kLarge = 0x7800;  // 1, 2^-24, 2^15
  EXPECT_EQ(run(Isa::kGfx908, {kDenormal}, {kOne}, 0), 0x1p-24F);
  EXPECT_EQ(run(Isa::kGfx90a, {kDenormal}, {kOne}, 0), 0);
  // 2^30 + 1 + 1 + ... - 2^30 with one rounding, and with one after each two products.
  EXPECT_EQ(run(Isa::kGfx908, {kLarge, kOne, kOne, kOne}, {kLarge, kOne, kOne, kOne}, -0x1p30F), 3);
  EXPECT_EQ(run(Isa::kGfx90a, {kLarge, kOne, kOne, kOne}, {kLarge, kOne, kOne, kOne}, -0x1p30F), 0);
  EXPECT_EQ(run(Isa::kGfx908, {}, {}, 0x1p-140F), 0x1p-140F);
  EXPECT_EQ(run(Isa::kGfx90a, {}, {}, 0x1p-140F), 0);
}

}  // namespace
}  // namespace gcn::vector_mfma_test
