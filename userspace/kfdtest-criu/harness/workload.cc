// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Drives a workload through its stages.
#include "kfdtest-criu/harness/workload.h"

namespace kfdtest {
namespace {

base::Status in_step(base::Status status, const Workload& workload, std::string_view step) {
  if (status.ok()) return {};
  return std::move(status).error().wrap(std::string(workload.name()) + ", " + std::string(step));
}

}  // namespace

base::Status run(Workload& workload, const Gpu& gpu, Checkpointer& checkpointer) {
  TRY(in_step(workload.setup(gpu), workload, "setup"));
  for (unsigned stage = 0; stage < workload.stages(); ++stage) {
    const std::string step = "stage " + std::to_string(stage);
    TRY(in_step(checkpointer.between_stages(workload, stage), workload, "checkpoint before " + step));
    TRY(in_step(workload.advance(stage), workload, step));
  }
  TRY(in_step(checkpointer.between_stages(workload, workload.stages()), workload, "checkpoint before verify"));
  return in_step(workload.verify(), workload, "verify");
}

}  // namespace kfdtest
