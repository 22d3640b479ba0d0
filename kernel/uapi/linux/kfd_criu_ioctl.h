/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Checkpoint and restore of processes on amdkfd: the extensible interface.
 *
 * AMDKFD_IOC_CRIU_OP with operations from KFD_CRIU_V2_PROBE on, on struct
 * kfd_criu_v2_args. The operations before that, on the 56 bytes of struct
 * kfd_ioctl_criu_args, stay what they are.
 *
 * Growing: args get members at the end. A kernel that is older than its caller
 * refuses bytes that it does not know unless they are 0 (E2BIG); a kernel that is
 * newer takes bytes that the caller does not have for 0. Flags that a kernel does not
 * know are refused (EINVAL), and so are members that an operation does not use and
 * that are not 0. Members that an operation gives may be anything before it, so the args
 * of a call can be those of the next one. KFD_CRIU_V2_PROBE says beforehand what is known.
 *
 * An image is a row of records. Each says its type, the version of its contents,
 * whether a reader may leave it out if it does not know it, and its length. So an
 * image can be read by an older kernel if it has nothing that is required and new.
 */
#ifndef KFD_CRIU_IOCTL_H
#define KFD_CRIU_IOCTL_H

#include <linux/types.h>

/*
 * Operations. In brackets: who calls it; "tracer" is the process itself too.
 */
/* What this kernel can do; on any process [anybody who may checkpoint it]. Writes
 * struct kfd_criu_v2_probe to @data.
 */
#define KFD_CRIU_V2_PROBE	0x100
/* Take the queues off the hardware [tracer]. @data_size gets the room that an image
 * takes now. The pause is the caller's, and ends with it, or when it does not trace the
 * process any more. EOPNOTSUPP: a debugger uses the process, or it has a queue of a kind
 * that is not known; ENOTRECOVERABLE: one of its queues hung and was reset, or a GPU was;
 * ENODEV: it has no VM on any GPU.
 */
#define KFD_CRIU_V2_PAUSE	0x101
/* Write the image to @data, and its size to @data_size [owner of the pause]. E2BIG:
 * there is no room for it, @data_size gets what it takes. Files are not made, see
 * KFD_CRIU_V2_EXPORT_BO.
 */
#define KFD_CRIU_V2_CHECKPOINT	0x102
/* Let the queues go on [owner of the pause]. ENOTRECOVERABLE: they do, but a GPU or one of
 * its queues was reset meanwhile, so what was read of it since the pause is not what the
 * process had.
 */
#define KFD_CRIU_V2_UNPAUSE	0x103
/* Make what the image in @data describes, on @devices, with @memories for what is shared
 * with somebody who is there already [the process itself, without any object]. After a
 * failure it is as it was, or has been aborted (@state); EFAULT with KFD_CRIU_STATE_RESTORED
 * (KFD_CRIU_V2_STATE) means that only the args could not be written back.
 */
#define KFD_CRIU_V2_RESTORE	0x104
/* Let process @pid run [its tracer]. Comes back when its queues do; ETIME: it is RUNNING,
 * and its queues follow once the kernel has their user pages, or memory to map them. There
 * is nothing to repeat. Or it was paused, or has ended, meanwhile (@state).
 * @state is that of @pid; without such a process, or rights to it, the caller's own.
 */
#define KFD_CRIU_V2_RESUME	0x105
/* Give back what RESTORE made [tracer]. */
#define KFD_CRIU_V2_ABORT	0x106
/* A DMA-buf of BO @handle of device @gpu_id, as the program calls them, in @fd
 * [tracer, paused by it or restored]. It is closed by exec.
 */
#define KFD_CRIU_V2_EXPORT_BO	0x107
/* Where the process is, in @state [tracer]. */
#define KFD_CRIU_V2_STATE	0x108
/* At which @offset BO @handle of device @gpu_id is mapped on this machine: of the
 * device's render node, or of /dev/kfd for doorbells and registers [as EXPORT_BO].
 */
#define KFD_CRIU_V2_BO_OFFSET	0x109

/* @state */
#define KFD_CRIU_STATE_RUNNING		0
#define KFD_CRIU_STATE_PAUSED		1
#define KFD_CRIU_STATE_RESTORING	2
#define KFD_CRIU_STATE_RESTORED		3
#define KFD_CRIU_STATE_ABORTED		4

/**
 * struct kfd_criu_v2_args - of all operations; what one does not use is 0
 * @flags: none yet
 * @data: where an image or an answer is or goes
 * @data_size: bytes of it
 * @devices: struct kfd_criu_v2_device array
 * @num_devices: its length
 * @gpu_id: of a BO, as the program calls it
 * @handle: of a BO, low 32 bits of the program's handle
 * @pid: process to resume, in the caller's PID namespace; out: of the process, in its
 *	own
 * @op: KFD_CRIU_V2_*; at the place where the released interface has it
 * @state: out: KFD_CRIU_STATE_*
 * @fd: out
 * @reserved: 0
 * @offset: out
 * @memories: struct kfd_criu_v2_memory array
 * @num_memories: its length
 * @reserved2: 0
 */
struct kfd_criu_v2_args {
	__u64 flags;
	__u64 data;
	__u64 data_size;
	__u64 devices;
	__u32 num_devices;
	__u32 gpu_id;
	__u32 handle;
	__u32 pid;
	__u32 op;
	__u32 state;
	__s32 fd;
	__u32 reserved;
	__u64 offset;
	__u64 memories;
	__u32 num_memories;
	__u32 reserved2;
};

/**
 * struct kfd_criu_v2_device - a device of this machine for one of the image
 * @user_gpu_id: as the program calls it
 * @gpu_id: what sysfs of this machine calls it
 * @drm_fd: a file of its render node; the process keeps a reference. Not looked at for a
 *	device that the image has without KFD_CRIU_DEVICE_ACQUIRED, which need not be here:
 *	if it is, the program calls it what it did
 * @reserved: 0
 */
struct kfd_criu_v2_device {
	__u32 user_gpu_id;
	__u32 gpu_id;
	__s32 drm_fd;
	__u32 reserved;
};

/**
 * struct kfd_criu_v2_memory - memory that BOs of the image are
 * @identity: of these BOs in the image. BOs of an image that have the same one are made
 *	the same memory in any case; this says that it is not a new one
 * @dmabuf_fd: of it, as from KFD_CRIU_V2_EXPORT_BO; of the size of the BOs
 * @reserved: 0
 */
struct kfd_criu_v2_memory {
	__u64 identity;
	__s32 dmabuf_fd;
	__u32 reserved;
};

/**
 * struct kfd_criu_v2_probe - what a kernel can do
 * @size: bytes of this that the kernel has filled in
 * @args_size: of struct kfd_criu_v2_args that it knows
 * @ops: bit i: operation KFD_CRIU_V2_PROBE + i
 * @flags: that it knows
 * @record_versions: of each record type, the newest that it reads and writes; 0: it does
 *	not know the type
 */
struct kfd_criu_v2_probe {
	__u32 size;
	__u32 args_size;
	__u64 ops;
	__u64 flags;
	__u16 record_versions[32];
};

/* Types of records, in the order in which they come. */
#define KFD_CRIU_RECORD_IMAGE		1
#define KFD_CRIU_RECORD_DEVICE		2
#define KFD_CRIU_RECORD_PROCESS		3
#define KFD_CRIU_RECORD_BO		4
#define KFD_CRIU_RECORD_QUEUE		5
#define KFD_CRIU_RECORD_EVENT_PAGE	6
#define KFD_CRIU_RECORD_EVENT		7
#define KFD_CRIU_RECORD_SVM_RANGE	8

/* A reader that does not know the type, or not this version of it, refuses the image
 * (EPROTONOSUPPORT).
 */
#define KFD_CRIU_RECORD_REQUIRED	0x1

/**
 * struct kfd_criu_record - what every record begins with
 * @type: KFD_CRIU_RECORD_*
 * @version: of its contents, from 1 on
 * @flags: KFD_CRIU_RECORD_REQUIRED
 * @size: bytes with this header; a multiple of 8
 *
 * All numbers of an image are little-endian, all padding is 0.
 */
struct kfd_criu_record {
	__le32 type;
	__le16 version;
	__le16 flags;
	__le64 size;
};

#define KFD_CRIU_IMAGE_MAGIC	0x3243444b55495243ULL	/* "CRIUKDC2" */

/**
 * struct kfd_criu_record_image - first of an image
 * @record: type, version 1
 * @magic: KFD_CRIU_IMAGE_MAGIC
 * @size: bytes of the image
 * @num_records: with this one
 * @reserved: 0
 */
struct kfd_criu_record_image {
	struct kfd_criu_record record;
	__le64 magic;
	__le64 size;
	__le32 num_records;
	__le32 reserved;
};

/**
 * struct kfd_criu_record_process - the process
 * @record: type, version 1
 * @flags: KFD_CRIU_PROCESS_*
 * @r_debug: what AMDKFD_IOC_RUNTIME_ENABLE was told
 */
struct kfd_criu_record_process {
	struct kfd_criu_record record;
	__le64 flags;
	__le64 r_debug;
};

#define KFD_CRIU_PROCESS_XNACK		0x1
#define KFD_CRIU_PROCESS_RUNTIME	0x2	/* AMDKFD_IOC_RUNTIME_ENABLE */
#define KFD_CRIU_PROCESS_TTMP		0x4	/* with trap temporaries */

/**
 * struct kfd_criu_record_device - a device, and what of it must be the same
 * @record: type, version 1
 * @user_gpu_id: as the program calls it
 * @gfx_target_version: major * 10000 + minor * 100 + stepping
 * @num_xcc: that work on a queue together
 * @xcc_mask: which they are; for people
 * @cwsr_size: bytes of a compute queue's save area
 * @ctl_stack_size: of them, of the control stack
 * @mqd_size: bytes of a compute queue's MQD
 * @sdma_mqd_size: of an SDMA queue's
 * @flags: KFD_CRIU_DEVICE_*
 * @mec_firmware: version; for people
 * @sdma_firmware: version; for people
 * @reserved: 0
 * @tba: trap handler of the program, 0: none (AMDKFD_IOC_SET_TRAP_HANDLER)
 * @tma: its memory
 * @scratch: AMDKFD_IOC_SET_SCRATCH_BACKING_VA
 * @default_policy: KFD_IOC_CACHE_POLICY_*, of all memory but an aperture
 * @alternate_policy: of the aperture
 * @aperture_base: address
 * @aperture_size: bytes
 */
struct kfd_criu_record_device {
	struct kfd_criu_record record;
	__le32 user_gpu_id;
	__le32 gfx_target_version;
	__le32 num_xcc;
	__le32 xcc_mask;
	__le32 cwsr_size;
	__le32 ctl_stack_size;
	__le32 mqd_size;
	__le32 sdma_mqd_size;
	__le32 flags;
	__le32 mec_firmware;
	__le32 sdma_firmware;
	__le32 reserved;
	__le64 tba;
	__le64 tma;
	__le64 scratch;
	__le32 default_policy;
	__le32 alternate_policy;
	__le64 aperture_base;
	__le64 aperture_size;
};

#define KFD_CRIU_DEVICE_ACQUIRED	0x1	/* it has a VM */
#define KFD_CRIU_DEVICE_POLICY		0x2	/* AMDKFD_IOC_SET_MEMORY_POLICY */

/**
 * struct kfd_criu_record_bo - a BO; its contents go through a DMA-buf. The devices it is
 *	mapped to follow, __le32 each, as the program calls them
 * @record: type, version 1
 * @va: in the GPUs' address spaces
 * @size: bytes
 * @user_addr: of user memory
 * @mmap_offset: at which the program maps it
 * @identity: the same for all BOs that are the same memory, also of other processes
 *	that are paused at the same time. A restored process has them so again; of
 *	several, the first one makes the memory, and the others are given it
 *	(struct kfd_criu_v2_memory)
 * @gpu_id: as the program calls it
 * @handle: as the program calls it, low 32 bits
 * @alloc_flags: KFD_IOC_ALLOC_MEM_FLAGS_*
 * @num_mapped: so many devices follow
 * @flags: KFD_CRIU_BO_*
 * @reserved: 0
 */
struct kfd_criu_record_bo {
	struct kfd_criu_record record;
	__le64 va;
	__le64 size;
	__le64 user_addr;
	__le64 mmap_offset;
	__le64 identity;
	__le32 gpu_id;
	__le32 handle;
	__le32 alloc_flags;
	__le32 num_mapped;
	__le32 flags;
	__le32 reserved;
};

#define KFD_CRIU_BO_IMPORTED	0x1	/* the memory was somebody else's first */

/**
 * struct kfd_criu_record_queue - a queue; its MQDs and control stacks follow
 * @record: type, version 1
 * @ring_address: of the ring buffer
 * @ring_size: bytes
 * @read_pointer: address
 * @write_pointer: address
 * @eop_address: end-of-pipe buffer
 * @save_area: address
 * @gpu_id: as the program calls it
 * @queue_id: as the program calls it
 * @type: KFD_IOC_QUEUE_TYPE_*
 * @priority: 0 to 15
 * @percentage: 0 to 100
 * @doorbell_id: place in the process's doorbells
 * @sdma_id: of SDMA queues
 * @flags: KFD_CRIU_QUEUE_*
 * @pm4_target_xcc: of PM4 queues
 * @eop_size: bytes
 * @save_area_size: bytes of one XCC
 * @num_xcc: so many MQDs follow, and so many control stacks behind them
 * @mqd_size: bytes of each
 * @ctl_stack_size: bytes of each; 0 where the stack is part of the save area
 * @exception_status: what the debugger has not been told yet
 */
struct kfd_criu_record_queue {
	struct kfd_criu_record record;
	__le64 ring_address;
	__le64 ring_size;
	__le64 read_pointer;
	__le64 write_pointer;
	__le64 eop_address;
	__le64 save_area;
	__le64 exception_status;
	__le32 gpu_id;
	__le32 queue_id;
	__le32 type;
	__le32 priority;
	__le32 percentage;
	__le32 doorbell_id;
	__le32 sdma_id;
	__le32 flags;
	__le32 pm4_target_xcc;
	__le32 eop_size;
	__le32 save_area_size;
	__le32 num_xcc;
	__le32 mqd_size;
	__le32 ctl_stack_size;
};

#define KFD_CRIU_QUEUE_GWS		0x1
#define KFD_CRIU_QUEUE_CU_MASKED	0x2	/* AMDKFD_IOC_SET_CU_MASK */

/**
 * struct kfd_criu_record_event_page - where signal events are; also without any event
 * @record: type, version 1
 * @handle: of its BO, with the GPU id, as the program calls it
 */
struct kfd_criu_record_event_page {
	struct kfd_criu_record record;
	__le64 handle;
};

/**
 * struct kfd_criu_record_event - an event
 * @record: type, version 1
 * @event_id: as the program calls it
 * @type: KFD_IOC_EVENT_*
 * @flags: KFD_CRIU_EVENT_*
 * @gpu_id: of an exception, as the program calls it
 * @age: how often it was signaled, as waiters compare it
 * @address: of a memory exception
 * @failure: struct kfd_memory_exception_failure as it is laid out
 * @error_type: of a memory exception: 0: no RAS, 1: ECC_SRAM, 2: LINK_SYNFLOOD, 3: GPU hang
 * @reset: of a hardware exception: type, cause
 * @memory_lost: of a hardware exception
 */
struct kfd_criu_record_event {
	struct kfd_criu_record record;
	__le32 event_id;
	__le32 type;
	__le32 flags;
	__le32 gpu_id;
	__le64 age;
	__le64 address;
	__le32 failure[4];
	__le32 error_type;
	__le32 reset[2];
	__le32 memory_lost;
};

#define KFD_CRIU_EVENT_AUTO_RESET	0x1
#define KFD_CRIU_EVENT_SIGNALED		0x2

/**
 * struct kfd_criu_record_svm_range - an SVM range; struct kfd_criu_svm_device follow
 * @record: type, version 1
 * @start: address
 * @size: bytes
 * @flags: KFD_IOCTL_SVM_FLAG_*
 * @granularity: log2 of pages
 * @preferred_location: GPU id, or KFD_IOCTL_SVM_LOCATION_*
 * @prefetch_location: likewise
 * @num_access: so many devices follow
 * @reserved: 0
 */
struct kfd_criu_record_svm_range {
	struct kfd_criu_record record;
	__le64 start;
	__le64 size;
	__le32 flags;
	__le32 granularity;
	__le32 preferred_location;
	__le32 prefetch_location;
	__le32 num_access;
	__le32 reserved;
};

/**
 * struct kfd_criu_svm_device - what a device may do with an SVM range
 * @gpu_id: as the program calls it
 * @access: KFD_IOCTL_SVM_ATTR_ACCESS, _ACCESS_IN_PLACE or _NO_ACCESS
 */
struct kfd_criu_svm_device {
	__le32 gpu_id;
	__le32 access;
};

#endif /* KFD_CRIU_IOCTL_H */
