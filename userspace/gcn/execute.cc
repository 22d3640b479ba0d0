// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The table of all handlers, filled once, and the execution of one instruction.
#include "gcn/execute.h"

#include "gcn/memory/memory_handlers.h"
#include "gcn/scalar/scalar_handlers.h"
#include "gcn/vector/vector_handlers.h"

namespace gcn {

const HandlerTable& handlers() {
  static const HandlerTable table = [] {
    HandlerTable t;
    add_scalar_handlers(t);
    add_vector_move_handlers(t);
    add_vector_int_handlers(t);
    add_vector_float_handlers(t);
    add_memory_handlers(t);
    add_lds_handlers(t);
    return t;
  }();
  return table;
}

Outcome execute(const Instruction& instruction, Machine& machine) {
  const Handler handler = handlers()[instruction.op];
  if (handler == nullptr) return Outcome::kIllegal;
  const Outcome outcome = handler(instruction, machine);
  if (outcome != Outcome::kFault && outcome != Outcome::kViolation && outcome != Outcome::kIllegal &&
      outcome != Outcome::kTrap) {
    machine.wave.pc += instruction.bytes;
  }
  return outcome;
}

}  // namespace gcn
