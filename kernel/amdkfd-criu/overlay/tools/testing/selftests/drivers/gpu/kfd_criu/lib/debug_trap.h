/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The debugger of amdkfd.
 */
#ifndef KFD_CRIU_SELFTEST_DEBUG_TRAP_H
#define KFD_CRIU_SELFTEST_DEBUG_TRAP_H

#include "kfd.h"

/*
 * Begins or ends debugging of a process: op is KFD_IOC_DBG_TRAP_ENABLE or _DISABLE. A process
 * may debug itself and the processes that it traces. The driver writes events into the file
 * `events`, for example a pipe. Returns 0 or a negative errno; -ENODEV: amdkfd does not debug
 * programs on this GPU.
 */
int kfd_debug_trap(const struct kfd *kfd, pid_t pid, __u32 op, int events);

#endif /* KFD_CRIU_SELFTEST_DEBUG_TRAP_H */
