// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Writes an instruction as a line of text. Tests and fuzzers print it when they fail, and isa_listing_test.cc compares
// it with LLVM's disassembler. vasicd does not link it.
#pragma once

#include <string>

#include "gcn/isa/instruction.h"

namespace gcn {

// Returns one line in the notation of LLVM's disassembler, encoding suffix included.
[[nodiscard]] std::string disassemble(const Instruction& instruction, Isa isa);

}  // namespace gcn
