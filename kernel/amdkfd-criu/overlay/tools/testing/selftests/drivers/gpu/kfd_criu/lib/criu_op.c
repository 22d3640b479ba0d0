// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Both ABIs have the same ioctl number; the size in it tells them apart.
 */
#include <sys/mman.h>
#include <unistd.h>
#include "criu_op.h"

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

int kfd_v2(int fd, struct kfd_criu_args *args)
{
	return kfd_call(fd, AMDKFD_IOC_CRIU, args);
}

int kfd_v2_op(int fd, __u32 op)
{
	struct kfd_criu_args args = { .op = op };

	return kfd_v2(fd, &args);
}

int kfd_v2_resume(const struct kfd *kfd)
{
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_RESUME,
	};

	return kfd_v2(kfd->fd, &args);
}

int kfd_v2_state(const struct kfd *kfd)
{
	struct kfd_criu_args args = { .op = KFD_CRIU_CMD_STATE };
	int r = kfd_v2(kfd->fd, &args);

	return r ? r : (int)args.state;
}

int kfd_v2_settled_state(const struct kfd *kfd)
{
	int i, state = kfd_v2_state(kfd);

	for (i = 0; i < 10000 && state == KFD_CRIU_STATE_RESUMING; i++) {
		usleep(1000);
		state = kfd_v2_state(kfd);
	}
	return state;
}

int kfd_v2_pause(int fd, int *pause_fd)
{
	struct kfd_criu_args args = { .op = KFD_CRIU_CMD_PAUSE };
	int r = kfd_v2(fd, &args);

	*pause_fd = r ? KFD_NO_PAUSE : args.fd;
	return r;
}

int kfd_v2_unpause(int fd, int pause_fd)
{
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_UNPAUSE,
		.pause_fd = pause_fd,
	};
	int r = kfd_v2(fd, &args);

	close(pause_fd);
	return r;
}

int kfd_v2_export(const struct kfd *kfd, int pause_fd, __u64 handle, int *fd)
{
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_EXPORT_BO,
		.pause_fd = pause_fd,
		.gpu_id = handle >> 32,
		.handle = handle,
	};
	int r = kfd_v2(kfd->fd, &args);

	*fd = args.fd;
	return r;
}

void *kfd_v2_map_bo(const struct kfd *kfd, size_t size, __u64 handle)
{
	void *bytes;
	int fd;

	if (kfd_v2_export(kfd, KFD_NO_PAUSE, handle, &fd))
		return NULL;
	bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return bytes == MAP_FAILED ? NULL : bytes;
}

int kfd_v2_bo_offset(const struct kfd *kfd, int pause_fd, __u32 gpu_id,
		     __u32 handle, __u64 *offset)
{
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_BO_OFFSET,
		.pause_fd = pause_fd,
		.gpu_id = gpu_id,
		.handle = handle,
	};
	int r = kfd_v2(kfd->fd, &args);

	*offset = args.offset;
	return r;
}
