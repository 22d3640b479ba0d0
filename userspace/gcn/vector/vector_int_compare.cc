// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Handlers of integer comparisons.
#include <cstddef>

#include "gcn/vector/vector_int.h"
#include "gcn/vector/vector_operands.h"

namespace gcn {
namespace {

template <typename T>
bool never(T /*a*/, T /*b*/) {
  return false;
}
template <typename T>
bool less(T a, T b) {
  return a < b;
}
template <typename T>
bool equal(T a, T b) {
  return a == b;
}
template <typename T>
bool less_equal(T a, T b) {
  return a <= b;
}
template <typename T>
bool greater(T a, T b) {
  return a > b;
}
template <typename T>
bool not_equal(T a, T b) {
  return a != b;
}
template <typename T>
bool greater_equal(T a, T b) {
  return a >= b;
}
template <typename T>
bool always(T /*a*/, T /*b*/) {
  return true;
}

// The eight comparisons of a type follow each other in Op as in the ISA.
template <typename D, typename E>
void add(HandlerTable& table, Op first, Op last) {
  using T = typename E::Value;
  using Signature = D(E, E);
  constexpr auto kHandlers = std::to_array<Handler>(
      {vector<Signature, never<T>>, vector<Signature, less<T>>, vector<Signature, equal<T>>,
       vector<Signature, less_equal<T>>, vector<Signature, greater<T>>, vector<Signature, not_equal<T>>,
       vector<Signature, greater_equal<T>>, vector<Signature, always<T>>});
  const auto begin = static_cast<std::size_t>(first);
  for (std::size_t n = 0; n < kHandlers.size() && begin + n <= static_cast<std::size_t>(last); ++n) {
    table.set(static_cast<Op>(begin + n), kHandlers[n]);
  }
}

}  // namespace

void add_vector_int_compare_handlers(HandlerTable& table) {
  add<Cmp, I16>(table, Op::kVCmpFI16, Op::kVCmpTI16);
  add<Cmp, U16>(table, Op::kVCmpFU16, Op::kVCmpTU16);
  add<Cmp, I32>(table, Op::kVCmpFI32, Op::kVCmpTI32);
  add<Cmp, U32>(table, Op::kVCmpFU32, Op::kVCmpTU32);
  add<Cmp, I64>(table, Op::kVCmpFI64, Op::kVCmpTI64);
  add<Cmp, U64>(table, Op::kVCmpFU64, Op::kVCmpTU64);
  add<Cmpx, I16>(table, Op::kVCmpxFI16, Op::kVCmpxTI16);
  add<Cmpx, U16>(table, Op::kVCmpxFU16, Op::kVCmpxTU16);
  add<Cmpx, I32>(table, Op::kVCmpxFI32, Op::kVCmpxTI32);
  add<Cmpx, U32>(table, Op::kVCmpxFU32, Op::kVCmpxTU32);
  add<Cmpx, I64>(table, Op::kVCmpxFI64, Op::kVCmpxTI64);
  add<Cmpx, U64>(table, Op::kVCmpxFU64, Op::kVCmpxTU64);
}

}  // namespace gcn
