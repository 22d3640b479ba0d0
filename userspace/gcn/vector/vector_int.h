// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The functions that add_vector_int_handlers() calls, and templates that they share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "gcn/vector/vector_operands.h"

namespace gcn {

void add_vector_int_bits_handlers(HandlerTable& table);     // shifts, logic, bit fields, bytes
void add_vector_int_packed_handlers(HandlerTable& table);   // VOP3P, dot products, narrowing
void add_vector_int_compare_handlers(HandlerTable& table);  // v_cmp, v_cmpx

// Returns the number of type T that is nearest to `value`.
template <typename T>
[[nodiscard]] constexpr T saturate(std::int64_t value) {
  return static_cast<T>(std::clamp<std::int64_t>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

// Like vector, but with the clamp bit the instruction is illegal: the ISA documents do not say what it does there.
template <typename Signature, auto kLane>
Outcome unclamped(const Instruction& instruction, Machine& machine) {
  return instruction.clamp ? Outcome::kIllegal : vector<Signature, kLane>(instruction, machine);
}

}  // namespace gcn
