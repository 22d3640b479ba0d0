// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Settings that a process makes on a GPU.
 */
#include "settings.h"

/* A size that every generation of hardware accepts. */
#define APERTURE_SIZE	0x10000ULL

int kfd_settings_policy(const struct kfd *kfd, unsigned int gpu,
			const struct kfd_settings *settings)
{
	struct kfd_ioctl_set_memory_policy_args policy = {
		.gpu_id = kfd->gpus[gpu].id,
		.default_policy = settings->default_policy,
		.alternate_policy = settings->alternate_policy,
		.alternate_aperture_base = settings->aperture,
		.alternate_aperture_size = APERTURE_SIZE,
	};

	return kfd_call(kfd->fd, AMDKFD_IOC_SET_MEMORY_POLICY, &policy);
}

int kfd_settings_handler(const struct kfd *kfd, unsigned int gpu,
			 const struct kfd_settings *settings)
{
	struct kfd_ioctl_set_trap_handler_args trap = {
		.gpu_id = kfd->gpus[gpu].id,
		.tba_addr = settings->handler,
		.tma_addr = settings->handler + KFD_PAGE,
	};

	return kfd_call(kfd->fd, AMDKFD_IOC_SET_TRAP_HANDLER, &trap);
}

int kfd_settings_scratch(const struct kfd *kfd, unsigned int gpu,
			 const struct kfd_settings *settings)
{
	struct kfd_ioctl_set_scratch_backing_va_args scratch = {
		.gpu_id = kfd->gpus[gpu].id,
		.va_addr = settings->scratch,
	};

	return kfd_call(kfd->fd, AMDKFD_IOC_SET_SCRATCH_BACKING_VA, &scratch);
}

int kfd_settings_make(const struct kfd *kfd, unsigned int gpu,
		      const struct kfd_settings *settings)
{
	int r = kfd_settings_policy(kfd, gpu, settings);

	r = r ? r : kfd_settings_handler(kfd, gpu, settings);
	return r ? r : kfd_settings_scratch(kfd, gpu, settings);
}
