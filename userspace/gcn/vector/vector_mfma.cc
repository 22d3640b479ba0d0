// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Handlers of matrix multiplication: D = A * B + C of M x K, K x M and M x M elements, for one or more blocks at once,
// spread over the lanes of registers. EXEC and MODE are ignored: all lanes take part. fp32 and fp64 are rounded to
// nearest at each step of k and keep denormals; float/dot.h has the sums of fp16 and bfloat16.
//
// CBSZ and ABID let blocks of A stand for others, BLGP permutes the lanes of B. fp64 has neither: they are illegal
// there.
#include <algorithm>

#include "gcn/float/dot.h"
#include "gcn/vector/vector_float.h"

namespace gcn {
namespace {

// The types of elements. The source registers of a lane, kWords of them, have kPack factors, which follow each other in
// k. add() adds their products to a sum, by the rules of a chip.
struct Float {
  using Factor = std::uint32_t;
  static constexpr unsigned kPack = 1;
  static constexpr unsigned kWords = 1;
  static constexpr bool kWide = false;
  static Factor factor(std::uint64_t bits, Isa /*isa*/) { return static_cast<Factor>(bits); }
  static std::uint64_t addend(std::uint64_t c, Isa /*isa*/) { return c; }
  static std::uint64_t add(const Factor* a, const Factor* b, std::uint64_t sum, Isa /*isa*/) {
    return fma<Fp32>(*a, *b, static_cast<std::uint32_t>(sum), {});
  }
};
struct Byte {
  using Factor = std::int8_t;
  static constexpr unsigned kPack = 4;
  static constexpr unsigned kWords = 1;
  static constexpr bool kWide = false;
  static Factor factor(std::uint64_t bits, Isa /*isa*/) { return static_cast<Factor>(bits); }
  static std::uint64_t addend(std::uint64_t c, Isa /*isa*/) { return c; }
  static std::uint64_t add(const Factor* a, const Factor* b, std::uint64_t sum, Isa /*isa*/) {
    auto result = static_cast<std::uint32_t>(sum);
    for (unsigned k = 0; k < kPack; ++k) result += static_cast<std::uint32_t>(a[k] * b[k]);
    return result;
  }
};
struct Double {
  using Factor = std::uint64_t;
  static constexpr unsigned kPack = 1;
  static constexpr unsigned kWords = 2;
  static constexpr bool kWide = true;
  static Factor factor(std::uint64_t bits, Isa /*isa*/) { return bits; }
  static std::uint64_t addend(std::uint64_t c, Isa /*isa*/) { return c; }
  static std::uint64_t add(const Factor* a, const Factor* b, std::uint64_t sum, Isa /*isa*/) {
    return fma<Fp64>(*a, *b, sum, {});
  }
};
// fp16 and bfloat16 with a sum of fp32. Denormal sources are +0 on gfx90a.
template <unsigned kFactors>
struct Short {
  using Factor = float;
  static constexpr unsigned kPack = kFactors;
  static constexpr unsigned kWords = kFactors / 2;
  static constexpr bool kWide = false;
  static bool flushes(Isa isa) { return isa == Isa::kGfx90a; }
  static std::uint64_t addend(std::uint64_t c, Isa isa) {
    return flushes(isa) && is_denormal<Fp32>(static_cast<std::uint32_t>(c)) ? 0 : c;
  }
  static std::uint64_t add(const Factor* a, const Factor* b, std::uint64_t sum, Isa isa) {
    const auto c = static_cast<std::uint32_t>(sum);
    return flushes(isa) ? flushing_dot({a, kPack}, {b, kPack}, c) : fused_dot({a, kPack}, {b, kPack}, c);
  }
};
struct Half : Short<4> {
  static Factor factor(std::uint64_t bits, Isa isa) {
    const auto half = static_cast<Fp16::Bits>(bits);
    return flushes(isa) && is_denormal<Fp16>(half) ? 0.0F : static_cast<float>(to_double<Fp16>(half));
  }
};
template <unsigned kFactors>
struct Brain : Short<kFactors> {
  static float factor(std::uint64_t bits, Isa isa) {
    const auto brain = static_cast<std::uint16_t>(bits);
    const bool is_denormal = (brain & 0x7f80) == 0;
    return Short<kFactors>::flushes(isa) && is_denormal ? 0.0F : brain_float(brain);
  }
};

// The place of an element: a register and a lane of it.
struct Place {
  unsigned reg;
  unsigned lane;
};

template <class Type, unsigned kM, unsigned kK, unsigned kBlocks>
struct Layout {
  static_assert(kM * kBlocks * kK == kLanes * Type::kPack);
  static constexpr unsigned kResultWords = Type::kWide ? 2 : 1;
  static constexpr unsigned kRegisters = kM * kM * kBlocks / kLanes * kResultWords;

  // Returns the lane that has element `k` of row `m` of A, or of column `m` of B.
  static unsigned source_lane(unsigned block, unsigned m, unsigned k) {
    return k / Type::kPack * kM * kBlocks + block * kM + m;
  }
  // Returns the place of a result. As many rows as kHeight are in consecutive registers, and the next ones in the next
  // group of lanes; when all lanes have been used, the next registers follow. Small blocks share registers.
  static Place result(unsigned block, unsigned m, unsigned n) {
    constexpr unsigned kHeight = Type::kWide ? 1 : 4;
    constexpr unsigned kGroups = kLanes / kM;
    constexpr unsigned kSharing = std::max(kLanes * kHeight / (kM * kM), 1U);
    const unsigned row = block * (kM * kM / kLanes) + m / (kHeight * kGroups) * kHeight + m % kHeight;
    return {row * kResultWords, (block % kSharing + m / kHeight % kGroups * kSharing) * kM + n};
  }
};

// Returns the block of A that stands for `block`.
unsigned broadcast_block(const Instruction& in, unsigned block) {
  const unsigned cbsz = in.abs;
  return (block >> cbsz << cbsz) + in.op_sel;
}

// Returns the lane of B that stands for `lane`.
unsigned permuted_lane(const Instruction& in, unsigned lane) {
  const unsigned blgp = in.neg;
  switch (blgp) {
    case 0:
      return lane;
    case 1:
      return lane % 32;
    case 2:
      return lane % 32 + 32;
    case 3:
      return (lane + 16) % kLanes;
    default:
      return lane % 16 + 16 * (blgp - 4);
  }
}

template <class Type, unsigned kBlocks>
bool are_modifiers_legal(const Instruction& in) {
  if (Type::kWide) return in.abs == 0 && in.op_sel == 0 && in.neg == 0;
  return 1U << in.abs <= kBlocks && in.op_sel < 1U << in.abs;
}

// Returns `count` registers, or nullptr if the wave does not have so many.
Vgpr* registers(Wave& wave, bool accumulation, std::uint16_t number, unsigned count) {
  std::vector<Vgpr>& file = accumulation ? wave.agpr : wave.vgpr;
  if (!operand::is_vgpr(number)) return nullptr;
  const std::size_t index = number - std::size_t{operand::kVgpr0};
  return index + count <= file.size() ? &file[index] : nullptr;
}

template <class Element>
bool fill(const Instruction& instruction, const Machine& machine, Vgpr* to, unsigned count) {
  std::uint64_t value = 0;
  if (!scalar_operand(instruction, machine, instruction.src[2], Element::kKind, value)) return false;
  for (unsigned n = 0; n < count; ++n) {
    to[n].fill(static_cast<std::uint32_t>(Element::kKind.bits == 64 && n % 2 != 0 ? value >> 32 : value));
  }
  return true;
}

template <class Type>
std::uint64_t get(const Vgpr* from, Place place) {
  const std::uint64_t low = from[place.reg][place.lane];
  return Type::kWide ? low | std::uint64_t{from[place.reg + 1][place.lane]} << 32 : low;
}
template <class Type>
void set(Vgpr* to, Place place, std::uint64_t value) {
  to[place.reg][place.lane] = static_cast<std::uint32_t>(value);
  if (Type::kWide) to[place.reg + 1][place.lane] = static_cast<std::uint32_t>(value >> 32);
}

// Reads what a lane has of A or B.
template <class Type>
void read_factors(const Vgpr* from, unsigned lane, Isa isa, typename Type::Factor* to) {
  constexpr unsigned kBits = 32 * Type::kWords / Type::kPack;
  std::uint64_t bits = from[0][lane];
  if (Type::kWords == 2) bits |= std::uint64_t{from[1][lane]} << 32;
  for (unsigned k = 0; k < Type::kPack; ++k) to[k] = Type::factor(bits >> (k * kBits), isa);
}

template <class Type, unsigned kM, unsigned kK, unsigned kBlocks>
Outcome mfma(const Instruction& in, Machine& machine) {
  using L = Layout<Type, kM, kK, kBlocks>;
  using Constant = std::conditional_t<Type::kWide, B64, B32>;
  Wave& wave = machine.wave;
  if (!are_modifiers_legal<Type, kBlocks>(in)) return Outcome::kIllegal;
  const Vgpr* a = registers(wave, (in.op_sel_hi & 1) != 0, in.src[0], Type::kWords);
  const Vgpr* b = registers(wave, (in.op_sel_hi & 2) != 0, in.src[1], Type::kWords);
  Vgpr* d = registers(wave, in.agpr, in.dst, L::kRegisters);
  if (a == nullptr || b == nullptr || d == nullptr) return Outcome::kIllegal;

  std::array<Vgpr, L::kRegisters> sums;  // the destination may be a source as well
  if (const Vgpr* c = registers(wave, in.agpr, in.src[2], L::kRegisters); c != nullptr) {
    std::copy_n(c, L::kRegisters, sums.data());
  } else if (operand::is_vgpr(in.src[2]) || !fill<Constant>(in, machine, sums.data(), L::kRegisters)) {
    return Outcome::kIllegal;
  }
  std::array<typename Type::Factor, kM * kK> rows;
  std::array<typename Type::Factor, kM * kK> columns;
  for (unsigned block = 0; block < kBlocks; ++block) {
    for (unsigned m = 0; m < kM; ++m) {
      for (unsigned k = 0; k < kK; k += Type::kPack) {
        read_factors<Type>(a, L::source_lane(broadcast_block(in, block), m, k), wave.isa, &rows[m * kK + k]);
        read_factors<Type>(b, permuted_lane(in, L::source_lane(block, m, k)), wave.isa, &columns[m * kK + k]);
      }
    }
    for (unsigned m = 0; m < kM; ++m) {
      for (unsigned n = 0; n < kM; ++n) {
        const Place place = L::result(block, m, n);
        std::uint64_t sum = Type::addend(get<Type>(sums.data(), place), wave.isa);
        for (unsigned k = 0; k < kK; k += Type::kPack)
          sum = Type::add(&rows[m * kK + k], &columns[n * kK + k], sum, wave.isa);
        set<Type>(sums.data(), place, sum);
      }
    }
  }
  std::copy(sums.begin(), sums.end(), d);
  return Outcome::kNext;
}

}  // namespace

void add_mfma_handlers(HandlerTable& table) {
  table.set(Op::kVMfmaF3232x32x1f32, mfma<Float, 32, 1, 2>);
  table.set(Op::kVMfmaF3216x16x1f32, mfma<Float, 16, 1, 4>);
  table.set(Op::kVMfmaF324x4x1f32, mfma<Float, 4, 1, 16>);
  table.set(Op::kVMfmaF3232x32x2f32, mfma<Float, 32, 2, 1>);
  table.set(Op::kVMfmaF3216x16x4f32, mfma<Float, 16, 4, 1>);
  table.set(Op::kVMfmaI3232x32x4i8, mfma<Byte, 32, 4, 2>);
  table.set(Op::kVMfmaI3216x16x4i8, mfma<Byte, 16, 4, 4>);
  table.set(Op::kVMfmaI324x4x4i8, mfma<Byte, 4, 4, 16>);
  table.set(Op::kVMfmaI3232x32x8i8, mfma<Byte, 32, 8, 1>);
  table.set(Op::kVMfmaI3216x16x16i8, mfma<Byte, 16, 16, 1>);
  table.set(Op::kVMfmaF3232x32x4f16, mfma<Half, 32, 4, 2>);
  table.set(Op::kVMfmaF3216x16x4f16, mfma<Half, 16, 4, 4>);
  table.set(Op::kVMfmaF324x4x4f16, mfma<Half, 4, 4, 16>);
  table.set(Op::kVMfmaF3232x32x8f16, mfma<Half, 32, 8, 1>);
  table.set(Op::kVMfmaF3216x16x16f16, mfma<Half, 16, 16, 1>);
  table.set(Op::kVMfmaF3232x32x2bf16, mfma<Brain<2>, 32, 2, 2>);
  table.set(Op::kVMfmaF3216x16x2bf16, mfma<Brain<2>, 16, 2, 4>);
  table.set(Op::kVMfmaF324x4x2bf16, mfma<Brain<2>, 4, 2, 16>);
  table.set(Op::kVMfmaF3232x32x4bf16, mfma<Brain<2>, 32, 4, 1>);
  table.set(Op::kVMfmaF3216x16x8bf16, mfma<Brain<2>, 16, 8, 1>);
  table.set(Op::kVMfmaF3232x32x4bf161k, mfma<Brain<4>, 32, 4, 2>);
  table.set(Op::kVMfmaF3216x16x4bf161k, mfma<Brain<4>, 16, 4, 4>);
  table.set(Op::kVMfmaF324x4x4bf161k, mfma<Brain<4>, 4, 4, 16>);
  table.set(Op::kVMfmaF3232x32x8bf161k, mfma<Brain<4>, 32, 8, 1>);
  table.set(Op::kVMfmaF3216x16x16bf161k, mfma<Brain<4>, 16, 16, 1>);
  table.set(Op::kVMfmaF6416x16x4f64, mfma<Double, 16, 4, 1>);
  table.set(Op::kVMfmaF644x4x4f64, mfma<Double, 4, 4, 4>);
}

}  // namespace gcn
