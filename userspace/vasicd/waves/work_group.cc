// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Beginning and executing waves.
#include "vasicd/waves/work_group.h"

#include <time.h>

#include <algorithm>

namespace vasicd {

namespace compute = packets::compute;
using gcn::Outcome;

namespace {

// amdkfd gives every process these apertures (kfd_flat_memory.c: MAKE_LDS_APP_BASE_V9, MAKE_SCRATCH_APP_BASE_V9).
constexpr GpuAddr kSharedAperture = GpuAddr{1} << 48;
constexpr GpuAddr kPrivateAperture = GpuAddr{2} << 48;

constexpr std::uint32_t kMessageInterrupt = 1;  // message of S_SENDMSG
constexpr std::uint32_t kMessageTypeMask = 0xf;
constexpr std::uint8_t kTrapDebug = 3;  // LLVM's llvm.debugtrap

// The GPU clock counter of every chip here counts nanoseconds (chip_table.cc), as the device's clock does.
std::uint64_t wave_clock() {
  constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint32_t initial_mode(std::uint32_t rsrc1) {
  std::uint32_t mode = compute::kRsrc1FloatMode.get(rsrc1);
  if (compute::kRsrc1Dx10Clamp.get(rsrc1) != 0) mode |= gcn::mode::kDx10Clamp;
  if (compute::kRsrc1IeeeMode.get(rsrc1) != 0) mode |= gcn::mode::kIeee;
  if (compute::kRsrc1Fp16Overflow.get(rsrc1) != 0) mode |= gcn::mode::kFp16Overflow;
  return mode;
}

// The first VGPRs hold the ids of the work-items; gfx90a packs them into one.
void put_item_ids(gcn::Wave& wave, std::uint32_t count, unsigned lane, const Dim3& item) {
  if (wave.isa == gcn::Isa::kGfx90a) {
    wave.vgpr[0][lane] = item[0] | item[1] << 10 | item[2] << 20;
    return;
  }
  for (unsigned i = 0; i <= std::min(count, 2u) && i < wave.vgpr.size(); ++i) wave.vgpr[i][lane] = item[i];
}

}  // namespace

WorkGroup::WorkGroup(gcn::Isa isa, const Launch& launch, std::uint64_t index, unsigned cu,
                     const std::vector<std::uint32_t>& scratch)
    : index_(index), lds_(launch.lds_bytes) {
  shared_.lds = lds_;
  shared_.shared_base = kSharedAperture;
  shared_.private_base = kPrivateAperture;
  shared_.clock = wave_clock;
  const Dim3 id = launch.group_id(index);
  const Dim3 items = launch.group_size(id);
  const std::uint32_t total = items[0] * items[1] * items[2];
  const WaveSize size = wave_size(isa, launch);
  waves_.resize((total + gcn::kLanes - 1) / gcn::kLanes);
  for (unsigned n = 0; n < waves_.size(); ++n) {
    WaveSlot& slot = waves_[n];
    slot.wave.isa = isa;
    slot.wave.vgpr.resize(size.vgprs);
    slot.wave.agpr.resize(size.agprs);
    slot.wave.sgprs = size.sgprs;
    slot.wave.hw_id = (n & 0xfu) | (n & 3u) << 4 | (cu & 0xfu) << 8;
    if (n < scratch.size()) slot.scratch = scratch[n];
    begin(launch, n, id, items);
  }
}

void WorkGroup::begin(const Launch& launch, unsigned number, const Dim3& id, const Dim3& items) {
  constexpr std::uint32_t kFirstWave = 1u << 31;
  WaveSlot& slot = waves_[number];
  gcn::Wave& wave = slot.wave;
  wave.pc = launch.code;
  wave.mode = initial_mode(launch.rsrc1);
  unsigned next = compute::kRsrc2UserSgpr.get(launch.rsrc2);
  std::copy_n(launch.user_sgprs.begin(), std::min<std::size_t>(next, launch.user_sgprs.size()), wave.scalar.begin());
  const auto put = [&](std::uint32_t value) {
    if (next < gcn::operand::kSgprs) wave.scalar[next++] = value;
  };
  if (compute::kRsrc2TgidXEn.get(launch.rsrc2) != 0) put(launch.first[0] + id[0]);
  if (compute::kRsrc2TgidYEn.get(launch.rsrc2) != 0) put(launch.first[1] + id[1]);
  if (compute::kRsrc2TgidZEn.get(launch.rsrc2) != 0) put(launch.first[2] + id[2]);
  if (compute::kRsrc2TgSizeEn.get(launch.rsrc2) != 0) {
    put((number == 0 ? kFirstWave : 0) | static_cast<std::uint32_t>(waves_.size()));
  }
  if (compute::kRsrc2ScratchEn.get(launch.rsrc2) != 0) {
    put(slot.scratch == WaveSlot::kNoScratch ? 0 : slot.scratch * launch.scratch_wave_bytes);
  }
  const std::uint32_t total = items[0] * items[1] * items[2];
  const std::uint32_t first = number * gcn::kLanes;
  const std::uint32_t active = std::min(total - first, gcn::kLanes);
  wave.set_exec(active == gcn::kLanes ? ~std::uint64_t{0} : (std::uint64_t{1} << active) - 1);
  const std::uint32_t ids = compute::kRsrc2TidigCompCnt.get(launch.rsrc2);
  for (unsigned lane = 0; lane < active; ++lane) {
    const std::uint32_t item = first + lane;
    put_item_ids(wave, ids, lane, {item % items[0], item / items[0] % items[1], item / items[0] / items[1]});
  }
}

GroupTurn WorkGroup::run(std::uint64_t limit, WaveMemory& memory, CodeCache& code) {
  constexpr std::uint64_t kWaveTurn = 1024;
  GroupTurn turn;
  shared_.lds = lds_;
  while (turn.instructions < limit && !turn.stop.has_value()) {
    bool advanced = false;
    for (WaveSlot& slot : waves_) {
      if (slot.state != WaveState::kReady) continue;
      advanced = run_wave(slot, kWaveTurn, memory, code, turn) || advanced;
      if (turn.stop.has_value()) return turn;
    }
    const auto is = [this](WaveState state) {
      return std::count_if(waves_.begin(), waves_.end(), [&](const WaveSlot& s) { return s.state == state; });
    };
    if (is(WaveState::kDone) == std::ssize(waves_)) {
      turn.done = true;
      return turn;
    }
    // Waves that have ended no longer take part in a barrier.
    if (is(WaveState::kBarrier) + is(WaveState::kDone) == std::ssize(waves_)) {
      release_barrier();
    } else if (!advanced) {
      turn.waits = true;
      break;
    }
  }
  const auto at_grid_barrier = [](const WaveSlot& slot) { return slot.state == WaveState::kGridBarrier; };
  turn.is_at_grid_barrier = std::any_of(waves_.begin(), waves_.end(), at_grid_barrier);
  return turn;
}

void WorkGroup::release_barrier() {
  for (WaveSlot& slot : waves_) {
    if (slot.state == WaveState::kBarrier) slot.state = WaveState::kReady;
  }
}

// False: the wave waits for something outside of its group.
bool WorkGroup::run_wave(WaveSlot& slot, std::uint64_t limit, WaveMemory& memory, CodeCache& code, GroupTurn& turn) {
  gcn::Wave& wave = slot.wave;
  gcn::Machine machine{wave, shared_, memory};
  for (std::uint64_t n = 0; n < limit; ++n) {
    const DecodedInstruction* const decoded = code.at(wave.pc, memory);
    if (decoded == nullptr) {
      after(Outcome::kFault, {}, slot, memory, turn);
      return false;
    }
    ++turn.instructions;
    const Outcome outcome =
        decoded->handler == nullptr ? Outcome::kIllegal : decoded->handler(decoded->instruction, machine);
    if (outcome == Outcome::kNext) {
      wave.pc += decoded->instruction.bytes;
      continue;
    }
    after(outcome, *decoded, slot, memory, turn);
    if (turn.stop.has_value() || turn.page.has_value()) return false;
    if (outcome == Outcome::kSleep || outcome == Outcome::kHalt) return false;
    if (slot.state != WaveState::kReady) return true;
  }
  return true;
}

void WorkGroup::after(Outcome outcome, const DecodedInstruction& decoded, WaveSlot& slot, WaveMemory& memory,
                      GroupTurn& turn) {
  gcn::Wave& wave = slot.wave;
  const auto stop = [&](WaveStop::Kind kind) { turn.stop = WaveStop{kind, {}, wave.pc, decoded.words}; };
  switch (outcome) {
    case Outcome::kEnd:
      slot.state = WaveState::kDone;
      break;
    case Outcome::kBarrier:
      slot.state = WaveState::kBarrier;
      break;
    case Outcome::kGridBarrier:
      slot.state = WaveState::kGridBarrier;
      break;
    case Outcome::kHalt:
      slot.state = WaveState::kHalted;
      break;
    case Outcome::kMessage:
      if ((wave.message & kMessageTypeMask) == kMessageInterrupt) {
        turn.messages.push_back(wave.scalar[gcn::operand::kM0]);
      }
      break;
    case Outcome::kTrap:
      // Without a debugger the runtime's trap handler returns from this one and halts the wave after any other.
      if (wave.trap_id == kTrapDebug) break;
      stop(WaveStop::Kind::kTrap);
      turn.stop->trap = wave.trap_id;
      return;
    case Outcome::kViolation:
      return stop(WaveStop::Kind::kViolation);
    case Outcome::kIllegal:
      return stop(WaveStop::Kind::kIllegalInstruction);
    case Outcome::kFault:
      if (!memory.fault().has_value()) return stop(WaveStop::Kind::kViolation);
      if (memory.fault()->retry) {
        turn.page = memory.fault();
        return;
      }
      stop(WaveStop::Kind::kFault);
      turn.stop->fault = *memory.fault();
      return;
    case Outcome::kNext:
    case Outcome::kSleep:
      break;
  }
  wave.pc += decoded.instruction.bytes;
}

}  // namespace vasicd
