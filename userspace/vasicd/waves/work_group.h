// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A work-group on a compute unit: its waves, its LDS, and the loop that executes them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gcn/isa/wave.h"
#include "vasicd/waves/code_cache.h"
#include "vasicd/waves/launch.h"
#include "vasicd/waves/wave_memory.h"

namespace vasicd {

// Where a wave stands between two turns.
enum class WaveState : std::uint8_t { kReady, kBarrier, kHalted, kDone, kGridBarrier };
inline constexpr WaveState kLastWaveState = WaveState::kGridBarrier;

struct WaveSlot {
  static constexpr std::uint32_t kNoScratch = ~std::uint32_t{0};
  gcn::Wave wave;
  WaveState state = WaveState::kReady;
  std::uint32_t scratch = kNoScratch;  // which part of the scratch memory
};

// Why a wave cannot continue. It ends the whole dispatch.
struct WaveStop {
  enum class Kind : std::uint8_t { kFault, kIllegalInstruction, kViolation, kTrap };
  Kind kind = Kind::kFault;
  MemoryFault fault = {};  // kFault
  GpuAddr pc = 0;
  std::array<std::uint32_t, 2> words = {};  // words of the instruction
  std::uint8_t trap = 0;                    // kTrap: which
};

struct GroupTurn {
  std::uint64_t instructions = 0;
  bool done = false;
  bool waits = false;               // every wave waits: asleep, halted, for a page, or for other groups at a barrier
  bool is_at_grid_barrier = false;  // a wave is
  std::optional<WaveStop> stop;
  std::optional<MemoryFault> page;      // a fault that is to be retried
  std::vector<std::uint32_t> messages;  // S_SENDMSG with the interrupt message: M0
};

class WorkGroup {
 public:
  // A group at its beginning. `scratch` holds a part for each wave if the launch has scratch.
  WorkGroup(gcn::Isa isa, const Launch& launch, std::uint64_t index, unsigned cu,
            const std::vector<std::uint32_t>& scratch);
  WorkGroup(const WorkGroup&) = delete;
  WorkGroup& operator=(const WorkGroup&) = delete;

  // Executes about `limit` instructions, the waves in turns.
  GroupTurn run(std::uint64_t limit, WaveMemory& memory, CodeCache& code);

  [[nodiscard]] std::uint64_t index() const { return index_; }
  [[nodiscard]] std::vector<WaveSlot>& waves() { return waves_; }
  [[nodiscard]] const std::vector<WaveSlot>& waves() const { return waves_; }
  [[nodiscard]] std::vector<std::byte>& lds() { return lds_; }
  [[nodiscard]] const std::vector<std::byte>& lds() const { return lds_; }

 private:
  void begin(const Launch& launch, unsigned wave, const Dim3& id, const Dim3& items);
  bool run_wave(WaveSlot& slot, std::uint64_t limit, WaveMemory& memory, CodeCache& code, GroupTurn& turn);
  void after(gcn::Outcome outcome, const DecodedInstruction& decoded, WaveSlot& slot, WaveMemory& memory,
             GroupTurn& turn);
  void release_barrier();

  std::uint64_t index_;
  std::vector<std::byte> lds_;
  gcn::Shared shared_;
  std::vector<WaveSlot> waves_;
};

}  // namespace vasicd
