/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Checkpoint and restore of processes that use amdkfd: the extensible interface
 * of AMDKFD_IOC_CRIU_OP. Operations from KFD_CRIU_V2_PROBE on take struct
 * kfd_criu_v2_args. The operations below that number take the 56 bytes of
 * struct kfd_ioctl_criu_args and are not changed by this file.
 */
#ifndef KFD_CRIU_IOCTL_H
#define KFD_CRIU_IOCTL_H

#include <linux/types.h>

/**
 * DOC: General ioctl format
 *
 * Every operation is ioctl(AMDKFD_IOC_CRIU_OP) on /dev/kfd with struct
 * kfd_criu_v2_args. The ioctl number contains the size of the args as the
 * caller knows them, and @op selects the operation.
 *
 * The args are extended by appending members. A kernel that knows fewer members
 * than its caller requires the bytes that it does not know to be 0. A kernel
 * that knows more members reads 0 for those that the caller does not pass.
 * Flags that the kernel does not know, and non-zero members that the operation
 * does not use, are refused. Members that the operation only writes (marked
 * "Output" below) may hold anything, so the args of one call can be reused for
 * the next one. KFD_CRIU_V2_PROBE reports what the kernel knows.
 *
 * An image is a sequence of records. Each record begins with its type, the
 * version of its contents, a flag that says whether a reader may skip it if it
 * does not know it, and its length. So an older kernel can restore an image of
 * a newer one that has no required record of a new type or version.
 *
 * Unless stated otherwise the process is the one that has opened /dev/kfd, and
 * the caller is that process itself or its tracer ("the tracer" below). The
 * caller needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN in the user namespace of
 * the process.
 *
 * Operations use a standard meaning for common errnos:
 *
 *  - E2BIG: the args have non-zero bytes that the kernel does not know.
 *  - EINVAL: the operation, a flag, or a member of the args or of the image is
 *    unknown or has an invalid value; or the state of the process does not
 *    permit the operation.
 *  - EBADF: the process is neither the caller nor traced by the caller.
 *  - EACCES: the caller lacks the capability.
 *  - EBUSY: the process is being restored, another thread group has paused it,
 *    or an ioctl of it is in progress.
 *  - EIO: a restore of the process has failed and the process can only exit, or
 *    a GPU does not respond.
 *  - EOPNOTSUPP: the process cannot be checkpointed: a debugger uses it, or it
 *    has a queue of an unknown type.
 *  - ENOTRECOVERABLE: a GPU that the process uses was reset, or a queue of it
 *    hung and was reset.
 *  - EFAULT: a pointer in the args or in the image is invalid.
 *  - EINTR: a signal was pending; the operation has been undone and can be
 *    repeated.
 *  - ENOMEM: out of memory.
 *
 * Operations have additional errnos, which their comments give. A RESTORE that
 * fails because of the contents of the image uses the errnos in
 * Documentation/gpu/amdgpu/kfd-criu.rst.
 */

/*
 * KFD_CRIU_V2_PROBE - report what the kernel supports
 *
 * Writes struct kfd_criu_v2_probe to @data, at most @data_size bytes of it. May
 * be called in any state.
 */
#define KFD_CRIU_V2_PROBE	0x100

/*
 * KFD_CRIU_V2_PAUSE - evict the queues of the process from the hardware
 *
 * The caller must be the tracer. It becomes the owner of the pause, which ends
 * with KFD_CRIU_V2_UNPAUSE, when the owner exits, or when it stops tracing the
 * process. @data_size returns the bytes that an image of the process needs now,
 * and @pid the process id.
 *
 * ENODEV: the process has no VM on any GPU. EAGAIN: threads that are not
 * stopped kept changing the SVM ranges.
 */
#define KFD_CRIU_V2_PAUSE	0x101

/*
 * KFD_CRIU_V2_CHECKPOINT - write the image of the process to @data
 *
 * The caller must own the pause. @data_size returns the bytes of the image. No
 * file descriptors are created; KFD_CRIU_V2_EXPORT_BO gives access to the
 * contents of a BO.
 *
 * E2BIG: the image is larger than @data_size; @data_size returns the bytes that
 * it needs. EAGAIN: as for KFD_CRIU_V2_PAUSE.
 */
#define KFD_CRIU_V2_CHECKPOINT	0x102

/*
 * KFD_CRIU_V2_UNPAUSE - let the queues of the process run again
 *
 * The caller must own the pause.
 *
 * ENOTRECOVERABLE: the pause has ended, but a GPU was reset during the pause,
 * so what was read from the process may not be its state.
 */
#define KFD_CRIU_V2_UNPAUSE	0x103

/*
 * KFD_CRIU_V2_RESTORE - create the objects that the image in @data describes
 *
 * The caller must be the process itself, and the process must have no object
 * yet. @devices selects the GPUs, and @memories supplies memory that the process
 * shares with processes that exist already.
 *
 * After a failure the process is unchanged or aborted, see @state. If the args
 * could not be written back the operation fails with EFAULT although it has
 * succeeded; KFD_CRIU_V2_STATE then reports KFD_CRIU_STATE_RESTORED.
 *
 * EPERM: the caller is another process, or has called exec since it opened
 * /dev/kfd. EPROTONOSUPPORT: a record is required but its type or version is
 * unknown.
 */
#define KFD_CRIU_V2_RESTORE	0x104

/*
 * KFD_CRIU_V2_RESUME - let the queues of the restored process @pid run
 *
 * The caller must be the tracer of process @pid. Returns when the queues run.
 * The member state returns the state of process @pid, or that of the caller's
 * own process if @pid does not exist or the caller has no access to it.
 *
 * ESRCH: there is no process @pid that uses amdkfd. ETIME: the process is
 * running (@state), but its queues do not run yet because the kernel still
 * waits for user pages or for memory to map the queues; they will run without
 * another call. ETIME is also returned if the process was paused or has exited
 * meanwhile, see @state.
 */
#define KFD_CRIU_V2_RESUME	0x105

/*
 * KFD_CRIU_V2_ABORT - destroy the objects that RESTORE has created
 *
 * The caller must be the tracer, and the process must be in
 * KFD_CRIU_STATE_RESTORED.
 */
#define KFD_CRIU_V2_ABORT	0x106

/*
 * KFD_CRIU_V2_EXPORT_BO - export a BO as a DMA-buf
 *
 * The caller must own the pause, or be the tracer of a restored process.
 * @gpu_id and @handle identify the BO by the ids that the program knows. @fd
 * returns a descriptor with O_CLOEXEC.
 *
 * ENOENT: there is no such BO. EINVAL: the BO is neither in VRAM nor in GTT.
 */
#define KFD_CRIU_V2_EXPORT_BO	0x107

/*
 * KFD_CRIU_V2_STATE - return the state of the process in @state
 *
 * The caller must be the tracer. May be called in any state.
 */
#define KFD_CRIU_V2_STATE	0x108

/*
 * KFD_CRIU_V2_BO_OFFSET - return the mmap offset of a BO on this machine in
 * @offset
 *
 * The caller must own the pause, or be the tracer of a restored process.
 * @gpu_id and @handle identify the BO as for KFD_CRIU_V2_EXPORT_BO. The offset
 * is one of the GPU's render node, or of /dev/kfd if the BO is doorbells or
 * remapped registers.
 *
 * ENOENT: there is no such BO.
 */
#define KFD_CRIU_V2_BO_OFFSET	0x109

/* Values of struct kfd_criu_v2_args.state */
#define KFD_CRIU_STATE_RUNNING		0 /* neither paused nor being restored */
#define KFD_CRIU_STATE_PAUSED		1 /* queues are evicted until UNPAUSE */
#define KFD_CRIU_STATE_RESTORING	2 /* RESTORE is in progress */
#define KFD_CRIU_STATE_RESTORED		3 /* queues are evicted until RESUME */
#define KFD_CRIU_STATE_ABORTED		4 /* restore failed, process can only exit */

/**
 * struct kfd_criu_v2_args - args of all operations
 * @flags: Must be 0; no flags are defined yet.
 * @data: Address of the image, or of struct kfd_criu_v2_probe.
 * @data_size: Bytes of the buffer at @data. Output of CHECKPOINT and PAUSE:
 *	bytes of the image.
 * @devices: Address of an array of struct kfd_criu_v2_device (RESTORE).
 * @num_devices: Number of elements of @devices.
 * @gpu_id: Id by which the program knows the BO's GPU (EXPORT_BO, BO_OFFSET).
 * @handle: Lower 32 bits of the handle by which the program knows the BO
 *	(EXPORT_BO, BO_OFFSET).
 * @pid: Id of the process to resume, in the caller's PID namespace (RESUME).
 *	Output of PAUSE: id of the process in its own PID namespace.
 * @op: KFD_CRIU_V2_*. At the same offset as in struct kfd_ioctl_criu_args.
 * @state: Output: KFD_CRIU_STATE_* after the operation.
 * @fd: Output of EXPORT_BO: file descriptor of the DMA-buf.
 * @reserved: Must be 0.
 * @offset: Output of BO_OFFSET: mmap offset of the BO.
 * @memories: Address of an array of struct kfd_criu_v2_memory (RESTORE).
 * @num_memories: Number of elements of @memories.
 * @reserved2: Must be 0.
 *
 * Members that an operation does not use must be 0, unless they are outputs.
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
 * struct kfd_criu_v2_device - a GPU of this machine that replaces a GPU of the
 * image
 * @user_gpu_id: Id by which the program knows the GPU, as in struct
 *	kfd_criu_record_device.
 * @gpu_id: Id of the GPU of this machine, as in sysfs.
 * @drm_fd: Descriptor of the render node of that GPU. The process keeps a
 *	reference to the file. Ignored for a GPU whose record does not have
 *	KFD_CRIU_DEVICE_ACQUIRED.
 * @reserved: Must be 0.
 *
 * A GPU whose record does not have KFD_CRIU_DEVICE_ACQUIRED may be left out. If
 * it is given, the program can use the GPU under its old id.
 */
struct kfd_criu_v2_device {
	__u32 user_gpu_id;
	__u32 gpu_id;
	__s32 drm_fd;
	__u32 reserved;
};

/**
 * struct kfd_criu_v2_memory - existing memory that BOs of the image are to use
 * @identity: Identity of these BOs in the image, as in struct
 *	kfd_criu_record_bo; not 0.
 * @dmabuf_fd: Descriptor of a DMA-buf of the memory, such as from
 *	KFD_CRIU_V2_EXPORT_BO. Its size must be that of the BOs.
 * @reserved: Must be 0.
 *
 * BOs of an image with the same identity share their memory in any case.
 * Without an element for that identity, the first of them allocates the memory.
 */
struct kfd_criu_v2_memory {
	__u64 identity;
	__s32 dmabuf_fd;
	__u32 reserved;
};

/**
 * struct kfd_criu_v2_probe - what the kernel supports
 * @size: Bytes of this structure that the kernel has filled in.
 * @args_size: Bytes of struct kfd_criu_v2_args that the kernel knows.
 * @ops: Bit i is set if operation KFD_CRIU_V2_PROBE + i is supported.
 * @flags: Flags for struct kfd_criu_v2_args that the kernel knows.
 * @record_versions: Newest version of each record type that the kernel reads
 *	and writes, indexed by KFD_CRIU_RECORD_*; 0: the type is unknown.
 */
struct kfd_criu_v2_probe {
	__u32 size;
	__u32 args_size;
	__u64 ops;
	__u64 flags;
	__u16 record_versions[32];
};

/*
 * Types of records. The records of an image are in the order of these numbers.
 */
#define KFD_CRIU_RECORD_IMAGE		1
#define KFD_CRIU_RECORD_DEVICE		2
#define KFD_CRIU_RECORD_PROCESS		3
#define KFD_CRIU_RECORD_BO		4
#define KFD_CRIU_RECORD_QUEUE		5
#define KFD_CRIU_RECORD_EVENT_PAGE	6
#define KFD_CRIU_RECORD_EVENT		7
#define KFD_CRIU_RECORD_SVM_RANGE	8

/*
 * Record flag: a reader that does not know the type or the version of the
 * record refuses the image with EPROTONOSUPPORT. Without the flag the reader
 * skips the record.
 */
#define KFD_CRIU_RECORD_REQUIRED	0x1

/**
 * struct kfd_criu_record - header of every record
 * @type: KFD_CRIU_RECORD_*
 * @version: Version of the contents, starting at 1.
 * @flags: KFD_CRIU_RECORD_REQUIRED or 0.
 * @size: Bytes of the record including this header and padding; a multiple of
 *	8.
 *
 * All numbers of an image are little-endian, and all padding is 0.
 */
struct kfd_criu_record {
	__le32 type;
	__le16 version;
	__le16 flags;
	__le64 size;
};

#define KFD_CRIU_IMAGE_MAGIC	0x3243444b55495243ULL	/* "CRIUKDC2" */

/**
 * struct kfd_criu_record_image - first record of an image
 * @record: Header, version 1.
 * @magic: KFD_CRIU_IMAGE_MAGIC
 * @size: Bytes of the image.
 * @num_records: Number of records including this one.
 * @reserved: Must be 0.
 */
struct kfd_criu_record_image {
	struct kfd_criu_record record;
	__le64 magic;
	__le64 size;
	__le32 num_records;
	__le32 reserved;
};

/**
 * struct kfd_criu_record_process - state of the process that belongs to no
 * single GPU
 * @record: Header, version 1.
 * @flags: KFD_CRIU_PROCESS_*
 * @r_debug: Debugger address that the program passed to
 *	AMDKFD_IOC_RUNTIME_ENABLE; 0 without KFD_CRIU_PROCESS_RUNTIME.
 */
struct kfd_criu_record_process {
	struct kfd_criu_record record;
	__le64 flags;
	__le64 r_debug;
};

#define KFD_CRIU_PROCESS_XNACK		0x1
#define KFD_CRIU_PROCESS_RUNTIME	0x2	/* it has called AMDKFD_IOC_RUNTIME_ENABLE */
#define KFD_CRIU_PROCESS_TTMP		0x4	/* and asked for trap temporaries */

/**
 * struct kfd_criu_record_device - a GPU of the process
 * @record: Header, version 1.
 * @user_gpu_id: Id by which the program knows the GPU.
 * @gfx_target_version: major * 10000 + minor * 100 + stepping. Compared at
 *	restore.
 * @num_xcc: Number of XCCs that execute a compute queue together. Compared at
 *	restore.
 * @xcc_mask: Physical XCCs of the GPU. For information only.
 * @cwsr_size: Bytes of a compute queue's context save area for one XCC; 0: no
 *	context save. Compared at restore.
 * @ctl_stack_size: Bytes of @cwsr_size used by the control stack. Compared at
 *	restore.
 * @mqd_size: Bytes of a compute queue's MQD. Compared at restore.
 * @sdma_mqd_size: Bytes of an SDMA queue's MQD. Compared at restore.
 * @flags: KFD_CRIU_DEVICE_*
 * @mec_firmware: Version of the MEC firmware. For information only.
 * @sdma_firmware: Version of the SDMA firmware. For information only.
 * @reserved: Must be 0.
 * @tba: Address of the program's trap handler (AMDKFD_IOC_SET_TRAP_HANDLER); 0:
 *	none.
 * @tma: Address of the memory that the trap handler uses; 0: none.
 * @scratch: Address from AMDKFD_IOC_SET_SCRATCH_BACKING_VA; 0: never set.
 * @default_policy: KFD_IOC_CACHE_POLICY_* of memory outside the alternate
 *	aperture; 0 without KFD_CRIU_DEVICE_POLICY, as are the next three
 *	members.
 * @alternate_policy: KFD_IOC_CACHE_POLICY_* of memory inside the alternate
 *	aperture.
 * @aperture_base: Address of the alternate aperture.
 * @aperture_size: Bytes of the alternate aperture.
 *
 * RESTORE fails with ENXIO if a member that is compared differs between the GPU
 * of the image and the GPU that replaces it.
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

#define KFD_CRIU_DEVICE_ACQUIRED	0x1	/* the process has a VM on it */
#define KFD_CRIU_DEVICE_POLICY		0x2	/* set by AMDKFD_IOC_SET_MEMORY_POLICY */

/**
 * struct kfd_criu_record_bo - a BO without its contents
 * @record: Header, version 1.
 * @va: Address in the GPUs' address spaces.
 * @size: Bytes of memory.
 * @user_addr: Address of the user memory; 0 unless the BO is a userptr.
 * @mmap_offset: Offset at which the program has mapped the BO.
 * @identity: Equal for all BOs that share their memory, in this process and in
 *	others that are paused at the same time. 0: not known, the BO gets
 *	memory of its own.
 * @gpu_id: Id by which the program knows the GPU of the BO.
 * @handle: Lower 32 bits of the handle by which the program knows the BO.
 * @alloc_flags: KFD_IOC_ALLOC_MEM_FLAGS_*
 * @num_mapped: Number of GPUs to which the BO is mapped.
 * @flags: KFD_CRIU_BO_*
 * @reserved: Must be 0.
 *
 * @num_mapped ids of GPUs (__le32), as the program knows them, follow the
 *	structure.
 *
 * After a restore BOs with the same identity share their memory again. Within a
 * process the first of them allocates the memory. For BOs of several processes
 * the memory is passed to the later ones in struct kfd_criu_v2_memory.
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

#define KFD_CRIU_BO_IMPORTED	0x1	/* the memory was allocated for another BO */

/**
 * struct kfd_criu_record_queue - a queue
 * @record: Header, version 1.
 * @ring_address: Address of the ring buffer.
 * @ring_size: Bytes of the ring buffer.
 * @read_pointer: Address of the read pointer.
 * @write_pointer: Address of the write pointer.
 * @eop_address: Address of the end-of-pipe buffer; 0: none.
 * @save_area: Address of the context save area; 0: none.
 * @exception_status: Exceptions that a debugger has not been told yet, as bits.
 * @gpu_id: Id by which the program knows the GPU.
 * @queue_id: Id by which the program knows the queue.
 * @type: KFD_IOC_QUEUE_TYPE_*
 * @priority: Priority, 0 to 15.
 * @percentage: Percentage of the time slice, 0 to 100.
 * @doorbell_id: Index of the doorbell among the doorbells of the process.
 * @sdma_id: Index of the SDMA queue on the GPU; 0 for compute queues.
 * @flags: KFD_CRIU_QUEUE_*
 * @pm4_target_xcc: Number of the XCC that executes PM4 packets; 0 if there is
 *	no choice.
 * @eop_size: Bytes of the end-of-pipe buffer.
 * @save_area_size: Bytes of the context save area for one XCC.
 * @num_xcc: Number of MQDs.
 * @mqd_size: Bytes of each MQD.
 * @ctl_stack_size: Bytes of each control stack; 0 where it is part of the save
 *	area.
 *
 * @num_xcc MQDs follow the structure, followed by @num_xcc control stacks.
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
#define KFD_CRIU_QUEUE_CU_MASKED	0x2	/* set by AMDKFD_IOC_SET_CU_MASK */

/**
 * struct kfd_criu_record_event_page - the page with the slots of signal events
 * @record: Header, version 1.
 * @handle: Handle of the page's BO as the program knows it, with the GPU id in
 *	the upper half.
 *
 * The record exists if the program has passed a page to
 * AMDKFD_IOC_CREATE_EVENT, even if all of its events are destroyed.
 */
struct kfd_criu_record_event_page {
	struct kfd_criu_record record;
	__le64 handle;
};

/**
 * struct kfd_criu_record_event - an event
 * @record: Header, version 1.
 * @event_id: Id by which the program knows the event.
 * @type: KFD_IOC_EVENT_*
 * @flags: KFD_CRIU_EVENT_*
 * @gpu_id: GPU of an exception, as the program knows it.
 * @age: Number that waiters compare to find out whether the event was signaled
 *	again.
 * @address: Address of a memory exception.
 * @failure: Members of struct kfd_memory_exception_failure in their order:
 *	NotPresent, ReadOnly, NoExecute, imprecise.
 * @error_type: Memory exception: 0: no RAS error, 1: ECC_SRAM, 2:
 *	LINK_SYNFLOOD, 3: GPU hang.
 * @reset: Hardware exception: type and cause of the reset.
 * @memory_lost: Hardware exception: whether the reset has lost memory.
 *
 * Members from @address on and @gpu_id are 0 unless the event has that kind of
 * exception.
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
 * struct kfd_criu_record_svm_range - an SVM range
 * @record: Header, version 1.
 * @start: Address of the range.
 * @size: Bytes of the range.
 * @flags: KFD_IOCTL_SVM_FLAG_*
 * @granularity: log2 of the number of pages that migrate together.
 * @preferred_location: GPU id that the program knows, or
 *	KFD_IOCTL_SVM_LOCATION_*
 * @prefetch_location: GPU id that the program knows, or
 *	KFD_IOCTL_SVM_LOCATION_*
 * @num_access: Number of GPUs for which the access is given.
 * @reserved: Must be 0.
 *
 * @num_access elements of struct kfd_criu_svm_device follow the structure.
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
 * struct kfd_criu_svm_device - access of a GPU to an SVM range
 * @gpu_id: Id by which the program knows the GPU.
 * @access: KFD_IOCTL_SVM_ATTR_ACCESS, KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE or
 *	KFD_IOCTL_SVM_ATTR_NO_ACCESS.
 */
struct kfd_criu_svm_device {
	__le32 gpu_id;
	__le32 access;
};

#endif /* KFD_CRIU_IOCTL_H */
