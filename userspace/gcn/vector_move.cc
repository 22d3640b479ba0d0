// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Vector moves, selections and lane exchanges.
#include "gcn/execute.h"

namespace gcn {

void add_vector_move_handlers(HandlerTable& /*table*/) {}

}  // namespace gcn
