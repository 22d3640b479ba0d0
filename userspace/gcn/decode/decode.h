// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The decoder: machine code to Instruction. It accepts any dwords and refuses those that are no instruction of the ISA.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "gcn/isa/instruction.h"

namespace gcn {

// Decodes the instruction at the front of `words` (two are enough). Returns nothing if there is no instruction of this
// ISA, or if it extends beyond `words`.
[[nodiscard]] std::optional<Instruction> decode(Isa isa, std::span<const std::uint32_t> words);

// Returns how messages name an illegal instruction: by its mnemonic if the opcode is known, else by its encoding and
// opcode, else by its dwords.
[[nodiscard]] std::string describe(Isa isa, std::span<const std::uint32_t> words);

}  // namespace gcn
