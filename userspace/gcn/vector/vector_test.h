// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Test helpers for vector operations: a wave of random numbers, and expected results that are computed lane by lane
// from copies of its registers, without the code under test.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "gcn/fake_memory.h"

namespace gcn {

// The registers in which the tests have their operands.
constexpr std::uint16_t kVgprA = operand::kVgpr0 + 8;
constexpr std::uint16_t kVgprB = operand::kVgpr0 + 12;
constexpr std::uint16_t kVgprC = operand::kVgpr0 + 16;
constexpr std::uint16_t kVgprD = operand::kVgpr0 + 20;
constexpr std::uint16_t kSgprMask = 20;

// Makes random numbers; edges of the range are more frequent than others.
class Random {
 public:
  std::uint32_t bits() { return static_cast<std::uint32_t>(engine_()); }
  std::uint32_t below(std::uint32_t limit) { return bits() % limit; }
  std::uint32_t number() {
    static constexpr std::array<std::uint32_t, 16> kEdges = {
        0,          1,          2,          31,     32,     0x7f,     0xff,     0x7fff,
        0x80000000, 0x7fffffff, 0xffffffff, 0x8000, 0xffff, 0x7fffff, 0x800000, 0x80008000};
    switch (below(4)) {
      case 0:
        return kEdges[below(kEdges.size())];
      case 1:
        return bits() & 0x3f;
      default:
        return bits();
    }
  }
  std::uint64_t mask() {
    switch (below(4)) {
      case 0:
        return ~std::uint64_t{0};
      case 1:
        return std::uint64_t{1} << below(kLanes);
      default:
        return bits() | std::uint64_t{bits()} << 32;
    }
  }

 private:
  std::mt19937 engine_{1};
};

struct VectorMachine : FakeMachine {
  VectorMachine() { wave.vgpr.resize(32); }

  void shuffle() {
    for (Vgpr& registers : wave.vgpr) {
      for (std::uint32_t& value : registers) value = random.number();
    }
    for (unsigned n = 0; n < operand::kSgprs; ++n) wave.scalar[n] = random.number();
    wave.set_vcc(random.mask());
    wave.set_exec(random.mask());
  }
  // Reads a register, or a pair of registers, of the lane.
  [[nodiscard]] static std::uint64_t get(const std::vector<Vgpr>& vgprs, std::uint16_t number, unsigned bits,
                                         unsigned lane) {
    const std::size_t index = number - std::size_t{operand::kVgpr0};
    if (bits == 64) return vgprs[index][lane] | std::uint64_t{vgprs[index + 1][lane]} << 32;
    return bits == 16 ? vgprs[index][lane] & 0xffff : vgprs[index][lane];
  }
  static void put(std::vector<Vgpr>& vgprs, std::uint16_t number, unsigned bits, unsigned lane, std::uint64_t value) {
    const std::size_t index = number - std::size_t{operand::kVgpr0};
    vgprs[index][lane] = static_cast<std::uint32_t>(value);
    if (bits == 64) vgprs[index + 1][lane] = static_cast<std::uint32_t>(value >> 32);
  }

  Random random;
};

[[nodiscard]] inline bool has_lane(std::uint64_t mask, unsigned lane) { return (mask >> lane & 1) != 0; }

[[nodiscard]] inline Instruction vector_instruction(Op op, Encoding encoding) {
  Instruction in;
  in.op = op;
  in.encoding = encoding;
  in.bytes = encoding == Encoding::kVop1 || encoding == Encoding::kVop2 || encoding == Encoding::kVopc ? 4 : 8;
  in.dst = kVgprD;
  in.src = {kVgprA, kVgprB, kVgprC, operand::kNone};
  return in;
}

// An operation, described by its effect on one lane. Values are zero-extended from as many bits as the operand has.
struct VectorCase {
  Op op;
  Encoding encoding;
  unsigned dst_bits;
  std::array<unsigned, 3> src_bits;  // 0: no such source
  std::uint64_t (*expected)(std::uint64_t a, std::uint64_t b, std::uint64_t c);
  bool keeps_other = false;  // a 16-bit result leaves the upper half alone
  bool clamp = false;
};

// Runs `c` many times with random numbers, masks and kinds of operands.
inline void check(const VectorCase& c) {
  VectorMachine m;
  for (unsigned round = 0; round < 24; ++round) {
    m.shuffle();
    Instruction in = vector_instruction(c.op, c.encoding);
    in.clamp = c.clamp;
    if (c.encoding == Encoding::kVop3p) in.op_sel_hi = 7;
    in.literal = m.random.number();
    std::array<std::uint64_t, 3> constants = {};
    for (unsigned n = 0; n < 3; ++n) {
      if (c.src_bits[n] == 0) in.src[n] = operand::kNone;
      if (c.src_bits[n] == 0 || (round + n) % 3 != 0) continue;
      if (round % 2 == 0) {  // a scalar register
        in.src[n] = static_cast<std::uint16_t>(2 * m.random.below(50));
        constants[n] = c.src_bits[n] == 64 ? m.wave.scalar64(in.src[n]) : m.wave.scalar[in.src[n]];
      } else {  // -16 to 64
        const auto value = static_cast<std::int64_t>(m.random.below(81)) - 16;
        in.src[n] = static_cast<std::uint16_t>(value >= 0 ? 128 + value : 192 - value);
        constants[n] = static_cast<std::uint64_t>(value);
      }
      if (c.src_bits[n] < 64) constants[n] &= c.src_bits[n] == 32 ? 0xffffffff : 0xffff;
    }
    std::vector<Vgpr> expected = m.wave.vgpr;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if (!has_lane(m.wave.exec(), lane)) continue;
      std::array<std::uint64_t, 3> values = constants;
      for (unsigned n = 0; n < 3; ++n) {
        if (c.src_bits[n] != 0 && operand::is_vgpr(in.src[n])) {
          values[n] = VectorMachine::get(m.wave.vgpr, in.src[n], c.src_bits[n], lane);
        }
      }
      std::uint64_t result = c.expected(values[0], values[1], values[2]);
      if (c.keeps_other) result |= VectorMachine::get(expected, kVgprD, 32, lane) & 0xffff0000;
      VectorMachine::put(expected, kVgprD, c.dst_bits, lane, result);
    }
    ASSERT_EQ(m.run(in), Outcome::kNext) << name(c.op);
    ASSERT_EQ(m.wave.vgpr, expected) << name(c.op) << " round " << round;
  }
}

}  // namespace gcn
