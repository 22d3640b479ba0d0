// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Pages of the program that GPUs reach at the program's own addresses, seen by a GPU: by an SDMA queue of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "kfdtest-criu/harness/gpu.h"

namespace kfdtest {

// Lets the GPU read the pages: EIO unless it sees fill_pattern()'s bytes for the seed.
base::Status gpu_reads(const Gpu& gpu, std::span<const std::byte> pages, std::uint64_t seed);
// Lets the GPU write fill_pattern()'s bytes for the seed to the pages.
base::Status gpu_writes(const Gpu& gpu, std::span<const std::byte> pages, std::uint64_t seed);

}  // namespace kfdtest
