// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Handlers of matrix multiplication: D = A * B + C of M x K, K x M and M x M elements, for one or more blocks at once,
// spread over the lanes of registers. EXEC and MODE are ignored: all lanes take part, floats are rounded to nearest at
// each step of k and keep denormals.
//
// Not implemented, hence illegal: fp16 and bfloat16, because it is not documented how their sums are rounded;
// v_mfma_f64_4x4x4f64; and permutations of blocks and lanes (cbsz, abid, blgp).
#include <algorithm>

#include "gcn/vector/vector_float.h"

namespace gcn {
namespace {

// The types of elements. A source register of a lane has kPack of them.
struct Float {
  static constexpr unsigned kPack = 1;
  static constexpr bool kWide = false;
  static std::uint32_t step(std::uint64_t a, std::uint64_t b, unsigned /*k*/, std::uint64_t sum) {
    return fma<Fp32>(static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(sum), {});
  }
};
struct Byte {
  static constexpr unsigned kPack = 4;
  static constexpr bool kWide = false;
  static std::uint32_t step(std::uint64_t a, std::uint64_t b, unsigned k, std::uint64_t sum) {
    const auto byte = [k](std::uint64_t bits) { return static_cast<std::int8_t>(bits >> (8 * (k % kPack))); };
    return static_cast<std::uint32_t>(sum) + static_cast<std::uint32_t>(byte(a) * byte(b));
  }
};
struct Double {
  static constexpr unsigned kPack = 1;
  static constexpr bool kWide = true;
  static std::uint64_t step(std::uint64_t a, std::uint64_t b, unsigned /*k*/, std::uint64_t sum) {
    return fma<Fp64>(a, b, sum, {});
  }
};

// The place of an element: a register and a lane of it.
struct Place {
  unsigned reg;
  unsigned lane;
};

template <class Type, unsigned kM, unsigned kK, unsigned kBlocks>
struct Layout {
  static_assert(kBlocks == 1 ? kM * kK / Type::kPack == kLanes : kM * kBlocks == kLanes && kK == Type::kPack);
  static constexpr unsigned kWords = Type::kWide ? 2 : 1;
  static constexpr unsigned kRegisters = kM * kM * kBlocks / kLanes * kWords;

  // Returns the lane that has element `k` of row `m` of A, or of column `m` of B.
  static unsigned source_lane(unsigned block, unsigned m, unsigned k) {
    return kBlocks > 1 ? block * kM + m : k / Type::kPack * kM + m;
  }
  // Returns the place of a result. Four consecutive rows are in consecutive registers, and the next four in the next
  // group of lanes. With doubles, consecutive rows are in consecutive groups of lanes.
  static Place result(unsigned block, unsigned m, unsigned n) {
    constexpr unsigned kGroups = kM == 4 ? 1 : kLanes / kM;
    if (kM == 4) return {m, block * kM + n};
    if (Type::kWide) return {m / kGroups * kWords, m % kGroups * kM + n};
    return {block * (kM * kM / kLanes) + m / (4 * kGroups) * 4 + m % 4, m / 4 % kGroups * kM + n};
  }
};

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

template <class Type, unsigned kM, unsigned kK, unsigned kBlocks>
Outcome mfma(const Instruction& in, Machine& machine) {
  using L = Layout<Type, kM, kK, kBlocks>;
  using Constant = std::conditional_t<Type::kWide, B64, B32>;
  Wave& wave = machine.wave;
  if (in.abs != 0 || in.op_sel != 0 || in.neg != 0) return Outcome::kIllegal;
  const Vgpr* a = registers(wave, (in.op_sel_hi & 1) != 0, in.src[0], L::kWords);
  const Vgpr* b = registers(wave, (in.op_sel_hi & 2) != 0, in.src[1], L::kWords);
  Vgpr* d = registers(wave, in.agpr, in.dst, L::kRegisters);
  if (a == nullptr || b == nullptr || d == nullptr) return Outcome::kIllegal;

  std::array<Vgpr, L::kRegisters> sums;  // the destination may be a source as well
  if (const Vgpr* c = registers(wave, in.agpr, in.src[2], L::kRegisters); c != nullptr) {
    std::copy_n(c, L::kRegisters, sums.data());
  } else if (operand::is_vgpr(in.src[2]) || !fill<Constant>(in, machine, sums.data(), L::kRegisters)) {
    return Outcome::kIllegal;
  }
  for (unsigned block = 0; block < kBlocks; ++block) {
    for (unsigned m = 0; m < kM; ++m) {
      for (unsigned n = 0; n < kM; ++n) {
        const Place place = L::result(block, m, n);
        std::uint64_t sum = get<Type>(sums.data(), place);
        for (unsigned k = 0; k < kK; ++k) {
          sum = Type::step(get<Type>(a, {0, L::source_lane(block, m, k)}),
                           get<Type>(b, {0, L::source_lane(block, n, k)}), k, sum);
        }
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
  table.set(Op::kVMfmaF6416x16x4f64, mfma<Double, 16, 4, 1>);
}

}  // namespace gcn
