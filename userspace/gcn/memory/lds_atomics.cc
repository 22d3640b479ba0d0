// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Operations that read and write the local data share. The forms with "rtn" also write the old value to the
// destination. Not implemented: ds_condxchg32, ds_*_src2.
#include "gcn/memory/lds.h"

namespace gcn {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

// Does MEM = F(MEM, data0, data1[, MODE]) for each active lane.
template <typename T, auto F>
T apply(T old, T data0, T data1, U32 mode) {
  if constexpr (std::is_invocable_v<decltype(F), T, T, T, U32>) {
    return F(old, data0, data1, mode);
  } else {
    return F(old, data0, data1);
  }
}

enum class Operands : std::uint8_t { kOne, kTwo };

template <typename T, auto F, Operands kOperands = Operands::kOne>
Outcome atomic(const Instruction& instruction, Machine& machine) {
  constexpr unsigned kWords = sizeof(T) / 4;
  const File file = data_file(instruction);
  const bool returns = instruction.dst != operand::kNone;
  const Vgpr* const address = lds_address(instruction, machine);
  const Vgpr* const data0 = find_registers(machine.wave, instruction.src[1], kWords, file);
  const Vgpr* const data1 =
      kOperands == Operands::kTwo ? find_registers(machine.wave, instruction.src[2], kWords, file) : data0;
  Vgpr* const to = returns ? find_registers(machine.wave, instruction.dst, kWords, file) : nullptr;
  if (address == nullptr || data0 == nullptr || data1 == nullptr || (returns && to == nullptr)) {
    return Outcome::kIllegal;
  }
  const Lds lds(machine);
  for_each_lane(machine.wave.exec(), [&](unsigned lane) {
    const U32 where = (*address)[lane] + lds_offset(instruction);
    const T old = lds.get<T>(where);
    lds.set(where, apply<T, F>(old, value_of<T>(data0, lane), value_of<T>(data1, lane), machine.wave.mode));
    if (returns) set_value(to, lane, old);
  });
  return Outcome::kNext;
}

template <typename T, unsigned kUnit>
Outcome exchange_two(const Instruction& instruction, Machine& machine) {
  constexpr unsigned kWords = sizeof(T) / 4;
  const File file = data_file(instruction);
  const Vgpr* const address = lds_address(instruction, machine);
  const Vgpr* const data0 = find_registers(machine.wave, instruction.src[1], kWords, file);
  const Vgpr* const data1 = find_registers(machine.wave, instruction.src[2], kWords, file);
  Vgpr* const to = find_registers(machine.wave, instruction.dst, 2 * kWords, file);
  if (address == nullptr || data0 == nullptr || data1 == nullptr || to == nullptr) return Outcome::kIllegal;
  const Lds lds(machine);
  for_each_lane(machine.wave.exec(), [&](unsigned lane) {
    const U32 where0 = (*address)[lane] + lds_offset_of(instruction, 0, kUnit);
    const U32 where1 = (*address)[lane] + lds_offset_of(instruction, 1, kUnit);
    const T now0 = value_of<T>(data0, lane);
    const T now1 = value_of<T>(data1, lane);
    const T old0 = lds.get<T>(where0);
    lds.set(where0, now0);
    const T old1 = lds.get<T>(where1);
    lds.set(where1, now1);
    set_value(to, lane, old0);
    set_value(to + kWords, lane, old1);
  });
  return Outcome::kNext;
}

// Operations that only LDS has. ds_cmpst compares with the first data and stores the second.
template <typename T>
constexpr T compare_store(T old, T compare, T data) {
  return old == compare ? data : old;
}
template <typename Float, typename T>
T compare_store_float(T old, T compare, T data) {
  return std::bit_cast<Float>(old) == std::bit_cast<Float>(compare) ? data : old;
}
template <typename T>
constexpr T mask_or(T old, T mask, T data) {
  return (old & ~mask) | data;
}
constexpr U32 wrap(U32 old, U32 data0, U32 data1) { return old >= data0 ? old - data0 : old + data1; }

// Floating-point operations of LDS obey MODE's denormal bits.
U32 add_float(U32 old, U32 data, U32 /*unused*/, U32 mode) {
  const bool keep_in = (mode & mode::kDenormIn32) != 0;
  const bool keep_out = (mode & mode::kDenormOut32) != 0;
  const auto a = std::bit_cast<float>(old);
  const auto b = std::bit_cast<float>(data);
  const float sum = keep_in ? a + b : float_atomics::flush(a) + float_atomics::flush(b);
  return std::bit_cast<U32>(keep_out ? sum : float_atomics::flush(sum));
}

struct Both {
  Op plain;
  Op returning;
  Handler handler;
};

template <typename T>
using Functions = AtomicFunctions<T>;
using F32 = Functions<U32>;
using F64 = Functions<U64>;

constexpr Both kInteger32[] = {
    {Op::kDsAddU32, Op::kDsAddRtnU32, atomic<U32, F32::add>},
    {Op::kDsSubU32, Op::kDsSubRtnU32, atomic<U32, F32::sub>},
    {Op::kDsRsubU32, Op::kDsRsubRtnU32, atomic<U32, F32::rsub>},
    {Op::kDsIncU32, Op::kDsIncRtnU32, atomic<U32, F32::inc>},
    {Op::kDsDecU32, Op::kDsDecRtnU32, atomic<U32, F32::dec>},
    {Op::kDsMinI32, Op::kDsMinRtnI32, atomic<U32, F32::smin>},
    {Op::kDsMaxI32, Op::kDsMaxRtnI32, atomic<U32, F32::smax>},
    {Op::kDsMinU32, Op::kDsMinRtnU32, atomic<U32, F32::umin>},
    {Op::kDsMaxU32, Op::kDsMaxRtnU32, atomic<U32, F32::umax>},
    {Op::kDsAndB32, Op::kDsAndRtnB32, atomic<U32, F32::bit_and>},
    {Op::kDsOrB32, Op::kDsOrRtnB32, atomic<U32, F32::bit_or>},
    {Op::kDsXorB32, Op::kDsXorRtnB32, atomic<U32, F32::bit_xor>},
    {Op::kDsMskorB32, Op::kDsMskorRtnB32, atomic<U32, mask_or<U32>, Operands::kTwo>},
    {Op::kDsCmpstB32, Op::kDsCmpstRtnB32, atomic<U32, compare_store<U32>, Operands::kTwo>},
};

constexpr Both kInteger64[] = {
    {Op::kDsAddU64, Op::kDsAddRtnU64, atomic<U64, F64::add>},
    {Op::kDsSubU64, Op::kDsSubRtnU64, atomic<U64, F64::sub>},
    {Op::kDsRsubU64, Op::kDsRsubRtnU64, atomic<U64, F64::rsub>},
    {Op::kDsIncU64, Op::kDsIncRtnU64, atomic<U64, F64::inc>},
    {Op::kDsDecU64, Op::kDsDecRtnU64, atomic<U64, F64::dec>},
    {Op::kDsMinI64, Op::kDsMinRtnI64, atomic<U64, F64::smin>},
    {Op::kDsMaxI64, Op::kDsMaxRtnI64, atomic<U64, F64::smax>},
    {Op::kDsMinU64, Op::kDsMinRtnU64, atomic<U64, F64::umin>},
    {Op::kDsMaxU64, Op::kDsMaxRtnU64, atomic<U64, F64::umax>},
    {Op::kDsAndB64, Op::kDsAndRtnB64, atomic<U64, F64::bit_and>},
    {Op::kDsOrB64, Op::kDsOrRtnB64, atomic<U64, F64::bit_or>},
    {Op::kDsXorB64, Op::kDsXorRtnB64, atomic<U64, F64::bit_xor>},
    {Op::kDsMskorB64, Op::kDsMskorRtnB64, atomic<U64, mask_or<U64>, Operands::kTwo>},
    {Op::kDsCmpstB64, Op::kDsCmpstRtnB64, atomic<U64, compare_store<U64>, Operands::kTwo>},
};

constexpr Both kFloat[] = {
    {Op::kDsCmpstF32, Op::kDsCmpstRtnF32, atomic<U32, compare_store_float<float, U32>, Operands::kTwo>},
    {Op::kDsMinF32, Op::kDsMinRtnF32, atomic<U32, float_atomics::minimum<float, U32>>},
    {Op::kDsMaxF32, Op::kDsMaxRtnF32, atomic<U32, float_atomics::maximum<float, U32>>},
    {Op::kDsAddF32, Op::kDsAddRtnF32, atomic<U32, add_float>},
    {Op::kDsCmpstF64, Op::kDsCmpstRtnF64, atomic<U64, compare_store_float<double, U64>, Operands::kTwo>},
    {Op::kDsMinF64, Op::kDsMinRtnF64, atomic<U64, float_atomics::minimum<double, U64>>},
    {Op::kDsMaxF64, Op::kDsMaxRtnF64, atomic<U64, float_atomics::maximum<double, U64>>},
    {Op::kDsAddF64, Op::kDsAddRtnF64, atomic<U64, float_atomics::add_f64>},
};

void set_both(HandlerTable& table, std::span<const Both> rows) {
  for (const Both& row : rows) {
    table.set(row.plain, row.handler);
    table.set(row.returning, row.handler);
  }
}

}  // namespace

void add_lds_atomic_handlers(HandlerTable& table) {
  set_both(table, kInteger32);
  set_both(table, kInteger64);
  set_both(table, kFloat);
  table.set(Op::kDsWrapRtnB32, atomic<U32, wrap, Operands::kTwo>);
  table.set(Op::kDsWrxchgRtnB32, atomic<U32, F32::swap>);
  table.set(Op::kDsWrxchgRtnB64, atomic<U64, F64::swap>);
  table.set(Op::kDsWrxchg2RtnB32, exchange_two<U32, 4>);
  table.set(Op::kDsWrxchg2st64RtnB32, exchange_two<U32, 4 * 64>);
  table.set(Op::kDsWrxchg2RtnB64, exchange_two<U64, 8>);
  table.set(Op::kDsWrxchg2st64RtnB64, exchange_two<U64, 8 * 64>);
}

}  // namespace gcn
