// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The driver vgem: GEM objects without a device. For GPU drivers it is a stranger that exports DMA-bufs, and one that
// imports theirs and has them pinned in system memory.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

namespace kfdtest {

// Opens vgem's device. ENODEV: its module is not loaded.
base::Result<base::UniqueFd> open_vgem();

}  // namespace kfdtest
