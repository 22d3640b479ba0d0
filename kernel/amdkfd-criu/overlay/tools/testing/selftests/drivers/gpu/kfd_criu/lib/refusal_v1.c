// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Members of the structures of version 1 that the driver must check.
 */
#include <errno.h>
#include <stddef.h>
#include "image_v1.h"
#include "refusal.h"

#define UNKNOWN		77

#define WORD_AT(offset)		.at = (offset), .bytes = 4
#define LONG_AT(offset)		.at = (offset), .bytes = 8

#define PROCESS		.record = V1_IN_PROCESS
#define DEVICE(member)	.record = V1_IN_DEVICE, \
			FIELD(kfd_criu_device_bucket, member)
/* Both parts of a BO are selected by the flags in its struct kfd_criu_bo_bucket. */
#define OF_KIND(kind) \
	.match_at = offsetof(struct kfd_criu_bo_bucket, alloc_flags), \
	.match_mask = KFD_IOC_ALLOC_MEM_FLAGS_##kind, \
	.match = KFD_IOC_ALLOC_MEM_FLAGS_##kind
#define BO(kind, member) .record = V1_IN_BO, OF_KIND(kind), \
			 FIELD(kfd_criu_bo_bucket, member)
#define PRIVATE(kind)	.record = V1_IN_BO_PRIVATE, OF_KIND(kind)
#define IS(at, word)	.match_at = (at), .match_mask = ~0U, .match = (word)
#define SDMA		.record = V1_IN_QUEUE, IS(V1_TYPE, V1_TYPE_SDMA)
#define PM4		.record = V1_IN_QUEUE, IS(V1_TYPE, V1_TYPE_COMPUTE)
#define EVENT(kind)	.record = V1_IN_EVENT, \
			IS(V1_EVENT_TYPE, KFD_IOC_EVENT_##kind)
/* The first event of an image names the event page. */
#define FIRST_EVENT	.record = V1_IN_EVENT
#define RANGE		.record = V1_IN_SVM, .need = SVM
#define ATTRIBUTE(n)	(V1_SVM_ATTRIBUTES + \
			 (n) * sizeof(struct kfd_ioctl_svm_attribute))

const struct refusal v1_refusals[] = {
	/* process */
	{ "version", PROCESS, WORD_AT(0), ADDS(1), EINVAL },
	{ "xnack_mode", PROCESS, WORD_AT(4), SETS(2), EINVAL },
	/* devices */
	{ "user_gpu_id 0", DEVICE(user_gpu_id), SETS(0), EINVAL },
	{ "user_gpu_id of more bits", DEVICE(user_gpu_id), SETS(1 << 16), EINVAL },
	{ "user_gpu_id twice", DEVICE(user_gpu_id), COPIES, EINVAL, .need = TWO_GPUS },
	{ "actual_gpu_id", DEVICE(actual_gpu_id), SETS(NO_GPU), EINVAL },
	{ "actual_gpu_id twice", DEVICE(actual_gpu_id), COPIES, EINVAL, .need = TWO_GPUS },
	/* BOs */
	{ "gpu_id", BO(VRAM, gpu_id), SETS(NO_GPU), EINVAL },
	{ "alloc_flags: no kind", BO(VRAM, alloc_flags), SETS(0), EINVAL },
	{ "alloc_flags: two kinds", BO(VRAM, alloc_flags),
	  ADDS(KFD_IOC_ALLOC_MEM_FLAGS_GTT), EINVAL },
	{ "alloc_flags: unknown", BO(VRAM, alloc_flags), ADDS(UNKNOWN_BO_FLAG), EINVAL },
	{ "alloc_flags: visible", BO(VRAM, alloc_flags),
	  ADDS(KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC), EINVAL, .need = SMALL_BAR },
	{ "no size", BO(VRAM, size), SETS(0), EINVAL },
	{ "half a page", BO(VRAM, size), ADDS(KFD_PAGE / 2), EINVAL },
	{ "size overflows", BO(VRAM, size), SETS(UNREACHABLE), EINVAL },
	{ "size beyond VRAM", BO(VRAM, size), SETS(_BITULL(42)), ENOMEM },
	{ "address twice", BO(VRAM, addr), COPIES, EINVAL },
	{ "doorbells' size", BO(DOORBELL, size), ADDS(KFD_PAGE), EINVAL },
	{ "registers' size", BO(MMIO_REMAP, size), ADDS(KFD_PAGE), EINVAL,
	  .need = REGISTERS },
	{ "handle", PRIVATE(VRAM), WORD_AT(V1_HANDLE), SETS(BEYOND_IDS), EINVAL },
	{ "handle twice", PRIVATE(VRAM), WORD_AT(V1_HANDLE), COPIES, ENOSPC },
	{ "mapped_gpuids", PRIVATE(VRAM), WORD_AT(V1_MAPPED), SETS(NO_GPU), EINVAL },
	{ "user_addr: none", PRIVATE(USERPTR), LONG_AT(V1_USER_ADDRESS), SETS(0), EINVAL },
	{ "user_addr", PRIVATE(USERPTR), LONG_AT(V1_USER_ADDRESS), SETS(UNREACHABLE), EINVAL },
	/* queues, events and SVM ranges */
	{ "object type", SDMA, WORD_AT(0), SETS(UNKNOWN), EINVAL },
	/* queues */
	{ "gpu_id", SDMA, WORD_AT(V1_GPU_ID), SETS(NO_GPU), EINVAL },
	{ "q_id", SDMA, WORD_AT(V1_QUEUE_ID), SETS(1024), EINVAL },
	{ "q_id twice", PM4, WORD_AT(V1_QUEUE_ID), COPIES, ENOSPC, .need = OWN_DOORBELLS },
	{ "type", SDMA, WORD_AT(V1_TYPE), SETS(UNKNOWN), EINVAL },
	{ "format", PM4, WORD_AT(V1_FORMAT), SETS(UNKNOWN), EINVAL },
	{ "priority", PM4, WORD_AT(V1_PRIORITY), SETS(16), EINVAL },
	{ "q_percent", PM4, WORD_AT(V1_PERCENTAGE), SETS(101), EINVAL },
	{ "q_size: odd", SDMA, LONG_AT(V1_RING_SIZE), ADDS(8), EINVAL },
	{ "q_size: small", SDMA, LONG_AT(V1_RING_SIZE), SETS(512), EINVAL },
	{ "q_size: 4 GiB", SDMA, LONG_AT(V1_RING_SIZE), SETS(_BITULL(32)), EINVAL },
	{ "q_size: not the BO's", SDMA, LONG_AT(V1_RING_SIZE), SETS(8192), EINVAL },
	{ "q_address: odd", SDMA, LONG_AT(V1_RING), ADDS(8), EINVAL },
	{ "q_address", SDMA, LONG_AT(V1_RING), SETS(UNREACHABLE), EFAULT },
	{ "q_address: no BO", SDMA, LONG_AT(V1_RING), ADDS(ELSEWHERE), EINVAL },
	{ "read_ptr_addr", SDMA, LONG_AT(V1_READ_POINTER), SETS(UNREACHABLE), EFAULT },
	{ "read_ptr_addr: no BO", SDMA, LONG_AT(V1_READ_POINTER), ADDS(ELSEWHERE), EINVAL },
	{ "write_ptr_addr", SDMA, LONG_AT(V1_WRITE_POINTER), SETS(UNREACHABLE), EFAULT },
	{ "write_ptr_addr: no BO", SDMA, LONG_AT(V1_WRITE_POINTER), ADDS(ELSEWHERE), EINVAL },
	{ "eop_ring_buffer_address", PM4, LONG_AT(V1_EOP), SETS(UNREACHABLE), EFAULT },
	{ "eop_ring_buffer_address: no BO", PM4, LONG_AT(V1_EOP), ADDS(ELSEWHERE), EINVAL,
	  .need = SAVES_WAVES },
	{ "eop_ring_buffer_size", PM4, WORD_AT(V1_EOP_SIZE), SETS(0), EINVAL,
	  .need = SAVES_WAVES },
	{ "ctx_save_restore_area_address", PM4, LONG_AT(V1_SAVE_AREA),
	  SETS(UNREACHABLE), EFAULT },
	{ "ctx_save_restore_area_address: nothing there", PM4, LONG_AT(V1_SAVE_AREA),
	  ADDS(ELSEWHERE), EINVAL, .need = SAVES_WAVES, .time = AT_RESUME },
	{ "ctx_save_restore_area_size", PM4, WORD_AT(V1_SAVE_AREA_SIZE), SETS(0), EINVAL,
	  .need = SAVES_WAVES },
	{ "doorbell_id", PM4, WORD_AT(V1_DOORBELL_ID), SETS(0xffff), EINVAL },
	{ "doorbell_id twice", PM4, WORD_AT(V1_DOORBELL_ID), COPIES, EINVAL },
	{ "sdma_id", SDMA, WORD_AT(V1_SDMA_ID), SETS(0xffff), EINVAL },
	{ "mqd_size", PM4, WORD_AT(V1_MQD_SIZE), ADDS(4), EINVAL },
	{ "ctl_stack_size", PM4, WORD_AT(V1_CTL_STACK_SIZE), ADDS(4), EINVAL },
	/* events */
	{ "user_handle: no such BO", FIRST_EVENT, LONG_AT(V1_PAGE_HANDLE),
	  ADDS(1 << 20), EINVAL },
	{ "event_id 0", EVENT(SIGNAL), WORD_AT(V1_EVENT_ID), SETS(0), EINVAL },
	{ "event_id", EVENT(SIGNAL), WORD_AT(V1_EVENT_ID), SETS(BEYOND_IDS), EINVAL },
	{ "event_id without a slot", EVENT(SIGNAL), WORD_AT(V1_EVENT_ID),
	  SETS(KFD_SIGNAL_EVENT_LIMIT), EINVAL },
	{ "event_id twice", EVENT(SIGNAL), WORD_AT(V1_EVENT_ID), COPIES, ENOSPC },
	{ "event_id of a signal slot", EVENT(MEMORY), WORD_AT(V1_EVENT_ID), SETS(77), EINVAL },
	{ "auto_reset", EVENT(SIGNAL), WORD_AT(V1_AUTO_RESET), SETS(2), EINVAL },
	{ "signaled", EVENT(SIGNAL), WORD_AT(V1_SIGNALED), SETS(2), EINVAL },
	/* SVM ranges: the attributes are preferred location, prefetch location, flags,
	 * granularity, and then the access of each device
	 */
	{ "no size", RANGE, LONG_AT(V1_SVM_PAGES), SETS(0), EINVAL },
	{ "size", RANGE, LONG_AT(V1_SVM_PAGES), SETS(_BITULL(51)), EINVAL },
	{ "start_addr", RANGE, LONG_AT(V1_SVM_START), SETS(_BITULL(51)), EINVAL },
	{ "start_addr: nothing there", RANGE, LONG_AT(V1_SVM_START), ADDS(1 << 20),
	  EFAULT, .time = AT_RESUME },
	{ "attribute", RANGE, WORD_AT(ATTRIBUTE(0)), SETS(UNKNOWN), EINVAL },
	{ "preferred location", RANGE, WORD_AT(ATTRIBUTE(0) + 4), SETS(NO_GPU - 1),
	  EINVAL, .time = AT_RESUME },
	{ "prefetch location", RANGE, WORD_AT(ATTRIBUTE(1) + 4), SETS(NO_GPU - 1),
	  EINVAL, .time = AT_RESUME },
	{ "access", RANGE, WORD_AT(ATTRIBUTE(4) + 4), SETS(NO_GPU), EINVAL },
};

const unsigned int num_v1_refusals = sizeof(v1_refusals) / sizeof(*v1_refusals);
