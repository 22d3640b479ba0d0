// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Machine code to Instruction. Any dwords may come; what is not an instruction of the ISA is refused.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "gcn/isa/instruction.h"

namespace gcn {

// Decodes the instruction at the front of `words` (two are enough). Nothing: no instruction of this ISA, or it goes
// beyond `words`.
[[nodiscard]] std::optional<Instruction> decode(Isa isa, std::span<const std::uint32_t> words);

// What an illegal instruction is called in messages: its mnemonic if the opcode is known, else its encoding and number,
// else the dwords.
[[nodiscard]] std::string describe(Isa isa, std::span<const std::uint32_t> words);

}  // namespace gcn
