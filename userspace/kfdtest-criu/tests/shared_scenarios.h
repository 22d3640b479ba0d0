// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Scenarios "share/SHAPE": processes that share memory of a GPU, or a process that has memory in several ways. Each is
// checkpointed and restored by the raw ioctls of the extensible interface and of render nodes, all at the same time.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kfdtest {

[[nodiscard]] std::vector<std::string> shared_shapes();
// How many GPUs a shape needs.
[[nodiscard]] std::size_t gpus_of_shape(std::string_view shape);
[[nodiscard]] std::string shared_scenario(std::string_view shape);
// Runs the scenario of this name; nothing if there is none.
std::optional<base::Status> run_shared_scenario(std::string_view name);

}  // namespace kfdtest
