// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Recognises the microcode format of an instruction and decodes operand numbers and the formats of the SALU.
// Source: chapter "Microcode formats" of the ISA documents.
#include "gcn/decode/decode.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "gcn/decode/decoder.h"
#include "gcn/isa/hexadecimal.h"

namespace gcn {
namespace {

// ---------------------------------------------------------------------------------------------------------------------
// The operation of each opcode number.

// The number of opcodes that each encoding has room for, in the order of Encoding.
inline constexpr std::array<std::uint16_t, kEncodings> kNumbers = {128, 32, 256, 128, 128, 256, 64,  256, 256, 1024,
                                                                   128, 4,  256, 128, 128, 128, 128, 16,  128, 1};
inline constexpr auto kFirst = [] {
  std::array<std::uint16_t, kEncodings + 1> first = {};
  for (std::size_t i = 0; i < kEncodings; ++i) first[i + 1] = static_cast<std::uint16_t>(first[i] + kNumbers[i]);
  return first;
}();
inline constexpr std::uint16_t kNoOp = 0xffff;
inline constexpr std::size_t kIsas = 4;

using OpTable = std::array<std::uint16_t, kFirst[kEncodings]>;

inline constexpr auto kOpTables = [] {
  std::array<OpTable, kIsas> tables = {};
  for (OpTable& table : tables) table.fill(kNoOp);
  for (const Opcode& opcode : kOpcodes) {
    for (std::size_t isa = 0; isa < kIsas; ++isa) {
      if (!contains(opcode.isas, static_cast<Isa>(isa))) continue;
      tables[isa][kFirst[static_cast<std::size_t>(opcode.encoding)] + opcode.number] =
          static_cast<std::uint16_t>(opcode.op);
    }
  }
  return tables;
}();

std::optional<Op> find_op(Isa isa, Encoding encoding, Word number) {
  const std::uint16_t op =
      kOpTables[static_cast<std::size_t>(isa)][kFirst[static_cast<std::size_t>(encoding)] + number];
  if (op == kNoOp) return std::nullopt;
  return static_cast<Op>(op);
}

// ---------------------------------------------------------------------------------------------------------------------
// The bits that select the encoding, and the place of the opcode in it.

struct Format {
  Encoding encoding;
  std::uint8_t low;    // lowest bit of the opcode
  std::uint8_t count;  // bits of the opcode
};

constexpr std::optional<Format> format_of(Word word) {
  if (!bit(word, 31)) {
    if (bits(word, 25, 6) == 0x3f) return Format{Encoding::kVop1, 9, 8};
    if (bits(word, 25, 6) == 0x3e) return Format{Encoding::kVopc, 17, 8};
    return Format{Encoding::kVop2, 25, 6};
  }
  if (!bit(word, 30)) {
    if (bits(word, 23, 9) == 0x17d) return Format{Encoding::kSop1, 8, 8};
    if (bits(word, 23, 9) == 0x17e) return Format{Encoding::kSopc, 16, 7};
    if (bits(word, 23, 9) == 0x17f) return Format{Encoding::kSopp, 16, 7};
    if (bits(word, 28, 4) == 0xb) return Format{Encoding::kSopk, 23, 5};
    return Format{Encoding::kSop2, 23, 7};
  }
  switch (bits(word, 26, 6)) {
    case 0x30:
      return Format{Encoding::kSmem, 18, 8};
    case 0x31:
      return Format{Encoding::kExp, 0, 0};
    case 0x34:
      if (bits(word, 23, 9) == 0x1a7) return Format{Encoding::kVop3p, 16, 7};
      return Format{Encoding::kVop3, 16, 10};
    case 0x35:
      return Format{Encoding::kVintrp, 16, 2};
    case 0x36:
      return Format{Encoding::kDs, 17, 8};
    case 0x37:
      if (bits(word, 14, 2) == 0) return Format{Encoding::kFlat, 18, 7};
      if (bits(word, 14, 2) == 1) return Format{Encoding::kScratch, 18, 7};
      if (bits(word, 14, 2) == 2) return Format{Encoding::kGlobal, 18, 7};
      return std::nullopt;
    case 0x38:
      return Format{Encoding::kMubuf, 18, 7};
    case 0x3a:
      return Format{Encoding::kMtbuf, 15, 4};
    case 0x3c:
      return Format{Encoding::kMimg, 18, 7};
    default:
      return std::nullopt;
  }
}

bool is_inline_constant(Word number) {
  return (number >= operand::kInt0 && number <= 208) ||
         (number >= operand::kSharedBase && number <= operand::kInv2Pi) ||
         (number >= operand::kVccz && number <= operand::kScc);
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------------------
// Operand numbers.

std::optional<std::uint16_t> scalar_register(Word number, unsigned width) {
  if (number > operand::kExecHi || number == operand::kM0 + 1u) return std::nullopt;
  if (width == 1) return static_cast<std::uint16_t>(number);
  const unsigned align = width == 2 ? 2 : 4;
  const Word first = number & ~(align - 1);
  const Word end = first + width;
  if (number < operand::kSgprs) {
    // Four registers and more may extend into FLAT_SCRATCH, which has the numbers of s102 and s103.
    return end <= operand::kXnackMaskLo ? std::optional(static_cast<std::uint16_t>(first)) : std::nullopt;
  }
  if (first >= operand::kTtmp0 && first < operand::kM0) {
    return end <= operand::kM0 ? std::optional(static_cast<std::uint16_t>(first)) : std::nullopt;
  }
  // FLAT_SCRATCH, XNACK_MASK, VCC and EXEC are pairs, and no pair begins at their upper halves. M0 is one dword.
  if (width != 2 || first != number || first == operand::kM0) return std::nullopt;
  return static_cast<std::uint16_t>(first);
}

std::optional<std::uint16_t> vector_register(Word number, unsigned width) {
  if (number + width > 256) return std::nullopt;
  return static_cast<std::uint16_t>(operand::kVgpr0 + number);
}

std::optional<std::uint16_t> source(Word number, unsigned width) {
  if (number >= operand::kVgpr0) return vector_register(number - operand::kVgpr0, width);
  if (number <= operand::kExecHi) return scalar_register(number, width);
  if (is_inline_constant(number) || number == operand::kLiteral) return static_cast<std::uint16_t>(number);
  if (number == operand::kLdsDirect && width == 1) return static_cast<std::uint16_t>(number);
  return std::nullopt;
}

// ---------------------------------------------------------------------------------------------------------------------
// The formats.

std::optional<Instruction> Decoder::run() {
  const std::optional<Format> format = format_of(low_);
  if (!format) return std::nullopt;
  const std::optional<Op> op = find_op(isa_, format->encoding, bits(low_, format->low, format->count));
  if (!op) return std::nullopt;
  out_.op = *op;
  out_.encoding = format->encoding;
  ops_ = &operands(*op);
  if (!decode_short()) return std::nullopt;
  return out_;
}

bool Decoder::decode_short() {
  switch (out_.encoding) {
    case Encoding::kSop2:
      return sop2();
    case Encoding::kSopk:
      return sopk();
    case Encoding::kSop1:
      return sop1();
    case Encoding::kSopc:
      return sopc();
    case Encoding::kSopp:
      return sopp();
    case Encoding::kVop2:
      return vop2();
    case Encoding::kVop1:
      return vop1();
    case Encoding::kVopc:
      return vopc();
    case Encoding::kVintrp:
      return vintrp();
    default:
      return need_high() && decode_long();
  }
}

bool Decoder::decode_long() {
  switch (out_.encoding) {
    case Encoding::kSmem:
      return smem();
    case Encoding::kVop3:
      return vop3();
    case Encoding::kVop3p:
      return ops_->is(trait::kMfma) ? mfma() : vop3p();
    case Encoding::kDs:
      return ds();
    case Encoding::kFlat:
    case Encoding::kGlobal:
    case Encoding::kScratch:
      return flat();
    case Encoding::kMubuf:
    case Encoding::kMtbuf:
      return buffer();
    case Encoding::kMimg:
      return mimg();
    default:
      return exp();
  }
}

bool Decoder::sop2() {
  return put_scalar_dst(bits(low_, 16, 7)) && put_salu_src(0, bits(low_, 0, 8)) && put_salu_src(1, bits(low_, 8, 8));
}

bool Decoder::sop1() {
  const Word src = bits(low_, 0, 8);
  if (ops_->is(trait::kRegisterSrc0) && src > operand::kExecHi) return false;
  return put_scalar_dst(bits(low_, 16, 7)) && put_salu_src(0, src);
}

bool Decoder::sopc() {
  if (!put_salu_src(0, bits(low_, 0, 8))) return false;
  if (out_.op != Op::kSSetGprIdxOn) return put_salu_src(1, bits(low_, 8, 8));
  // s_set_gpr_idx_on has the value itself here, not the number of an operand.
  out_.src[1] = static_cast<std::uint16_t>(bits(low_, 8, 8));
  return true;
}

bool Decoder::sopk() {
  out_.offset = sign_extend(bits(low_, 0, 16), 16);
  if (out_.op == Op::kSSetregImm32B32) {
    out_.src[0] = operand::kLiteral;
    out_.literal = high_;
    return need_high();
  }
  return put_scalar_dst(bits(low_, 16, 7)) && put_scalar_src(0, bits(low_, 16, 7));
}

bool Decoder::sopp() {
  out_.offset = sign_extend(bits(low_, 0, 16), 16);
  return out_.offset == 0 || !ops_->is(trait::kNoImmediate);
}

std::string describe(Isa isa, std::span<const std::uint32_t> words) {
  if (words.empty()) return "nothing";
  if (const std::optional<Format> format = format_of(words[0])) {
    const Word number = bits(words[0], format->low, format->count);
    if (const std::optional<Op> op = find_op(isa, format->encoding, number)) return std::string(name(*op));
    return std::string(name(format->encoding)) + " opcode " + hexadecimal(number);
  }
  std::string text = "dwords";
  for (const Word word : words.first(std::min<std::size_t>(words.size(), 2))) text += " " + hexadecimal(word);
  return text;
}

std::optional<Instruction> decode(Isa isa, std::span<const std::uint32_t> words) {
  if (words.empty()) return std::nullopt;
  return Decoder(isa, words).run();
}

}  // namespace gcn
