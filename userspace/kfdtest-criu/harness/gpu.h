// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Which GPUs there are, as KFD's topology in sysfs says. Not here: how they are used (driver.h, session.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "kfdtest-criu/env/generation.h"

namespace kfdtest {

class Driver;

// One /sys/class/kfd/kfd/topology/nodes/N that is a GPU. Counts are of all XCCs together.
struct Gpu {
  std::uint32_t node = 0;  // in a session of the thunk, its own number
  std::uint32_t gpu_id = 0;
  std::uint64_t vram_size = 0;
  bool vram_cpu_visible = false;  // the CPU reaches all of the VRAM
  std::uint64_t gfx_target_version = 0;
  std::uint64_t simd_count = 0;
  std::uint64_t simd_per_cu = 0;
  std::uint64_t array_count = 0;
  std::uint64_t simd_arrays_per_engine = 0;
  std::uint64_t num_xcc = 0;
  std::uint64_t sdma_engines = 0;
  std::uint64_t sdma_xgmi_engines = 0;
  std::uint64_t sdma_queues_per_engine = 0;
  std::uint64_t cp_queues = 0;
  std::uint64_t num_gws = 0;
  std::uint64_t render_minor = 0;
  std::uint64_t location_id = 0;
  std::uint64_t cwsr_size = 0;       // bytes, of one XCC
  std::uint64_t ctl_stack_size = 0;  // bytes, of one XCC
  std::uint64_t capability = 0;      // HSA_CAP_*
  Generation generation;
  Driver* driver = nullptr;  // the session's

  [[nodiscard]] std::uint64_t cu_count() const { return simd_per_cu == 0 ? 0 : simd_count / simd_per_cu; }
  [[nodiscard]] bool has_svm() const;
};

// Whether the environment variable KFDTEST_LIST_ALL is set: a test runner on a host without GPUs lists the tests of
// any machine (--gtest_list_tests), before it boots one.
[[nodiscard]] bool lists_for_any_machine();

// In the order of their nodes; without a driver.
[[nodiscard]] base::Result<std::vector<Gpu>> gpus_in_sysfs();

// Gives GPUs in sysfs's order the numbers of the thunk: it leaves out nodes that it cannot read, which a device cgroup
// hides from a container, and numbers the others.
void number_as_the_thunk_does(std::vector<Gpu>& gpus);

}  // namespace kfdtest
