// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The table of workloads: harness/workload.h makes them by name.
#include "kfdtest-criu/workloads/workloads.h"

#include <algorithm>
#include <map>

namespace kfdtest {
namespace {

using Maker = std::unique_ptr<Workload> (*)();

const std::map<std::string, Maker, std::less<>>& makers() {
  static const std::map<std::string, Maker, std::less<>> table = {
      {"aql_barrier", make_aql_barrier},   {"bo_gtt", make_bo_gtt},           {"bo_pattern", make_bo_pattern},
      {"bo_userptr", make_bo_userptr},     {"bo_vram", make_bo_vram},         {"event_pending", make_event_pending},
      {"event_signal", make_event_signal}, {"event_state", make_event_state}, {"queue_counter", make_queue_counter},
      {"queue_late", make_queue_late},     {"sdma_chain", make_sdma_chain},   {"svm_queue", make_svm_queue},
      {"svm_range", make_svm_range},
  };
  return table;
}

}  // namespace

std::vector<std::string> workload_names() {
  std::vector<std::string> names;
  for (const auto& [name, maker] : makers()) names.push_back(name);
  return names;
}

std::vector<std::string> workloads_of_this_machine() {
  if (lists_for_any_machine()) return workload_names();
  const auto gpus = gpus_in_sysfs();
  const bool svm = gpus.ok() && std::ranges::all_of(*gpus, &Gpu::has_svm);
  std::vector<std::string> names = workload_names();
  const bool visible = gpus.ok() && std::ranges::all_of(*gpus, &Gpu::vram_cpu_visible);
  std::erase_if(names, [&](const std::string& name) {
    const auto workload = make_workload(name);
    return (!svm && workload->uses_svm()) || (!visible && workload->maps_vram());
  });
  return names;
}

std::unique_ptr<Workload> make_workload(std::string_view name) {
  const auto found = makers().find(name);
  return found == makers().end() ? nullptr : found->second();
}

}  // namespace kfdtest
