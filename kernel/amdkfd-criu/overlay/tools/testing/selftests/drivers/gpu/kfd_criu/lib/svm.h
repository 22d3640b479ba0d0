/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * SVM ranges: memory of the process that GPUs use at the address that the process uses.
 */
#ifndef KFD_CRIU_SELFTEST_SVM_H
#define KFD_CRIU_SELFTEST_SVM_H

#include "kfd.h"

#define SVM_MAX_ATTRIBUTES	8
/* An address so far behind svm_memory() is not mapped. */
#define SVM_AWAY		0x100000000UL

/* False before gfx9, and if the kernel has no CONFIG_HSA_AMD_SVM. */
bool svm_is_supported(const struct kfd *kfd);
/*
 * Maps private memory at an address that every GPU reaches and that the kernel does not
 * choose for other mappings; it is always the same address. Returns NULL and sets errno
 * on failure.
 */
void *svm_memory(__u64 size);
/* Sets attributes of the range with AMDKFD_IOC_SVM. Returns 0 or a negative errno. */
int svm_set(const struct kfd *kfd, void *start, __u64 size,
	    const struct kfd_ioctl_svm_attribute *attributes, unsigned int n);
/*
 * Sets how one GPU may use the range: KFD_IOCTL_SVM_ATTR_ACCESS, _ACCESS_IN_PLACE or
 * _NO_ACCESS. Returns 0 or a negative errno.
 */
int svm_set_access(const struct kfd *kfd, void *start, __u64 size,
		   unsigned int gpu, __u32 access);

#endif /* KFD_CRIU_SELFTEST_SVM_H */
