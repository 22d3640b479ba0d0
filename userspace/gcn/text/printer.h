// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Builds the text of one instruction. Only disassemble*.cc include this file.
#pragma once

#include <string>
#include <string_view>

#include "gcn/isa/hexadecimal.h"
#include "gcn/isa/instruction.h"
#include "gcn/isa/operands.h"

namespace gcn {

// Writes a number in decimal if it could be an inline constant, else in hexadecimal, as LLVM does with most immediates.
[[nodiscard]] std::string small_or_hexadecimal(std::uint32_t value);

// Immediates with a notation of their own, defined in disassemble_immediate.cc.
[[nodiscard]] std::string hardware_register(std::uint32_t simm16);
[[nodiscard]] std::string wait_counts(std::uint32_t simm16);
[[nodiscard]] std::string message(std::uint32_t simm16);
[[nodiscard]] std::string index_mode(std::uint32_t mask);
[[nodiscard]] std::string swizzle(std::uint32_t offset);
[[nodiscard]] std::string dpp_control(std::uint32_t control);

class Printer {
 public:
  Printer(const Instruction& instruction, Isa isa) : i_(instruction), isa_(isa), ops_(operands(instruction.op)) {}

  std::string run();

 private:
  // The formats, defined in disassemble.cc.
  [[nodiscard]] std::string_view suffix() const;
  void format_operands();
  void sopk();
  void sopp();
  void smem();
  void valu();
  void valu_sources();
  void vop3_modifiers();
  void vop3p_modifiers();
  void sdwa();
  void dpp();
  void ds();
  void flat();
  void buffer();
  void mimg();

  // The operands, defined in disassemble_operand.cc.
  // Appends an operand and the comma or blank before it.
  void operand(std::string_view text);
  void flag(bool set, std::string_view text);
  // Appends " name:[a,b,...]", the bits of `mask` from the lowest on.
  void bit_list(std::string_view name, unsigned mask, unsigned count);
  void destination();
  void source(std::size_t index);
  [[nodiscard]] std::string source_text(std::size_t index) const;
  [[nodiscard]] std::string with_modifiers(std::size_t index) const;
  [[nodiscard]] std::string constant(std::uint16_t number, std::size_t index) const;
  [[nodiscard]] std::string literal(std::size_t index) const;
  [[nodiscard]] std::string registers(std::uint16_t number, unsigned width, bool agpr) const;
  [[nodiscard]] bool is_agpr_source(std::size_t index) const;
  [[nodiscard]] bool is_short(std::size_t index) const;
  [[nodiscard]] unsigned sources() const;

  const Instruction& i_;
  Isa isa_;
  const Operands& ops_;
  std::string text_;
  bool has_operand_ = false;
};

}  // namespace gcn
