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

  // Why such a queue of this GPU cannot be evicted so; empty if it can.
  [[nodiscard]] virtual std::string not_applicable(const Gpu& /*gpu*/, QueueKind /*kind*/) const { return {}; }
  virtual base::Status prepare(const Gpu& gpu) = 0;
  // Afterwards the queue was off the hardware at least once, and the driver has said so where it says it.
  virtual base::Status evict(StepQueue& queue) = 0;
  // Whether the queue stays off until resume(); else the driver puts it back by itself.
  [[nodiscard]] virtual bool holds() const { return false; }
  virtual base::Status resume(StepQueue& queue) = 0;
  // What was evicted with the queues is as before.
  [[nodiscard]] virtual base::Status verify() const { return {}; }
};

[[nodiscard]] std::vector<std::string> evictor_names();
[[nodiscard]] std::unique_ptr<Evictor> make_evictor(std::string_view name);

}  // namespace kfdtest
