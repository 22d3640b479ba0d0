// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * AMDKFD_IOC_CRIU_OP: which of the two ABIs is meant. The operation is at the same
 * place in both.
 */
#include <linux/string.h>
#include <linux/kfd_criu_ioctl.h>
#include "kfd_criu.h"
#include "kfd_criu_layout.h"
#include "kfd_priv.h"

static bool kfd_criu_is_v2(u32 op)
{
	return op >= KFD_CRIU_V2_PROBE;
}

/* What was half done when a signal came has been undone, and is not begun again by
 * itself.
 */
static int kfd_criu_restartsys_to_eintr(int r)
{
	return r == -ERESTARTSYS ? -EINTR : r;
}

/**
 * kfd_criu_validate - whether args are args
 * @args: at least struct kfd_ioctl_criu_args, @size bytes of it from the caller
 * @size: what the caller takes them for
 *
 * Return: 0; -E2BIG for bytes that only newer kernels know; -EINVAL.
 */
int kfd_criu_validate(void *args, unsigned int size)
{
	const struct kfd_ioctl_criu_args *v1 = args;

	BUILD_BUG_ON(offsetof(struct kfd_ioctl_criu_args, op) !=
		     offsetof(struct kfd_criu_v2_args, op));

	if (!kfd_criu_is_v2(v1->op))
		return 0;
	if (size < sizeof(struct kfd_criu_v2_args))
		return -EINVAL;
	if (memchr_inv(args + sizeof(struct kfd_criu_v2_args), 0,
		       size - sizeof(struct kfd_criu_v2_args)))
		return -E2BIG;
	return kfd_criu_v2_check(args);
}

/**
 * kfd_criu_ioctl - AMDKFD_IOC_CRIU_OP
 * @filep: of /dev/kfd
 * @p: the file's process; the caller may checkpoint and restore it
 * @data: kfd_criu_validate() has passed it
 *
 * Return: as kfd_criu_v1_ioctl() or kfd_criu_v2_ioctl().
 */
int kfd_criu_ioctl(struct file *filep, struct kfd_process *p, void *data)
{
	const u32 op = ((const struct kfd_ioctl_criu_args *)data)->op;
	int r = 0;

	if (op == KFD_CRIU_OP_CHECKPOINT || op == KFD_CRIU_V2_CHECKPOINT)
		r = kfd_criu_event_drain_interrupts(p);
	if (!r)
		r = kfd_criu_is_v2(op) ? kfd_criu_v2_ioctl(p, data) :
					 kfd_criu_v1_ioctl(filep, p, data);
	return kfd_criu_restartsys_to_eintr(r);
}
