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
#include <linux/stddef.h>
#else
#include <stddef.h>
#endif

/* C11 has the other name only with assert.h, which needs a C library. */
#ifdef __cplusplus
#define KFD_CRIU_ASSERT static_assert
#else
#define KFD_CRIU_ASSERT _Static_assert
#endif

#define KFD_CRIU_ASSERT_SIZE(type, size) \
	KFD_CRIU_ASSERT(sizeof(struct type) == (size), #type " changed size")
#define KFD_CRIU_ASSERT_AT(type, member, offset) \
	KFD_CRIU_ASSERT(offsetof(struct type, member) == (offset), \
			#type "." #member " moved")

KFD_CRIU_ASSERT_SIZE(kfd_criu_args, KFD_CRIU_ARGS_SIZE_VER0);
KFD_CRIU_ASSERT_AT(kfd_criu_args, num_gpus, 32);
KFD_CRIU_ASSERT_AT(kfd_criu_args, op, 48);
KFD_CRIU_ASSERT_AT(kfd_criu_args, fd, 56);
KFD_CRIU_ASSERT_AT(kfd_criu_args, offset, 64);
KFD_CRIU_ASSERT_AT(kfd_criu_args, num_memories, 80);
KFD_CRIU_ASSERT_AT(kfd_criu_args, record, 92);

KFD_CRIU_ASSERT_SIZE(kfd_criu_gpu, 16);
KFD_CRIU_ASSERT_SIZE(kfd_criu_shared_memory, 16);
KFD_CRIU_ASSERT_SIZE(kfd_criu_probe, 112);
KFD_CRIU_ASSERT_AT(kfd_criu_probe, record_versions, 40);
KFD_CRIU_ASSERT_AT(kfd_criu_probe, pause_flags, 104);

KFD_CRIU_ASSERT_SIZE(kfd_criu_record, 24);
KFD_CRIU_ASSERT_AT(kfd_criu_record, size, 16);
KFD_CRIU_ASSERT_SIZE(kfd_criu_record_image, 48);
KFD_CRIU_ASSERT_SIZE(kfd_criu_record_device, 120);
KFD_CRIU_ASSERT_AT(kfd_criu_record_device, tba, 72);
KFD_CRIU_ASSERT_AT(kfd_criu_record_device, aperture_base, 104);
KFD_CRIU_ASSERT_SIZE(kfd_criu_record_process, 40);
KFD_CRIU_ASSERT_SIZE(kfd_criu_record_bo, 88);
KFD_CRIU_ASSERT_AT(kfd_criu_record_bo, gpu_id, 64);
KFD_CRIU_ASSERT_SIZE(kfd_criu_record_queue, 144);
KFD_CRIU_ASSERT_AT(kfd_criu_record_queue, gpu_id, 80);
KFD_CRIU_ASSERT_AT(kfd_criu_record_queue, num_xcc, 124);
KFD_CRIU_ASSERT_SIZE(kfd_criu_mqd_words, 4);
KFD_CRIU_ASSERT_SIZE(kfd_criu_record_event_page, 32);
KFD_CRIU_ASSERT_SIZE(kfd_criu_record_event, 88);
KFD_CRIU_ASSERT_AT(kfd_criu_record_event, age, 40);
KFD_CRIU_ASSERT_SIZE(kfd_criu_record_svm_range, 64);
KFD_CRIU_ASSERT_SIZE(kfd_criu_svm_device, 8);

#endif /* KFD_CRIU_LAYOUT_H */
