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

/* Version 2: any arguments, an operation without arguments, RESUME of this process. */
int kfd_v2(int fd, struct kfd_criu_v2_args *args);
int kfd_v2_op(int fd, __u32 op);
int kfd_v2_resume(const struct kfd *kfd);
/* Returns enum kfd_criu_state, or a negative errno. */
int kfd_v2_state(const struct kfd *kfd);
/* Stores a new DMA-buf file of the BO in *fd. */
int kfd_v2_export(const struct kfd *kfd, __u64 handle, int *fd);
/* Stores where in the GPU's render node mmap() finds the BO. */
int kfd_v2_bo_offset(const struct kfd *kfd, __u32 gpu_id, __u32 handle,
		     __u64 *offset);

#endif /* KFD_CRIU_SELFTEST_CRIU_OP_H */
