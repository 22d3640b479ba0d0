// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The SDMA copier. Uses a render node of its own through libdrm, so the program's files and VM stay as they are.
#pragma once

#include <chrono>
#include <memory>

#include "plugin/copy/copier.h"

namespace plugin::copy {

// Fails when the GPU has no usable DMA ring. render_fd is borrowed; libdrm keeps a duplicate until destruction.
base::Result<std::unique_ptr<Copier>> make_sdma_copier(int render_fd, std::chrono::seconds fence_timeout);

}  // namespace plugin::copy
