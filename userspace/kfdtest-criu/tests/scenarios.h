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

}  // namespace kfdtest
