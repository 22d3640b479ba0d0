// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A workload is a small GPU program cut into stages. It never knows how, or whether, it is checkpointed: run() drives
// it and lets a Checkpointer act before every stage. Between stages a workload leaves packets pending whenever it can.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kfdtest-criu/env/deadline.h"
#include "kfdtest-criu/harness/gpu.h"

namespace kfdtest {

class Workload {
 public:
  virtual ~Workload() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  virtual base::Status setup(const Gpu& gpu) = 0;
  [[nodiscard]] virtual unsigned stages() const = 0;
  // Called once for each stage, in order; returns when the stage has done its part (its pending packets excepted).
  virtual base::Status advance(unsigned stage) = 0;
  // After the last stage: everything that should have happened has, and nothing else.
  virtual base::Status verify() = 0;

  // Registers SVM ranges, which KFD offers from gfx9 on; through the ioctls.
  [[nodiscard]] virtual bool uses_svm() const { return false; }
  // Maps VRAM for the CPU, which no program can behind a small BAR.
  [[nodiscard]] virtual bool maps_vram() const { return false; }
  // Has threads that wait between two stages; a process made by fork() would not have them.
  [[nodiscard]] virtual bool has_threads() const { return false; }

  // How long one step may wait for the device.
  void set_limit(Duration limit) { limit_ = limit; }

 protected:
  Duration limit_ = kDeadline;
};

// Between two stages: checkpoints and restores the program, or leaves it alone.
class Checkpointer {
 public:
  virtual ~Checkpointer() = default;
  virtual base::Status between_stages(const Workload& workload, unsigned next_stage) = 0;
};

// Does nothing: the control of every checkpoint test.
class NoCheckpointer : public Checkpointer {
 public:
  base::Status between_stages(const Workload& /*workload*/, unsigned /*next_stage*/) override { return {}; }
};

// setup, all stages, verify. The error names the step.
base::Status run(Workload& workload, const Gpu& gpu, Checkpointer& checkpointer);

// The names of all workloads, sorted; and one by its name, null if there is none.
[[nodiscard]] std::vector<std::string> workload_names();
// The names of the workloads that this machine's GPUs can run.
[[nodiscard]] std::vector<std::string> workloads_of_this_machine();
[[nodiscard]] std::unique_ptr<Workload> make_workload(std::string_view name);

}  // namespace kfdtest
