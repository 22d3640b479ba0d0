// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// An instruction as a line of text. Tests and fuzzers print with it what failed, and hold it against LLVM's
// disassembler; vasicd does not link it.
#pragma once

#include <string>

#include "gcn/isa/instruction.h"

namespace gcn {

// One line in the notation of LLVM's disassembler, encoding suffix included.
[[nodiscard]] std::string disassemble(const Instruction& instruction, Isa isa);

}  // namespace gcn
