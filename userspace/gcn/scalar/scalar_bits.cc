// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Scalar moves, bit operations and the operations that write EXEC (SOP1).
#include "gcn/scalar/scalar.h"

namespace gcn {
namespace {

using I32 = std::int32_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

template <typename T>
constexpr unsigned kBits = sizeof(T) * 8;

template <typename T>
constexpr T reverse(T value) {
  T result = 0;
  for (unsigned i = 0; i < kBits<T>; ++i) result = static_cast<T>(result << 1 | (value >> i & 1));
  return result;
}

// Returns the position that a search found, or -1.
constexpr U32 kNowhere = ~U32{0};

template <typename T>
constexpr U32 first_one(T value) {
  return value == 0 ? kNowhere : static_cast<U32>(std::countr_zero(value));
}

template <typename T>
constexpr U32 leading_zeroes(T value) {
  return value == 0 ? kNowhere : static_cast<U32>(std::countl_zero(value));
}

// Returns how many of the highest bits are equal to the sign.
template <typename T>
constexpr U32 leading_signs(T value) {
  const bool negative = (value >> (kBits<T> - 1)) != 0;
  return leading_zeroes(negative ? static_cast<T>(~value) : value);
}

template <typename T>
constexpr T kQuadStarts = static_cast<T>(0x1111111111111111);

// Returns the lowest bit of each four bits of which any is set.
template <typename T>
constexpr T quads(T value) {
  return static_cast<T>((value | value >> 1 | value >> 2 | value >> 3) & kQuadStarts<T>);
}

template <typename T>
constexpr T whole_quads(T value) {
  return static_cast<T>(quads(value) * 0xf);
}

template <typename T>
constexpr T quad_mask(T value) {
  T result = 0;
  for (unsigned i = 0; i < kBits<T>; i += 4) result = static_cast<T>(result | (quads(value) >> i & 1) << (i / 4));
  return result;
}

constexpr U64 replicate(U32 value) {
  U64 result = 0;
  for (unsigned i = 0; i < 32; ++i) result |= U64{3} * (value >> i & 1) << (2 * i);
  return result;
}

template <typename T>
Outcome cmov(const Instruction& instruction, Machine& machine) {
  if (machine.wave.scc) put(machine, instruction.dst, read_scalar<T>(instruction, machine, instruction.src[0]));
  return Outcome::kNext;
}

template <typename T, bool kValue>
Outcome bitset(const Instruction& instruction, Machine& machine) {
  const T old = read_scalar<T>(instruction, machine, instruction.dst);
  const U32 bit = read_scalar<U32>(instruction, machine, instruction.src[0]) & (kBits<T> - 1);
  const T mask = static_cast<T>(T{1} << bit);
  put(machine, instruction.dst, static_cast<T>(kValue ? old | mask : old & ~mask));
  return Outcome::kNext;
}

void add_moves(HandlerTable& table) {
  table.set(Op::kSMovB32, unary<U32, [](U32 a) { return a; }>);
  table.set(Op::kSMovB64, unary<U64, [](U64 a) { return a; }>);
  table.set(Op::kSCmovB32, cmov<U32>);
  table.set(Op::kSCmovB64, cmov<U64>);
  table.set(Op::kSNotB32, unary<U32, [](U32 a) { return nonzero(~a); }>);
  table.set(Op::kSNotB64, unary<U64, [](U64 a) { return nonzero(~a); }>);
  table.set(Op::kSSextI32I8, unary<U32, [](U32 a) { return static_cast<U32>(static_cast<std::int8_t>(a)); }>);
  table.set(Op::kSSextI32I16, unary<U32, [](U32 a) { return static_cast<U32>(static_cast<std::int16_t>(a)); }>);
  table.set(Op::kSBitset0B32, bitset<U32, false>);
  table.set(Op::kSBitset0B64, bitset<U64, false>);
  table.set(Op::kSBitset1B32, bitset<U32, true>);
  table.set(Op::kSBitset1B64, bitset<U64, true>);
}

constexpr U32 ones(U64 value) { return static_cast<U32>(std::popcount(value)); }

void add_counts(HandlerTable& table) {
  table.set(Op::kSWqmB32, unary<U32, [](U32 a) { return nonzero(whole_quads(a)); }>);
  table.set(Op::kSWqmB64, unary<U64, [](U64 a) { return nonzero(whole_quads(a)); }>);
  table.set(Op::kSQuadmaskB32, unary<U32, [](U32 a) { return nonzero(quad_mask(a)); }>);
  table.set(Op::kSQuadmaskB64, unary<U64, [](U64 a) { return nonzero(quad_mask(a)); }>);
  table.set(Op::kSBrevB32, unary<U32, reverse<U32>>);
  table.set(Op::kSBrevB64, unary<U64, reverse<U64>>);
  table.set(Op::kSBcnt0I32B32, unary<U32, [](U32 a) { return nonzero(32 - ones(a)); }>);
  table.set(Op::kSBcnt0I32B64, unary<U64, [](U64 a) { return nonzero(64 - ones(a)); }>);
  table.set(Op::kSBcnt1I32B32, unary<U32, [](U32 a) { return nonzero(ones(a)); }>);
  table.set(Op::kSBcnt1I32B64, unary<U64, [](U64 a) { return nonzero(ones(a)); }>);
  table.set(Op::kSFf0I32B32, unary<U32, [](U32 a) { return first_one(~a); }>);
  table.set(Op::kSFf0I32B64, unary<U64, [](U64 a) { return first_one(~a); }>);
  table.set(Op::kSFf1I32B32, unary<U32, first_one<U32>>);
  table.set(Op::kSFf1I32B64, unary<U64, first_one<U64>>);
  table.set(Op::kSFlbitI32B32, unary<U32, leading_zeroes<U32>>);
  table.set(Op::kSFlbitI32B64, unary<U64, leading_zeroes<U64>>);
  table.set(Op::kSFlbitI32, unary<U32, leading_signs<U32>>);
  table.set(Op::kSFlbitI32I64, unary<U64, leading_signs<U64>>);
  table.set(Op::kSBitreplicateB64B32, unary<U32, replicate>);
}

// EXEC = F(S0, EXEC). "saveexec" gives the old EXEC to the destination, "wrexec" the new one. SCC says whether any
// lane is left.
enum class Gives : std::uint8_t { kOld, kNew };

template <Gives kGives, auto F>
Outcome write_exec(const Instruction& instruction, Machine& machine) {
  const U64 old = machine.wave.exec();
  const U64 now = F(read_scalar<U64>(instruction, machine, instruction.src[0]), old);
  put(machine, instruction.dst, kGives == Gives::kOld ? old : now);
  machine.wave.set_exec(now);
  machine.wave.scc = now != 0;
  return Outcome::kNext;
}

void add_exec(HandlerTable& table) {
  constexpr auto kAndn1 = [](U64 s, U64 exec) { return ~s & exec; };
  constexpr auto kAndn2 = [](U64 s, U64 exec) { return s & ~exec; };
  table.set(Op::kSAndSaveexecB64, write_exec<Gives::kOld, [](U64 s, U64 exec) { return s & exec; }>);
  table.set(Op::kSOrSaveexecB64, write_exec<Gives::kOld, [](U64 s, U64 exec) { return s | exec; }>);
  table.set(Op::kSXorSaveexecB64, write_exec<Gives::kOld, [](U64 s, U64 exec) { return s ^ exec; }>);
  table.set(Op::kSAndn1SaveexecB64, write_exec<Gives::kOld, kAndn1>);
  table.set(Op::kSAndn2SaveexecB64, write_exec<Gives::kOld, kAndn2>);
  table.set(Op::kSOrn1SaveexecB64, write_exec<Gives::kOld, [](U64 s, U64 exec) { return ~s | exec; }>);
  table.set(Op::kSOrn2SaveexecB64, write_exec<Gives::kOld, [](U64 s, U64 exec) { return s | ~exec; }>);
  table.set(Op::kSNandSaveexecB64, write_exec<Gives::kOld, [](U64 s, U64 exec) { return ~(s & exec); }>);
  table.set(Op::kSNorSaveexecB64, write_exec<Gives::kOld, [](U64 s, U64 exec) { return ~(s | exec); }>);
  table.set(Op::kSXnorSaveexecB64, write_exec<Gives::kOld, [](U64 s, U64 exec) { return ~(s ^ exec); }>);
  table.set(Op::kSAndn1WrexecB64, write_exec<Gives::kNew, kAndn1>);
  table.set(Op::kSAndn2WrexecB64, write_exec<Gives::kNew, kAndn2>);
}

// M0 is added to the register's number. The result must be an SGPR: VCC and the like are not reached this way.
std::uint16_t relative(const Wave& wave, unsigned number) {
  const U64 sum = U64{number} + wave.scalar[operand::kM0];
  return sum < operand::kSgprs ? static_cast<std::uint16_t>(sum) : operand::kNone;
}

template <typename T>
Outcome move_relative_source(const Instruction& instruction, Machine& machine) {
  const std::uint16_t number = relative(machine.wave, instruction.src[0]);
  put(machine, instruction.dst, read_scalar<T>(instruction, machine, number));
  return Outcome::kNext;
}

template <typename T>
Outcome move_relative_destination(const Instruction& instruction, Machine& machine) {
  const T value = read_scalar<T>(instruction, machine, instruction.src[0]);
  put(machine, relative(machine.wave, instruction.dst), value);
  return Outcome::kNext;
}

}  // namespace

void add_scalar_bits_handlers(HandlerTable& table) {
  add_moves(table);
  add_counts(table);
  add_exec(table);
  table.set(Op::kSMovrelsB32, move_relative_source<U32>);
  table.set(Op::kSMovrelsB64, move_relative_source<U64>);
  table.set(Op::kSMovreldB32, move_relative_destination<U32>);
  table.set(Op::kSMovreldB64, move_relative_destination<U64>);
}

}  // namespace gcn
