// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Local data share: loads, stores, exchanges between lanes (DS). Atomics are in lds_atomics.cc. The waves of a
// work-group take turns on one thread, so nothing here needs to be atomic. Bytes out of range read as 0 and are not
// written; unaligned addresses work.
// Not implemented: global data share, ordered count, semaphores of global wave sync; ds_*_src2; rotation and
// butterflies of ds_swizzle.
#include "gcn/memory/lds.h"

#include "gcn/memory/memory_handlers.h"

namespace gcn {
namespace {

using U32 = std::uint32_t;

template <LoadFormat kFormat>
Outcome load(const Instruction& instruction, Machine& machine) {
  constexpr unsigned kWords = words_of(kFormat.bytes);
  const Vgpr* const address = lds_address(instruction, machine);
  Vgpr* const to = find_registers(machine.wave, instruction.dst, kWords, data_file(instruction));
  if (address == nullptr || to == nullptr) return Outcome::kIllegal;
  const Lds lds(machine);
  for_each_lane(machine.wave.exec(), [&](unsigned lane) {
    // The destination may be the register of the address, so each lane's address is read before its result is written.
    std::array<U32, kWords> value = {};
    lds.read((*address)[lane] + lds_offset(instruction), value.data(), kFormat.bytes);
    to[0][lane] = extend<kFormat>(to[0][lane], value[0]);
    for (unsigned i = 1; i < kWords; ++i) to[i][lane] = value[i];
  });
  return Outcome::kNext;
}

template <StoreFormat kFormat>
Outcome store(const Instruction& instruction, Machine& machine) {
  constexpr unsigned kWords = words_of(kFormat.bytes);
  const Vgpr* const address = lds_address(instruction, machine);
  const Vgpr* const from = find_registers(machine.wave, instruction.src[1], kWords, data_file(instruction));
  if (address == nullptr || from == nullptr) return Outcome::kIllegal;
  const Lds lds(machine);
  for_each_lane(machine.wave.exec(), [&](unsigned lane) {
    std::array<U32, kWords> value;
    for (unsigned i = 0; i < kWords; ++i) value[i] = from[i][lane];
    if constexpr (kFormat.half == Half::kHigh) value[0] >>= 16;
    lds.write((*address)[lane] + lds_offset(instruction), value.data(), kFormat.bytes);
  });
  return Outcome::kNext;
}

template <typename T, unsigned kUnit>
Outcome load_two(const Instruction& instruction, Machine& machine) {
  constexpr unsigned kWords = sizeof(T) / 4;
  const Vgpr* const address = lds_address(instruction, machine);
  Vgpr* const to = find_registers(machine.wave, instruction.dst, 2 * kWords, data_file(instruction));
  if (address == nullptr || to == nullptr) return Outcome::kIllegal;
  const Lds lds(machine);
  for_each_lane(machine.wave.exec(), [&](unsigned lane) {
    const auto first = lds.get<T>((*address)[lane] + lds_offset_of(instruction, 0, kUnit));
    const auto second = lds.get<T>((*address)[lane] + lds_offset_of(instruction, 1, kUnit));
    set_value(to, lane, first);
    set_value(to + kWords, lane, second);
  });
  return Outcome::kNext;
}

template <typename T, unsigned kUnit>
Outcome store_two(const Instruction& instruction, Machine& machine) {
  constexpr unsigned kWords = sizeof(T) / 4;
  const Vgpr* const address = lds_address(instruction, machine);
  const Vgpr* const first = find_registers(machine.wave, instruction.src[1], kWords, data_file(instruction));
  const Vgpr* const second = find_registers(machine.wave, instruction.src[2], kWords, data_file(instruction));
  if (address == nullptr || first == nullptr || second == nullptr) return Outcome::kIllegal;
  const Lds lds(machine);
  for_each_lane(machine.wave.exec(), [&](unsigned lane) {
    lds.set((*address)[lane] + lds_offset_of(instruction, 0, kUnit), value_of<T>(first, lane));
    lds.set((*address)[lane] + lds_offset_of(instruction, 1, kUnit), value_of<T>(second, lane));
  });
  return Outcome::kNext;
}

// M0 and the lane's number make the address.
U32 lane_address(const Instruction& instruction, const Wave& wave, unsigned lane) {
  return (wave.scalar[operand::kM0] & 0xffff) + lds_offset(instruction) + 4 * lane;
}

Outcome load_by_lane(const Instruction& instruction, Machine& machine) {
  Vgpr* const to = find_registers(machine.wave, instruction.dst, 1, data_file(instruction));
  if (to == nullptr || instruction.gds) return Outcome::kIllegal;
  const Lds lds(machine);
  for_each_lane(machine.wave.exec(),
                [&](unsigned lane) { (*to)[lane] = lds.get<U32>(lane_address(instruction, machine.wave, lane)); });
  return Outcome::kNext;
}

Outcome store_by_lane(const Instruction& instruction, Machine& machine) {
  const Vgpr* const from = find_registers(machine.wave, instruction.src[1], 1, data_file(instruction));
  if (from == nullptr || instruction.gds) return Outcome::kIllegal;
  const Lds lds(machine);
  for_each_lane(machine.wave.exec(),
                [&](unsigned lane) { lds.set(lane_address(instruction, machine.wave, lane), (*from)[lane]); });
  return Outcome::kNext;
}

// Adds the number of active lanes to a counter, or subtracts it; every active lane gets the old value.
enum class Direction : std::uint8_t { kUp, kDown };

template <Direction kDirection>
Outcome count_lanes(const Instruction& instruction, Machine& machine) {
  Vgpr* const to = find_registers(machine.wave, instruction.dst, 1, data_file(instruction));
  if (to == nullptr || instruction.gds) return Outcome::kIllegal;
  const std::uint64_t lanes = machine.wave.exec();
  const U32 address = (machine.wave.scalar[operand::kM0] & 0xffff) + lds_offset(instruction);
  const Lds lds(machine);
  const U32 old = lds.get<U32>(address);
  const auto active = static_cast<U32>(std::popcount(lanes));
  lds.set(address, kDirection == Direction::kUp ? old + active : old - active);
  for_each_lane(lanes, [&](unsigned lane) { (*to)[lane] = old; });
  return Outcome::kNext;
}

// Returns the lane whose value `lane` gets.
unsigned swizzled(U32 pattern, unsigned lane) {
  if ((pattern & 0x8000) != 0) return (lane & ~3u) | (pattern >> (2 * (lane & 3)) & 3);
  const unsigned in_half = ((lane & pattern & 31) | (pattern >> 5 & 31)) ^ (pattern >> 10 & 31);
  return (lane & 32) | in_half;
}

Outcome swizzle(const Instruction& instruction, Machine& machine) {
  constexpr U32 kFirstOtherMode = 0xc000;
  const Vgpr* const from = find_registers(machine.wave, instruction.src[0], 1, data_file(instruction));
  Vgpr* const to = find_registers(machine.wave, instruction.dst, 1, data_file(instruction));
  const U32 pattern = lds_offset(instruction);
  if (from == nullptr || to == nullptr || pattern >= kFirstOtherMode) return Outcome::kIllegal;
  const std::uint64_t lanes = machine.wave.exec();
  const Vgpr data = *from;
  for_each_lane(lanes, [&](unsigned lane) {
    const unsigned source = swizzled(pattern, lane);
    (*to)[lane] = (lanes >> source & 1) != 0 ? data[source] : 0;
  });
  return Outcome::kNext;
}

// An address is four times a lane's number. A lane that no other lane sends to, or that reads an inactive lane, gets 0.
enum class Permute : std::uint8_t { kForward, kBackward };

template <Permute kPermute>
Outcome permute(const Instruction& instruction, Machine& machine) {
  const Vgpr* const address = find_registers(machine.wave, instruction.src[0], 1);
  const Vgpr* const data = find_registers(machine.wave, instruction.src[1], 1, data_file(instruction));
  Vgpr* const to = find_registers(machine.wave, instruction.dst, 1, data_file(instruction));
  if (address == nullptr || data == nullptr || to == nullptr) return Outcome::kIllegal;
  const std::uint64_t lanes = machine.wave.exec();
  Vgpr result = {};
  for_each_lane(lanes, [&](unsigned lane) {
    const unsigned other = ((*address)[lane] + lds_offset(instruction)) / 4 % kLanes;
    if (kPermute == Permute::kForward) {
      result[other] = (*data)[lane];
    } else if ((lanes >> other & 1) != 0) {
      result[lane] = (*data)[other];
    }
  });
  write_lanes(lanes, *to, result);
  return Outcome::kNext;
}

// How many waves meet at the next barrier: as ds_gws_barrier says that itself, nobody has to remember it.
Outcome init_gws(const Instruction& instruction, Machine& machine) {
  return find_registers(machine.wave, instruction.src[0], 1, data_file(instruction)) == nullptr ? Outcome::kIllegal
                                                                                                : Outcome::kNext;
}

// The first active lane has the number of the waves, less one. The resource, which M0 and the offset choose, makes no
// difference: HIP has one.
Outcome wait_for_grid(const Instruction& instruction, Machine& machine) {
  const Vgpr* const data = find_registers(machine.wave, instruction.src[0], 1, data_file(instruction));
  if (data == nullptr) return Outcome::kIllegal;
  const std::uint64_t lanes = machine.wave.exec();
  if (lanes == 0) return Outcome::kNext;
  const U32 number = (*data)[static_cast<unsigned>(std::countr_zero(lanes))];
  if (number >= kMostBarrierWaves) return Outcome::kViolation;
  machine.wave.barrier_waves = number + 1;
  return Outcome::kGridBarrier;
}

void add_loads(HandlerTable& table) {
  table.set(Op::kDsReadU8, load<LoadFormat{1}>);
  table.set(Op::kDsReadI8, load<LoadFormat{1, true}>);
  table.set(Op::kDsReadU16, load<LoadFormat{2}>);
  table.set(Op::kDsReadI16, load<LoadFormat{2, true}>);
  table.set(Op::kDsReadU8D16, load<LoadFormat{1, false, Half::kLow}>);
  table.set(Op::kDsReadU8D16Hi, load<LoadFormat{1, false, Half::kHigh}>);
  table.set(Op::kDsReadI8D16, load<LoadFormat{1, true, Half::kLow}>);
  table.set(Op::kDsReadI8D16Hi, load<LoadFormat{1, true, Half::kHigh}>);
  table.set(Op::kDsReadU16D16, load<LoadFormat{2, false, Half::kLow}>);
  table.set(Op::kDsReadU16D16Hi, load<LoadFormat{2, false, Half::kHigh}>);
  table.set(Op::kDsReadB32, load<LoadFormat{4}>);
  table.set(Op::kDsReadB64, load<LoadFormat{8}>);
  table.set(Op::kDsReadB96, load<LoadFormat{12}>);
  table.set(Op::kDsReadB128, load<LoadFormat{16}>);
  table.set(Op::kDsRead2B32, load_two<U32, 4>);
  table.set(Op::kDsRead2st64B32, load_two<U32, 4 * 64>);
  table.set(Op::kDsRead2B64, load_two<std::uint64_t, 8>);
  table.set(Op::kDsRead2st64B64, load_two<std::uint64_t, 8 * 64>);
  table.set(Op::kDsReadAddtidB32, load_by_lane);
}

void add_stores(HandlerTable& table) {
  table.set(Op::kDsWriteB8, store<StoreFormat{1}>);
  table.set(Op::kDsWriteB8D16Hi, store<StoreFormat{1, Half::kHigh}>);
  table.set(Op::kDsWriteB16, store<StoreFormat{2}>);
  table.set(Op::kDsWriteB16D16Hi, store<StoreFormat{2, Half::kHigh}>);
  table.set(Op::kDsWriteB32, store<StoreFormat{4}>);
  table.set(Op::kDsWriteB64, store<StoreFormat{8}>);
  table.set(Op::kDsWriteB96, store<StoreFormat{12}>);
  table.set(Op::kDsWriteB128, store<StoreFormat{16}>);
  table.set(Op::kDsWrite2B32, store_two<U32, 4>);
  table.set(Op::kDsWrite2st64B32, store_two<U32, 4 * 64>);
  table.set(Op::kDsWrite2B64, store_two<std::uint64_t, 8>);
  table.set(Op::kDsWrite2st64B64, store_two<std::uint64_t, 8 * 64>);
  table.set(Op::kDsWriteAddtidB32, store_by_lane);
}

}  // namespace

void add_lds_handlers(HandlerTable& table) {
  add_loads(table);
  add_stores(table);
  add_lds_atomic_handlers(table);
  table.set(Op::kDsNop, [](const Instruction&, Machine&) { return Outcome::kNext; });
  table.set(Op::kDsGwsInit, init_gws);
  table.set(Op::kDsGwsBarrier, wait_for_grid);
  table.set(Op::kDsAppend, count_lanes<Direction::kUp>);
  table.set(Op::kDsConsume, count_lanes<Direction::kDown>);
  table.set(Op::kDsSwizzleB32, swizzle);
  table.set(Op::kDsPermuteB32, permute<Permute::kForward>);
  table.set(Op::kDsBpermuteB32, permute<Permute::kBackward>);
}

}  // namespace gcn
