// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Microcode formats of the VALU.
// Source: chapter "Microcode formats" of the ISA documents.
#include "gcn/decode/decoder.h"

namespace gcn {
namespace {

// DPP_CTRL values that the ISA defines.
bool is_dpp_control(Isa isa, Word control, bool wide) {
  const bool new_broadcast = isa == Isa::kGfx90a && control >= 0x150 && control <= 0x15f;
  if (wide) return new_broadcast;
  if (control < 0x100) return true;  // quad_perm
  if (control < 0x130) return bits(control, 0, 4) != 0;
  switch (control) {
    case 0x130:
    case 0x134:
    case 0x138:
    case 0x13c:  // wave_shl, wave_rol, wave_shr, wave_ror
    case 0x140:
    case 0x141:  // mirrors
    case 0x142:
    case 0x143:  // broadcasts
      return true;
    default:
      return new_broadcast;
  }
}

bool is_wide(const Operands& ops) { return ops.dst > 1 || ops.src[0] > 1 || ops.src[1] > 1; }

}  // namespace

// ---------------------------------------------------------------------------------------------------------------------
// VOP1, VOP2, VOPC: one dword, optionally followed by an SDWA, DPP or literal dword.

bool Decoder::vop2() {
  if (!put_vector_dst(bits(low_, 17, 8)) || !short_sources(bits(low_, 9, 8))) return false;
  if (ops_->is(trait::kScalarDst2)) out_.sdst = operand::kVccLo;
  if (ops_->is(trait::kMask)) {
    out_.src[2] = operand::kVccLo;
    return true;
  }
  if (ops_->src[2] == 0) return true;
  // v_madmk and v_madak always have a literal, as an operand of its own.
  if (out_.op == Op::kVMadmkF32 || out_.op == Op::kVMadmkF16) {
    out_.src[2] = out_.src[1];
    out_.src[1] = operand::kLiteral;
  } else {
    out_.src[2] = operand::kLiteral;
  }
  out_.literal = high_;
  return need_high();
}

bool Decoder::vop1() {
  if (ops_->is(trait::kScalarDst)) {
    if (!put(out_.dst, scalar_register(bits(low_, 17, 8), ops_->dst))) return false;
  } else if (ops_->dst == 0) {
    if (bits(low_, 17, 8) != 0) return false;
  } else if (!put_vector_dst(bits(low_, 17, 8))) {
    return false;
  }
  // v_swap_b32 and v_accvgpr_mov_b32 can read only a VGPR; the upper bit of the source is ignored.
  if (out_.op == Op::kVSwapB32 || out_.op == Op::kVAccvgprMovB32) return put_vector_src(0, bits(low_, 0, 8));
  // Operations without operands have no SDWA and no DPP form.
  const Word src = bits(low_, 0, 9);
  if (ops_->src[0] == 0 && (src == operand::kSdwa || src == operand::kDpp)) return false;
  if (!short_sources(0)) return false;
  return out_.op != Op::kVReadfirstlaneB32 || operand::is_vgpr(out_.src[0]) || out_.src[0] == operand::kLdsDirect;
}

bool Decoder::vopc() {
  out_.sdst = operand::kVccLo;
  return short_sources(bits(low_, 9, 8));
}

bool Decoder::short_sources(Word src1) {
  const Word src0 = bits(low_, 0, 9);
  if (ops_->src[0] != 0 && src0 == operand::kSdwa) return need_high() && sdwa(src1);
  if (ops_->src[0] != 0 && src0 == operand::kDpp) return need_high() && dpp(src1);
  return put_src(0, src0) && put_vector_src(1, src1);
}

bool Decoder::sdwa(Word src1) {
  if (ops_->is(trait::kNoSdwa) || is_wide(*ops_)) return false;
  out_.lanes = LaneMode::kSdwa;
  // The SDWA fields of source 1 must be 0 in VOP1, which has no such source.
  if (ops_->src[1] == 0 && (bits(high_, 24, 6) != 0 || bit(high_, 31))) return false;
  return sdwa_result() && sdwa_source(0, bits(high_, 0, 8)) && sdwa_source(1, src1);
}

bool Decoder::sdwa_result() {
  if (out_.encoding == Encoding::kVopc) {
    return !bit(high_, 15) || put(out_.sdst, scalar_register(bits(high_, 8, 7), 2));
  }
  const Word sel = bits(high_, 8, 3);
  const Word unused = bits(high_, 11, 2);
  if (sel > static_cast<Word>(SubDword::kDword) || unused > static_cast<Word>(DstUnused::kPreserve)) return false;
  out_.sdwa.dst_sel = static_cast<SubDword>(sel);
  out_.sdwa.dst_unused = static_cast<DstUnused>(unused);
  out_.clamp = bit(high_, 13);
  out_.omod = static_cast<std::uint8_t>(bits(high_, 14, 2));
  return out_.omod == 0 || (ops_->is(trait::kOmod) && !ops_->is(trait::kNoSdwaOmod));
}

// Decodes the byte of the second dword that describes source `index`: byte 2 or 3.
bool Decoder::sdwa_source(std::size_t index, Word number) {
  if (ops_->src[index] == 0) return true;
  const Word byte = bits(high_, 16 + 8 * static_cast<unsigned>(index), 8);
  const Word sel = bits(byte, 0, 3);
  if (sel > static_cast<Word>(SubDword::kDword)) return false;
  out_.sdwa.src_sel[index] = static_cast<SubDword>(sel);
  if (bit(byte, 7)) {
    if (number == operand::kLiteral || !put(out_.src[index], source(number, 1))) return false;
  } else {
    out_.src[index] = static_cast<std::uint16_t>(operand::kVgpr0 + number);
  }
  // A floating-point source can have neg and abs, others can be sign-extended.
  const bool is_float = bit(ops_->mods(), static_cast<unsigned>(index)) && out_.op != Op::kVCndmaskB32;
  if (is_float ? bit(byte, 3) : bits(byte, 4, 2) != 0) return false;
  out_.sdwa.sext = static_cast<std::uint8_t>(out_.sdwa.sext | bits(byte, 3, 1) << index);
  out_.neg = static_cast<std::uint8_t>(out_.neg | bits(byte, 4, 1) << index);
  out_.abs = static_cast<std::uint8_t>(out_.abs | bits(byte, 5, 1) << index);
  return true;
}

bool Decoder::dpp(Word src1) {
  const Word control = bits(high_, 8, 9);
  const bool wide = is_wide(*ops_);
  if (out_.encoding == Encoding::kVopc || ops_->is(trait::kNoDpp) || (wide && isa_ != Isa::kGfx90a)) return false;
  if (!is_dpp_control(isa_, control, ops_->src[0] > 1)) return false;
  out_.lanes = LaneMode::kDpp;
  out_.dpp.ctrl = static_cast<std::uint16_t>(control);
  out_.dpp.bound_ctrl = bit(high_, 19);
  out_.dpp.bank_mask = static_cast<std::uint8_t>(bits(high_, 24, 4));
  out_.dpp.row_mask = static_cast<std::uint8_t>(bits(high_, 28, 4));
  const Word neg = bits(high_, 20, 1) | bits(high_, 22, 1) << 1;
  const Word abs = bits(high_, 21, 1) | bits(high_, 23, 1) << 1;
  const Word sources = ops_->src[1] == 0 ? 1 : 3;
  // v_cndmask has modifiers in VOP3 only; in DPP their bits are ignored.
  const Word honoured = out_.op == Op::kVCndmaskB32 ? 0 : ops_->mods() & sources;
  const bool spare = ops_->is(trait::kModIgnored) || out_.op == Op::kVCndmaskB32;
  if (((neg | abs) & ~(spare ? sources : honoured)) != 0) return false;
  out_.neg = static_cast<std::uint8_t>(neg & honoured);
  out_.abs = static_cast<std::uint8_t>(abs & honoured);
  return put_vector_src(0, bits(high_, 0, 8)) && put_vector_src(1, src1);
}

bool Decoder::vintrp() {
  // An interpolation's offset is the number of the attribute and channel.
  out_.offset = static_cast<std::int32_t>(bits(low_, 8, 8));
  return put_vector_dst(bits(low_, 18, 8)) && put_vector_src(1, bits(low_, 0, 8));
}

// ---------------------------------------------------------------------------------------------------------------------
// VOP3A, VOP3B, VOP3P: two dwords, no literal.

bool Decoder::vop3() { return vop3_results() && vop3_sources() && vop3_modifiers(); }

bool Decoder::vop3_results() {
  const Word dst = bits(low_, 0, 8);
  if (ops_->is(trait::kScalarDst)) return put(out_.dst, scalar_register(dst, ops_->dst));
  if (!ops_->is(trait::kScalarDst2)) return put_vector_dst(dst);
  if (ops_->dst == 0) return put(out_.sdst, scalar_register(dst, 2));  // a comparison
  return put_vector_dst(dst) && put(out_.sdst, scalar_register(bits(low_, 8, 7), 2));
}

bool Decoder::vop3_sources() {
  // Interpolations have attribute and channel in the place of source 0, and above them a bit that selects the half.
  const bool interpolation = ops_->src[0] == 0;
  if (interpolation) {
    out_.offset = static_cast<std::int32_t>(bits(high_, 0, 9));
    const bool whole = out_.op == Op::kVInterpP1F32 || out_.op == Op::kVInterpP2F32 || out_.op == Op::kVInterpMovF32;
    if (whole && bit(high_, 8)) return false;
  }
  for (unsigned i = 0; i < 3; ++i) {
    const Word number = bits(high_, 9 * i, 9);
    if (ops_->src[i] == 0) {
      if (number != 0 && (!interpolation || i == 2)) return false;
      continue;
    }
    if (number == operand::kLiteral || !put(out_.src[i], source(number, ops_->src[i]))) return false;
  }
  // Lane numbers and masks must be scalar operands.
  switch (out_.op) {
    case Op::kVReadlaneB32:
      return (operand::is_vgpr(out_.src[0]) || out_.src[0] == operand::kLdsDirect) && !operand::is_vgpr(out_.src[1]);
    case Op::kVWritelaneB32:
      return !operand::is_vgpr(out_.src[0]) && !operand::is_vgpr(out_.src[1]);
    case Op::kVMqsadU32U8:
      return operand::is_vgpr(out_.src[2]);
    default:
      return !ops_->is(trait::kMask) || out_.src[2] <= operand::kExecHi;
  }
}

bool Decoder::vop3_modifiers() {
  // VOP3B has its sdst where VOP3A has abs and op_sel.
  const bool second = ops_->is(trait::kScalarDst2) && ops_->dst != 0;
  const Word neg = bits(high_, 29, 3);
  const Word abs = second ? 0 : bits(low_, 8, 3);
  Word sources = 0;
  for (unsigned i = 0; i < 3; ++i) sources |= (ops_->src[i] != 0 ? 1u : 0u) << i;
  const Word honoured = ops_->mods() & sources;
  if (((neg | abs) & ~(ops_->is(trait::kModIgnored) ? sources : honoured)) != 0) return false;
  out_.neg = static_cast<std::uint8_t>(neg & honoured);
  out_.abs = static_cast<std::uint8_t>(abs & honoured);
  if (ops_->is(trait::kOpSel)) {
    out_.op_sel = static_cast<std::uint8_t>(bits(low_, 11, 4));
    if (ops_->src[2] == 0 && bit(out_.op_sel, 2)) return false;
  }
  out_.clamp = bit(low_, 15);
  out_.omod = static_cast<std::uint8_t>(bits(high_, 27, 2));
  return (!out_.clamp || ops_->is(trait::kClamp)) && (out_.omod == 0 || ops_->is(trait::kOmod));
}

bool Decoder::vop3p() {
  Word sources = 0;
  for (unsigned i = 0; i < 3; ++i) {
    const Word number = bits(high_, 9 * i, 9);
    if (ops_->src[i] == 0) {
      if (number != 0) return false;
      continue;
    }
    sources |= 1u << i;
    if (out_.op == Op::kVAccvgprReadB32) {
      out_.src[i] = static_cast<std::uint16_t>(operand::kVgpr0 + bits(number, 0, 8));
    } else if (number == operand::kLiteral || !put(out_.src[i], source(number, ops_->src[i]))) {
      return false;
    }
  }
  const Word neg_low = bits(high_, 29, 3);
  const Word neg_high = bits(low_, 8, 3);
  const Word op_sel = bits(low_, 11, 3);
  if (((neg_low | neg_high) & ~(ops_->mods() & sources)) != 0) return false;
  if (!put_vector_dst(bits(low_, 0, 8))) return false;
  if (!ops_->is(trait::kClamp)) return op_sel == 0;  // v_accvgpr_*
  if ((op_sel & ~sources) != 0) return false;
  out_.neg = static_cast<std::uint8_t>(neg_low);
  out_.abs = static_cast<std::uint8_t>(neg_high);
  out_.op_sel = static_cast<std::uint8_t>(op_sel);
  out_.op_sel_hi = static_cast<std::uint8_t>((bits(high_, 27, 2) | bits(low_, 14, 1) << 2) & sources);
  out_.clamp = bit(low_, 15);
  return true;
}

bool Decoder::mfma() {
  for (unsigned i = 0; i < 3; ++i) {
    const Word number = bits(high_, 9 * i, 9);
    const bool accumulator = i == 2;
    if (number < operand::kVgpr0 && !accumulator) return false;
    if (number < operand::kInt0 || number == operand::kLiteral) return false;
    if (!put(out_.src[i], source(number, ops_->src[i]))) return false;
  }
  out_.abs = static_cast<std::uint8_t>(bits(low_, 8, 3));
  out_.op_sel = static_cast<std::uint8_t>(bits(low_, 11, 4));
  out_.neg = static_cast<std::uint8_t>(bits(high_, 29, 3));
  out_.op_sel_hi = static_cast<std::uint8_t>(bits(high_, 27, 2));
  out_.agpr = isa_ != Isa::kGfx90a || bit(low_, 15);
  return put_vector_dst(bits(low_, 0, 8));
}

}  // namespace gcn
