// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A scenario (scenarios.h) in a process of its own. Not here: which scenarios there are.
#pragma once

#include <string_view>

#include "base/result.h"

namespace kfdtest {

// The scenario in a child process; its standard error is ours. The error says how it ended.
base::Status spawn_scenario(std::string_view name);

// The scenario in `count` child processes at once, none of which returns from wait_for_the_others() before all have
// called it. The error is that of one that failed.
base::Status spawn_together(std::string_view name, unsigned count);

// In a child process: waits until all processes of spawn_together() are here.
base::Status wait_for_the_others();

}  // namespace kfdtest
