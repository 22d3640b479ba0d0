// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Vector integer arithmetic, bits, comparisons.
#include "gcn/execute.h"

namespace gcn {

void add_vector_int_handlers(HandlerTable& /*table*/) {}

}  // namespace gcn
