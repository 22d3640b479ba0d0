// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// One decoded instruction: plain data, all encodings alike. Operand numbers are those of the 9-bit source field, for
// scalar and vector registers as well; what they mean is in `operand` below. Fields that an encoding lacks keep their
// defaults.
#pragma once

#include <array>
#include <cstdint>

#include "gcn/isa/op.h"

namespace gcn {

// "Scalar and vector source operands", the tables of chapter "Microcode formats".
namespace operand {
inline constexpr std::uint16_t kSgprs = 102;  // 0..101
inline constexpr std::uint16_t kFlatScratchLo = 102;
inline constexpr std::uint16_t kFlatScratchHi = 103;
inline constexpr std::uint16_t kXnackMaskLo = 104;
inline constexpr std::uint16_t kXnackMaskHi = 105;
inline constexpr std::uint16_t kVccLo = 106;
inline constexpr std::uint16_t kVccHi = 107;
inline constexpr std::uint16_t kTtmp0 = 108;  // 108..123
inline constexpr std::uint16_t kM0 = 124;
inline constexpr std::uint16_t kExecLo = 126;
inline constexpr std::uint16_t kExecHi = 127;
inline constexpr std::uint16_t kInt0 = 128;        // 128..192: 0..64
inline constexpr std::uint16_t kIntMinus1 = 193;   // 193..208: -1..-16
inline constexpr std::uint16_t kSharedBase = 235;  // apertures, high halves' values as 64-bit operands
inline constexpr std::uint16_t kSharedLimit = 236;
inline constexpr std::uint16_t kPrivateBase = 237;
inline constexpr std::uint16_t kPrivateLimit = 238;
inline constexpr std::uint16_t kPopsExitingWaveId = 239;
inline constexpr std::uint16_t kFloatHalf = 240;  // 240..247: 0.5 -0.5 1 -1 2 -2 4 -4
inline constexpr std::uint16_t kInv2Pi = 248;
inline constexpr std::uint16_t kSdwa = 249;  // only as src0 of VOP1, VOP2, VOPC: a second dword follows
inline constexpr std::uint16_t kDpp = 250;   // only where kSdwa may be, and likewise with a second dword
inline constexpr std::uint16_t kVccz = 251;
inline constexpr std::uint16_t kExecz = 252;
inline constexpr std::uint16_t kScc = 253;
inline constexpr std::uint16_t kLdsDirect = 254;
inline constexpr std::uint16_t kLiteral = 255;
inline constexpr std::uint16_t kVgpr0 = 256;  // 256..511
inline constexpr std::uint16_t kNone = 0xffff;
[[nodiscard]] constexpr bool is_vgpr(std::uint16_t number) { return number >= kVgpr0 && number < 512; }
}  // namespace operand

// Which unit reads the sources of a VALU instruction.
enum class LaneMode : std::uint8_t { kPlain, kDpp, kSdwa };

// SDWA "SEL" fields.
enum class SubDword : std::uint8_t { kByte0, kByte1, kByte2, kByte3, kWord0, kWord1, kDword };
enum class DstUnused : std::uint8_t { kPad, kSext, kPreserve };

struct Sdwa {
  SubDword dst_sel = SubDword::kDword;
  DstUnused dst_unused = DstUnused::kPad;
  std::array<SubDword, 2> src_sel = {SubDword::kDword, SubDword::kDword};
  std::uint8_t sext = 0;  // bit n: source n is sign-extended
};

struct Dpp {
  std::uint16_t ctrl = 0;  // DPP_CTRL
  std::uint8_t row_mask = 0xf;
  std::uint8_t bank_mask = 0xf;
  bool bound_ctrl = false;  // lanes without a source read 0 instead of being disabled
};

struct Instruction {
  Op op = Op::kSNop;
  Encoding encoding = Encoding::kSopp;
  std::uint8_t bytes = 4;  // 4 or 8, literal, DPP and SDWA dwords included
  LaneMode lanes = LaneMode::kPlain;

  // Destination: SGPR space (0..127) or VGPR space (256..). SMEM: sdata; DS, FLAT, MUBUF: vdst or vdata of a load or of
  // an atomic that returns. kNone: no destination.
  std::uint16_t dst = operand::kNone;
  // Second destination, scalar: carry out of VOP2 (VCC) and VOP3B, result of VOPC (VCC, or what VOP3 or SDWA says).
  std::uint16_t sdst = operand::kNone;
  // Scalar registers of two dwords have an even number, larger ones a multiple of four: the decoder drops the bits
  // below. VALU, SALU: sources in the order of the mnemonic's operands (VOP2: src0, vsrc1). v_madmk/v_madak: the
  // literal is where the text has it. v_addc and its like, v_cndmask: src[2] is the carry or mask (VCC in VOP2). SOPK:
  // src[0] is the register that s_cmpk and s_addk read. Not an operand number but the value itself: src[1] of
  // s_set_gpr_idx_on, src[2] of s_atc_probe. SMEM: src[0] sbase (first register), src[1] soffset register or kNone,
  // src[2] sdata of stores and atomics. DS: src[0] addr, src[1] data0, src[2] data1. FLAT: src[0] addr, src[1] data,
  // src[2] saddr or kNone. MUBUF: src[0] vaddr, src[1] vdata, src[2] srsrc (first register), src[3] soffset.
  std::array<std::uint16_t, 4> src = {operand::kNone, operand::kNone, operand::kNone, operand::kNone};
  // The literal constant of a source that is kLiteral.
  std::uint32_t literal = 0;
  // The instruction's constant. SOPK and SOPP: simm16, sign-extended. SMEM: 21-bit signed offset. FLAT: 13-bit signed
  // (FLAT proper: unsigned). DS: offset0 | offset1 << 8. MUBUF: 12-bit unsigned.
  std::int32_t offset = 0;

  // VALU modifiers; bit n belongs to source n. v_mfma: abs is cbsz, op_sel abid, neg blgp; bits of op_sel_hi say
  // whether sources 0 and 1 are AGPRs, agpr whether source 2 and the destination are.
  std::uint8_t neg = 0;        // VOP3P: neg_lo
  std::uint8_t abs = 0;        // VOP3P: neg_hi
  std::uint8_t op_sel = 0;     // bit 3: destination; VOP3P: op_sel
  std::uint8_t op_sel_hi = 0;  // VOP3P
  std::uint8_t omod = 0;       // 1: * 2, 2: * 4, 3: / 2
  bool clamp = false;

  // Modifiers of memory instructions.
  bool glc = false;  // an atomic returns the value that memory had before
  bool slc = false;
  bool scc = false;         // gfx90a: coherence scope
  bool tfe = false;         // MUBUF: a status dword follows the data
  bool lds = false;         // MUBUF, FLAT: data goes to LDS
  bool offen = false;       // MUBUF
  bool idxen = false;       // MUBUF
  bool gds = false;         // DS
  bool agpr = false;        // gfx90a: data registers are accumulation registers
  std::uint8_t format = 0;  // MTBUF: dfmt | nfmt << 4

  Sdwa sdwa;
  Dpp dpp;
};

}  // namespace gcn
