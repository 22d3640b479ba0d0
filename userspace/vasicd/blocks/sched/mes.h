// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The micro engine scheduler of gfx11 and gfx12: translates the requests of amdgpu_mes_funcs for the Scheduler. Its
// resources are those that the driver always gives it (amdgpu/amdgpu_mes.c: amdgpu_mes_init). While it hangs ("mes")
// every request ends in ETIME.
#pragma once

#include <cstdint>
#include <string>

#include "vasicd/blocks/sched/mes_queue.h"
#include "vasicd/blocks/sched/scheduler.h"
#include "vasicd/context/context.h"

namespace vasicd {

class Mes {
 public:
  // `scheduler` outlives this.
  Mes(EngineContext context, Scheduler& scheduler) : context_(context), scheduler_(scheduler) {}

  // Gives the scheduler, in its power-on state, its VMIDs and queue slots.
  void start();

  base::Status add_queue(const MesQueue& queue);
  base::Status remove_queue(std::uint32_t doorbell, std::uint64_t gang);
  // Both take a gang; 0: every gang.
  base::Status suspend(std::uint64_t gang);
  base::Status resume(std::uint64_t gang);
  base::Status reset_queue(std::uint32_t doorbell);

 private:
  [[nodiscard]] base::Status alive() const;

  EngineContext context_;
  Scheduler& scheduler_;
};

}  // namespace vasicd
