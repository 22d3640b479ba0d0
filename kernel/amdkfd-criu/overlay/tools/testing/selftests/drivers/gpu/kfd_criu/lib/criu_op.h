/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * AMDKFD_IOC_CRIU_OP without its images: version 1, the ABI that was released with
 * Linux 5.18, and version 2, the extensible ABI. Functions return 0 or a negative errno
 * unless their comment says otherwise.
 */
#ifndef KFD_CRIU_SELFTEST_CRIU_OP_H
#define KFD_CRIU_SELFTEST_CRIU_OP_H

#include "kfd.h"

/* Version 1: any arguments, an operation without arguments, RESUME of a process. */
int kfd_v1(int fd, struct kfd_ioctl_criu_args *args);
int kfd_v1_op(int fd, __u32 op);
int kfd_v1_resume(int fd, int pid);

/* For operations on the BOs of a restored process, which is not paused. */
#define KFD_NO_PAUSE	(-1)

/* Version 2: any arguments, an operation without arguments, RESUME of this process. */
int kfd_v2(int fd, struct kfd_criu_args *args);
int kfd_v2_op(int fd, __u32 op);
int kfd_v2_resume(const struct kfd *kfd);
/* Returns enum kfd_criu_state, or a negative errno. */
int kfd_v2_state(const struct kfd *kfd);
/* Waits up to ten seconds while the process is being resumed; then as kfd_v2_state(). */
int kfd_v2_settled_state(const struct kfd *kfd);
/* Pauses the process until *pause_fd is closed. */
int kfd_v2_pause(int fd, int *pause_fd);
/* Ends the pause and closes its file, even if the driver returns an error. */
int kfd_v2_unpause(int fd, int pause_fd);
/*
 * Stores a new DMA-buf file of the BO in *fd. The process is paused by pause_fd, or
 * restored and pause_fd is KFD_NO_PAUSE.
 */
int kfd_v2_export(const struct kfd *kfd, int pause_fd, __u64 handle, int *fd);
/* Maps a BO of a restored process. Returns NULL on failure. */
void *kfd_v2_map_bo(const struct kfd *kfd, size_t size, __u64 handle);
/* Stores where in the GPU's render node mmap() finds the BO. */
int kfd_v2_bo_offset(const struct kfd *kfd, int pause_fd, __u32 gpu_id,
		     __u32 handle, __u64 *offset);

#endif /* KFD_CRIU_SELFTEST_CRIU_OP_H */
