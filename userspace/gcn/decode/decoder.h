// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// One run of decode(): the dwords and the instruction that they become. Only decode*.cc include this file.
#pragma once

#include <optional>
#include <span>

#include "gcn/isa/instruction.h"
#include "gcn/isa/operands.h"

namespace gcn {

using Word = std::uint32_t;

[[nodiscard]] constexpr Word bits(Word word, unsigned low, unsigned count) { return word >> low & ((1u << count) - 1); }
[[nodiscard]] constexpr bool bit(Word word, unsigned number) { return bits(word, number, 1) != 0; }
[[nodiscard]] constexpr std::int32_t sign_extend(Word value, unsigned width) {
  const Word sign = 1u << (width - 1);
  return static_cast<std::int32_t>((value ^ sign) - sign);
}

// Returns the operand number of the registers that begin at `number` of a register file and are `width` dwords wide, or
// nothing if there are no such registers. The low bits of a scalar number that is not aligned are dropped, as the
// hardware does.
[[nodiscard]] std::optional<std::uint16_t> scalar_register(Word number, unsigned width);
[[nodiscard]] std::optional<std::uint16_t> vector_register(Word number, unsigned width);
// Returns the operand number of a 9-bit source field. It passes kLiteral through: the caller knows whether its format
// may have a literal.
[[nodiscard]] std::optional<std::uint16_t> source(Word number, unsigned width);

class Decoder {
 public:
  // `words` is not empty.
  Decoder(Isa isa, std::span<const Word> words)
      : isa_(isa), low_(words[0]), high_(words.size() > 1 ? words[1] : 0), has_high_(words.size() > 1) {}

  std::optional<Instruction> run();

 private:
  // Each of these functions fills `out_` and returns false if the bits are no instruction.
  bool decode_short();  // formats of one dword, and perhaps a literal, SDWA or DPP dword
  bool decode_long();   // formats of two dwords

  // Defined in decode.cc.
  bool sop2();
  bool sopk();
  bool sop1();
  bool sopc();
  bool sopp();
  // Defined in decode_vector.cc.
  bool vop2();
  bool vop1();
  bool vopc();
  bool vintrp();
  bool short_sources(Word src1);
  bool sdwa(Word src1);
  bool sdwa_result();
  bool sdwa_source(std::size_t index, Word number);
  bool dpp(Word src1);
  bool vop3();
  bool vop3_results();
  bool vop3_sources();
  bool vop3_modifiers();
  bool vop3p();
  bool mfma();
  // Defined in decode_memory.cc.
  bool smem();
  bool ds();
  bool flat();
  bool flat_address();
  bool flat_data();
  [[nodiscard]] bool float_atomic_modifiers() const;
  bool buffer();
  bool buffer_address();
  bool buffer_data();
  bool cache_control();
  bool mimg();
  bool exp();

  // Marks the second dword as part of the instruction; false if the caller of decode() passed only one.
  bool need_high() {
    out_.bytes = 8;
    return has_high_;
  }

  // Stores `found` in `place`; false if there is nothing to store.
  static bool put(std::uint16_t& place, std::optional<std::uint16_t> found) {
    if (!found) return false;
    place = *found;
    return true;
  }
  // These functions store nothing for an operand that the operation does not have: the field's bits are ignored.
  bool put_scalar_dst(Word number) { return ops_->dst == 0 || put(out_.dst, scalar_register(number, ops_->dst)); }
  bool put_vector_dst(Word number) { return ops_->dst == 0 || put(out_.dst, vector_register(number, ops_->dst)); }
  bool put_scalar_src(std::size_t index, Word number) {
    return ops_->src[index] == 0 || put(out_.src[index], scalar_register(number, ops_->src[index]));
  }
  bool put_vector_src(std::size_t index, Word number) {
    return ops_->src[index] == 0 || put(out_.src[index], vector_register(number, ops_->src[index]));
  }
  // These two are stricter: the field of an operand that the operation does not have must be 0.
  bool put_vector_dst_or_0(Word number) { return ops_->dst == 0 ? number == 0 : put_vector_dst(number); }
  bool put_vector_src_or_0(std::size_t index, Word number) {
    return ops_->src[index] == 0 ? number == 0 : put_vector_src(index, number);
  }
  // An atomic that does not return has no destination.
  [[nodiscard]] bool returns(std::size_t data) const { return ops_->dst != 0 && (ops_->src[data] == 0 || out_.glc); }
  // Stores a 9-bit source in a format that may have a literal.
  bool put_src(std::size_t index, Word number) {
    if (ops_->src[index] == 0) return true;
    if (!put(out_.src[index], source(number, ops_->src[index]))) return false;
    if (number != operand::kLiteral) return true;
    out_.literal = high_;
    return need_high();
  }
  // Stores an 8-bit source of the SALU, which cannot read LDS.
  bool put_salu_src(std::size_t index, Word number) {
    return ops_->src[index] == 0 || (number != operand::kLdsDirect && put_src(index, number));
  }

  Isa isa_;
  Word low_;
  Word high_;
  bool has_high_;
  const Operands* ops_ = nullptr;
  Instruction out_;
};

}  // namespace gcn
