// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Scalar ALU, program control.
#include "gcn/execute.h"

namespace gcn {

void add_scalar_handlers(HandlerTable& /*table*/) {}

}  // namespace gcn
