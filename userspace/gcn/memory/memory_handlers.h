// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// All operations that this folder executes: execute.cc puts them into the table of handlers.
#pragma once

#include "gcn/isa/handler.h"

namespace gcn {

void add_memory_handlers(HandlerTable& table);  // SMEM, FLAT, GLOBAL, SCRATCH, MUBUF
void add_lds_handlers(HandlerTable& table);     // DS

}  // namespace gcn
