// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The functions with which memory.cc adds the handlers of memory instructions, one for each group of instructions.
#pragma once

#include "gcn/isa/handler.h"

namespace gcn {

// Each function adds the handlers that its file defines.
void add_scalar_memory_handlers(HandlerTable& table);  // SMEM
void add_flat_handlers(HandlerTable& table);           // FLAT, GLOBAL, SCRATCH
void add_buffer_handlers(HandlerTable& table);         // MUBUF

}  // namespace gcn
