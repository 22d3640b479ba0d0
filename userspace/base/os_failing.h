// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// For tests: lets one of the calls of os.h fail. A program that links os_failing.cc behaves like any other until
// fail_call(), or when the environment says so at its first call:
//   KFD_CRIU_FAIL_CALL=N[:ERRNO]  the N-th call fails, with an errno as a number; without one with EIO
//   KFD_CRIU_FAIL_RECORD=PATH     the file gets the line "N ERRNO CALL" when that happens, and the line "N calls" with
//                                 the number of all calls when the program ends
//   KFD_CRIU_FAIL_LIST=PATH       the file gets the line "N CALL" for each call
// A process that this one forks continues to count where its parent stood, and both count together: after a fork in a
// program with KFD_CRIU_FAIL_CALL there is one N-th call, not one for each process.
#pragma once

#include <cstdint>
#include <string>

namespace os {

// The `number`-th call from now on, counted from 1, fails with `code`. 0 is no call: counting alone.
void fail_call(std::uint64_t number, int code);

// What the environment asks for, as at the first call.
void fail_call_of_environment();

// By how much a test that lets each call fail in turn increases the number: 1, or what KFD_CRIU_FAIL_STEP says.
[[nodiscard]] std::uint64_t fail_step();

// Calls since fail_call(), and the name of the one that failed; empty if none did.
[[nodiscard]] std::uint64_t calls();
[[nodiscard]] std::string failed_call();

}  // namespace os
