/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Compile-time checks of the sizes and offsets of the extensible ABI of
 * checkpoint and restore. The kernel (C11) and user space (C++20) include this
 * file after linux/kfd_criu_ioctl.h.
 */
#ifndef KFD_CRIU_LAYOUT_H
#define KFD_CRIU_LAYOUT_H

#ifdef __KERNEL__
#include <linux/build_bug.h>
#include <linux/stddef.h>
#else
#include <assert.h>
#include <stddef.h>
#endif

#define KFD_CRIU_ASSERT_SIZE(type, size) \
	static_assert(sizeof(struct type) == (size), #type " changed size")
#define KFD_CRIU_ASSERT_AT(type, member, offset) \
	static_assert(offsetof(struct type, member) == (offset), \
		      #type "." #member " moved")

KFD_CRIU_ASSERT_SIZE(kfd_criu_v2_args, 88);
KFD_CRIU_ASSERT_AT(kfd_criu_v2_args, num_devices, 32);
KFD_CRIU_ASSERT_AT(kfd_criu_v2_args, op, 48);
KFD_CRIU_ASSERT_AT(kfd_criu_v2_args, fd, 56);
KFD_CRIU_ASSERT_AT(kfd_criu_v2_args, offset, 64);
KFD_CRIU_ASSERT_AT(kfd_criu_v2_args, num_memories, 80);

KFD_CRIU_ASSERT_SIZE(kfd_criu_v2_device, 16);
KFD_CRIU_ASSERT_SIZE(kfd_criu_v2_memory, 16);
KFD_CRIU_ASSERT_SIZE(kfd_criu_v2_probe, 88);
KFD_CRIU_ASSERT_AT(kfd_criu_v2_probe, record_versions, 24);

KFD_CRIU_ASSERT_SIZE(kfd_criu_record, 16);
KFD_CRIU_ASSERT_AT(kfd_criu_record, size, 8);
KFD_CRIU_ASSERT_SIZE(kfd_criu_record_image, 40);
KFD_CRIU_ASSERT_SIZE(kfd_criu_record_device, 112);
KFD_CRIU_ASSERT_AT(kfd_criu_record_device, tba, 64);
KFD_CRIU_ASSERT_AT(kfd_criu_record_device, aperture_base, 96);
KFD_CRIU_ASSERT_SIZE(kfd_criu_record_process, 32);
KFD_CRIU_ASSERT_SIZE(kfd_criu_record_bo, 80);
KFD_CRIU_ASSERT_AT(kfd_criu_record_bo, gpu_id, 56);
KFD_CRIU_ASSERT_SIZE(kfd_criu_record_queue, 128);
KFD_CRIU_ASSERT_AT(kfd_criu_record_queue, gpu_id, 72);
KFD_CRIU_ASSERT_AT(kfd_criu_record_queue, num_xcc, 116);
KFD_CRIU_ASSERT_SIZE(kfd_criu_record_event_page, 24);
KFD_CRIU_ASSERT_SIZE(kfd_criu_record_event, 80);
KFD_CRIU_ASSERT_AT(kfd_criu_record_event, age, 32);
KFD_CRIU_ASSERT_SIZE(kfd_criu_record_svm_range, 56);
KFD_CRIU_ASSERT_SIZE(kfd_criu_svm_device, 8);

#endif /* KFD_CRIU_LAYOUT_H */
