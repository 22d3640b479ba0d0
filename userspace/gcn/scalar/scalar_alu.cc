// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Scalar arithmetic, logic, shifts and comparisons (SOP2, SOPK, SOPC and the arithmetic of SOP1).
#include <algorithm>

#include "gcn/scalar/scalar.h"

namespace gcn {
namespace {

using I32 = std::int32_t;
using I64 = std::int64_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

constexpr auto kEq = [](auto a, auto b) { return a == b; };
constexpr auto kLg = [](auto a, auto b) { return a != b; };
constexpr auto kGt = [](auto a, auto b) { return a > b; };
constexpr auto kGe = [](auto a, auto b) { return a >= b; };
constexpr auto kLt = [](auto a, auto b) { return a < b; };
constexpr auto kLe = [](auto a, auto b) { return a <= b; };

constexpr U32 low(U64 value) { return static_cast<U32>(value); }
constexpr U32 low(I64 value) { return static_cast<U32>(value); }

// SCC says whether the sum needs a 33rd bit, or whether the difference is negative.
constexpr WithScc<U32> carry(U64 sum) { return {low(sum), sum >> 32 != 0}; }
constexpr WithScc<U32> overflow(I64 result) { return {low(result), result != static_cast<I32>(result)}; }

constexpr WithScc<U32> add_carry(U32 a, U32 b, bool scc) { return carry(U64{a} + b + scc); }
constexpr WithScc<U32> sub_borrow(U32 a, U32 b, bool scc) { return {a - b - scc, U64{a} < U64{b} + scc}; }

template <unsigned kShift>
constexpr WithScc<U32> shift_add(U32 a, U32 b) {
  return carry((U64{a} << kShift) + b);
}

constexpr WithScc<U32> absolute_difference(I32 a, I32 b) {
  return nonzero(a < b ? static_cast<U32>(b) - static_cast<U32>(a) : static_cast<U32>(a) - static_cast<U32>(b));
}

void add_arithmetic(HandlerTable& table) {
  table.set(Op::kSAddU32, binary<U32, [](U32 a, U32 b) { return carry(U64{a} + b); }>);
  table.set(Op::kSSubU32, binary<U32, [](U32 a, U32 b) { return WithScc<U32>{a - b, a < b}; }>);
  table.set(Op::kSAddI32, binary<I32, [](I32 a, I32 b) { return overflow(I64{a} + b); }>);
  table.set(Op::kSSubI32, binary<I32, [](I32 a, I32 b) { return overflow(I64{a} - b); }>);
  table.set(Op::kSAddcU32, binary<U32, add_carry>);
  table.set(Op::kSSubbU32, binary<U32, sub_borrow>);
  table.set(Op::kSMulI32, binary<U32, [](U32 a, U32 b) { return a * b; }>);
  table.set(Op::kSMulHiU32, binary<U32, [](U32 a, U32 b) { return low(U64{a} * b >> 32); }>);
  table.set(Op::kSMulHiI32, binary<I32, [](I32 a, I32 b) { return low(I64{a} * b >> 32); }>);
  table.set(Op::kSLshl1AddU32, binary<U32, shift_add<1>>);
  table.set(Op::kSLshl2AddU32, binary<U32, shift_add<2>>);
  table.set(Op::kSLshl3AddU32, binary<U32, shift_add<3>>);
  table.set(Op::kSLshl4AddU32, binary<U32, shift_add<4>>);
  table.set(Op::kSAbsdiffI32, binary<I32, absolute_difference>);
  table.set(Op::kSAbsI32, unary<U32, [](U32 a) { return nonzero(static_cast<I32>(a) < 0 ? 0 - a : a); }>);
}

// SCC says whether the first source was chosen. If both are equal, the second one is.
template <typename T, auto kFirst>
Outcome choose(const Instruction& instruction, Machine& machine) {
  const T a = read_scalar<T>(instruction, machine, instruction.src[0]);
  const T b = read_scalar<T>(instruction, machine, instruction.src[1]);
  const bool first = kFirst(a, b);
  put(machine, instruction.dst, WithScc<U32>{static_cast<U32>(first ? a : b), first});
  return Outcome::kNext;
}

void add_choices(HandlerTable& table) {
  table.set(Op::kSMinI32, choose<I32, kLt>);
  table.set(Op::kSMinU32, choose<U32, kLt>);
  table.set(Op::kSMaxI32, choose<I32, kGt>);
  table.set(Op::kSMaxU32, choose<U32, kGt>);
  table.set(Op::kSCselectB32, binary<U32, [](U32 a, U32 b, bool scc) { return scc ? a : b; }>);
  table.set(Op::kSCselectB64, binary<U64, [](U64 a, U64 b, bool scc) { return scc ? a : b; }>);
}

template <typename T>
struct Logic {
  static constexpr auto kAnd = [](T a, T b) { return nonzero(a & b); };
  static constexpr auto kOr = [](T a, T b) { return nonzero(a | b); };
  static constexpr auto kXor = [](T a, T b) { return nonzero(a ^ b); };
  static constexpr auto kAndn2 = [](T a, T b) { return nonzero(a & ~b); };
  static constexpr auto kOrn2 = [](T a, T b) { return nonzero(a | ~b); };
  static constexpr auto kNand = [](T a, T b) { return nonzero(~(a & b)); };
  static constexpr auto kNor = [](T a, T b) { return nonzero(~(a | b)); };
  static constexpr auto kXnor = [](T a, T b) { return nonzero(~(a ^ b)); };
};

void add_logic(HandlerTable& table) {
  table.set(Op::kSAndB32, binary<U32, Logic<U32>::kAnd>);
  table.set(Op::kSAndB64, binary<U64, Logic<U64>::kAnd>);
  table.set(Op::kSOrB32, binary<U32, Logic<U32>::kOr>);
  table.set(Op::kSOrB64, binary<U64, Logic<U64>::kOr>);
  table.set(Op::kSXorB32, binary<U32, Logic<U32>::kXor>);
  table.set(Op::kSXorB64, binary<U64, Logic<U64>::kXor>);
  table.set(Op::kSAndn2B32, binary<U32, Logic<U32>::kAndn2>);
  table.set(Op::kSAndn2B64, binary<U64, Logic<U64>::kAndn2>);
  table.set(Op::kSOrn2B32, binary<U32, Logic<U32>::kOrn2>);
  table.set(Op::kSOrn2B64, binary<U64, Logic<U64>::kOrn2>);
  table.set(Op::kSNandB32, binary<U32, Logic<U32>::kNand>);
  table.set(Op::kSNandB64, binary<U64, Logic<U64>::kNand>);
  table.set(Op::kSNorB32, binary<U32, Logic<U32>::kNor>);
  table.set(Op::kSNorB64, binary<U64, Logic<U64>::kNor>);
  table.set(Op::kSXnorB32, binary<U32, Logic<U32>::kXnor>);
  table.set(Op::kSXnorB64, binary<U64, Logic<U64>::kXnor>);
}

// Shift counts are taken modulo the width.
void add_shifts(HandlerTable& table) {
  table.set(Op::kSLshlB32, binary<U32, [](U32 a, U32 n) { return nonzero(a << (n & 31)); }>);
  table.set(Op::kSLshlB64, binary_of<U64, U32, [](U64 a, U32 n) { return nonzero(a << (n & 63)); }>);
  table.set(Op::kSLshrB32, binary<U32, [](U32 a, U32 n) { return nonzero(a >> (n & 31)); }>);
  table.set(Op::kSLshrB64, binary_of<U64, U32, [](U64 a, U32 n) { return nonzero(a >> (n & 63)); }>);
  table.set(Op::kSAshrI32, binary_of<I32, U32, [](I32 a, U32 n) { return nonzero(static_cast<U32>(a >> (n & 31))); }>);
  table.set(Op::kSAshrI64, binary_of<I64, U32, [](I64 a, U32 n) { return nonzero(static_cast<U64>(a >> (n & 63))); }>);
}

// S1 says where the field begins (low 5 or 6 bits) and how wide it is (bits 22:16).
constexpr unsigned field_width(U32 s1) { return s1 >> 16 & 0x7f; }

template <typename T, unsigned kBits>
constexpr auto extract(T a, U32 s1) {
  using Unsigned = std::make_unsigned_t<T>;
  const unsigned width = std::min(field_width(s1), kBits);
  if (width == 0) return nonzero(Unsigned{0});
  const T shifted = static_cast<T>(a >> (s1 & (kBits - 1)));
  // The field is shifted to the top and back: the second shift fills with zeroes or with the field's sign.
  const T top = static_cast<T>(static_cast<Unsigned>(shifted) << (kBits - width));
  return nonzero(static_cast<Unsigned>(top >> (kBits - width)));
}

void add_fields(HandlerTable& table) {
  table.set(Op::kSBfmB32, binary<U32, [](U32 a, U32 b) { return ((1u << (a & 31)) - 1) << (b & 31); }>);
  table.set(Op::kSBfmB64, binary<U32, [](U32 a, U32 b) { return ((U64{1} << (a & 63)) - 1) << (b & 63); }>);
  table.set(Op::kSBfeU32, binary_of<U32, U32, extract<U32, 32>>);
  table.set(Op::kSBfeI32, binary_of<I32, U32, extract<I32, 32>>);
  table.set(Op::kSBfeU64, binary_of<U64, U32, extract<U64, 64>>);
  table.set(Op::kSBfeI64, binary_of<I64, U32, extract<I64, 64>>);
  table.set(Op::kSPackLlB32B16, binary<U32, [](U32 a, U32 b) { return (a & 0xffff) | b << 16; }>);
  table.set(Op::kSPackLhB32B16, binary<U32, [](U32 a, U32 b) { return (a & 0xffff) | (b & 0xffff0000); }>);
  table.set(Op::kSPackHhB32B16, binary<U32, [](U32 a, U32 b) { return (b & 0xffff0000) | (a >> 16); }>);
}

// The constant of SOPK is signed, except where the operation is unsigned.
Outcome movk(const Instruction& instruction, Machine& machine) {
  put(machine, instruction.dst, static_cast<U32>(instruction.offset));
  return Outcome::kNext;
}

Outcome cmovk(const Instruction& instruction, Machine& machine) {
  return machine.wave.scc ? movk(instruction, machine) : Outcome::kNext;
}

Outcome addk(const Instruction& instruction, Machine& machine) {
  const I32 a = read_scalar<I32>(instruction, machine, instruction.dst);
  put(machine, instruction.dst, overflow(I64{a} + instruction.offset));
  return Outcome::kNext;
}

Outcome mulk(const Instruction& instruction, Machine& machine) {
  const U32 a = read_scalar<U32>(instruction, machine, instruction.dst);
  put(machine, instruction.dst, a * static_cast<U32>(instruction.offset));
  return Outcome::kNext;
}

template <auto F>
Outcome compare_constant_signed(const Instruction& instruction, Machine& machine) {
  machine.wave.scc = F(read_scalar<I32>(instruction, machine, instruction.src[0]), instruction.offset);
  return Outcome::kNext;
}

template <auto F>
Outcome compare_constant_unsigned(const Instruction& instruction, Machine& machine) {
  machine.wave.scc =
      F(read_scalar<U32>(instruction, machine, instruction.src[0]), static_cast<U32>(instruction.offset) & 0xffff);
  return Outcome::kNext;
}

template <typename A, typename B, auto F>
Outcome compare(const Instruction& instruction, Machine& machine) {
  machine.wave.scc = F(read_scalar<A>(instruction, machine, instruction.src[0]),
                       read_scalar<B>(instruction, machine, instruction.src[1]));
  return Outcome::kNext;
}

void add_constants(HandlerTable& table) {
  table.set(Op::kSMovkI32, movk);
  table.set(Op::kSCmovkI32, cmovk);
  table.set(Op::kSAddkI32, addk);
  table.set(Op::kSMulkI32, mulk);
  table.set(Op::kSCmpkEqI32, compare_constant_signed<kEq>);
  table.set(Op::kSCmpkLgI32, compare_constant_signed<kLg>);
  table.set(Op::kSCmpkGtI32, compare_constant_signed<kGt>);
  table.set(Op::kSCmpkGeI32, compare_constant_signed<kGe>);
  table.set(Op::kSCmpkLtI32, compare_constant_signed<kLt>);
  table.set(Op::kSCmpkLeI32, compare_constant_signed<kLe>);
  table.set(Op::kSCmpkEqU32, compare_constant_unsigned<kEq>);
  table.set(Op::kSCmpkLgU32, compare_constant_unsigned<kLg>);
  table.set(Op::kSCmpkGtU32, compare_constant_unsigned<kGt>);
  table.set(Op::kSCmpkGeU32, compare_constant_unsigned<kGe>);
  table.set(Op::kSCmpkLtU32, compare_constant_unsigned<kLt>);
  table.set(Op::kSCmpkLeU32, compare_constant_unsigned<kLe>);
}

}  // namespace

void add_scalar_alu_handlers(HandlerTable& table) {
  add_arithmetic(table);
  add_choices(table);
  add_logic(table);
  add_shifts(table);
  add_fields(table);
  add_constants(table);
}

void add_scalar_compare_handlers(HandlerTable& table) {
  table.set(Op::kSCmpEqI32, compare<I32, I32, kEq>);
  table.set(Op::kSCmpLgI32, compare<I32, I32, kLg>);
  table.set(Op::kSCmpGtI32, compare<I32, I32, kGt>);
  table.set(Op::kSCmpGeI32, compare<I32, I32, kGe>);
  table.set(Op::kSCmpLtI32, compare<I32, I32, kLt>);
  table.set(Op::kSCmpLeI32, compare<I32, I32, kLe>);
  table.set(Op::kSCmpEqU32, compare<U32, U32, kEq>);
  table.set(Op::kSCmpLgU32, compare<U32, U32, kLg>);
  table.set(Op::kSCmpGtU32, compare<U32, U32, kGt>);
  table.set(Op::kSCmpGeU32, compare<U32, U32, kGe>);
  table.set(Op::kSCmpLtU32, compare<U32, U32, kLt>);
  table.set(Op::kSCmpLeU32, compare<U32, U32, kLe>);
  table.set(Op::kSCmpEqU64, compare<U64, U64, kEq>);
  table.set(Op::kSCmpLgU64, compare<U64, U64, kLg>);
  table.set(Op::kSBitcmp0B32, compare<U32, U32, [](U32 a, U32 n) { return (a >> (n & 31) & 1) == 0; }>);
  table.set(Op::kSBitcmp1B32, compare<U32, U32, [](U32 a, U32 n) { return (a >> (n & 31) & 1) == 1; }>);
  table.set(Op::kSBitcmp0B64, compare<U64, U32, [](U64 a, U32 n) { return (a >> (n & 63) & 1) == 0; }>);
  table.set(Op::kSBitcmp1B64, compare<U64, U32, [](U64 a, U32 n) { return (a >> (n & 63) & 1) == 1; }>);
}

}  // namespace gcn
