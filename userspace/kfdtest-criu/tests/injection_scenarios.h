// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Scenarios of faults that are made through a virtual GPU's control port. A reset leaves the queues of every process
// that was there evicted for ever, so each is a process of its own that another one started (scenario_process.h).
#pragma once

#include <string_view>

#include "base/result.h"

namespace kfdtest {

// The scenario in this process; an error if there is none of that name.
base::Status run_injection(std::string_view name);

}  // namespace kfdtest
