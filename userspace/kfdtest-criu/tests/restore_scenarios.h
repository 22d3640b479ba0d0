// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Scenarios "restore/WORKLOAD/ORDER/ABI": the workload, checkpointed and restored before each of its stages.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kfdtest-criu/harness/successor.h"

namespace kfdtest {

[[nodiscard]] std::string restore_scenario(std::string_view workload, GpuOrder order, CriuAbi abi);
// The workload in a chain of processes that starts here.
base::Status run_restored(std::string_view workload, GpuOrder order, CriuAbi abi);
// Runs the scenario of this name; nothing if there is none.
std::optional<base::Status> run_restore_scenario(std::string_view name);

}  // namespace kfdtest
