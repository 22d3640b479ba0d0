// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Test helpers: memory that is one run of bytes at one address, and a machine of one wave with its own memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "gcn/execute.h"

namespace gcn {

// Bytes at [base, base + size). A test lowers `longest_run` to get them in pieces, and clears `writable` to have writes
// refused.
class FlatMemory : public Memory {
 public:
  FlatMemory(Address base, std::size_t size) : base_(base), bytes_(size) {}

  std::span<std::byte> map(Address address, std::size_t limit, Access access) override {
    ++maps;
    if (access == Access::kWrite && !writable) return {};
    if (address < base_ || address - base_ >= bytes_.size()) return {};
    const std::size_t offset = address - base_;
    const std::size_t run = longest_run - (address % longest_run);
    return std::span(bytes_).subspan(offset, std::min({limit, run, bytes_.size() - offset}));
  }

  // The caller passes only addresses that exist.
  template <typename T>
  [[nodiscard]] T get(Address address) const {
    T value;
    std::memcpy(&value, bytes_.data() + (address - base_), sizeof value);
    return value;
  }
  template <typename T>
  void set(Address address, T value) {
    std::memcpy(bytes_.data() + (address - base_), &value, sizeof value);
  }
  [[nodiscard]] Address base() const { return base_; }
  [[nodiscard]] std::span<std::byte> bytes() { return bytes_; }

  std::size_t longest_run = 4096;
  bool writable = true;
  unsigned maps = 0;  // how often it was asked

 private:
  Address base_;
  std::vector<std::byte> bytes_;
};

// Operand number of a vector register.
[[nodiscard]] constexpr std::uint16_t v(unsigned n) { return static_cast<std::uint16_t>(operand::kVgpr0 + n); }

// An instruction of two dwords, by its mnemonic; s_endpgm if no operation has this name.
[[nodiscard]] inline Instruction named_instruction(std::string_view mnemonic) {
  Instruction instruction;
  const auto found = std::find(kOpNames.begin(), kOpNames.end(), mnemonic);
  instruction.op = found == kOpNames.end() ? Op::kSEndpgm : static_cast<Op>(found - kOpNames.begin());
  instruction.bytes = 8;
  return instruction;
}

// A wave with all lanes active, 64 KiB of memory and 4 KiB of LDS.
struct FakeMachine {
  static constexpr Address kBase = 0x7f0000000000;
  static constexpr Address kSharedBase = 0x1000000000000;
  static constexpr Address kPrivateBase = 0x2000000000000;

  FakeMachine() {
    wave.vgpr.resize(64);
    wave.set_exec(~std::uint64_t{0});
    wave.pc = 0x1000;
    shared.lds = lds;
    shared.shared_base = kSharedBase;
    shared.private_base = kPrivateBase;
  }
  FakeMachine(const FakeMachine&) = delete;
  FakeMachine& operator=(const FakeMachine&) = delete;

  Outcome run(const Instruction& instruction) { return execute(instruction, machine); }
  // v[number] = F(lane)
  template <typename F>
  void fill(unsigned number, F f) {
    for (unsigned lane = 0; lane < kLanes; ++lane) wave.vgpr[number][lane] = static_cast<std::uint32_t>(f(lane));
  }

  Wave wave;
  std::array<std::byte, 4096> lds = {};
  Shared shared;
  FlatMemory memory{kBase, 65536};
  Machine machine{wave, shared, memory};
};

}  // namespace gcn
