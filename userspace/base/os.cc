// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The system calls, for every program but tests of failures.
#include "base/os.h"

int os::fault(const char* /*call*/) { return 0; }

#include "base/os_calls.inc"
