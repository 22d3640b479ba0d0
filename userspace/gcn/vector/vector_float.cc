// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// All handlers of vector floating point.
#include "gcn/vector/vector_float.h"

#include "gcn/vector/vector_handlers.h"

namespace gcn {

void add_vector_float_handlers(HandlerTable& table) {
  add_float32_handlers(table);
  add_float16_handlers(table);
  add_float64_handlers(table);
  add_convert_handlers(table);
  add_float_compare_handlers(table);
  add_packed_float_handlers(table);
  add_mfma_handlers(table);
}

}  // namespace gcn
