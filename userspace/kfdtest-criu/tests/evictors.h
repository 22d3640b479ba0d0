// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The ways in which the driver takes a process's queues off the hardware and puts them back.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "kfdtest-criu/harness/step_queue.h"

namespace kfdtest {

class Evictor {
 public:
  Evictor() = default;
  Evictor(const Evictor&) = delete;
  Evictor& operator=(const Evictor&) = delete;
  virtual ~Evictor() = default;

  // Why this evictor cannot evict a queue of this kind on this GPU; empty if it can.
  [[nodiscard]] virtual std::string not_applicable(const Gpu& /*gpu*/, QueueKind /*kind*/) const { return {}; }
  virtual base::Status prepare(const Gpu& gpu) = 0;
  // Returns when the queue was off the hardware at least once, and the SMI event, if there is one, has come.
  virtual base::Status evict(StepQueue& queue) = 0;
  // True if the queue stays off until resume(); else the driver puts it back by itself.
  [[nodiscard]] virtual bool holds() const { return false; }
  virtual base::Status resume(StepQueue& queue) = 0;
  // OK if the memory that was evicted with the queues is unchanged.
  [[nodiscard]] virtual base::Status verify() const { return {}; }
};

[[nodiscard]] std::vector<std::string> evictor_names();
[[nodiscard]] std::unique_ptr<Evictor> make_evictor(std::string_view name);

}  // namespace kfdtest
