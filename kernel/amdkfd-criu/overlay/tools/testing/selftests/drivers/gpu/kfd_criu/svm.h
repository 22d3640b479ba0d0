/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * SVM ranges: memory of the process that GPUs use where it is.
 */
#ifndef KFD_CRIU_SELFTEST_SVM_H
#define KFD_CRIU_SELFTEST_SVM_H

#include "kfd.h"

#define SVM_MAX_ATTRIBUTES	8
/* So far from svm_memory() there is nothing. */
#define SVM_AWAY		0x100000000UL

/* Not before gfx9, and not in every kernel (CONFIG_HSA_AMD_SVM). */
bool svm_is_there(const struct kfd *kfd);
/* Private memory of the process where every GPU reaches it and the kernel puts nothing by
 * itself, always the same; NULL: errno says why not.
 */
void *svm_memory(__u64 size);
/* AMDKFD_IOC_SVM: 0 or a negative errno. */
int svm_set(const struct kfd *kfd, void *start, __u64 size,
	    const struct kfd_ioctl_svm_attribute *attributes, unsigned int n);
/* What one GPU may do with it: KFD_IOCTL_SVM_ATTR_ACCESS, _ACCESS_IN_PLACE, _NO_ACCESS. */
int svm_set_access(const struct kfd *kfd, void *start, __u64 size,
		   unsigned int gpu, __u32 access);

#endif /* KFD_CRIU_SELFTEST_SVM_H */
