// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The bytes of a work-group's local data share, and the operands of DS instructions.
#pragma once

#include <cstring>

#include "gcn/memory/lane_operations.h"

namespace gcn {

class Lds {
 public:
  explicit Lds(const Machine& machine) : bytes_(machine.shared.lds) {}

  // Does not change `to` if not all bytes are in range.
  void read(std::uint32_t address, void* to, std::size_t size) const {
    if (has(address, size)) std::memcpy(to, &bytes_[address], size);
  }
  void write(std::uint32_t address, const void* from, std::size_t size) const {
    if (has(address, size)) std::memcpy(&bytes_[address], from, size);
  }
  template <typename T>
  [[nodiscard]] T get(std::uint32_t address) const {
    T value = 0;
    read(address, &value, sizeof value);
    return value;
  }
  template <typename T>
  void set(std::uint32_t address, T value) const {
    write(address, &value, sizeof value);
  }

 private:
  [[nodiscard]] bool has(std::uint32_t address, std::size_t size) const {
    return address < bytes_.size() && size <= bytes_.size() - address;
  }

  std::span<std::byte> bytes_;
};

// Returns the register of addresses, or nullptr if the wave does not have it or the instruction addresses GDS.
[[nodiscard]] inline const Vgpr* lds_address(const Instruction& instruction, Machine& machine) {
  return instruction.gds ? nullptr : find_registers(machine.wave, instruction.src[0], 1);
}

// Returns the bytes that are added to each address. Sums wrap around at 32 bits.
[[nodiscard]] inline std::uint32_t lds_offset(const Instruction& instruction) {
  return static_cast<std::uint32_t>(instruction.offset) & 0xffff;
}

// Instructions with two addresses have two offsets of 8 bits, in units of the data or of 64 of them.
[[nodiscard]] inline std::uint32_t lds_offset_of(const Instruction& instruction, unsigned n, std::uint32_t unit) {
  return (lds_offset(instruction) >> (8 * n) & 0xff) * unit;
}

void add_lds_atomic_handlers(HandlerTable& table);  // lds_atomics.cc

}  // namespace gcn
