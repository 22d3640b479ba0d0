// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tests of vector_mfma.cc. They lay matrices out by tables of the documented positions, execute the instruction, and
// compare the results with products of small integers, which are exact.
#include <functional>

#include "gcn/vector/vector_float_test.h"

namespace gcn::vector_mfma_test {
namespace {

struct Where {
  unsigned reg;
  unsigned lane;
  unsigned part;  // which byte of a register that holds four
};

struct Matrix {
  Op op;
  unsigned m, k, blocks;
  unsigned bits;                                                        // size of an element of A and B: 8, 32 or 64
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

const Matrix kMatrices[] = {
    {Op::kVMfmaF3232x32x1f32, 32, 1, 2, 32, kBlocked(32), kRows32},
    {Op::kVMfmaF3216x16x1f32, 16, 1, 4, 32, kBlocked(16), kRows16},
    {Op::kVMfmaF324x4x1f32, 4, 1, 16, 32, kBlocked(4), kRows4},
    {Op::kVMfmaF3232x32x2f32, 32, 2, 1, 32, kSingleBlock(32, 1), kRows32},
    {Op::kVMfmaF3216x16x4f32, 16, 4, 1, 32, kSingleBlock(16, 1), kRows16},
    {Op::kVMfmaI3232x32x4i8, 32, 4, 2, 8, kBlocked(32), kRows32},
    {Op::kVMfmaI3216x16x4i8, 16, 4, 4, 8, kBlocked(16), kRows16},
    {Op::kVMfmaI324x4x4i8, 4, 4, 16, 8, kBlocked(4), kRows4},
    {Op::kVMfmaI3232x32x8i8, 32, 8, 1, 8, kSingleBlock(32, 4), kRows32},
    {Op::kVMfmaI3216x16x16i8, 16, 16, 1, 8, kSingleBlock(16, 4), kRows16},
    {Op::kVMfmaF6416x16x4f64, 16, 4, 1, 64, kSingleBlock(16, 1), kRows64},
};

std::uint64_t encoded(unsigned bits, int value) {
  if (bits == 32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (bits == 64) return std::bit_cast<std::uint64_t>(static_cast<double>(value));
  return static_cast<std::uint32_t>(value);
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
    const auto store = [](std::vector<Vgpr>& file, unsigned first, Where w, int value, unsigned bits) {
      const std::uint64_t code = encoded(bits, value);
      if (bits == 8) {
        file[first][w.lane] |= (static_cast<std::uint32_t>(value) & 0xff) << (8 * w.part);
      } else if (bits == 64) {
        file[first + 2 * w.reg][w.lane] = static_cast<std::uint32_t>(code);
        file[first + 2 * w.reg + 1][w.lane] = static_cast<std::uint32_t>(code >> 32);
      } else {
        file[first + w.reg][w.lane] = static_cast<std::uint32_t>(code);
      }
    };
    for (unsigned b = 0; b < x.blocks; ++b) {
      for (unsigned m = 0; m < x.m; ++m) {
        for (unsigned k = 0; k < x.k; ++k) {
          store(wave.vgpr, kA, x.factor(b, m, k), row(b, m, k), x.bits);
          store(wave.vgpr, kB, x.factor(b, m, k), column(b, m, k), x.bits);
        }
        for (unsigned n = 0; n < x.m; ++n) {
          const Where w = x.result(b, m, n);
          if (x.bits == 8) {
            wave.agpr[kC + w.reg][w.lane] = static_cast<std::uint32_t>(addend(b, m, n));
          } else {
            store(wave.agpr, kC, w, addend(b, m, n), x.bits);
          }
        }
      }
    }
  }
  [[nodiscard]] std::uint64_t result(const Matrix& x, Where w) const {
    if (x.bits != 64) return wave.agpr[kD + w.reg][w.lane];
    return wave.agpr[kD + 2 * w.reg][w.lane] | std::uint64_t{wave.agpr[kD + 2 * w.reg + 1][w.lane]} << 32;
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
        ASSERT_EQ(m.result(x, x.result(b, i, j)), encoded(x.bits, sum))
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
  in.neg = 3;
  EXPECT_EQ(m.run(in), Outcome::kIllegal) << "permuted lanes";
}

}  // namespace
}  // namespace gcn::vector_mfma_test
