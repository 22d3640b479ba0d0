// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Collects the handlers of the scalar ALU and of program control.
#include "gcn/scalar/scalar.h"

#include "gcn/scalar/scalar_handlers.h"

namespace gcn {

void add_scalar_handlers(HandlerTable& table) {
  add_scalar_alu_handlers(table);
  add_scalar_bits_handlers(table);
  add_scalar_compare_handlers(table);
  add_scalar_control_handlers(table);
  add_scalar_register_handlers(table);
}

}  // namespace gcn
