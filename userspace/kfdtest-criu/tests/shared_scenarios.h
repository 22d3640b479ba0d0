// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Scenarios "share/SHAPE": processes that share memory of a GPU, each of which is checkpointed and restored by the raw
// ioctls of the extensible interface, all at the same time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kfdtest {

[[nodiscard]] std::vector<std::string> shared_shapes();
[[nodiscard]] std::string shared_scenario(std::string_view shape);
// Runs the scenario of this name; nothing if there is none.
std::optional<base::Status> run_shared_scenario(std::string_view name);

}  // namespace kfdtest
