// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The properties of each operation's operands that the decoder and the disassembler use: how many dwords each operand
// is wide, and which modifiers its encodings allow.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gcn/isa/op.h"

namespace gcn {

namespace trait {
inline constexpr std::uint32_t kNone = 0;
inline constexpr std::uint32_t kMod0 = 1u << 0;        // source 0 takes neg and abs
inline constexpr std::uint32_t kMod1 = 1u << 1;        // source 1
inline constexpr std::uint32_t kMod2 = 1u << 2;        // source 2
inline constexpr std::uint32_t kModIgnored = 1u << 3;  // bits of sources without neg and abs may be set and are ignored
inline constexpr std::uint32_t kClamp = 1u << 4;       // VOP3
inline constexpr std::uint32_t kOmod = 1u << 5;        // VOP3, SDWA
inline constexpr std::uint32_t kOpSel = 1u << 6;       // VOP3: op_sel chooses halves
inline constexpr std::uint32_t kScalarDst2 = 1u << 7;  // has an sdst
inline constexpr std::uint32_t kScalarDst = 1u << 8;   // dst is an SGPR though the encoding has VGPRs there
inline constexpr std::uint32_t kNoSdwa = 1u << 9;      // though no operand is wider than a dword
inline constexpr std::uint32_t kNoDpp = 1u << 10;      // though no operand is wider than a dword
inline constexpr std::uint32_t kNoSdwaOmod = 1u << 11;    // though it has kOmod
inline constexpr std::uint32_t kMix = 1u << 12;           // VOP3P whose neg_hi is abs
inline constexpr std::uint32_t kMfma = 1u << 13;          // VOP3P whose modifiers are cbsz, abid, blgp
inline constexpr std::uint32_t kMask = 1u << 14;          // source 2 is a carry or mask in a pair of SGPRs
inline constexpr std::uint32_t kNoImmediate = 1u << 15;   // SOPP and DS without a constant: it must be 0
inline constexpr std::uint32_t kLds = 1u << 16;           // memory: can load to LDS
inline constexpr std::uint32_t kGds = 1u << 17;           // DS: only on GDS
inline constexpr std::uint32_t kNoGds = 1u << 18;         // DS: not on GDS
inline constexpr std::uint32_t kFloatAtomic = 1u << 19;   // FLAT, MUBUF
inline constexpr std::uint32_t kInt16 = 1u << 20;         // sources are 16-bit integers
inline constexpr std::uint32_t kFloat16 = 1u << 21;       // a literal is an fp16 number
inline constexpr std::uint32_t kWideSrc2 = 1u << 22;      // but source 2 has 32 bits
inline constexpr std::uint32_t kRegisterSrc0 = 1u << 23;  // source 0 must be registers, not a constant
inline constexpr std::uint32_t kTwoOffsets = 1u << 24;    // DS: offset0 and offset1 are two
inline constexpr std::uint32_t kMods = kMod0 | kMod1 | kMod2;
inline constexpr std::uint32_t kFloat = kMods | kClamp | kOmod;
}  // namespace trait

// Widths of the operands in dwords, in the places that Instruction has for them; 0: the operation has no operand there.
// dst of a memory atomic is the width of what it returns if it returns a value.
struct Operands {
  std::uint8_t dst;
  std::array<std::uint8_t, 4> src;
  std::uint32_t traits;

  [[nodiscard]] constexpr bool is(std::uint32_t trait) const { return (traits & trait) != 0; }
  [[nodiscard]] constexpr unsigned mods() const { return traits & trait::kMods; }
};

inline constexpr auto kOperands = [] {
  using namespace trait;
  return std::to_array<Operands>({
#define GCN_OPERANDS(op, dst, src0, src1, src2, src3, traits) {dst, {src0, src1, src2, src3}, traits},
#include "gcn/isa/operands.inc"
#undef GCN_OPERANDS
  });
}();

// The table has a row for each operation, in the order of Op.
inline constexpr auto kOperandsOrder = std::to_array<Op>({
#define GCN_OPERANDS(op, dst, src0, src1, src2, src3, traits) Op::op,
#include "gcn/isa/operands.inc"
#undef GCN_OPERANDS
});
static_assert([] {
  if (kOperandsOrder.size() != kOps) return false;
  for (std::size_t i = 0; i < kOps; ++i) {
    if (static_cast<std::size_t>(kOperandsOrder[i]) != i) return false;
  }
  return true;
}());

[[nodiscard]] constexpr const Operands& operands(Op op) { return kOperands[static_cast<std::size_t>(op)]; }

}  // namespace gcn
