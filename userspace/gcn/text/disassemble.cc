// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Writes instructions as text: their mnemonics, and the operands that each format has.
#include "gcn/text/disassemble.h"

#include <algorithm>
#include <array>

#include "gcn/text/printer.h"

namespace gcn {
namespace {

constexpr std::array<std::string_view, 7> kSubDwords = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3",
                                                        "WORD_0", "WORD_1", "DWORD"};
constexpr std::array<std::string_view, 3> kDstUnused = {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"};

// Bit n is set if the operation has a form of one dword on Isa n.
constexpr auto kShortForms = [] {
  std::array<IsaMask, kOps> forms = {};
  for (const Opcode& opcode : kOpcodes) {
    switch (opcode.encoding) {
      case Encoding::kVop1:
      case Encoding::kVop2:
      case Encoding::kVopc:
      case Encoding::kVintrp:
        forms[static_cast<std::size_t>(opcode.op)] |= opcode.isas;
        break;
      default:
        break;
    }
  }
  return forms;
}();

std::string_view name_of(SubDword select) { return kSubDwords[static_cast<std::size_t>(select)]; }

}  // namespace

std::string disassemble(const Instruction& instruction, Isa isa) { return Printer(instruction, isa).run(); }

std::string Printer::run() {
  text_ = name(i_.op);
  text_ += suffix();
  format_operands();
  return std::move(text_);
}

std::string_view Printer::suffix() const {
  if (i_.lanes == LaneMode::kSdwa) return "_sdwa";
  if (i_.lanes == LaneMode::kDpp) return "_dpp";
  switch (i_.encoding) {
    case Encoding::kVop1:
    case Encoding::kVop2:
    case Encoding::kVopc:
      // Operations with a single form have no suffix; v_pk_fmac_f16 is an exception.
      return ops_.is(trait::kNoDpp) && i_.op != Op::kVPkFmacF16 ? "" : "_e32";
    case Encoding::kVintrp:
      return "_e32";
    case Encoding::kVop3:
      return contains(kShortForms[static_cast<std::size_t>(i_.op)], isa_) ? "_e64" : "";
    default:
      return "";
  }
}

void Printer::format_operands() {
  switch (i_.encoding) {
    case Encoding::kSop2:
    case Encoding::kSop1:
      destination();
      source(0);
      source(1);
      break;
    case Encoding::kSopc:
      source(0);
      i_.op == Op::kSSetGprIdxOn ? operand(index_mode(i_.src[1])) : source(1);
      break;
    case Encoding::kSopk:
      sopk();
      break;
    case Encoding::kSopp:
      sopp();
      break;
    case Encoding::kSmem:
      smem();
      break;
    case Encoding::kDs:
      ds();
      break;
    case Encoding::kFlat:
    case Encoding::kGlobal:
    case Encoding::kScratch:
      flat();
      break;
    case Encoding::kMubuf:
    case Encoding::kMtbuf:
      buffer();
      break;
    case Encoding::kMimg:
      mimg();
      break;
    case Encoding::kExp:
      break;
    default:
      valu();
      break;
  }
}

void Printer::sopk() {
  const std::uint32_t simm16 = static_cast<std::uint32_t>(i_.offset) & 0xffff;
  switch (i_.op) {
    case Op::kSSetregB32:
    case Op::kSSetregImm32B32:
      operand(hardware_register(simm16));
      source(0);
      return;
    case Op::kSGetregB32:
      destination();
      operand(hardware_register(simm16));
      return;
    case Op::kSCbranchIFork:
    case Op::kSCallB64:
      destination();
      source(0);
      operand(std::to_string(simm16));
      return;
    default:
      // A register that the operation both reads and writes is written once.
      ops_.dst != 0 ? destination() : source(0);
      operand(hexadecimal(simm16));
  }
}

void Printer::sopp() {
  const std::uint32_t simm16 = static_cast<std::uint32_t>(i_.offset) & 0xffff;
  if (ops_.is(trait::kNoImmediate)) return;
  switch (i_.op) {
    case Op::kSNop:
    case Op::kSSetkill:
    case Op::kSSethalt:
    case Op::kSSleep:
    case Op::kSSetprio:
    case Op::kSTrap:
    case Op::kSIncperflevel:
    case Op::kSDecperflevel:
      return operand(small_or_hexadecimal(simm16));
    case Op::kSEndpgm:
      if (simm16 != 0) operand(std::to_string(simm16));
      return;
    case Op::kSWaitcnt:
      return operand(wait_counts(simm16));
    case Op::kSSendmsg:
    case Op::kSSendmsghalt:
      return operand(message(simm16));
    case Op::kSSetGprIdxMode:
      return operand(index_mode(simm16));
    default:
      return operand(std::to_string(simm16));  // the offset of a branch
  }
}

void Printer::smem() {
  const bool probe = i_.op == Op::kSAtcProbe || i_.op == Op::kSAtcProbeBuffer;
  if (probe) {
    operand(small_or_hexadecimal(i_.src[2]));
  } else if (ops_.src[2] != 0) {
    source(2);
  } else {
    destination();
  }
  if (ops_.src[0] == 0) return;
  source(0);
  const std::string offset = i_.offset < 0 ? "-" + hexadecimal(static_cast<std::uint32_t>(-i_.offset))
                                           : hexadecimal(static_cast<std::uint32_t>(i_.offset));
  if (i_.src[1] == operand::kNone) {
    operand(offset);
  } else {
    operand(registers(i_.src[1], 1, false));
    flag(i_.offset != 0, "offset:" + offset);
  }
  flag(i_.glc && !probe && (ops_.dst != 0 || ops_.src[2] != 0), "glc");
}

void Printer::valu() {
  destination();
  valu_sources();
  if (i_.lanes == LaneMode::kSdwa) return sdwa();
  if (i_.lanes == LaneMode::kDpp) return dpp();
  if (i_.encoding == Encoding::kVop3) return vop3_modifiers();
  if (i_.encoding == Encoding::kVop3p) return vop3p_modifiers();
}

void Printer::valu_sources() {
  // vop3p_modifiers() writes the negations of VOP3P.
  const bool modifiers = i_.encoding != Encoding::kVop3p || ops_.is(trait::kMix);
  for (std::size_t n = 0; n < 3; ++n) {
    if (ops_.src[n] == 0) continue;
    // v_madmk and v_madak have the literal as a source of its own.
    const bool constant_k = i_.encoding == Encoding::kVop2 && n != 0 && i_.src[n] == operand::kLiteral;
    if (constant_k) {
      operand(hexadecimal(i_.literal));
    } else if (i_.encoding == Encoding::kVop2 && n == 2 && !ops_.is(trait::kMask)) {
      operand(source_text(n));
    } else {
      operand(modifiers ? with_modifiers(n) : source_text(n));
    }
  }
}

void Printer::vop3_modifiers() {
  if (ops_.is(trait::kOpSel) && i_.op_sel != 0) {
    const unsigned count = sources();
    const unsigned low = i_.op_sel & ((1u << count) - 1);
    bit_list("op_sel", low | (i_.op_sel >> 3 & 1u) << count, count + 1);
  }
  flag(i_.clamp, "clamp");
  constexpr std::array<std::string_view, 4> kOmods = {"", "mul:2", "mul:4", "div:2"};
  flag(i_.omod != 0, kOmods[i_.omod & 3]);
}

void Printer::vop3p_modifiers() {
  if (ops_.is(trait::kMfma)) {
    flag(i_.abs != 0, "cbsz:" + std::to_string(i_.abs));
    flag(i_.op_sel != 0, "abid:" + std::to_string(i_.op_sel));
    flag(i_.neg != 0, "blgp:" + std::to_string(i_.neg));
    return;
  }
  if (!ops_.is(trait::kClamp)) return;
  const unsigned count = sources();
  const unsigned all = (1u << count) - 1;
  // By default the upper results use the upper halves of the sources; but the sources of "mix" operations are single
  // precision by default.
  const unsigned usual = ops_.is(trait::kMix) ? 0 : all;
  if (i_.op_sel != 0) bit_list("op_sel", i_.op_sel, count);
  if (i_.op_sel_hi != usual) bit_list("op_sel_hi", i_.op_sel_hi, count);
  if (!ops_.is(trait::kMix)) {
    if (i_.neg != 0) bit_list("neg_lo", i_.neg, count);
    if (i_.abs != 0) bit_list("neg_hi", i_.abs, count);
  }
  flag(i_.clamp, "clamp");
}

void Printer::sdwa() {
  if (i_.encoding != Encoding::kVopc) {
    vop3_modifiers();
    text_.append(" dst_sel:").append(name_of(i_.sdwa.dst_sel));
    text_.append(" dst_unused:").append(kDstUnused[static_cast<std::size_t>(i_.sdwa.dst_unused)]);
  }
  text_.append(" src0_sel:").append(name_of(i_.sdwa.src_sel[0]));
  if (ops_.src[1] != 0) text_.append(" src1_sel:").append(name_of(i_.sdwa.src_sel[1]));
}

void Printer::dpp() {
  flag(true, dpp_control(i_.dpp.ctrl));
  flag(true, "row_mask:" + hexadecimal(i_.dpp.row_mask));
  flag(true, "bank_mask:" + hexadecimal(i_.dpp.bank_mask));
  flag(i_.dpp.bound_ctrl, "bound_ctrl:1");
}

void Printer::ds() {
  if (i_.dst != operand::kNone) operand(registers(i_.dst, ops_.dst, i_.agpr));
  // GWS has data where others have an address.
  const bool gws = ops_.is(trait::kGds) && ops_.dst == 0;
  if (ops_.src[0] != 0) operand(registers(i_.src[0], ops_.src[0], gws && i_.agpr));
  for (std::size_t n = 1; n < 3; ++n) {
    if (ops_.src[n] != 0) operand(registers(i_.src[n], ops_.src[n], i_.agpr));
  }
  const auto offset = static_cast<std::uint32_t>(i_.offset);
  if (i_.op == Op::kDsSwizzleB32) {
    flag(offset != 0, "offset:" + swizzle(offset));
  } else if (ops_.is(trait::kTwoOffsets)) {
    flag((offset & 0xff) != 0, "offset0:" + std::to_string(offset & 0xff));
    flag(offset >> 8 != 0, "offset1:" + std::to_string(offset >> 8));
  } else {
    flag(offset != 0, "offset:" + std::to_string(offset));
  }
  flag(i_.gds, "gds");
}

void Printer::flat() {
  if (i_.dst != operand::kNone) operand(registers(i_.dst, ops_.dst, i_.agpr));
  const bool has_saddr = i_.src[2] != operand::kNone;
  if (i_.src[0] == operand::kNone) {
    operand("off");
  } else {
    operand(registers(i_.src[0], i_.encoding == Encoding::kGlobal && has_saddr ? 1 : ops_.src[0], false));
  }
  if (ops_.src[1] != 0 && !i_.lds) operand(registers(i_.src[1], ops_.src[1], i_.agpr));
  if (i_.encoding != Encoding::kFlat) {
    operand(has_saddr ? registers(i_.src[2], i_.encoding == Encoding::kGlobal ? 2 : 1, false) : "off");
  }
  flag(i_.offset != 0, "offset:" + std::to_string(i_.offset));
  flag(i_.glc, "glc");
  flag(i_.slc, "slc");
  flag(i_.scc, "scc");
  flag(i_.lds, "lds");
}

void Printer::buffer() {
  if (ops_.src[2] == 0) return;  // a cache control instruction has no more operands
  const bool store_lds = i_.op == Op::kBufferStoreLdsDword;
  // The text has vdata in one place, whether the instruction loads it, stores it or returns it.
  if (!i_.lds) {
    const bool load = ops_.src[1] == 0;
    operand(registers(load ? i_.dst : i_.src[1], load ? ops_.dst : ops_.src[1], i_.agpr));
  }
  if (!store_lds) {
    const bool vaddr = i_.src[0] != operand::kNone;
    operand(vaddr ? registers(i_.src[0], i_.offen && i_.idxen ? 2 : 1, false) : "off");
  }
  source(2);
  source(3);
  flag(i_.idxen, "idxen");
  flag(i_.offen, "offen");
  flag(i_.offset != 0, "offset:" + std::to_string(i_.offset));
  flag(store_lds, "lds");
  flag(i_.glc, "glc");
  flag(i_.slc, "slc");
  flag(i_.scc, "scc");
  if (i_.lds) return flag(!store_lds, "lds");
  flag(i_.tfe && (ops_.dst == 0 || ops_.src[1] == 0), "tfe");  // atomics have none
}

void Printer::mimg() {
  operand(registers(i_.dst != operand::kNone ? i_.dst : i_.src[1], 1, false));
  source(0);
  source(2);
  source(3);
}

}  // namespace gcn
