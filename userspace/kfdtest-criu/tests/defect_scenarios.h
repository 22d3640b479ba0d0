// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Scenarios "defect/NAME": what holds with our kernel and not with Linux 6.12's own checkpoint/restore. NAME begins
// with the number of the defect, h1 to h8, or with "hole". Some make that kernel panic.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kfdtest-criu/harness/gpu.h"

namespace kfdtest {

using Gpus = std::vector<Gpu>;

// Conditions that several scenarios need. All GPUs of a machine are alike.
inline bool always(const Gpus& /*gpus*/) { return true; }
inline bool has_two_gpus(const Gpus& gpus) { return gpus.size() > 1; }
inline bool has_svm(const Gpus& gpus) { return gpus.front().has_svm(); }

struct Defect {
  std::string_view name;
  // Whether these GPUs have what the scenario needs.
  bool (*applies)(const Gpus& gpus);
  // Runs the scenario; OK if the kernel has no such defect.
  base::Status (*check)();
};

// hole_scenarios.cc, image_hole_scenarios.cc
[[nodiscard]] std::span<const Defect> holes();
[[nodiscard]] std::span<const Defect> image_holes();

// Names of the scenarios that apply to this machine.
[[nodiscard]] std::vector<std::string> defect_names();
[[nodiscard]] std::string defect_scenario(std::string_view name);
// Runs the scenario of this name; nothing if there is none.
std::optional<base::Status> run_defect_scenario(std::string_view name);

}  // namespace kfdtest
