// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A function for each workload makes it; each file describes its own. Users make them by name: harness/workload.h.
#pragma once

#include <memory>

#include "kfdtest-criu/harness/workload.h"

namespace kfdtest {

[[nodiscard]] std::unique_ptr<Workload> make_aql_barrier();
[[nodiscard]] std::unique_ptr<Workload> make_bo_gtt();
[[nodiscard]] std::unique_ptr<Workload> make_bo_pattern();
[[nodiscard]] std::unique_ptr<Workload> make_bo_userptr();
[[nodiscard]] std::unique_ptr<Workload> make_bo_vram();
[[nodiscard]] std::unique_ptr<Workload> make_event_pending();
[[nodiscard]] std::unique_ptr<Workload> make_event_signal();
[[nodiscard]] std::unique_ptr<Workload> make_event_state();
[[nodiscard]] std::unique_ptr<Workload> make_queue_counter();
[[nodiscard]] std::unique_ptr<Workload> make_queue_late();
[[nodiscard]] std::unique_ptr<Workload> make_sdma_chain();
[[nodiscard]] std::unique_ptr<Workload> make_svm_queue();
[[nodiscard]] std::unique_ptr<Workload> make_svm_range();

}  // namespace kfdtest
