// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Both ABIs have the same ioctl number; the size in it tells them apart.
 */
#include <unistd.h>
#include "criu_op.h"

#define V2_CALL		_IOC(_IOC_READ | _IOC_WRITE, AMDKFD_IOCTL_BASE, 0x22, \
			     sizeof(struct kfd_criu_v2_args))

int kfd_v1(int fd, struct kfd_ioctl_criu_args *args)
{
	return kfd_call(fd, AMDKFD_IOC_CRIU_OP, args);
}

int kfd_v1_op(int fd, __u32 op)
{
	struct kfd_ioctl_criu_args args = { .op = op };

	return kfd_v1(fd, &args);
}

int kfd_v1_resume(int fd, int pid)
{
	struct kfd_ioctl_criu_args args = {
		.op = KFD_CRIU_OP_RESUME,
		.pid = pid,
	};

	return kfd_v1(fd, &args);
}

int kfd_v2(int fd, struct kfd_criu_v2_args *args)
{
	return kfd_call(fd, V2_CALL, args);
}

int kfd_v2_op(int fd, __u32 op)
{
	struct kfd_criu_v2_args args = { .op = op };

	return kfd_v2(fd, &args);
}

int kfd_v2_resume(const struct kfd *kfd)
{
	struct kfd_criu_v2_args args = {
		.op = KFD_CRIU_V2_RESUME,
		.pid = getpid(),
	};

	return kfd_v2(kfd->fd, &args);
}

int kfd_v2_state(const struct kfd *kfd)
{
	struct kfd_criu_v2_args args = { .op = KFD_CRIU_V2_STATE };
	int r = kfd_v2(kfd->fd, &args);

	return r ? r : (int)args.state;
}

int kfd_v2_export(const struct kfd *kfd, __u64 handle, int *fd)
{
	struct kfd_criu_v2_args args = {
		.op = KFD_CRIU_V2_EXPORT_BO,
		.gpu_id = handle >> 32,
		.handle = handle,
	};
	int r = kfd_v2(kfd->fd, &args);

	*fd = args.fd;
	return r;
}

int kfd_v2_bo_offset(const struct kfd *kfd, __u32 gpu_id, __u32 handle,
		     __u64 *offset)
{
	struct kfd_criu_v2_args args = {
		.op = KFD_CRIU_V2_BO_OFFSET,
		.gpu_id = gpu_id,
		.handle = handle,
	};
	int r = kfd_v2(kfd->fd, &args);

	*offset = args.offset;
	return r;
}
