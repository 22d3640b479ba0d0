// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Parts of tests that need a process of their own: drmtest --scenario NAME ARG...
#pragma once

#include <span>
#include <string>
#include <vector>

namespace drmtest {

// Runs the scenario in this process; returns its exit status.
[[nodiscard]] int run_scenario(const std::vector<std::string>& arguments);

// Runs this program as --scenario ARGUMENTS and waits; open files that lack FD_CLOEXEC are inherited. The status, or
// 128 plus the signal that ended it.
[[nodiscard]] int run_in_other_process(const std::vector<std::string>& arguments);

}  // namespace drmtest
