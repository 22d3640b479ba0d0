// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Declares the random functions for the host. generate.py writes the C files that define them.
#pragma once

#include <cstdint>

extern "C" {
using RandomFunction = void (*)(const std::uint64_t* in, std::uint64_t* out, std::uint64_t* memory, std::uint64_t s0,
                                std::int64_t s1, std::uint32_t s2, std::int32_t s3);
// Indexed by file, then by function.
extern const RandomFunction* const kRandomFunctions[];
extern const unsigned kRandomFiles;
extern const unsigned kFunctionsPerFile;
}
