// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Copies of one contiguous run of host bytes, as fast as the machine can. A packet moves at most 4 MiB, below the size
// from which memcpy bypasses the caches; a stream of such packets is much more than the caches hold, so it loses a
// third of its speed to filling them. Long runs are therefore streamed here.
#pragma once

#include <cstddef>

namespace vasicd {

// Like memmove. Other threads see the copied bytes before they see any later store of this thread.
void copy_run(std::byte* dst, const std::byte* src, std::size_t bytes);

}  // namespace vasicd
