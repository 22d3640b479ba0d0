// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The templates and functions that the files of the scalar operations share.
#pragma once

#include <concepts>

#include "gcn/scalar/scalar_operand.h"

namespace gcn {

// Each function adds the operations of its file.
void add_scalar_alu_handlers(HandlerTable& table);       // scalar_alu.cc
void add_scalar_bits_handlers(HandlerTable& table);      // scalar_bits.cc
void add_scalar_compare_handlers(HandlerTable& table);   // scalar_alu.cc
void add_scalar_control_handlers(HandlerTable& table);   // scalar_control.cc
void add_scalar_register_handlers(HandlerTable& table);  // scalar_register.cc

// A result, and the value that SCC has after the operation.
template <typename T>
struct WithScc {
  T value;
  bool scc;
};

template <typename T>
[[nodiscard]] constexpr WithScc<T> nonzero(T value) {
  return {value, value != 0};
}

inline void put(Machine& machine, unsigned dst, std::uint32_t value) { write_scalar(machine.wave, dst, value); }
inline void put(Machine& machine, unsigned dst, std::uint64_t value) { write_scalar64(machine.wave, dst, value); }
template <typename T>
void put(Machine& machine, unsigned dst, WithScc<T> result) {
  put(machine, dst, result.value);
  machine.wave.scc = result.scc;
}

// unary does dst = F(src0) and binary_of does dst = F(src0, src1). F may take SCC as an additional last argument.
template <typename T, auto F>
Outcome unary(const Instruction& instruction, Machine& machine) {
  const T a = read_scalar<T>(instruction, machine, instruction.src[0]);
  put(machine, instruction.dst, F(a));
  return Outcome::kNext;
}

template <typename A, typename B, auto F>
Outcome binary_of(const Instruction& instruction, Machine& machine) {
  const A a = read_scalar<A>(instruction, machine, instruction.src[0]);
  const B b = read_scalar<B>(instruction, machine, instruction.src[1]);
  if constexpr (std::invocable<decltype(F), A, B, bool>) {
    put(machine, instruction.dst, F(a, b, machine.wave.scc));
  } else {
    put(machine, instruction.dst, F(a, b));
  }
  return Outcome::kNext;
}

template <typename T, auto F>
constexpr Handler binary = binary_of<T, T, F>;

}  // namespace gcn
