// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Scenarios that leave their process's GPU state unusable (a fault takes all queues of the process off the GPU), so
// each runs in a process of its own: `kfdtest --scenario NAME`. A scenario checks itself; its error is its result.
#pragma once

#include <string_view>

#include "base/result.h"

namespace kfdtest {

// The scenario in this process; an error if there is none of that name.
base::Status run_scenario(std::string_view name);

// The scenario in a child process; its standard error is ours. The error says how it ended.
base::Status spawn_scenario(std::string_view name);

// The scenario in `count` child processes at once, none of which returns from wait_for_the_others() before all have
// called it. The error is that of one that failed.
base::Status spawn_together(std::string_view name, unsigned count);

}  // namespace kfdtest
