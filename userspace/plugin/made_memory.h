// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Memory of GPUs for processes, files and DMA-bufs that is of none of them: a DMA-buf, which has the memory as long as
// somebody has the DMA-buf. KFD gives memory to processes only, so a short-lived child allocates it.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "kfd/kfd.h"
#include "plugin/devices.h"
#include "plugin/inert_file.h"

namespace plugin {

struct MemoryToMake {
  DeviceNode render;
  kfd::Allocation allocation;  // without drm_fd
};

// Descriptors in the order of `memories`. See fork_with_unused_pid() about next_pid.
base::Result<std::vector<base::UniqueFd>> make_memories(const Devices& devices, kfd::Kfd& kfd,
                                                        const DeviceNode& kfd_node,
                                                        std::span<const MemoryToMake> memories,
                                                        const NextPid& next_pid);

}  // namespace plugin
