// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Test helpers for vector_float*.cc and others: run one operation on a wave and compare each lane with a function of
// bits and of MODE. float_test.cc and float_functions_test.cc test the functions of float.h.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <random>

#include "gcn/fake_memory.h"
#include "gcn/float/float.h"

namespace gcn {

using Sources = std::array<std::uint64_t, 3>;

// Values of MODE: several rounding modes, with and without denormals and IEEE. The most common ones come first.
inline constexpr std::array<std::uint32_t, 7> kModes = {0x3f0, 0x3c0, 0x1c0, 0x300, 0x135, 0x2fa, 0x17f};
inline constexpr std::uint32_t kUsualMode = kModes[0];

struct FloatCase {
  Op op;
  Encoding encoding;
  unsigned dst_bits;
  std::array<unsigned, 3> src_bits;  // 0: no such source
  std::function<std::uint64_t(const Sources&, std::uint32_t mode)> expected;
  bool accumulates = false;  // the last source is the destination
  bool keeps_other = false;  // the upper half of the destination keeps its value
};

class FloatMachine : public FakeMachine {
 public:
  static constexpr unsigned kDst = 40;
  static constexpr unsigned source(unsigned n) { return 8 + 4 * n; }

  FloatMachine() { wave.mode = kUsualMode; }

  // Returns a random number: exponents are often close to each other, and edges of the format are frequent.
  std::uint64_t number(unsigned bits) {
    const std::uint64_t value = random();
    const unsigned kind = static_cast<unsigned>(random() % 8);
    if (bits == 16) return value & 0xffff;
    if (bits == 32) {
      if (kind == 0) return kEdges32[value % kEdges32.size()];
      if (kind == 1) return value & 0x807fffff;
      return kind < 6 ? (value & 0x83ffffff) | 0x3e000000 : value & 0xffffffff;
    }
    if (kind == 0) return kEdges64[value % kEdges64.size()];
    if (kind == 1) return value & 0x800fffffffffffff;
    return kind < 6 ? (value & 0x807fffffffffffff) | 0x3f80000000000000 : value;
  }
  void put(unsigned reg, unsigned lane, unsigned bits, std::uint64_t value) {
    wave.vgpr[reg][lane] = static_cast<std::uint32_t>(value);
    if (bits == 64) wave.vgpr[reg + 1][lane] = static_cast<std::uint32_t>(value >> 32);
  }
  [[nodiscard]] std::uint64_t get(unsigned reg, unsigned lane, unsigned bits) const {
    const std::uint64_t low = wave.vgpr[reg][lane];
    return bits == 64 ? low | std::uint64_t{wave.vgpr[reg + 1][lane]} << 32 : low;
  }

  std::mt19937_64 random{1};

 private:
  static constexpr std::array<std::uint32_t, 9> kEdges32 = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00001,
                                                            0x7f800001, 0x7f7fffff, 0x00800000, 0x3f800000};
  static constexpr std::array<std::uint64_t, 8> kEdges64 = {0,
                                                            0x8000000000000000,
                                                            0x7ff0000000000000,
                                                            0xfff0000000000000,
                                                            0x7ff8000000000001,
                                                            0x7ff0000000000001,
                                                            0x7fefffffffffffff,
                                                            0x0010000000000000};
};

[[nodiscard]] inline Instruction float_instruction(Op op, Encoding encoding) {
  Instruction in;
  in.op = op;
  in.encoding = encoding;
  in.dst = operand::kVgpr0 + FloatMachine::kDst;
  in.sdst = operand::kVccLo;
  for (unsigned n = 0; n < 3; ++n) in.src[n] = static_cast<std::uint16_t>(operand::kVgpr0 + FloatMachine::source(n));
  return in;
}

// Runs `c` in all modes, each time for a wave of random numbers, every third time with some lanes disabled.
inline void check(const FloatCase& c) {
  FloatMachine m;
  unsigned sources = 0;
  while (sources < 3 && c.src_bits[sources] != 0) ++sources;
  for (unsigned turn = 0; turn < 5 * kModes.size(); ++turn) {
    m.wave.mode = kModes[turn % kModes.size()];
    m.wave.set_exec(turn % 3 == 2 ? m.random() : ~std::uint64_t{0});
    std::array<Sources, kLanes> values = {};
    std::array<std::uint64_t, kLanes> before = {};
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      m.put(FloatMachine::kDst, lane, 64, m.random());
      for (unsigned n = 0; n < sources; ++n) {
        values[lane][n] = m.number(c.src_bits[n]);
        const bool is_dst = c.accumulates && n + 1 == sources;
        m.put(is_dst ? FloatMachine::kDst : FloatMachine::source(n), lane, c.src_bits[n], values[lane][n]);
      }
      before[lane] = m.get(FloatMachine::kDst, lane, c.dst_bits);
    }
    ASSERT_EQ(m.run(float_instruction(c.op, c.encoding)), Outcome::kNext) << name(c.op);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      std::uint64_t expected = before[lane];
      if ((m.wave.exec() >> lane & 1) != 0) {
        expected = c.expected(values[lane], m.wave.mode) | (c.keeps_other ? before[lane] & 0xffff0000 : 0);
      }
      ASSERT_EQ(m.get(FloatMachine::kDst, lane, c.dst_bits), expected)
          << name(c.op) << std::hex << " mode " << m.wave.mode << " of " << values[lane][0] << ' ' << values[lane][1]
          << ' ' << values[lane][2] << " expected " << expected;
    }
  }
}

}  // namespace gcn
