// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A dispatch in flight: which groups are still to begin, which are on compute units, and the turns in which host
// threads execute them. Between two turns it stands still, and can be saved.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "vasic/vasic_abi.h"
#include "vasicd/mem/memory.h"
#include "vasicd/waves/launch.h"
#include "vasicd/waves/work_group.h"
#include "vasicd/waves/worker_pool.h"

namespace vasicd {

struct DispatchTurn {
  bool done = false;
  bool advanced = false;
  std::optional<WaveStop> stop;         // why the dispatch ended early
  std::optional<MemoryFault> page;      // a fault that is to be retried
  std::vector<std::uint32_t> messages;  // for InterruptKind::kSqMessage
};

class Dispatch {
 public:
  static constexpr std::uint64_t kAnyNumber = ~std::uint64_t{0};

  // `most_groups`: how many may be in flight, because no more could be saved. `start_ticks`: when the packet was taken.
  // Precondition: check() holds, and `most_groups` is not 0.
  Dispatch(const vasic_info& info, gcn::Isa isa, const Launch& launch, std::uint64_t most_groups,
           std::uint64_t start_ticks);
  ~Dispatch();

  // Instructions that a worker executes in a turn, which take about a millisecond.
  static constexpr std::uint64_t kTurnInstructions = 16384;
  DispatchTurn turn(Memory& memory, unsigned vmid, WorkerPool& pool,
                    std::uint64_t worker_instructions = kTurnInstructions);

  [[nodiscard]] gcn::Isa isa() const { return isa_; }
  [[nodiscard]] const Launch& launch() const { return launch_; }
  [[nodiscard]] std::uint64_t start_ticks() const { return start_ticks_; }
  [[nodiscard]] std::uint64_t next_group() const { return next_group_; }
  [[nodiscard]] std::uint64_t instructions() const { return instructions_; }
  [[nodiscard]] const std::deque<std::unique_ptr<WorkGroup>>& groups() const { return groups_; }

  // Adds a restored group, before the first turn. False: no such group, or the chip is full.
  bool resume_at(std::uint64_t next_group);
  WorkGroup* add(std::uint64_t index, const std::vector<std::uint32_t>& scratch);

 private:
  struct Worker;
  struct Shift;  // what the workers of a turn share

  void work(Worker& worker, Shift& shift);
  std::unique_ptr<WorkGroup> take(Shift& shift);
  std::unique_ptr<WorkGroup> begin_group();
  void finish(std::unique_ptr<WorkGroup> group, GroupTurn result, Shift& shift);
  bool release_grid_barrier();

  gcn::Isa isa_;
  Launch launch_;
  std::uint64_t start_ticks_;
  std::uint64_t next_group_ = 0;
  std::uint64_t instructions_ = 0;
  std::size_t capacity_;     // groups in flight, at most
  std::size_t wanted_;       // groups in flight for now
  unsigned idle_turns_ = 0;  // since a group ended
  unsigned cus_;
  std::deque<std::unique_ptr<WorkGroup>> groups_;  // the one that waits longest first
  std::set<std::uint32_t> free_scratch_;
  std::uint32_t scratch_used_ = 0;  // parts that were ever given out
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace vasicd
