// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The parts of the memory operations.
#pragma once

#include "gcn/isa/handler.h"

namespace gcn {

// Each adds the operations of its file.
void add_scalar_memory_handlers(HandlerTable& table);  // SMEM
void add_flat_handlers(HandlerTable& table);           // FLAT, GLOBAL, SCRATCH
void add_buffer_handlers(HandlerTable& table);         // MUBUF

}  // namespace gcn
