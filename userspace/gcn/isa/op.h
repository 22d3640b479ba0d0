// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Names of what gfx9 machine code can ask for: encodings, operations, and the chips (ISAs) that know them.
// Sources: "Vega" 7nm shader ISA, "MI100" and "MI200" ISA documents (AMD), chapters "Instructions" and "Microcode
// formats".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gcn {

// A dialect of gfx9. What runs depends on it: fused multiply-add opcodes, dot products, accumulation registers.
enum class Isa : std::uint8_t { kGfx900, kGfx906, kGfx908, kGfx90a };

// Bit n stands for the Isa whose value is n.
using IsaMask = std::uint8_t;
inline constexpr IsaMask kAllIsas = 0xf;
inline constexpr IsaMask kOnly900 = 0x1;
inline constexpr IsaMask kBefore90a = 0x7;
inline constexpr IsaMask kFrom906 = 0xe;
inline constexpr IsaMask kFrom908 = 0xc;
inline constexpr IsaMask kOnly90a = 0x8;
[[nodiscard]] constexpr bool contains(IsaMask mask, Isa isa) {
  return ((mask >> static_cast<unsigned>(isa)) & 1u) != 0;
}

enum class Encoding : std::uint8_t {
  kSop2,
  kSopk,
  kSop1,
  kSopc,
  kSopp,
  kSmem,
  kVop2,
  kVop1,
  kVopc,
  kVop3,  // VOP3A and VOP3B
  kVop3p,
  kVintrp,
  kDs,
  kFlat,
  kGlobal,   // FLAT with SEG = 2
  kScratch,  // FLAT with SEG = 1
  kMubuf,
  kMtbuf,
  kMimg,
  kExp,
};

inline constexpr auto kEncodingNames = std::to_array<std::string_view>(
    {"SOP2",  "SOPK",   "SOP1", "SOPC", "SOPP",   "SMEM",    "VOP2",  "VOP1",  "VOPC", "VOP3",
     "VOP3P", "VINTRP", "DS",   "FLAT", "GLOBAL", "SCRATCH", "MUBUF", "MTBUF", "MIMG", "EXP"});
inline constexpr std::size_t kEncodings = kEncodingNames.size();
static_assert(kEncodings == static_cast<std::size_t>(Encoding::kExp) + 1);
[[nodiscard]] constexpr std::string_view name(Encoding encoding) {
  return kEncodingNames[static_cast<std::size_t>(encoding)];
}

enum class Op : std::uint16_t {
#define GCN_OP(id, name) id,
#include "gcn/isa/ops.inc"
#undef GCN_OP
};

inline constexpr auto kOpNames = std::to_array<std::string_view>({
#define GCN_OP(id, name) name,
#include "gcn/isa/ops.inc"
#undef GCN_OP
});
inline constexpr std::size_t kOps = kOpNames.size();

// The mnemonic, without a suffix for its encoding.
[[nodiscard]] constexpr std::string_view name(Op op) { return kOpNames[static_cast<std::size_t>(op)]; }

struct Opcode {
  Encoding encoding;
  std::uint16_t number;
  Op op;
  IsaMask isas;
};
// The rows are sorted by encoding, then by number.
inline constexpr auto kOpcodes = std::to_array<Opcode>({
#define GCN_OPCODE(encoding, number, op, isas) {Encoding::encoding, number, Op::op, isas},
#include "gcn/isa/opcodes.inc"
#undef GCN_OPCODE
});

}  // namespace gcn
