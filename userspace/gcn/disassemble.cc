// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Instructions as text.
#include "gcn/decode.h"

namespace gcn {

std::string disassemble(const Instruction& /*instruction*/, Isa /*isa*/) { return {}; }
std::string describe(Isa /*isa*/, std::span<const std::uint32_t> /*words*/) { return {}; }

}  // namespace gcn
