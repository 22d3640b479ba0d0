// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Members of records of the extensible ABI that the driver must check.
 */
#include <errno.h>
#include <stddef.h>
#include "refusal.h"

#define MANY		65	/* more devices than a process can have */
#define SOME		60	/* a number of devices that the record is too short for */

/* A word behind the C structure of the record. */
#define BEHIND(type, offset) .at = sizeof(struct type) + (offset), .bytes = 4

#define ANY		.match_mask = 0
#define HAS(type, member, bits) \
	.match_at = offsetof(struct type, member), .match_mask = (bits), \
	.match = ~0U
#define IS(type, member, word) \
	.match_at = offsetof(struct type, member), .match_mask = ~0U, \
	.match = (word)

#define IMAGE	.record = KFD_CRIU_RECORD_IMAGE, ANY
#define DEVICE	.record = KFD_CRIU_RECORD_DEVICE, ANY
#define PROCESS	.record = KFD_CRIU_RECORD_PROCESS, ANY
#define BO(kind) \
	.record = KFD_CRIU_RECORD_BO, \
	HAS(kfd_criu_record_bo, alloc_flags, KFD_IOC_ALLOC_MEM_FLAGS_##kind)
#define IMPORT \
	.record = KFD_CRIU_RECORD_BO, \
	HAS(kfd_criu_record_bo, flags, KFD_CRIU_BO_IMPORTED)
#define QUEUE(kind) \
	.record = KFD_CRIU_RECORD_QUEUE, \
	IS(kfd_criu_record_queue, type, KFD_IOC_QUEUE_TYPE_##kind)
#define EVENT_PAGE .record = KFD_CRIU_RECORD_EVENT_PAGE, ANY
#define EVENT(kind) \
	.record = KFD_CRIU_RECORD_EVENT, \
	IS(kfd_criu_record_event, type, KFD_IOC_EVENT_##kind)
#define RANGE	.record = KFD_CRIU_RECORD_SVM_RANGE, ANY, .need = SVM

#define OF_IMAGE(member)	FIELD(kfd_criu_record_image, member)
#define OF_DEVICE(member)	FIELD(kfd_criu_record_device, member)
#define OF_PROCESS(member)	FIELD(kfd_criu_record_process, member)
#define OF_BO(member)		FIELD(kfd_criu_record_bo, member)
#define OF_QUEUE(member)	FIELD(kfd_criu_record_queue, member)
#define OF_PAGE(member)		FIELD(kfd_criu_record_event_page, member)
#define OF_EVENT(member)	FIELD(kfd_criu_record_event, member)
#define OF_RANGE(member)	FIELD(kfd_criu_record_svm_range, member)
#define OF_RECORD(member)	FIELD(kfd_criu_record, member)

const struct refusal v2_refusals[] = {
	/* the header that all records have */
	{ "header: flags", PROCESS, OF_RECORD(flags), SETS(2), EINVAL },
	{ "header: version", PROCESS, OF_RECORD(version), SETS(2), EPROTONOSUPPORT },
	{ "header: version 0", PROCESS, OF_RECORD(version), SETS(0), EPROTONOSUPPORT },
	{ "header: type 0", PROCESS, OF_RECORD(type), SETS(0), EPROTONOSUPPORT },
	{ "header: smaller than the header", PROCESS, OF_RECORD(size), SETS(8), EINVAL },
	{ "header: smaller than the record", PROCESS, OF_RECORD(size), SETS(24), EINVAL },
	{ "header: odd size", PROCESS, OF_RECORD(size), ADDS(4), EINVAL },
	{ "header: fixed part smaller than the header", PROCESS, OF_RECORD(fixed_size),
	  SETS(16), EINVAL },
	{ "header: fixed part smaller than the record", PROCESS, OF_RECORD(fixed_size),
	  SETS(32), EINVAL },
	{ "header: fixed part of odd size", PROCESS, OF_RECORD(fixed_size), ADDS(4), EINVAL },
	{ "header: fixed part larger than the record", PROCESS, OF_RECORD(fixed_size),
	  ADDS(8), EINVAL },
	{ "header: reserved", PROCESS, OF_RECORD(reserved), SETS(1), EINVAL },
	{ "header: beyond the image", PROCESS, OF_RECORD(size), SETS(1 << 30), EINVAL },
	{ "a second image", PROCESS, OF_RECORD(type), SETS(KFD_CRIU_RECORD_IMAGE), EINVAL },
	{ "shorter than its type", PROCESS, OF_RECORD(type), SETS(KFD_CRIU_RECORD_QUEUE), EINVAL },
	{ "out of order", EVENT(SIGNAL), OF_RECORD(type), SETS(KFD_CRIU_RECORD_BO), EINVAL },
	{ "no image first", IMAGE, OF_RECORD(type), SETS(KFD_CRIU_RECORD_EVENT_PAGE), EINVAL },
	/* IMAGE */
	{ "magic", IMAGE, OF_IMAGE(magic), ADDS(1), EINVAL },
	{ "size", IMAGE, OF_IMAGE(size), ADDS(8), EINVAL },
	{ "num_records", IMAGE, OF_IMAGE(num_records), ADDS(1), EINVAL },
	{ "reserved", IMAGE, OF_IMAGE(reserved), SETS(1), EINVAL },
	/* DEVICE */
	{ "user_gpu_id", DEVICE, OF_DEVICE(user_gpu_id), SETS(NO_GPU), ENODEV },
	{ "user_gpu_id twice", DEVICE, OF_DEVICE(user_gpu_id), COPIES, EINVAL,
	  .need = TWO_GPUS },
	{ "gfx_target_version", DEVICE, OF_DEVICE(gfx_target_version), ADDS(1), ENXIO },
	{ "num_xcc", DEVICE, OF_DEVICE(num_xcc), ADDS(1), ENXIO },
	{ "cwsr_size", DEVICE, OF_DEVICE(cwsr_size), ADDS(4), ENXIO },
	{ "ctl_stack_size", DEVICE, OF_DEVICE(ctl_stack_size), ADDS(4), ENXIO },
	{ "mqd_layout", DEVICE, OF_DEVICE(mqd_layout), ADDS(1), ENXIO },
	{ "sdma_mqd_layout", DEVICE, OF_DEVICE(sdma_mqd_layout), ADDS(1), ENXIO },
	{ "device flags", DEVICE, OF_DEVICE(flags), ADDS(4), EINVAL },
	{ "policy without its flag", DEVICE, OF_DEVICE(flags), SETS(KFD_CRIU_DEVICE_ACQUIRED),
	  EINVAL },
	{ "default_policy", DEVICE, OF_DEVICE(default_policy), SETS(7), EINVAL },
	{ "alternate_policy", DEVICE, OF_DEVICE(alternate_policy), SETS(7), EINVAL },
	/* PROCESS */
	{ "process flags", PROCESS, OF_PROCESS(flags), ADDS(8), EINVAL },
	{ "r_debug, no runtime", PROCESS, OF_PROCESS(flags), SETS(0), EINVAL },
	{ "ttmp, no runtime", PROCESS, OF_PROCESS(flags), SETS(KFD_CRIU_PROCESS_TTMP), EINVAL },
	/* BO */
	{ "gpu_id", BO(VRAM), OF_BO(gpu_id), SETS(NO_GPU), EINVAL },
	{ "handle", BO(VRAM), OF_BO(handle), SETS(BEYOND_IDS), EINVAL },
	{ "handle twice", BO(VRAM), OF_BO(handle), COPIES, ENOSPC },
	{ "alloc_flags: no kind", BO(VRAM), OF_BO(alloc_flags), SETS(0), EINVAL },
	{ "alloc_flags: two kinds", BO(VRAM), OF_BO(alloc_flags),
	  ADDS(KFD_IOC_ALLOC_MEM_FLAGS_GTT), EINVAL },
	{ "alloc_flags: unknown", BO(VRAM), OF_BO(alloc_flags), ADDS(UNKNOWN_BO_FLAG), EINVAL },
	{ "alloc_flags: visible", BO(VRAM), OF_BO(alloc_flags),
	  ADDS(KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC), EINVAL, .need = SMALL_BAR },
	{ "no size", BO(VRAM), OF_BO(size), SETS(0), EINVAL },
	{ "half a page", BO(VRAM), OF_BO(size), ADDS(KFD_PAGE / 2), EINVAL },
	{ "size overflows", BO(VRAM), OF_BO(size), SETS(UNREACHABLE), EINVAL },
	{ "size beyond VRAM", BO(VRAM), OF_BO(size), SETS(_BITULL(42)), ENOMEM },
	{ "va twice", BO(VRAM), OF_BO(va), COPIES, EINVAL },
	{ "bo flags", BO(VRAM), OF_BO(flags), SETS(2), EINVAL },
	{ "reserved", BO(VRAM), OF_BO(reserved), SETS(1), EINVAL },
	{ "num_mapped: fewer than there are", BO(VRAM), OF_BO(num_mapped), SETS(0), EINVAL },
	{ "num_mapped: many", BO(VRAM), OF_BO(num_mapped), SETS(MANY), EINVAL },
	{ "num_mapped: more than fit", BO(VRAM), OF_BO(num_mapped), SETS(SOME), EINVAL },
	{ "mapped", BO(VRAM), BEHIND(kfd_criu_record_bo, 0), SETS(NO_GPU), EINVAL },
	{ "doorbells' size", BO(DOORBELL), OF_BO(size), ADDS(KFD_PAGE), EINVAL },
	{ "registers' size", BO(MMIO_REMAP), OF_BO(size), ADDS(KFD_PAGE), EINVAL,
	  .need = REGISTERS },
	{ "user_addr: none", BO(USERPTR), OF_BO(user_addr), SETS(0), EINVAL },
	{ "user_addr", BO(USERPTR), OF_BO(user_addr), SETS(UNREACHABLE), EINVAL },
	{ "imported user memory", BO(USERPTR), OF_BO(flags), SETS(KFD_CRIU_BO_IMPORTED),
	  EINVAL },
	{ "user memory with an inode", BO(USERPTR), OF_BO(inode), SETS(1), EINVAL },
	{ "an import of memory that is not there", IMPORT, OF_BO(inode),
	  ADDS(_BITULL(40)), EREMOTE },
	{ "an import's size", IMPORT, OF_BO(size), ADDS(KFD_PAGE), EINVAL },
	{ "an import's va", IMPORT, OF_BO(va), SETS(1), EINVAL },
	/* QUEUE */
	{ "gpu_id", QUEUE(SDMA), OF_QUEUE(gpu_id), SETS(NO_GPU), EINVAL },
	{ "queue_id", QUEUE(SDMA), OF_QUEUE(queue_id), SETS(1024), EINVAL },
	{ "queue_id twice", QUEUE(COMPUTE), OF_QUEUE(queue_id), COPIES, ENOSPC,
	  .need = OWN_DOORBELLS },
	{ "type", QUEUE(SDMA), OF_QUEUE(type), SETS(77), EINVAL },
	{ "type by engine", QUEUE(SDMA), OF_QUEUE(type),
	  SETS(KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID), EINVAL },
	{ "priority", QUEUE(COMPUTE), OF_QUEUE(priority), SETS(16), EINVAL },
	{ "percentage", QUEUE(COMPUTE), OF_QUEUE(percentage), SETS(101), EINVAL },
	{ "pm4_target_xcc", QUEUE(COMPUTE), OF_QUEUE(pm4_target_xcc), SETS(256), EINVAL },
	{ "queue flags", QUEUE(COMPUTE), OF_QUEUE(flags), ADDS(4), EINVAL },
	{ "ring_size: odd", QUEUE(SDMA), OF_QUEUE(ring_size), ADDS(8), EINVAL },
	{ "ring_size: small", QUEUE(SDMA), OF_QUEUE(ring_size), SETS(512), EINVAL },
	{ "ring_size: 4 GiB", QUEUE(SDMA), OF_QUEUE(ring_size), SETS(_BITULL(32)), EINVAL },
	{ "ring_size: not the BO's", QUEUE(SDMA), OF_QUEUE(ring_size), SETS(8192), EINVAL },
	{ "ring_address: odd", QUEUE(SDMA), OF_QUEUE(ring_address), ADDS(8), EINVAL },
	{ "ring_address", QUEUE(SDMA), OF_QUEUE(ring_address), SETS(UNREACHABLE), EFAULT },
	{ "ring_address: no BO", QUEUE(SDMA), OF_QUEUE(ring_address), ADDS(ELSEWHERE), EINVAL },
	{ "read_pointer", QUEUE(SDMA), OF_QUEUE(read_pointer), SETS(UNREACHABLE), EFAULT },
	{ "read_pointer: no BO", QUEUE(SDMA), OF_QUEUE(read_pointer), ADDS(ELSEWHERE), EINVAL },
	{ "write_pointer", QUEUE(SDMA), OF_QUEUE(write_pointer), SETS(UNREACHABLE), EFAULT },
	{ "write_pointer: no BO", QUEUE(SDMA), OF_QUEUE(write_pointer),
	  ADDS(ELSEWHERE), EINVAL },
	{ "eop_address", QUEUE(COMPUTE), OF_QUEUE(eop_address), SETS(UNREACHABLE), EFAULT },
	{ "eop_address: no BO", QUEUE(COMPUTE), OF_QUEUE(eop_address), ADDS(ELSEWHERE),
	  EINVAL, .need = SAVES_WAVES },
	{ "eop_size", QUEUE(COMPUTE), OF_QUEUE(eop_size), SETS(0), EINVAL,
	  .need = SAVES_WAVES },
	{ "save_area", QUEUE(COMPUTE), OF_QUEUE(save_area), SETS(UNREACHABLE), EFAULT },
	{ "save_area: nothing there", QUEUE(COMPUTE), OF_QUEUE(save_area),
	  ADDS(ELSEWHERE), EINVAL, .need = SAVES_WAVES, .time = AT_RESUME },
	{ "save_area_size", QUEUE(COMPUTE), OF_QUEUE(save_area_size), SETS(0), EINVAL,
	  .need = SAVES_WAVES },
	{ "doorbell_id", QUEUE(COMPUTE), OF_QUEUE(doorbell_id), SETS(0xffff), EINVAL },
	{ "doorbell_id twice", QUEUE(COMPUTE), OF_QUEUE(doorbell_id), COPIES, EINVAL },
	{ "doorbell_id", QUEUE(SDMA), OF_QUEUE(doorbell_id), ADDS(1), EINVAL },
	{ "sdma_id", QUEUE(SDMA), OF_QUEUE(sdma_id), SETS(0xffff), EINVAL },
	{ "num_xcc", QUEUE(COMPUTE), OF_QUEUE(num_xcc), ADDS(1), EINVAL },
	{ "mqd_layout", QUEUE(COMPUTE), OF_QUEUE(mqd_layout), ADDS(1), EINVAL },
	{ "mqd_layout", QUEUE(SDMA), OF_QUEUE(mqd_layout), ADDS(1), EINVAL },
	{ "num_words: odd", QUEUE(COMPUTE), OF_QUEUE(num_words), ADDS(1), EINVAL },
	{ "num_words: more than fit", QUEUE(COMPUTE), OF_QUEUE(num_words), ADDS(2), EINVAL },
	{ "num_words: fewer than there are", QUEUE(SDMA), OF_QUEUE(num_words), SETS(2), EINVAL },
	{ "num_words: size overflows", QUEUE(SDMA), OF_QUEUE(num_words), SETS(~0U), EINVAL },
	{ "words: none in the run", QUEUE(COMPUTE), BEHIND(kfd_criu_record_queue, 0),
	  SETS(1), EINVAL },
	{ "words: of the driver", QUEUE(COMPUTE), BEHIND(kfd_criu_record_queue, 0),
	  SETS(1 << 16), EINVAL },
	{ "words: longer than the record", QUEUE(SDMA), BEHIND(kfd_criu_record_queue, 0),
	  SETS(0xffff0003), EINVAL },
	{ "words: beyond the MQD", QUEUE(SDMA), BEHIND(kfd_criu_record_queue, 0),
	  SETS(0x0001ffff), EINVAL },
	{ "ctl_stack_size", QUEUE(COMPUTE), OF_QUEUE(ctl_stack_size), ADDS(4), EINVAL },
	{ "exception_status: unknown", QUEUE(COMPUTE), OF_QUEUE(exception_status),
	  SETS(_BITULL(63)), EINVAL },
	{ "exception_status: of a device", QUEUE(SDMA), OF_QUEUE(exception_status),
	  SETS(_BITULL(31)), EINVAL },
	{ "reserved", QUEUE(SDMA), OF_QUEUE(reserved), SETS(1), EINVAL },
	/* EVENT_PAGE */
	{ "page", EVENT_PAGE, OF_PAGE(handle), SETS(0), EINVAL },
	{ "page: no such BO", EVENT_PAGE, OF_PAGE(handle), ADDS(1 << 20), EINVAL },
	/* EVENT */
	{ "event_id 0", EVENT(SIGNAL), OF_EVENT(event_id), SETS(0), EINVAL },
	{ "event_id", EVENT(SIGNAL), OF_EVENT(event_id), SETS(BEYOND_IDS), EINVAL },
	{ "event_id without a slot", EVENT(SIGNAL), OF_EVENT(event_id),
	  SETS(KFD_SIGNAL_EVENT_LIMIT), EINVAL },
	{ "event_id twice", EVENT(SIGNAL), OF_EVENT(event_id), COPIES, ENOSPC },
	{ "event_id of a signal slot", EVENT(MEMORY), OF_EVENT(event_id), SETS(77), EINVAL },
	{ "event_id of a signal slot", EVENT(HW_EXCEPTION), OF_EVENT(event_id), SETS(77), EINVAL },
	{ "event type: unknown", EVENT(MEMORY), OF_EVENT(type), SETS(KFD_IOC_EVENT_MEMORY + 1),
	  EINVAL },
	{ "event type: unknown", EVENT(HW_EXCEPTION), OF_EVENT(type), SETS(~0U), EINVAL },
	{ "event flags", EVENT(SIGNAL), OF_EVENT(flags), ADDS(4), EINVAL },
	{ "gpu_id of no exception", EVENT(SIGNAL), OF_EVENT(gpu_id), SETS(1), EINVAL },
	{ "address of no exception", EVENT(SIGNAL), OF_EVENT(address), SETS(1), EINVAL },
	{ "address of another exception", EVENT(HW_EXCEPTION), OF_EVENT(address), SETS(1),
	  EINVAL },
	{ "failure of another exception", EVENT(HW_EXCEPTION), OF_EVENT(failure[3]), SETS(1),
	  EINVAL },
	{ "error_type of another exception", EVENT(HW_EXCEPTION), OF_EVENT(error_type), SETS(1),
	  EINVAL },
	{ "reset of another exception", EVENT(MEMORY), OF_EVENT(reset[1]), SETS(1), EINVAL },
	{ "memory_lost of another exception", EVENT(MEMORY), OF_EVENT(memory_lost), SETS(1),
	  EINVAL },
	{ "age without a next one", EVENT(SIGNAL), OF_EVENT(age), SETS(~0ULL), EINVAL },
	/* SVM_RANGE */
	{ "no size", RANGE, OF_RANGE(size), SETS(0), EINVAL },
	{ "size", RANGE, OF_RANGE(size), SETS(UNREACHABLE), EINVAL },
	{ "half a page", RANGE, OF_RANGE(size), ADDS(8), EINVAL },
	{ "start", RANGE, OF_RANGE(start), SETS(UNREACHABLE), EINVAL },
	{ "start within a page", RANGE, OF_RANGE(start), ADDS(8), EINVAL },
	{ "start: nothing there", RANGE, OF_RANGE(start), ADDS(ELSEWHERE), EFAULT,
	  .time = AT_RESUME },
	{ "range flags: unknown", RANGE, OF_RANGE(flags), ADDS(_BITULL(31)), EINVAL },
	{ "range flags: the next bit", RANGE, OF_RANGE(flags),
	  ADDS(KFD_IOCTL_SVM_FLAG_EXT_COHERENT << 1), EINVAL },
	{ "preferred_location", RANGE, OF_RANGE(preferred_location), SETS(NO_GPU - 1),
	  EINVAL, .time = AT_RESUME },
	{ "prefetch_location", RANGE, OF_RANGE(prefetch_location), SETS(NO_GPU - 1),
	  EINVAL, .time = AT_RESUME },
	{ "num_access: many", RANGE, OF_RANGE(num_access), SETS(MANY), EINVAL },
	{ "num_access: more than fit", RANGE, OF_RANGE(num_access), SETS(SOME), EINVAL },
	{ "num_access: fewer than there are", RANGE, OF_RANGE(num_access), SETS(0), EINVAL },
	{ "reserved", RANGE, OF_RANGE(reserved), SETS(1), EINVAL },
	{ "access: gpu_id", RANGE, BEHIND(kfd_criu_record_svm_range, 0), SETS(NO_GPU), EINVAL },
	{ "access", RANGE, BEHIND(kfd_criu_record_svm_range, 4),
	  SETS(KFD_IOCTL_SVM_ATTR_GRANULARITY), EINVAL },
};

const unsigned int num_v2_refusals = sizeof(v2_refusals) / sizeof(*v2_refusals);
