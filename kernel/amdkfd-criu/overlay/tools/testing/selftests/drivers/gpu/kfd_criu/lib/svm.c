// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The ioctl number of AMDKFD_IOC_SVM encodes a size that includes the attributes.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <linux/kfd_sysfs.h>
#include "svm.h"

#define MEMORY	0x1100000000UL

bool svm_is_supported(const struct kfd *kfd)
{
	return kfd_gpu_property(&kfd->gpus[0], "capability") &
	       HSA_CAP_SVMAPI_SUPPORTED;
}

void *svm_memory(__u64 size)
{
	void *memory = mmap((void *)MEMORY, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

int svm_set(const struct kfd *kfd, void *start, __u64 size,
	    const struct kfd_ioctl_svm_attribute *attributes, unsigned int n)
{
	struct {
		struct kfd_ioctl_svm_args args;
		struct kfd_ioctl_svm_attribute attributes[SVM_MAX_ATTRIBUTES];
	} svm = {
		.args = {
			.start_addr = (unsigned long)start,
			.size = size,
			.op = KFD_IOCTL_SVM_OP_SET_ATTR,
			.nattr = n,
		},
	};

	if (n > SVM_MAX_ATTRIBUTES)
		return -E2BIG;
	memcpy(svm.attributes, attributes, n * sizeof(*attributes));
	return kfd_call(kfd->fd, _IOC(_IOC_READ | _IOC_WRITE, AMDKFD_IOCTL_BASE,
				      _IOC_NR(AMDKFD_IOC_SVM), sizeof(svm)), &svm);
}

int svm_set_access(const struct kfd *kfd, void *start, __u64 size,
		   unsigned int gpu, __u32 access)
{
	const struct kfd_ioctl_svm_attribute attribute = {
		.type = access,
		.value = kfd->gpus[gpu].id,
	};

	return svm_set(kfd, start, size, &attribute, 1);
}
