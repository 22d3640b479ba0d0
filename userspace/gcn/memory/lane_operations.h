// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Loads, stores and atomics of vector memory instructions. An addressing mode is a function that finds every lane's
// bytes:
//
//   Outcome find(const Instruction&, Machine&, LaneAccess&);   // kNext: all found
#pragma once

#include <span>
#include <string_view>

#include "gcn/memory/atomics.h"

namespace gcn {

using Addressing = Outcome (*)(const Instruction& instruction, Machine& machine, LaneAccess& access);

// The half of a register that a 16-bit value takes; the other half keeps its value.
enum class Half : std::uint8_t { kNone, kLow, kHigh };

struct LoadFormat {
  unsigned bytes;
  bool is_signed = false;
  Half half = Half::kNone;
};

struct StoreFormat {
  unsigned bytes;
  Half half = Half::kNone;  // kHigh: the data begins at bit 16
};

[[nodiscard]] constexpr unsigned words_of(unsigned bytes) { return (bytes + 3) / 4; }

template <LoadFormat kFormat>
[[nodiscard]] constexpr std::uint32_t extend(std::uint32_t old, std::uint32_t value) {
  if constexpr (kFormat.is_signed) {
    value = kFormat.bytes == 1 ? static_cast<std::uint32_t>(static_cast<std::int8_t>(value))
                               : static_cast<std::uint32_t>(static_cast<std::int16_t>(value));
  }
  if constexpr (kFormat.half == Half::kLow) return (old & 0xffff0000) | (value & 0xffff);
  if constexpr (kFormat.half == Half::kHigh) return (old & 0xffff) | value << 16;
  return value;
}

// Returns the `count` registers from operand `number` on, or nullptr if the wave does not have all of them. Data can be
// in accumulation registers.
enum class File : std::uint8_t { kVector, kAccumulation };
[[nodiscard]] inline Vgpr* find_registers(Wave& wave, unsigned number, unsigned count, File file = File::kVector) {
  std::vector<Vgpr>& registers = file == File::kAccumulation ? wave.agpr : wave.vgpr;
  const unsigned first = number - operand::kVgpr0;  // wraps to a large number for other operands
  if (first >= registers.size() || count > registers.size() - first) return nullptr;
  return &registers[first];
}

[[nodiscard]] inline File data_file(const Instruction& instruction) {
  return instruction.agpr ? File::kAccumulation : File::kVector;
}

constexpr std::uint64_t kAllLanes = ~std::uint64_t{0};

inline void write_lanes(std::uint64_t lanes, Vgpr& to, const Vgpr& from) {
  if (lanes == kAllLanes) {
    to = from;
  } else {
    for_each_lane(lanes, [&](unsigned lane) { to[lane] = from[lane]; });
  }
}

template <Addressing kAddressing, LoadFormat kFormat>
Outcome load(const Instruction& instruction, Machine& machine) {
  constexpr unsigned kWords = words_of(kFormat.bytes);
  Vgpr* const to = find_registers(machine.wave, instruction.dst, kWords, data_file(instruction));
  if (to == nullptr) return Outcome::kIllegal;
  LaneAccess access(machine.memory, Access::kRead, kFormat.bytes);
  const Outcome outcome = kAddressing(instruction, machine, access);
  if (outcome != Outcome::kNext) return outcome;
  const std::uint64_t lanes = machine.wave.exec();
  LaneWords words;
  if (access.whole_lanes() != kAllLanes) {
    for (unsigned i = 0; i < kWords; ++i) words[i].fill(0);
  }
  access.load<kFormat.bytes>(words);
  if constexpr (kFormat.is_signed || kFormat.half != Half::kNone) {
    for_each_lane(lanes, [&](unsigned lane) { (*to)[lane] = extend<kFormat>((*to)[lane], words[0][lane]); });
  } else {
    for (unsigned i = 0; i < kWords; ++i) write_lanes(lanes, to[i], words[i]);
  }
  return Outcome::kNext;
}

template <Addressing kAddressing, StoreFormat kFormat>
Outcome store(const Instruction& instruction, Machine& machine) {
  constexpr unsigned kWords = words_of(kFormat.bytes);
  const Vgpr* const from = find_registers(machine.wave, instruction.src[1], kWords, data_file(instruction));
  if (from == nullptr) return Outcome::kIllegal;
  LaneAccess access(machine.memory, Access::kWrite, kFormat.bytes);
  const Outcome outcome = kAddressing(instruction, machine, access);
  if (outcome != Outcome::kNext) return outcome;
  LaneWords words;
  for (unsigned i = 0; i < kWords; ++i) words[i] = from[i];
  if constexpr (kFormat.half == Half::kHigh) {
    for (std::uint32_t& word : words[0]) word >>= 16;
  }
  access.store<kFormat.bytes>(words);
  return Outcome::kNext;
}

template <typename T>
[[nodiscard]] T value_of(const Vgpr* registers, unsigned lane) {
  if constexpr (sizeof(T) == 4) return registers[0][lane];
  if constexpr (sizeof(T) == 8) return registers[0][lane] | std::uint64_t{registers[1][lane]} << 32;
}

template <typename T>
void set_value(Vgpr* registers, unsigned lane, T value) {
  registers[0][lane] = static_cast<std::uint32_t>(value);
  if constexpr (sizeof(T) == 8) registers[1][lane] = static_cast<std::uint32_t>(value >> 32);
}

// Modifies the lanes' data in the order of lanes. Only scratch memory is split, and no other lane accesses that, so
// split data is modified without atomicity.
template <typename T, auto F>
void modify_lanes(const LaneAccess& access, const Vgpr* data, const Vgpr* compare, LaneWords& old) {
  for_each_lane(access.whole_lanes(), [&](unsigned lane) {
    const T cmp = compare != nullptr ? value_of<T>(compare, lane) : T{0};
    set_value(old.data(), lane, modify<T, F>(access.whole(lane), value_of<T>(data, lane), cmp));
  });
  if (access.split_lanes() == 0) return;
  access.load_split(old);
  LaneWords now;
  for_each_lane(access.split_lanes(), [&](unsigned lane) {
    const T cmp = compare != nullptr ? value_of<T>(compare, lane) : T{0};
    set_value(now.data(), lane, F(value_of<T>(old.data(), lane), value_of<T>(data, lane), cmp));
  });
  access.store_split(now);
}

[[nodiscard]] inline bool host_is_aligned(const LaneAccess& access, unsigned alignment) {
  bool aligned = true;
  for_each_lane(access.whole_lanes(),
                [&](unsigned lane) { aligned &= host::is_aligned(access.whole(lane), alignment); });
  return aligned;
}

// With kCompare a second value of equal size follows the data.
enum class Data : std::uint8_t { kOne, kCompare };

template <Addressing kAddressing, typename T, auto F, Data kData = Data::kOne>
Outcome atomic(const Instruction& instruction, Machine& machine) {
  constexpr unsigned kWords = sizeof(T) / 4;
  const bool returns = instruction.glc && instruction.dst != operand::kNone;
  const File file = data_file(instruction);
  Vgpr* const data = find_registers(machine.wave, instruction.src[1], kData == Data::kOne ? kWords : 2 * kWords, file);
  Vgpr* const to = returns ? find_registers(machine.wave, instruction.dst, kWords, file) : data;
  if (data == nullptr || to == nullptr) return Outcome::kIllegal;
  LaneAccess access(machine.memory, Access::kWrite, sizeof(T));
  const Outcome outcome = kAddressing(instruction, machine, access);
  if (outcome != Outcome::kNext) return outcome;
  if (!access.is_aligned(sizeof(T)) || !host_is_aligned(access, sizeof(T))) return Outcome::kViolation;
  LaneWords old;
  for (unsigned i = 0; i < kWords; ++i) old[i].fill(0);
  modify_lanes<T, F>(access, data, kData == Data::kCompare ? data + kWords : nullptr, old);
  if (!returns) return Outcome::kNext;
  for (unsigned i = 0; i < kWords; ++i) write_lanes(machine.wave.exec(), to[i], old[i]);
  return Outcome::kNext;
}

// A handler of operations whose names differ only in their prefix: buffer_, flat_, global_ or scratch_.
struct NamedHandler {
  std::string_view name;
  Handler handler;
};

// Sets the handlers of the operations that exist with this prefix.
void set_family(HandlerTable& table, std::string_view prefix, std::span<const NamedHandler> family);

template <Addressing kA>
void add_loads_and_stores(HandlerTable& table, std::string_view prefix) {
  static constexpr NamedHandler kFamily[] = {
      {"load_ubyte", load<kA, LoadFormat{1}>},
      {"load_sbyte", load<kA, LoadFormat{1, true}>},
      {"load_ushort", load<kA, LoadFormat{2}>},
      {"load_sshort", load<kA, LoadFormat{2, true}>},
      {"load_dword", load<kA, LoadFormat{4}>},
      {"load_dwordx2", load<kA, LoadFormat{8}>},
      {"load_dwordx3", load<kA, LoadFormat{12}>},
      {"load_dwordx4", load<kA, LoadFormat{16}>},
      {"load_ubyte_d16", load<kA, LoadFormat{1, false, Half::kLow}>},
      {"load_ubyte_d16_hi", load<kA, LoadFormat{1, false, Half::kHigh}>},
      {"load_sbyte_d16", load<kA, LoadFormat{1, true, Half::kLow}>},
      {"load_sbyte_d16_hi", load<kA, LoadFormat{1, true, Half::kHigh}>},
      {"load_short_d16", load<kA, LoadFormat{2, false, Half::kLow}>},
      {"load_short_d16_hi", load<kA, LoadFormat{2, false, Half::kHigh}>},
      {"store_byte", store<kA, StoreFormat{1}>},
      {"store_byte_d16_hi", store<kA, StoreFormat{1, Half::kHigh}>},
      {"store_short", store<kA, StoreFormat{2}>},
      {"store_short_d16_hi", store<kA, StoreFormat{2, Half::kHigh}>},
      {"store_dword", store<kA, StoreFormat{4}>},
      {"store_dwordx2", store<kA, StoreFormat{8}>},
      {"store_dwordx3", store<kA, StoreFormat{12}>},
      {"store_dwordx4", store<kA, StoreFormat{16}>},
  };
  set_family(table, prefix, kFamily);
}

template <Addressing kA>
void add_atomics(HandlerTable& table, std::string_view prefix) {
  using T32 = std::uint32_t;
  using T64 = std::uint64_t;
  using F32 = AtomicFunctions<T32>;
  using F64 = AtomicFunctions<T64>;
  static constexpr NamedHandler kFamily[] = {
      {"atomic_swap", atomic<kA, T32, F32::swap>},
      {"atomic_cmpswap", atomic<kA, T32, F32::cmpswap, Data::kCompare>},
      {"atomic_add", atomic<kA, T32, F32::add>},
      {"atomic_sub", atomic<kA, T32, F32::sub>},
      {"atomic_smin", atomic<kA, T32, F32::smin>},
      {"atomic_umin", atomic<kA, T32, F32::umin>},
      {"atomic_smax", atomic<kA, T32, F32::smax>},
      {"atomic_umax", atomic<kA, T32, F32::umax>},
      {"atomic_and", atomic<kA, T32, F32::bit_and>},
      {"atomic_or", atomic<kA, T32, F32::bit_or>},
      {"atomic_xor", atomic<kA, T32, F32::bit_xor>},
      {"atomic_inc", atomic<kA, T32, F32::inc>},
      {"atomic_dec", atomic<kA, T32, F32::dec>},
      {"atomic_swap_x2", atomic<kA, T64, F64::swap>},
      {"atomic_cmpswap_x2", atomic<kA, T64, F64::cmpswap, Data::kCompare>},
      {"atomic_add_x2", atomic<kA, T64, F64::add>},
      {"atomic_sub_x2", atomic<kA, T64, F64::sub>},
      {"atomic_smin_x2", atomic<kA, T64, F64::smin>},
      {"atomic_umin_x2", atomic<kA, T64, F64::umin>},
      {"atomic_smax_x2", atomic<kA, T64, F64::smax>},
      {"atomic_umax_x2", atomic<kA, T64, F64::umax>},
      {"atomic_and_x2", atomic<kA, T64, F64::bit_and>},
      {"atomic_or_x2", atomic<kA, T64, F64::bit_or>},
      {"atomic_xor_x2", atomic<kA, T64, F64::bit_xor>},
      {"atomic_inc_x2", atomic<kA, T64, F64::inc>},
      {"atomic_dec_x2", atomic<kA, T64, F64::dec>},
      {"atomic_add_f32", atomic<kA, T32, float_atomics::add_f32>},
      {"atomic_pk_add_f16", atomic<kA, T32, float_atomics::pk_add_f16>},
      {"atomic_add_f64", atomic<kA, T64, float_atomics::add_f64>},
      {"atomic_min_f64", atomic<kA, T64, float_atomics::minimum<double, T64>>},
      {"atomic_max_f64", atomic<kA, T64, float_atomics::maximum<double, T64>>},
  };
  set_family(table, prefix, kFamily);
}

}  // namespace gcn
