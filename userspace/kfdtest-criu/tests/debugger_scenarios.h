// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Scenarios of a process that debugs itself: what KFD tells a debugger, how a queue is suspended, and what is not done
// meanwhile. Not here: waves, of which a debugger would see more.
#pragma once

#include "base/result.h"
#include "kfdtest-criu/harness/driver.h"

namespace kfdtest {

base::Status debugger_lists();
base::Status debugger_suspends(QueueKind kind);
// A checkpoint refuses a process that is debugged: no image has a field for what a debugger sets.
base::Status debugged_is_refused();

}  // namespace kfdtest
