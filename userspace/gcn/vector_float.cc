// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Vector floating point.
#include "gcn/execute.h"

namespace gcn {

void add_vector_float_handlers(HandlerTable& /*table*/) {}

}  // namespace gcn
