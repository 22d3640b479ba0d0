// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Which worker executes which group, and for how long.
#include "vasicd/waves/dispatch.h"

#include <algorithm>
#include <mutex>

namespace vasicd {

namespace {

// Instructions of a group before other groups have their turn.
constexpr std::uint64_t kGroupTurn = Dispatch::kTurnInstructions / 2;
// Groups may wait for groups that have not begun yet. After so many turns in which no group ended more groups are
// begun, until the chip is full, so that they do not wait for ever.
constexpr unsigned kIdleTurns = 8;

}  // namespace

// State that one host thread keeps from turn to turn.
struct Dispatch::Worker {
  explicit Worker(gcn::Isa isa) : code(isa) {}
  CodeCache code;
};

struct Dispatch::Shift {
  Shift(TurnMemory& shared_memory, std::uint64_t worker_instructions)
      : memory(shared_memory), instructions(worker_instructions) {}
  TurnMemory& memory;
  std::uint64_t instructions;       // for each worker
  std::mutex lock = {};             // guards the dispatch and the members below
  std::size_t had_turn = 0;         // groups, at the end of groups_, that had their turn
  std::size_t in_hand = 0;          // groups that a worker executes now
  bool ended = false;               // whether a group ended
  bool is_at_grid_barrier = false;  // whether a group waits there
  DispatchTurn result = {};
};

Dispatch::Dispatch(const vasic_info& info, gcn::Isa isa, const Launch& launch, std::uint64_t most_groups,
                   std::uint64_t start_ticks)
    : isa_(isa), launch_(launch), start_ticks_(start_ticks), cus_(std::max(info.cu_count, 1u)) {
  const std::uint64_t waves = launch.waves_per_group();
  std::uint64_t most = std::uint64_t{groups_per_cu(isa, launch)} * cus_;
  most = std::min(most, most_groups);
  if (launch.scratch_wave_bytes != 0) most = std::min(most, launch.scratch_waves / waves);
  capacity_ = static_cast<std::size_t>(std::max<std::uint64_t>(most, 1));
  wanted_ = 1;
}

Dispatch::~Dispatch() = default;

bool Dispatch::resume_at(std::uint64_t next_group) {
  if (next_group > launch_.group_count()) return false;
  next_group_ = next_group;
  return true;
}

WorkGroup* Dispatch::add(std::uint64_t index, const std::vector<std::uint32_t>& scratch) {
  if (index >= next_group_ || groups_.size() >= capacity_) return nullptr;
  for (const std::uint32_t part : scratch) {
    if (part >= launch_.scratch_waves) return nullptr;
    while (scratch_used_ <= part) free_scratch_.insert(scratch_used_++);
    if (free_scratch_.erase(part) == 0) return nullptr;
  }
  const auto cu = static_cast<unsigned>(index % cus_);
  groups_.push_back(std::make_unique<WorkGroup>(isa_, launch_, index, cu, scratch));
  return groups_.back().get();
}

std::unique_ptr<WorkGroup> Dispatch::begin_group() {
  std::vector<std::uint32_t> scratch;
  if (launch_.scratch_wave_bytes != 0) {
    for (std::uint32_t wave = 0; wave < launch_.waves_per_group(); ++wave) {
      if (free_scratch_.empty()) free_scratch_.insert(scratch_used_++);
      scratch.push_back(*free_scratch_.begin());
      free_scratch_.erase(free_scratch_.begin());
    }
  }
  const std::uint64_t index = next_group_++;
  return std::make_unique<WorkGroup>(isa_, launch_, index, static_cast<unsigned>(index % cus_), scratch);
}

// Takes a group that had no turn yet, or begins a new one.
std::unique_ptr<WorkGroup> Dispatch::take(Shift& shift) {
  if (groups_.size() > shift.had_turn) {
    std::unique_ptr<WorkGroup> group = std::move(groups_.front());
    groups_.pop_front();
    ++shift.in_hand;
    return group;
  }
  if (next_group_ == launch_.group_count() || groups_.size() + shift.in_hand >= wanted_) return nullptr;
  ++shift.in_hand;
  return begin_group();
}

void Dispatch::finish(std::unique_ptr<WorkGroup> group, GroupTurn turn, Shift& shift) {
  DispatchTurn& result = shift.result;
  --shift.in_hand;
  instructions_ += turn.instructions;
  result.advanced = result.advanced || turn.done || !turn.waits;
  result.messages.insert(result.messages.end(), turn.messages.begin(), turn.messages.end());
  if (turn.stop.has_value() && !result.stop.has_value()) result.stop = turn.stop;
  if (turn.page.has_value()) result.page = turn.page;
  shift.is_at_grid_barrier = shift.is_at_grid_barrier || turn.is_at_grid_barrier;
  if (!turn.done) {
    groups_.push_back(std::move(group));
    ++shift.had_turn;
    return;
  }
  shift.ended = true;
  for (const WaveSlot& slot : group->waves()) {
    if (slot.scratch != WaveSlot::kNoScratch) free_scratch_.insert(slot.scratch);
  }
}

void Dispatch::work(Worker& worker, Shift& shift) {
  WaveMemory memory(shift.memory);
  std::uint64_t left = shift.instructions;
  for (;;) {
    std::unique_ptr<WorkGroup> group;
    {
      const std::lock_guard lock(shift.lock);
      if (shift.result.stop.has_value()) return;
      group = take(shift);
    }
    if (group == nullptr) return;
    GroupTurn turn = group->run(std::min(left, kGroupTurn), memory, worker.code);
    left -= std::min(left, std::max<std::uint64_t>(turn.instructions, 1));
    const std::lock_guard lock(shift.lock);
    finish(std::move(group), std::move(turn), shift);
    if (left == 0) return;
  }
}

// Lets waves go on that wait for each other if as many are there as each of them wants. Otherwise begins more groups in
// the next turns, because those that are missing may not have begun.
bool Dispatch::release_grid_barrier() {
  std::vector<WaveSlot*> waiting;
  std::uint32_t wanted = 0;
  for (const auto& group : groups_) {
    for (WaveSlot& slot : group->waves()) {
      if (slot.state != WaveState::kGridBarrier) continue;
      waiting.push_back(&slot);
      wanted = std::max(wanted, slot.wave.barrier_waves);
    }
  }
  if (waiting.empty() || waiting.size() < wanted) {
    wanted_ = std::min<std::size_t>(std::max<std::size_t>(wanted_, wanted), capacity_);
    return false;
  }
  for (WaveSlot* const slot : waiting) slot->state = WaveState::kReady;
  return true;
}

DispatchTurn Dispatch::turn(Memory& memory, unsigned vmid, WorkerPool& pool, std::uint64_t worker_instructions) {
  while (workers_.size() < pool.workers()) workers_.push_back(std::make_unique<Worker>(isa_));
  wanted_ = std::clamp<std::size_t>(wanted_, std::min<std::size_t>(2 * pool.workers(), capacity_), capacity_);
  TurnMemory shared{memory, vmid};
  Shift shift(shared, worker_instructions);
  const std::uint64_t at_hand = groups_.size() + (launch_.group_count() - next_group_);
  const auto wanted_workers = static_cast<unsigned>(std::min<std::uint64_t>(at_hand, pool.workers()));
  pool.run(wanted_workers, [&](unsigned worker) { work(*workers_[worker], shift); });
  if (shift.is_at_grid_barrier && release_grid_barrier()) shift.result.advanced = true;
  idle_turns_ = shift.ended ? 0 : idle_turns_ + 1;
  if (idle_turns_ >= kIdleTurns) {
    wanted_ = std::min(2 * wanted_, capacity_);
    idle_turns_ = 0;
  }
  shift.result.done = groups_.empty() && next_group_ == launch_.group_count();
  return std::move(shift.result);
}

}  // namespace vasicd
