/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Settings that a process has made on a GPU: memory policy, trap handler, scratch memory.
 */
#ifndef KFD_CRIU_SELFTEST_SETTINGS_H
#define KFD_CRIU_SELFTEST_SETTINGS_H

#include "kfd.h"

struct kfd_settings {
	__u64 handler;	/* address of the trap handler; its data is in the page behind it */
	__u64 scratch;
	__u64 aperture;	/* begin of the aperture with the alternate policy */
	__u32 default_policy;
	__u32 alternate_policy;
};

/*
 * Each makes one of these settings on the GPU. The driver accepts them only while the process
 * has no queue. Returns 0 or a negative errno.
 */
int kfd_settings_policy(const struct kfd *kfd, unsigned int gpu,
			const struct kfd_settings *settings);
int kfd_settings_handler(const struct kfd *kfd, unsigned int gpu,
			 const struct kfd_settings *settings);
int kfd_settings_scratch(const struct kfd *kfd, unsigned int gpu,
			 const struct kfd_settings *settings);
/* Makes all of them. */
int kfd_settings_make(const struct kfd *kfd, unsigned int gpu,
		      const struct kfd_settings *settings);

#endif /* KFD_CRIU_SELFTEST_SETTINGS_H */
