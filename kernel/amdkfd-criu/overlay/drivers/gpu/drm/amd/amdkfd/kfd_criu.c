// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Entry point of AMDKFD_IOC_CRIU_OP: tells the released ABI (version 1) from
 * the extensible one (version 2) by the operation, which is at the same offset
 * in the args of both.
 */
#include <linux/string.h>
#include <linux/kfd_criu_ioctl.h>
#include "kfd_criu.h"
#include "kfd_criu_layout.h"
#include "kfd_priv.h"

static bool kfd_criu_is_v2(u32 op)
{
	return op >= KFD_CRIU_CMD_PROBE;
}

/*
 * An operation interrupted by a signal has been undone. User space decides
 * whether to repeat it, so the system call must not be restarted automatically.
 */
static int kfd_criu_restartsys_to_eintr(int r)
{
	return r == -ERESTARTSYS ? -EINTR : r;
}

/**
 * kfd_criu_validate - check the args of AMDKFD_IOC_CRIU_OP before the operation
 * starts
 * @args: at least struct kfd_ioctl_criu_args; the first @size bytes are the
 *	caller's
 * @size: size of the args as the caller knows them, in bytes
 *
 * Return: 0; -E2BIG if bytes beyond the structure known here are not 0; -EINVAL
 * if the args are too short for the operation, or as kfd_criu_v2_check().
 */
int kfd_criu_validate(void *args, unsigned int size)
{
	const struct kfd_ioctl_criu_args *v1 = args;

	BUILD_BUG_ON(offsetof(struct kfd_ioctl_criu_args, op) !=
		     offsetof(struct kfd_criu_args, op));

	if (!kfd_criu_is_v2(v1->op))
		return 0;
	/* The caller of kfd_criu_ioctl() has set the members behind @size to 0. */
	if (size < KFD_CRIU_ARGS_SIZE_VER0)
		return -EINVAL;
	if (size > sizeof(struct kfd_criu_args) &&
	    memchr_inv(args + sizeof(struct kfd_criu_args), 0,
		       size - sizeof(struct kfd_criu_args)))
		return -E2BIG;
	return kfd_criu_v2_check(args);
}

/**
 * kfd_criu_ioctl - execute AMDKFD_IOC_CRIU_OP
 * @filep: open file of /dev/kfd
 * @p: the file's process
 * @data: args that have passed kfd_criu_validate()
 *
 * Return: as kfd_criu_v1_ioctl() or kfd_criu_v2_ioctl(), but -EINTR instead of
 * -ERESTARTSYS.
 */
int kfd_criu_ioctl(struct file *filep, struct kfd_process *p, void *data)
{
	const u32 op = ((const struct kfd_ioctl_criu_args *)data)->op;
	int r;

	if (kfd_criu_is_v2(op))
		r = kfd_criu_v2_ioctl(p, data);
	else
		r = kfd_criu_v1_ioctl(filep, p, data);
	return kfd_criu_restartsys_to_eintr(r);
}
