// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Writes registers, constants and the modifiers of sources.
#include <array>
#include <optional>

#include "gcn/text/printer.h"

namespace gcn {
namespace {

// The inline constants 0.5 to -4.0 and 1/(2*pi), as numbers of each width.
struct FloatConstant {
  std::string_view text;
  std::uint32_t half;
  std::uint32_t single;
};
constexpr std::array<FloatConstant, 9> kFloats = {{{"0.5", 0x3800, 0x3f000000},
                                                   {"-0.5", 0xb800, 0xbf000000},
                                                   {"1.0", 0x3c00, 0x3f800000},
                                                   {"-1.0", 0xbc00, 0xbf800000},
                                                   {"2.0", 0x4000, 0x40000000},
                                                   {"-2.0", 0xc000, 0xc0000000},
                                                   {"4.0", 0x4400, 0x40800000},
                                                   {"-4.0", 0xc400, 0xc0800000},
                                                   {"0.15915494", 0x3118, 0x3e22f983}}};
constexpr std::string_view kInv2PiDouble = "0.15915494309189532";

std::string special_register(std::uint16_t number) {
  switch (number) {
    case operand::kFlatScratchLo:
      return "flat_scratch";
    case operand::kXnackMaskLo:
      return "xnack_mask";
    case operand::kVccLo:
      return "vcc";
    case operand::kExecLo:
      return "exec";
    default:
      return {};
  }
}

std::string special_source(std::uint16_t number) {
  switch (number) {
    case operand::kSharedBase:
      return "src_shared_base";
    case operand::kSharedLimit:
      return "src_shared_limit";
    case operand::kPrivateBase:
      return "src_private_base";
    case operand::kPrivateLimit:
      return "src_private_limit";
    case operand::kPopsExitingWaveId:
      return "src_pops_exiting_wave_id";
    case operand::kVccz:
      return "src_vccz";
    case operand::kExecz:
      return "src_execz";
    case operand::kScc:
      return "src_scc";
    default:
      return "src_lds_direct";
  }
}

std::string range(std::string_view file, unsigned first, unsigned width) {
  if (width == 1) return std::string(file) + std::to_string(first);
  return std::string(file) + "[" + std::to_string(first) + ":" + std::to_string(first + width - 1) + "]";
}

bool is_inline(std::int32_t value) { return value >= -16 && value <= 64; }

}  // namespace

void Printer::operand(std::string_view text) {
  text_ += has_operand_ ? ", " : " ";
  text_ += text;
  has_operand_ = true;
}

void Printer::flag(bool set, std::string_view text) {
  if (set) text_.append(" ").append(text);
}

void Printer::bit_list(std::string_view name, unsigned mask, unsigned count) {
  text_.append(" ").append(name).append(":[");
  for (unsigned n = 0; n < count; ++n) {
    if (n != 0) text_ += ',';
    text_ += (mask >> n & 1) != 0 ? '1' : '0';
  }
  text_ += ']';
}

std::string Printer::registers(std::uint16_t number, unsigned width, bool agpr) const {
  if (operand::is_vgpr(number)) return range(agpr ? "a" : "v", number - operand::kVgpr0, width);
  if (number < operand::kSgprs) return range("s", number, width);
  if (number >= operand::kTtmp0 && number < operand::kM0) return range("ttmp", number - operand::kTtmp0, width);
  if (number == operand::kM0) return "m0";
  const std::string pair = special_register(number & 0xfffe);
  if (width == 2) return pair;
  return pair + ((number & 1) != 0 ? "_hi" : "_lo");
}

unsigned Printer::sources() const {
  unsigned count = 0;
  while (count < ops_.src.size() && ops_.src[count] != 0) ++count;
  return count;
}

bool Printer::is_agpr_source(std::size_t index) const {
  if (i_.op == Op::kVAccvgprReadB32 || i_.op == Op::kVAccvgprMovB32) return true;
  if (!ops_.is(trait::kMfma)) return false;
  return index == 2 ? i_.agpr : (i_.op_sel_hi >> index & 1) != 0;
}

// Returns whether the source is an integer of 16 bits.
bool Printer::is_short(std::size_t index) const {
  return ops_.is(trait::kInt16) && (index != 2 || !ops_.is(trait::kWideSrc2));
}

void Printer::destination() {
  if (ops_.dst != 0 && i_.dst != operand::kNone) {
    const bool agpr =
        (ops_.is(trait::kMfma) && i_.agpr) || i_.op == Op::kVAccvgprWriteB32 || i_.op == Op::kVAccvgprMovB32;
    operand(registers(i_.dst, ops_.dst, agpr));
  }
  if (i_.sdst != operand::kNone) operand(registers(i_.sdst, 2, false));
}

void Printer::source(std::size_t index) {
  if (ops_.src[index] != 0) operand(source_text(index));
}

std::string Printer::source_text(std::size_t index) const {
  const std::uint16_t number = i_.src[index];
  if (number == operand::kLiteral) return literal(index);
  if (operand::is_vgpr(number) || number <= operand::kExecHi) {
    return registers(number, ops_.src[index], is_agpr_source(index));
  }
  return constant(number, index);
}

std::string Printer::constant(std::uint16_t number, std::size_t index) const {
  if (number < operand::kIntMinus1) return std::to_string(number - operand::kInt0);
  if (number < operand::kSharedBase) return std::to_string(operand::kIntMinus1 - number - 1);
  if (number < operand::kFloatHalf || number > operand::kInv2Pi) return special_source(number);
  const FloatConstant& value = kFloats[number - operand::kFloatHalf];
  if (is_short(index)) return hexadecimal(value.half);
  // The elements of a wide VOP3P source are 32 bits wide, so its constants are too, but not in products of fp64.
  const bool packed =
      i_.encoding == Encoding::kVop3p && i_.op != Op::kVMfmaF6416x16x4f64 && i_.op != Op::kVMfmaF644x4x4f64;
  const bool is_double = ops_.src[index] > 1 && !packed;
  return std::string(number == operand::kInv2Pi && is_double ? kInv2PiDouble : value.text);
}

// Writes a literal; one whose value is an inline constant looks like that constant, as in LLVM.
std::string Printer::literal(std::size_t index) const {
  if (ops_.src[index] == 2) return small_or_hexadecimal(i_.literal);
  const bool half = ops_.is(trait::kFloat16);
  const bool is_16 = half || is_short(index);
  const auto as_integer =
      static_cast<std::int32_t>(is_16 ? static_cast<std::int16_t>(i_.literal) : static_cast<std::int32_t>(i_.literal));
  if (is_inline(as_integer)) return std::to_string(as_integer);
  // Only operations on packed halves use just the low half of a constant.
  const bool low = i_.op == Op::kVDot2cF32F16 || i_.op == Op::kVPkFmacF16;
  for (const FloatConstant& value : kFloats) {
    if (is_short(index)) break;
    if ((half ? value.half : value.single) == (low ? i_.literal & 0xffff : i_.literal)) return std::string(value.text);
  }
  return hexadecimal(is_16 ? i_.literal & 0xffff : i_.literal);
}

std::string Printer::with_modifiers(std::size_t index) const {
  const bool neg = (i_.neg >> index & 1) != 0;
  const bool abs = (i_.abs >> index & 1) != 0;
  const bool sext = (i_.sdwa.sext >> index & 1) != 0;
  std::string text = source_text(index);
  if (sext) return "sext(" + text + ")";
  if (abs) return (neg ? "-|" : "|") + text + "|";
  if (!neg) return text;
  // A negated constant gets neg() because "-1" would be the constant -1, not the negation of 1.
  const std::uint16_t number = i_.src[index];
  const bool immediate = (number >= operand::kInt0 && number < operand::kSharedBase) ||
                         (number >= operand::kFloatHalf && number <= operand::kInv2Pi) || number == operand::kLiteral;
  return immediate ? "neg(" + text + ")" : "-" + text;
}

}  // namespace gcn
