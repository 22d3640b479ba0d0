// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The functions with which execute.cc adds the operations of this folder to the table of handlers.
#pragma once

#include "gcn/isa/handler.h"

namespace gcn {

void add_vector_move_handlers(HandlerTable& table);   // moves, selections, lanes
void add_vector_int_handlers(HandlerTable& table);    // integer arithmetic, bits, comparisons
void add_vector_float_handlers(HandlerTable& table);  // fp16, fp32, fp64, conversions, comparisons, dot products

}  // namespace gcn
