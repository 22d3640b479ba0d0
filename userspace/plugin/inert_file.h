// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A file of /dev/kfd that belongs to no process: as a descriptor that a child inherited, on which all ioctls fail with
// EBADF. KFD makes it so for a file that another process opened, so a short-lived child opens it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "base/unique_fd.h"
#include "plugin/devices.h"

namespace plugin {

// Another pid at each call, from those of CriuImages::unused_pid(); 0: CRIU's images do not tell which are unused.
using NextPid = std::function<std::uint32_t()>;

// A child that shares the descriptors of this process, and not its memory. It takes one of these pids, so that it is
// not in CRIU's way when CRIU makes a thread with a pid of its choice. The kernel chooses the pid, which may then be in
// CRIU's way, if there is none of these pids (0) or if this process must not choose one (it lacks
// CAP_CHECKPOINT_RESTORE). Two children must not have the same one: KFD has an entry in sysfs under the child's pid as
// long as it has state of it, and a second entry with that name makes the kernel fail. Returns what fork() returns;
// with EINVAL when the pids of NextPid have become larger than pids can be.
pid_t fork_with_unused_pid(const Devices& devices, const NextPid& next_pid);

base::Result<base::UniqueFd> open_inert(const Devices& devices, const DeviceNode& kfd, int extra_flags,
                                        const NextPid& next_pid);

}  // namespace plugin
