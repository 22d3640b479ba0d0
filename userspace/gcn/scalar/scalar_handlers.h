// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The functions with which execute.cc adds the operations of this folder to the table of handlers.
#pragma once

#include "gcn/isa/handler.h"

namespace gcn {

void add_scalar_handlers(HandlerTable& table);  // SOP*

}  // namespace gcn
