// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Lists of commands for the three queue types, in the vocabulary of the tests: copy, fill, wait, signal. The encoding
// is userspace/packets'. Addresses are GPU addresses.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kfdtest-criu/harness/event.h"
#include "kfdtest-criu/harness/memory.h"
#include "kfdtest-criu/harness/queue.h"
#include "packets/aql.h"

namespace kfdtest {

// PM4 for a compute queue.
class Pm4Commands {
 public:
  explicit Pm4Commands(const Gpu& gpu) : generation_(gpu.generation) {}
  Pm4Commands& write(std::uint64_t address, std::span<const std::uint32_t> words);
  Pm4Commands& write(std::uint64_t address, std::uint32_t word) { return write(address, std::span(&word, 1)); }
  Pm4Commands& copy32(std::uint64_t destination, std::uint64_t source);
  Pm4Commands& copy64(std::uint64_t destination, std::uint64_t source);
  Pm4Commands& atomic_add32(std::uint64_t address, std::uint32_t addend);
  Pm4Commands& atomic_add64(std::uint64_t address, std::uint64_t addend);
  // Stops the queue until the 32-bit word at `address` is `value`.
  Pm4Commands& wait_equal(std::uint64_t address, std::uint32_t value);
  // Stores a 64-bit value, without an interrupt, when all earlier commands have completed.
  Pm4Commands& fence(std::uint64_t address, std::uint64_t value);
  // Stores the trigger in the event's mailbox and interrupts, when all earlier commands have completed.
  Pm4Commands& signal(const KfdEvent& event);
  // Stores the GPU clock counter when all earlier commands have completed.
  Pm4Commands& clock(std::uint64_t address);
  Pm4Commands& indirect(std::uint64_t address, std::size_t dwords);
  Pm4Commands& nop(std::size_t dwords);
  // One wave of one work-item with `s0` in its first SGPR; its code is at `address`, a multiple of 256. For gfx9.
  Pm4Commands& wave(std::uint64_t address, std::uint32_t s0);
  // A well-formed packet with an opcode that no packet has.
  Pm4Commands& bad_opcode();

  [[nodiscard]] std::span<const std::uint32_t> dwords() const { return dwords_; }

 private:
  Generation generation_;
  std::vector<std::uint32_t> dwords_;
};

// A program of one gfx9 wave that interrupts by S_SENDMSG, as device code does that signals.
class MessageWave {
 public:
  static base::Result<MessageWave> create(const Gpu& gpu);
  // Stores the trigger in the event's mailbox, then starts the wave. It keeps no reference.
  [[nodiscard]] Pm4Commands signal(const KfdEvent& event) const;

 private:
  MessageWave(const Gpu& gpu, GpuMemory code) : gpu_(&gpu), code_(std::move(code)) {}
  const Gpu* gpu_;  // outlives this
  GpuMemory code_;  // outlives the wave
};

class SdmaCommands {
 public:
  explicit SdmaCommands(const Gpu& gpu) : generation_(gpu.generation) {}
  // Accepts any alignment and size, and splits the copy into as many packets as it takes.
  SdmaCommands& copy(std::uint64_t destination, std::uint64_t source, std::uint64_t size);
  // Address and size are multiples of 4.
  SdmaCommands& fill(std::uint64_t address, std::uint64_t size, std::uint32_t word);
  SdmaCommands& write(std::uint64_t address, std::span<const std::uint32_t> words);
  SdmaCommands& atomic_add64(std::uint64_t address, std::uint64_t addend);
  SdmaCommands& wait_equal(std::uint64_t address, std::uint32_t value);
  SdmaCommands& fence(std::uint64_t address, std::uint32_t value);
  SdmaCommands& signal(const KfdEvent& event);
  // Stores the GPU clock counter.
  SdmaCommands& clock(std::uint64_t address);
  SdmaCommands& nop(std::size_t dwords);

  [[nodiscard]] std::span<const std::uint32_t> dwords() const { return dwords_; }

 private:
  Generation generation_;
  std::vector<std::uint32_t> dwords_;
};

// Runs the commands in a new SDMA queue, which is destroyed afterwards.
base::Status run_alone(const Gpu& gpu, SdmaCommands commands);

// An amd_signal_t in GPU memory. A barrier waits for value 0; a completed packet takes 1 off it.
class AqlSignal {
 public:
  static constexpr std::size_t kSize = 64;
  // Initialises the 64 bytes at `offset`; `event` is signaled by the device when it changes the value.
  AqlSignal(const GpuMemory& memory, std::size_t offset, std::int64_t value, const KfdEvent* event = nullptr);
  // A signal that was initialised before.
  static AqlSignal existing(const GpuMemory& memory, std::size_t offset) { return {memory, offset}; }

  [[nodiscard]] std::uint64_t gpu_address() const { return memory_->gpu_address(offset_); }
  // GPU address of the signal's 64-bit value, for packets that store to it.
  [[nodiscard]] std::uint64_t value_address() const;
  [[nodiscard]] std::int64_t value() const;
  void store(std::int64_t value) const;

 private:
  AqlSignal(const GpuMemory& memory, std::size_t offset) : memory_(&memory), offset_(offset) {}
  const GpuMemory* memory_;  // outlives the signal
  std::size_t offset_;
};

inline constexpr std::size_t kAqlBarrierDependencies = 5;
// A barrier-AND packet: waits until all `dependencies` (at most five) are 0, then takes 1 off `completion`, if any.
[[nodiscard]] AqlBytes aql_barrier_and(std::span<const AqlSignal* const> dependencies, const AqlSignal* completion);

// A barrier-OR packet: waits until any of `dependencies` (at most five) is 0, then takes 1 off `completion`, if any.
[[nodiscard]] AqlBytes aql_barrier_or(std::span<const AqlSignal* const> dependencies, const AqlSignal* completion);

struct AqlValueWait {
  const AqlSignal* signal = nullptr;
  packets::aql::Condition condition = packets::aql::Condition::kEqual;
  std::int64_t value = 0;
  std::int64_t mask = -1;  // bits of the signal's value that count
};
// AMD's barrier packet: waits until the signal's value compares with `wait.value`; from gfx9 on.
[[nodiscard]] AqlBytes aql_barrier_value(const AqlValueWait& wait, const AqlSignal* completion);
// Runs PM4 from a buffer; from gfx9 on.
[[nodiscard]] AqlBytes aql_pm4(std::uint64_t address, std::size_t dwords, const AqlSignal* completion);
// An agent dispatch: a well-formed packet that no packet processor of AMD's executes.
[[nodiscard]] AqlBytes aql_agent_dispatch();

// Waits for a 32-bit word at `offset` to become `value`; the error says what stood there instead.
base::Status wait_for_word(const GpuMemory& memory, std::size_t offset, std::uint32_t value,
                           Duration limit = kDeadline);

}  // namespace kfdtest
