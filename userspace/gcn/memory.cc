// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Scalar and vector memory.
#include "gcn/execute.h"

namespace gcn {

void add_memory_handlers(HandlerTable& /*table*/) {}

}  // namespace gcn
