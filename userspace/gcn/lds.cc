// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Local data share.
#include "gcn/execute.h"

namespace gcn {

void add_lds_handlers(HandlerTable& /*table*/) {}

}  // namespace gcn
