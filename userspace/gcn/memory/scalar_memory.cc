// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// SMEM: loads, stores and atomics of scalar registers, caches, clocks. LaneAccess treats each dword of an access as a
// lane. Not implemented: s_scratch_*, because it is not certain which unit its offset has.
#include <algorithm>

#include "gcn/memory/buffer_resource.h"
#include "gcn/memory/handler_groups.h"
#include "gcn/memory/lane_operations.h"
#include "gcn/scalar/scalar_operand.h"

namespace gcn {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

Address offset_of(const Instruction& instruction, const Machine& machine) {
  const auto constant = static_cast<Address>(std::int64_t{instruction.offset});
  const std::uint16_t soffset = instruction.src[1];
  return constant + (soffset == operand::kNone ? 0 : read_scalar32(instruction, machine, soffset));
}

// The bytes [address, address + size) that an access may touch: a buffer ends at its last record.
struct Window {
  Address address;
  U64 size;
};

// The hardware ignores the lowest two bits of an address.
Window plain_window(const Instruction& instruction, const Machine& machine) {
  const Address base = read_scalar64(machine.wave, instruction.src[0]);
  return {(base + offset_of(instruction, machine)) & ~Address{3}, ~U64{0}};
}

Window buffer_window(const Instruction& instruction, const Machine& machine) {
  const BufferResource resource(machine.wave, instruction.src[0]);
  const U64 offset = offset_of(instruction, machine) & ~U64{3};
  const U64 size = resource.scalar_bytes();
  return {resource.base() + offset, offset < size ? size - offset : 0};
}

using WindowOf = Window (*)(const Instruction& instruction, const Machine& machine);

// Returns how many dwords of an access are in the window.
bool find(LaneAccess& access, const Window& window, unsigned dwords) {
  for (unsigned i = 0; i < dwords; ++i) {
    if (4 * i >= window.size) return true;
    if (!access.add(i, window.address + 4 * i)) return false;
  }
  return true;
}

// Returns whether the operand numbers of `dwords` registers from `first` on exist.
bool are_registers(unsigned first, unsigned dwords) { return first + dwords <= kScalars; }

// Loads dwords downwards, and both at once where two are a word of eight bytes. A dword without a place is 0.
void load_dwords(const LaneAccess& access, unsigned dwords, Vgpr& to) {
  const auto has = [&](unsigned i) { return (access.whole_lanes() >> i & 1) != 0; };
  for (unsigned i = dwords; i > 0;) {
    --i;
    to[i] = 0;
    if (!has(i)) continue;
    if (i > 0 && has(i - 1) && access.whole(i) == access.whole(i - 1) + 4 && host::is_aligned(access.whole(i - 1), 8)) {
      const auto both = host::load<U64>(access.whole(i - 1));
      to[i] = static_cast<U32>(both >> 32);
      to[--i] = static_cast<U32>(both);
    } else {
      to[i] = host::load<U32>(access.whole(i));
    }
  }
}

template <WindowOf kWindow, unsigned kDwords>
Outcome load(const Instruction& instruction, Machine& machine) {
  if (!are_registers(instruction.dst, kDwords)) return Outcome::kIllegal;
  LaneAccess access(machine.memory, Access::kRead, 4);
  if (!find(access, kWindow(instruction, machine), kDwords)) return Outcome::kFault;
  Vgpr words;
  load_dwords(access, kDwords, words);
  for (unsigned i = 0; i < kDwords; ++i) write_scalar(machine.wave, instruction.dst + i, words[i]);
  return Outcome::kNext;
}

template <WindowOf kWindow, unsigned kDwords>
Outcome store(const Instruction& instruction, Machine& machine) {
  const unsigned data = instruction.src[2];
  if (!are_registers(data, kDwords)) return Outcome::kIllegal;
  LaneAccess access(machine.memory, Access::kWrite, 4);
  if (!find(access, kWindow(instruction, machine), kDwords)) return Outcome::kFault;
  LaneWords words;
  for (unsigned i = 0; i < kDwords; ++i) words[0][i] = read_scalar(machine.wave, data + i);
  access.store<4>(words);
  return Outcome::kNext;
}

template <typename T>
T data_of(const Wave& wave, unsigned number) {
  if constexpr (sizeof(T) == 4) return read_scalar(wave, number);
  if constexpr (sizeof(T) == 8) return read_scalar64(wave, number);
}

template <WindowOf kWindow, typename T, auto F, Data kData = Data::kOne>
Outcome scalar_atomic(const Instruction& instruction, Machine& machine) {
  constexpr unsigned kDwords = sizeof(T) / 4;
  const unsigned data = instruction.src[2];
  if (!are_registers(data, kData == Data::kCompare ? 2 * kDwords : kDwords)) return Outcome::kIllegal;
  const Window window = kWindow(instruction, machine);
  LaneAccess access(machine.memory, Access::kWrite, sizeof(T));
  if (window.size >= sizeof(T) && !access.add(0, window.address)) return Outcome::kFault;
  if (window.address % sizeof(T) != 0 || !host_is_aligned(access, sizeof(T))) return Outcome::kViolation;
  T old = 0;
  if (access.whole_lanes() != 0) {
    const T compare = kData == Data::kCompare ? data_of<T>(machine.wave, data + kDwords) : T{0};
    old = modify<T, F>(access.whole(0), data_of<T>(machine.wave, data), compare);
  }
  if (!instruction.glc) return Outcome::kNext;
  write_scalar(machine.wave, data, static_cast<U32>(old));
  if constexpr (sizeof(T) == 8) write_scalar(machine.wave, data + 1, static_cast<U32>(old >> 32));
  return Outcome::kNext;
}

template <WindowOf kWindow>
void add_scalar_atomics(HandlerTable& table, std::string_view prefix) {
  using F32 = AtomicFunctions<U32>;
  using F64 = AtomicFunctions<U64>;
  static constexpr NamedHandler kFamily[] = {
      {"atomic_swap", scalar_atomic<kWindow, U32, F32::swap>},
      {"atomic_cmpswap", scalar_atomic<kWindow, U32, F32::cmpswap, Data::kCompare>},
      {"atomic_add", scalar_atomic<kWindow, U32, F32::add>},
      {"atomic_sub", scalar_atomic<kWindow, U32, F32::sub>},
      {"atomic_smin", scalar_atomic<kWindow, U32, F32::smin>},
      {"atomic_umin", scalar_atomic<kWindow, U32, F32::umin>},
      {"atomic_smax", scalar_atomic<kWindow, U32, F32::smax>},
      {"atomic_umax", scalar_atomic<kWindow, U32, F32::umax>},
      {"atomic_and", scalar_atomic<kWindow, U32, F32::bit_and>},
      {"atomic_or", scalar_atomic<kWindow, U32, F32::bit_or>},
      {"atomic_xor", scalar_atomic<kWindow, U32, F32::bit_xor>},
      {"atomic_inc", scalar_atomic<kWindow, U32, F32::inc>},
      {"atomic_dec", scalar_atomic<kWindow, U32, F32::dec>},
      {"atomic_swap_x2", scalar_atomic<kWindow, U64, F64::swap>},
      {"atomic_cmpswap_x2", scalar_atomic<kWindow, U64, F64::cmpswap, Data::kCompare>},
      {"atomic_add_x2", scalar_atomic<kWindow, U64, F64::add>},
      {"atomic_sub_x2", scalar_atomic<kWindow, U64, F64::sub>},
      {"atomic_smin_x2", scalar_atomic<kWindow, U64, F64::smin>},
      {"atomic_umin_x2", scalar_atomic<kWindow, U64, F64::umin>},
      {"atomic_smax_x2", scalar_atomic<kWindow, U64, F64::smax>},
      {"atomic_umax_x2", scalar_atomic<kWindow, U64, F64::umax>},
      {"atomic_and_x2", scalar_atomic<kWindow, U64, F64::bit_and>},
      {"atomic_or_x2", scalar_atomic<kWindow, U64, F64::bit_or>},
      {"atomic_xor_x2", scalar_atomic<kWindow, U64, F64::bit_xor>},
      {"atomic_inc_x2", scalar_atomic<kWindow, U64, F64::inc>},
      {"atomic_dec_x2", scalar_atomic<kWindow, U64, F64::dec>},
  };
  set_family(table, prefix, kFamily);
}

template <WindowOf kWindow>
void add_scalar_loads_and_stores(HandlerTable& table, std::string_view prefix) {
  static constexpr NamedHandler kFamily[] = {
      {"load_dword", load<kWindow, 1>},     {"load_dwordx2", load<kWindow, 2>},   {"load_dwordx4", load<kWindow, 4>},
      {"load_dwordx8", load<kWindow, 8>},   {"load_dwordx16", load<kWindow, 16>}, {"store_dword", store<kWindow, 1>},
      {"store_dwordx2", store<kWindow, 2>}, {"store_dwordx4", store<kWindow, 4>},
  };
  set_family(table, prefix, kFamily);
}

Outcome clock(const Instruction& instruction, Machine& machine) {
  if (!are_registers(instruction.dst, 2)) return Outcome::kIllegal;
  write_scalar64(machine.wave, instruction.dst, machine.shared.clock != nullptr ? machine.shared.clock() : 0);
  return Outcome::kNext;
}

// No cache is modelled, so its control instructions do nothing.
Outcome nothing(const Instruction& /*instruction*/, Machine& /*machine*/) { return Outcome::kNext; }

}  // namespace

void add_scalar_memory_handlers(HandlerTable& table) {
  add_scalar_loads_and_stores<plain_window>(table, "s_");
  add_scalar_loads_and_stores<buffer_window>(table, "s_buffer_");
  add_scalar_atomics<plain_window>(table, "s_");
  add_scalar_atomics<buffer_window>(table, "s_buffer_");
  table.set(Op::kSMemtime, clock);
  table.set(Op::kSMemrealtime, clock);
  for (const Op op : {Op::kSDcacheInv, Op::kSDcacheWb, Op::kSDcacheInvVol, Op::kSDcacheWbVol, Op::kSDcacheDiscard,
                      Op::kSDcacheDiscardX2, Op::kSAtcProbe, Op::kSAtcProbeBuffer}) {
    table.set(op, nothing);
  }
}

}  // namespace gcn
