// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Executes instructions of one wave: the table of all handlers, and the function that calls the handler of one
// instruction. What a handler promises is written down in isa/handler.h.
#pragma once

#include "gcn/isa/handler.h"

namespace gcn {

[[nodiscard]] const HandlerTable& handlers();

// Executes `instruction`, which was decoded from wave.pc, and advances the pc.
Outcome execute(const Instruction& instruction, Machine& machine);

}  // namespace gcn
