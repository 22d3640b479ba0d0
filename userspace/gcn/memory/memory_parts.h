// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The functions that memory.cc collects the handlers of memory operations with.
#pragma once

#include "gcn/isa/handler.h"

namespace gcn {

// Each function adds the operations of the file that defines it.
void add_scalar_memory_handlers(HandlerTable& table);  // SMEM
void add_flat_handlers(HandlerTable& table);           // FLAT, GLOBAL, SCRATCH
void add_buffer_handlers(HandlerTable& table);         // MUBUF

}  // namespace gcn
