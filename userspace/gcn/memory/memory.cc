// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Collects the handlers of scalar and vector memory instructions.
#include "gcn/memory/handler_groups.h"
#include "gcn/memory/lane_operations.h"
#include "gcn/memory/memory_handlers.h"

namespace gcn {

void set_family(HandlerTable& table, std::string_view prefix, std::span<const NamedHandler> family) {
  for (std::size_t op = 0; op < kOps; ++op) {
    if (!kOpNames[op].starts_with(prefix)) continue;
    for (const NamedHandler& named : family) {
      if (kOpNames[op].substr(prefix.size()) == named.name) table.set(static_cast<Op>(op), named.handler);
    }
  }
}

void add_memory_handlers(HandlerTable& table) {
  add_scalar_memory_handlers(table);
  add_flat_handlers(table);
  add_buffer_handlers(table);
}

}  // namespace gcn
