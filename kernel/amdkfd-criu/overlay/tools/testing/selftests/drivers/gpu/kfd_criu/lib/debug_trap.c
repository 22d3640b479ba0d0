// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The debugger of amdkfd.
 */
#include "debug_trap.h"

int kfd_debug_trap(const struct kfd *kfd, pid_t pid, __u32 op, int events)
{
	struct kfd_runtime_info info;
	struct kfd_ioctl_dbg_trap_args args = {
		.pid = pid,
		.op = op,
	};

	if (op == KFD_IOC_DBG_TRAP_ENABLE) {
		args.enable.rinfo_ptr = (unsigned long)&info;
		args.enable.rinfo_size = sizeof(info);
		args.enable.dbg_fd = events;
	}
	return kfd_call(kfd->fd, AMDKFD_IOC_DBG_TRAP, &args);
}
