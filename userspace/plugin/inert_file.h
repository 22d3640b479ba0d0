// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A file of /dev/kfd that belongs to no process: as a descriptor that a child inherited, on which all ioctls fail with
// EBADF. KFD makes it so for a file that another process opened, so a short-lived child opens it.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/unique_fd.h"
#include "plugin/devices.h"

namespace plugin {

// unused_pid: as CriuImages::unused_pid(), or 0. The child takes one of those pids, so that it is never in CRIU's way
// when CRIU makes a thread with a pid of its choice.
base::Result<base::UniqueFd> open_inert(const Devices& devices, const DeviceNode& kfd, int extra_flags,
                                        std::uint32_t unused_pid);

}  // namespace plugin
