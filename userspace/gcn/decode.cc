// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Microcode formats.
#include "gcn/decode.h"

namespace gcn {

std::optional<Instruction> decode(Isa /*isa*/, std::span<const std::uint32_t> /*words*/) { return std::nullopt; }

}  // namespace gcn
