/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Checkpoint and restore of processes that use amdkfd: the extensible interface
 * of AMDKFD_IOC_CRIU_OP.
 */
#ifndef KFD_CRIU_IOCTL_H
#define KFD_CRIU_IOCTL_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * DOC: General ioctl format
 *
 * Every operation is ioctl(AMDKFD_IOC_CRIU) on a file of /dev/kfd with struct
 * kfd_criu_args; &kfd_criu_args.op selects the operation. The operation is
 * about the process that opened the file, not about the caller. A checkpointer
 * gets the file of another process with pidfd_getfd(). Only RESUME can name the
 * process by a process id instead.
 *
 * Operations below KFD_CRIU_CMD_PROBE are those of the released interface. They
 * have the same ioctl number but for the size, take the 56 bytes of struct
 * kfd_ioctl_criu_args, and are not changed by this file.
 *
 * Extensions follow these rules:
 *
 *  - The ioctl number contains the size of the args as the caller knows them.
 *    It is at least KFD_CRIU_ARGS_SIZE_VER0. The args grow by appended members.
 *    A kernel that knows fewer members than the caller requires the rest to
 *    be 0, and a kernel that knows more members reads 0 for those that are
 *    missing. So 0 has the meaning "as before the member existed" in each
 *    appended member.
 *  - Every bit of the args that the operation does not read must be 0, outputs
 *    included. Unknown flags are refused.
 *  - Arrays that the args point to have elements of a fixed size; their
 *    reserved members must be 0.
 *  - A record of an image grows in the same way, see struct kfd_criu_record.
 *  - KFD_CRIU_CMD_PROBE reports what the kernel knows. KFD_CRIU_MINOR_VERSION
 *    grows with each extension, and KFD_CRIU_MAJOR_VERSION never changes: an
 *    incompatible interface would have operations of its own.
 *    KFD_IOCTL_MINOR_VERSION does not tell of this interface. A kernel without
 *    it refuses PROBE with EINVAL, or with EACCES for callers that may not use
 *    the released interface.
 */
/* Has the base and the number of AMDKFD_IOC_CRIU_OP in linux/kfd_ioctl.h. */
#define AMDKFD_IOC_CRIU	_IOWR('K', 0x22, struct kfd_criu_args)

#define KFD_CRIU_MAJOR_VERSION	1
#define KFD_CRIU_MINOR_VERSION	1

/**
 * DOC: States of a process
 *
 * ::
 *
 *            PAUSE               RESTORE
 *   PAUSED <-------- RUNNING --------------> RESTORING --------> RESTORED
 *     |               ^   ^ ^                    |  |             |  ^ |
 *     +---------------+   | +--------------------+  |      RESUME |  | | ABORT
 *       the last pause    |   failure before any    |             v  | |
 *       ends              |   GPU was bound         |         RESUMING |
 *                         |                         | failure   |  |   |
 *                         |         queues may run  |           |  |   |
 *                         +-------------------------|-----------+  |   |
 *                                                   v      failure v   v
 *                                                 ABORTED <------------+
 *
 * RUNNING
 *	Neither paused nor being restored.
 * PAUSED
 *	The queues are evicted from the hardware. Each pause is a file; the process
 *	is paused as long as one is open.
 * RESTORING
 *	RESTORE creates objects.
 * RESTORED
 *	All objects exist. The queues are evicted until RESUME.
 * RESUMING
 *	The kernel registers SVM ranges and prepares the queues. It continues
 *	even if the caller of RESUME is killed or does not want to wait.
 * ABORTED
 *	A restore failed after a GPU was bound. The process has no objects, cannot
 *	create any, and can only exit.
 *
 * In RESTORING, RESTORED and RESUMING, ioctls of the program that create or
 * change objects fail with EBUSY; in ABORTED they fail with EIO.
 */
#define KFD_CRIU_STATE_RUNNING		0
#define KFD_CRIU_STATE_PAUSED		1
#define KFD_CRIU_STATE_RESTORING	2
#define KFD_CRIU_STATE_RESTORED		3
#define KFD_CRIU_STATE_ABORTED		4
#define KFD_CRIU_STATE_RESUMING		5

/**
 * DOC: Access
 *
 * PROBE, STATE and UNPAUSE need only the file.
 *
 * PAUSE, RESUME, ABORT, CHECKPOINT, EXPORT_BO and BO_OFFSET stop the process
 * or read its state. The caller must be the process itself or be permitted to
 * attach to it with ptrace (PTRACE_MODE_ATTACH_REALCREDS), and must have
 * CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN in the user namespace of the
 * process.
 *
 * RESTORE is for the process itself only, with the same capability. If the
 * image has a record of a queue, the capability is required in the initial
 * user namespace: the record contains registers that no other ioctl can set.
 * Which they are on each generation is in
 * Documentation/gpu/amdgpu/kfd-criu.rst.
 */

/**
 * DOC: Errors
 *
 * Operations use a standard meaning for common errnos:
 *
 *  - E2BIG: the args have non-zero bytes that the kernel does not know.
 *  - EINVAL: the operation, a flag, or a member of the args or of the image is
 *    unknown or has an invalid value; or the state of the process does not
 *    permit the operation.
 *  - EBADF: &kfd_criu_args.pause_fd is not the file of a pause.
 *  - EPERM: the caller is not permitted to attach to the process with ptrace.
 *  - EACCES: the caller lacks the capability.
 *  - EBUSY: the process is being restored, or an ioctl of it is in progress. An
 *    operation waits for another one of the same process, and can be killed
 *    meanwhile.
 *  - EIO: a restore of the process has failed and the process can only exit, or
 *    a GPU does not respond.
 *  - EOPNOTSUPP: the process cannot be checkpointed; &kfd_criu_args.reason says
 *    why.
 *  - ENOTRECOVERABLE: a GPU that the process uses was reset, or a queue of it
 *    hung and was reset; &kfd_criu_args.reason says which.
 *  - EFAULT: a pointer in the args or in the image is invalid.
 *  - EINTR: a signal was pending; the operation has been undone, the args are
 *    unchanged, and the call can be repeated.
 *  - ENOMEM: out of memory.
 *  - ENOTTY: the file is not one of /dev/kfd.
 *
 * Operations have additional errnos, which their comments give. A RESTORE that
 * fails because of the contents of the image uses the errnos in
 * Documentation/gpu/amdgpu/kfd-criu.rst, and &kfd_criu_args.record says which
 * record was refused.
 */

/* Values of struct kfd_criu_args.reason */
#define KFD_CRIU_REASON_NONE		0
#define KFD_CRIU_REASON_DEBUGGER	1 /* a debugger uses the process */
#define KFD_CRIU_REASON_QUEUE_TYPE	2 /* a queue of an unknown type */
#define KFD_CRIU_REASON_GPU		3 /* a GPU of an unknown generation */
#define KFD_CRIU_REASON_GEM_OBJECT	4 /* its render node has GEM handles */
#define KFD_CRIU_REASON_GEM_MAPPING	5 /* its render node has mapped memory */
#define KFD_CRIU_REASON_QUEUE_RESET	6 /* a queue hung and was reset */
#define KFD_CRIU_REASON_GPU_RESET	7 /* a GPU was reset */
#define KFD_CRIU_REASON_DRM_CONTEXT	8 /* it has other DRM objects */
#define KFD_CRIU_REASON_EVENT_TYPE	9 /* an event of an unknown type */

/**
 * DOC: Example
 *
 * A checkpointer saves a process that it may attach to::
 *
 *	struct kfd_criu_args args = { .op = KFD_CRIU_CMD_PAUSE };
 *	int kfd = pidfd_getfd(pidfd, number_of_its_kfd_file, 0);
 *
 *	ioctl(kfd, AMDKFD_IOC_CRIU, &args);
 *	pause_fd = args.fd;
 *	size = args.data_size;
 *
 *	args = (struct kfd_criu_args){ .op = KFD_CRIU_CMD_CHECKPOINT,
 *				       .pause_fd = pause_fd,
 *				       .data = (uintptr_t)malloc(size),
 *				       .data_size = size };
 *	ioctl(kfd, AMDKFD_IOC_CRIU, &args);
 *	... EXPORT_BO for each BO whose contents are in VRAM or GTT ...
 *	close(pause_fd);
 *
 * The program runs again after the last line, and would also run again if the
 * checkpointer had been killed before it.
 *
 * A new process with the memory of the old one restores itself, and the
 * checkpointer calls RESUME::
 *
 *	args = (struct kfd_criu_args){ .op = KFD_CRIU_CMD_RESTORE,
 *				       .data = image, .data_size = size,
 *				       .gpus = (uintptr_t)gpus, .num_gpus = n };
 *	ioctl(kfd, AMDKFD_IOC_CRIU, &args);
 *	... fill the BOs, put the memory of the program into place ...
 *	args = (struct kfd_criu_args){ .op = KFD_CRIU_CMD_RESUME };
 *	ioctl(kfd, AMDKFD_IOC_CRIU, &args);
 */

/*
 * KFD_CRIU_CMD_PROBE - report what the kernel supports
 *
 * Writes struct kfd_criu_probe to @data, at most @data_size bytes of it. May be
 * called in any state.
 */
#define KFD_CRIU_CMD_PROBE	0x100

/*
 * KFD_CRIU_CMD_PAUSE - evict the queues of the process from the hardware
 *
 * @fd returns a file with O_CLOEXEC, the pause: the process stays paused until
 * the last descriptor of it is closed, or until UNPAUSE. If the process is in
 * the middle of an operation then, such as CHECKPOINT, it may stay paused until
 * that ends, but close() does not wait for it. A process may have several
 * pauses, and runs again when the last one has ended. @data_size returns the
 * bytes that an image of the process needs now, and @pid the process id.
 *
 * poll() reports POLLHUP once the pause has ended, POLLIN once the queues run
 * again, and POLLERR once the process has exited. A pause gives no access:
 * operations that take one check their caller like all others.
 *
 * An image has nothing that the program has created with ioctls of its render
 * nodes. Without KFD_CRIU_PAUSE_DRM_OBJECTS in @flags, PAUSE and CHECKPOINT refuse
 * a process that has such objects in a file that it has passed to
 * AMDKFD_IOC_ACQUIRE_VM. See "Objects of render nodes" for what the flag requires
 * of the caller.
 *
 * ENODEV: the process has no VM on any GPU. EAGAIN: threads that are not
 * stopped kept changing the SVM ranges.
 */
#define KFD_CRIU_CMD_PAUSE	0x101

/*
 * KFD_CRIU_CMD_CHECKPOINT - write the image of the process to @data
 *
 * @pause_fd must be a pause of the process. @data_size returns the bytes of the
 * image. No file descriptors are created; EXPORT_BO gives access to the
 * contents of a BO.
 *
 * E2BIG: the image is larger than @data_size; @data_size returns the bytes that
 * it needs. EAGAIN: as for PAUSE. EXDEV: @pause_fd is a pause of another
 * process.
 */
#define KFD_CRIU_CMD_CHECKPOINT	0x102

/*
 * KFD_CRIU_CMD_UNPAUSE - end the pause @pause_fd
 *
 * Does what closing @pause_fd would do, and reports whether the image can be
 * used. The file stays open and can be polled.
 *
 * ENOTRECOVERABLE: the pause has ended, but a GPU or a queue was reset, see
 * @reason, so what was read from the process may not be its state. EXDEV:
 * @pause_fd is a pause of another process. EINVAL: the pause has ended already.
 */
#define KFD_CRIU_CMD_UNPAUSE	0x103

/*
 * KFD_CRIU_CMD_RESTORE - create the objects that the image in @data describes
 *
 * The caller must be the process itself, and the process must have no object
 * yet. @gpus selects the GPUs, and @memories supplies memory that the process
 * shares with processes that exist already. @flags may contain
 * KFD_CRIU_PRIVATE_COPY.
 *
 * After a failure the process is unchanged or aborted, see @state; @record is
 * the number of the record that was refused, starting at 1, or 0. If the args
 * could not be written back the operation fails with EFAULT although it has
 * succeeded; STATE then reports KFD_CRIU_STATE_RESTORED.
 *
 * EPERM: the caller is another process, or has called exec since it opened
 * /dev/kfd. EPROTONOSUPPORT: a record is required but its type or version, or a
 * member of it, is unknown. EREMOTE: a BO uses memory that was allocated for
 * an object outside the image, @memories does not supply it, and
 * KFD_CRIU_PRIVATE_COPY is not given.
 */
#define KFD_CRIU_CMD_RESTORE	0x104

/*
 * KFD_CRIU_CMD_RESUME - let the queues of the restored process run
 *
 * Names the process by the file, or by @pid if that is not 0. Waits until the
 * queues run, at most @timeout_ms (0: KFD_CRIU_RESUME_TIMEOUT_MS). With
 * KFD_CRIU_RESUME_FD in @flags it does not wait: @fd returns a file, and
 * poll() reports POLLIN once the queues run, or POLLERR if they will not:
 * then STATE says why. A call while the process is in KFD_CRIU_STATE_RESUMING
 * joins the one before it.
 *
 * If there can be no file (ENOMEM, EMFILE, ENFILE), or its number cannot be
 * written to the args (EFAULT), RESUME goes on nevertheless, unless @state or
 * STATE reports KFD_CRIU_STATE_RESTORED: then it has not begun.
 *
 * RESUME allocates no page of an SVM range that the GPU faults in by itself
 * (XNACK). Pages that must be there before a queue runs are faulted in.
 *
 * The member state returns the state of the named process, or that of the
 * process of the file if @pid does not exist or the caller has no access to
 * it.
 *
 * EAGAIN: too many processes of the same user have ended in
 * KFD_CRIU_STATE_RESUMING and still wait for a file system that does not
 * answer; RESUME has not begun. EAGAIN with KFD_CRIU_STATE_ABORTED: pages of
 * SVM ranges were moved again and again.
 *
 * ESRCH: there is no process @pid that uses amdkfd. EBUSY: the process is being
 * restored, or an operation of it has not ended when @timeout_ms was over, and
 * RESUME has not begun. ETIME: @timeout_ms is
 * over; the kernel still registers SVM ranges (@state is
 * KFD_CRIU_STATE_RESUMING), or waits for user pages or for memory to map the
 * queues (KFD_CRIU_STATE_RUNNING). It continues without another call. ETIME is
 * also returned if the process was paused or has exited meanwhile, see
 * @state. Other errnos are those of an SVM range or a buffer that cannot be
 * used; then @state is KFD_CRIU_STATE_ABORTED.
 */
#define KFD_CRIU_CMD_RESUME	0x105

/*
 * KFD_CRIU_CMD_ABORT - destroy the objects that RESTORE has created
 *
 * The process must be in KFD_CRIU_STATE_RESTORED.
 */
#define KFD_CRIU_CMD_ABORT	0x106

/*
 * KFD_CRIU_CMD_EXPORT_BO - export a BO as a DMA-buf
 *
 * @gpu_id and @handle identify the BO by the ids that the program knows.
 * @pause_fd must be a pause of the process, or -1 if the process is in
 * KFD_CRIU_STATE_RESTORED. @fd returns a descriptor with O_CLOEXEC.
 *
 * ENOENT: there is no such BO. EINVAL: the BO is neither in VRAM nor in GTT.
 */
#define KFD_CRIU_CMD_EXPORT_BO	0x107

/*
 * KFD_CRIU_CMD_STATE - return the state of the process in @state
 *
 * May be called in any state.
 */
#define KFD_CRIU_CMD_STATE	0x108

/*
 * KFD_CRIU_CMD_BO_OFFSET - return the mmap offset of a BO on this machine in
 * @offset
 *
 * @gpu_id, @handle and @pause_fd are those of EXPORT_BO. The offset is one of
 * the GPU's render node, or of /dev/kfd if the BO is doorbells or remapped
 * registers.
 *
 * ENOENT: there is no such BO.
 */
#define KFD_CRIU_CMD_BO_OFFSET	0x109

/* Flags of PAUSE */
#define KFD_CRIU_PAUSE_DRM_OBJECTS	0x1 /* the caller saves those of render nodes */
/* Flags of RESTORE */
#define KFD_CRIU_PRIVATE_COPY	0x1 /* memory without a giver becomes private */
/* Flags of RESUME */
#define KFD_CRIU_RESUME_FD	0x1 /* do not wait, return a file */

#define KFD_CRIU_RESUME_TIMEOUT_MS	5000

/**
 * struct kfd_criu_args - args of all operations
 * @flags: Flags of the operation. 0 for operations that have none.
 * @data: Address of the image, or of struct kfd_criu_probe.
 * @data_size: Bytes of the buffer at @data. Output of CHECKPOINT and PAUSE:
 *	bytes of the image.
 * @gpus: Address of an array of struct kfd_criu_gpu (RESTORE).
 * @num_gpus: Number of elements of @gpus, at most KFD_CRIU_MAX_GPUS.
 * @gpu_id: Id by which the program knows the BO's GPU (EXPORT_BO, BO_OFFSET).
 * @handle: Lower 32 bits of the handle by which the program knows the BO
 *	(EXPORT_BO, BO_OFFSET).
 * @pid: Id of the process to resume, in the caller's PID namespace; 0: the
 *	process of the file (RESUME). Output of PAUSE: id of the process in its
 *	own PID namespace.
 * @op: KFD_CRIU_CMD_*. At the same offset as in struct kfd_ioctl_criu_args.
 * @state: Output: KFD_CRIU_STATE_* after the operation.
 * @fd: Output of PAUSE: the pause. Output of EXPORT_BO: the DMA-buf. Output of
 *	RESUME with KFD_CRIU_RESUME_FD: the file to poll.
 * @pause_fd: File from PAUSE (CHECKPOINT, UNPAUSE, EXPORT_BO, BO_OFFSET).
 * @offset: Output of BO_OFFSET: mmap offset of the BO.
 * @memories: Address of an array of struct kfd_criu_shared_memory (RESTORE).
 * @num_memories: Number of elements of @memories.
 * @timeout_ms: How long RESUME waits, in milliseconds.
 * @reason: Output: KFD_CRIU_REASON_* if the operation fails with EOPNOTSUPP or
 *	ENOTRECOVERABLE.
 * @record: Output of RESTORE: number of the record that was refused; 0: none.
 *
 * Members that an operation does not read must be 0.
 */
struct kfd_criu_args {
	__u64 flags;
	__u64 data;
	__u64 data_size;
	__u64 gpus;
	__u32 num_gpus;
	__u32 gpu_id;
	__u32 handle;
	__u32 pid;
	__u32 op;
	__u32 state;
	__s32 fd;
	__s32 pause_fd;
	__u64 offset;
	__u64 memories;
	__u32 num_memories;
	__u32 timeout_ms;
	__u32 reason;
	__u32 record;
};

#define KFD_CRIU_ARGS_SIZE_VER0	96

#define KFD_CRIU_MAX_GPUS	64

/**
 * struct kfd_criu_gpu - a GPU of this machine that replaces a GPU of the image
 * @user_gpu_id: Id by which the program knows the GPU, as in struct
 *	kfd_criu_record_device. No two elements have the same one.
 * @gpu_id: Id of the GPU of this machine, as in sysfs.
 * @drm_fd: Descriptor of the render node of that GPU, and of the same partition
 *	of it. The process keeps a reference to the file. Must be -1 for a GPU
 *	whose record does not have KFD_CRIU_DEVICE_ACQUIRED.
 * @reserved: Must be 0.
 *
 * A GPU whose record does not have KFD_CRIU_DEVICE_ACQUIRED may be left out. If
 * it is given, the program can use the GPU under its old id. An element without
 * a record in the image is refused.
 */
struct kfd_criu_gpu {
	__u32 user_gpu_id;
	__u32 gpu_id;
	__s32 drm_fd;
	__u32 reserved;
};

/**
 * struct kfd_criu_shared_memory - existing memory that BOs of the image are
 * to use
 * @inode: Identity of these BOs in the image, as in struct kfd_criu_record_bo;
 *	not 0.
 * @dmabuf_fd: Descriptor of a DMA-buf of the memory, such as from EXPORT_BO.
 *	Its size must be that of the BOs.
 * @reserved: Must be 0.
 *
 * BOs of an image with the same inode share their memory in any case. Without
 * an element for it, the BO that the memory was allocated for allocates it
 * again. No two elements have the same inode (EEXIST), and an element that no
 * BO of the image uses is refused (EINVAL).
 */
struct kfd_criu_shared_memory {
	__u64 inode;
	__s32 dmabuf_fd;
	__u32 reserved;
};

/**
 * struct kfd_criu_probe - what the kernel supports
 * @size: Bytes of this structure that the kernel has filled in.
 * @args_size: Bytes of struct kfd_criu_args that the kernel knows.
 * @ops: Bit i is set if operation KFD_CRIU_CMD_PROBE + i is supported.
 * @restore_flags: Flags of RESTORE that the kernel knows.
 * @resume_flags: Flags of RESUME that the kernel knows.
 * @minor_version: KFD_CRIU_MINOR_VERSION of the kernel.
 * @reserved: 0.
 * @record_versions: Newest version of each record type that the kernel reads
 *	and writes, indexed by KFD_CRIU_RECORD_*; 0: the type is unknown.
 * @pause_flags: Flags of PAUSE that the kernel knows.
 */
struct kfd_criu_probe {
	__u32 size;
	__u32 args_size;
	__u64 ops;
	__u64 restore_flags;
	__u64 resume_flags;
	__u32 minor_version;
	__u32 reserved;
	__u16 record_versions[32];
	__u64 pause_flags;
};

/**
 * DOC: Objects of render nodes
 *
 * A program can create GEM objects, mappings, contexts, BO lists and sync objects
 * in the file of a render node whose VM amdkfd uses. HIP's virtual memory
 * management allocates a BO with AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, imports its
 * DMA-buf into the render node, and maps it there with DRM_AMDGPU_GEM_VA.
 *
 * A caller that passes KFD_CRIU_PAUSE_DRM_OBJECTS lists these objects in every
 * such file and saves them itself:
 *
 *  - A GEM handle is one of a BO if the DMA-buf that DRM_IOCTL_PRIME_HANDLE_TO_FD
 *    returns for it has the &kfd_criu_record_bo.inode of the BO.
 *  - The mappings that the render node lists for such a handle include those that
 *    amdkfd has created, which RESTORE creates again. On each GPU that the record
 *    names, a BO has one at &kfd_criu_record_bo.va, with offset 0 and the size of
 *    the memory; with KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM there is a second one
 *    directly behind it. All others are the program's.
 *
 * With the flag, PAUSE and CHECKPOINT still refuse (KFD_CRIU_REASON_GEM_MAPPING)
 * a process with a mapping that no list shows, because it is of a BO that has no
 * GEM handle any more, and one that has unmapped or replaced a mapping that
 * amdkfd has created. They do not look for files of render nodes that only
 * amdkfd has open any more; the caller must know the file of every GPU of the
 * image with KFD_CRIU_DEVICE_ACQUIRED.
 *
 * Between RESTORE and RESUME the restored process can import a DMA-buf from
 * EXPORT_BO into the render node of &kfd_criu_gpu.drm_fd, for example with
 * DRM_IOCTL_PRIME_FD_TO_HANDLE_AT, create other objects there, and map them.
 */

/**
 * DOC: Images
 *
 * An image is a sequence of records. Each record begins with its type, the
 * version of its contents, a flag that says whether a reader may skip it if
 * it does not know it, and its length. So an older kernel can restore an
 * image of a newer one that has no required record of a new type or version.
 *
 * An image contains no address of the kernel or the GART, and no structure
 * whose size a kernel may change. @gpu_id, @mmap_offset and @inode are those of
 * the machine that wrote it.
 */

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
 * @fixed_size: Bytes of this header and of the members behind it; a multiple of
 *	8. The payload begins there, in records that have one.
 * @reserved: Must be 0.
 * @size: Bytes of the record including payload and padding; a multiple of 8.
 *
 * A record grows by appended members, in front of its payload. A reader that
 * knows fewer members than the writer requires the rest to be 0, or refuses
 * the image with EPROTONOSUPPORT, and a reader that knows more reads 0 for
 * those that are missing. A change that older readers must not overlook has a
 * new @version.
 *
 * All numbers of an image are little-endian, and all padding is 0.
 */
struct kfd_criu_record {
	__le32 type;
	__le16 version;
	__le16 flags;
	__le32 fixed_size;
	__le32 reserved;
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
#define KFD_CRIU_PROCESS_RUNTIME	0x2	/* called AMDKFD_IOC_RUNTIME_ENABLE */
#define KFD_CRIU_PROCESS_TTMP		0x4	/* and asked for trap temporaries */

/**
 * struct kfd_criu_record_device - a GPU of the process
 * @record: Header, version 1.
 * @user_gpu_id: Id by which the program knows the GPU.
 * @gpu_id: Id of the GPU on the machine that wrote the image, as in sysfs. A
 *	checkpointer finds the GPU by it; RESTORE does not look at it.
 * @gfx_target_version: major * 10000 + minor * 100 + stepping. Compared at
 *	restore.
 * @num_xcc: Number of XCCs that execute a compute queue together. Compared at
 *	restore.
 * @xcc_mask: Physical XCCs of the GPU. For information only.
 * @cwsr_size: Bytes of a compute queue's context save area for one XCC; 0: no
 *	context save. Compared at restore.
 * @ctl_stack_size: Bytes of @cwsr_size used by the control stack. Compared at
 *	restore.
 * @mqd_layout: KFD_CRIU_MQD_* of compute queues. Compared at restore.
 * @sdma_mqd_layout: KFD_CRIU_MQD_* of SDMA queues. Compared at restore.
 * @flags: KFD_CRIU_DEVICE_*
 * @mec_firmware: Version of the MEC firmware. For information only.
 * @sdma_firmware: Version of the SDMA firmware. For information only.
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
	__le32 gpu_id;
	__le32 gfx_target_version;
	__le32 num_xcc;
	__le32 xcc_mask;
	__le32 cwsr_size;
	__le32 ctl_stack_size;
	__le32 mqd_layout;
	__le32 sdma_mqd_layout;
	__le32 flags;
	__le32 mec_firmware;
	__le32 sdma_firmware;
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
 * @inode: Inode number of the memory's DMA-buf, as fstat() reports it for a
 *	descriptor of it, such as from EXPORT_BO or DRM_IOCTL_PRIME_HANDLE_TO_FD.
 *	Equal for all BOs, GEM handles and descriptors of the same memory, in all
 *	processes, as long as one of them exists. 0: the memory cannot be shared.
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
 * After a restore BOs with the same inode share their memory again. Within a
 * process the BO that the memory was allocated for allocates it. For BOs of
 * several processes the memory is passed to the later ones in struct
 * kfd_criu_shared_memory.
 */
struct kfd_criu_record_bo {
	struct kfd_criu_record record;
	__le64 va;
	__le64 size;
	__le64 user_addr;
	__le64 mmap_offset;
	__le64 inode;
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
 * @num_xcc: Number of XCCs that execute the queue.
 * @mqd_layout: KFD_CRIU_MQD_*: which registers the words of the MQD are.
 * @num_words: Number of words (__le32) for each XCC, a multiple of 2.
 * @ctl_stack_size: Bytes of each control stack; 0 where it is part of the save
 *	area.
 * @reserved: Must be 0.
 *
 * @num_xcc times @num_words words follow the structure, then @num_xcc control
 * stacks. The words of an XCC are a sequence of struct kfd_criu_mqd_words; if
 * they would be odd in number, a word 0 follows.
 *
 * The words are those that the hardware wrote while the queue ran. Everything
 * else in an MQD is set by the kernel that restores the queue.
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
	__le32 mqd_layout;
	__le32 num_words;
	__le32 ctl_stack_size;
	__le32 reserved;
};

/**
 * struct kfd_criu_mqd_words - consecutive words of an MQD
 * @first: Index of the first word in the structure that the layout names.
 * @count: Number of words; not 0.
 *
 * @count words (__le32) follow the structure. The runs of an XCC are in the
 * order of @first and do not overlap. A bit that the driver sets, and not the
 * hardware, is 0. RESTORE refuses a word that the hardware does not write.
 */
struct kfd_criu_mqd_words {
	__le16 first;
	__le16 count;
};

/*
 * Layouts of MQDs, each named after the structure in
 * drivers/gpu/drm/amd/include/ whose words have its indices.
 */
#define KFD_CRIU_MQD_CIK	1	/* cik_mqd */
#define KFD_CRIU_MQD_VI		2	/* vi_mqd */
#define KFD_CRIU_MQD_V9		3	/* v9_mqd */
#define KFD_CRIU_MQD_V10	4	/* v10_compute_mqd */
#define KFD_CRIU_MQD_V11	5	/* v11_compute_mqd */
#define KFD_CRIU_MQD_V12	6	/* v12_compute_mqd */
#define KFD_CRIU_MQD_CIK_SDMA	65	/* cik_sdma_rlc_registers */
#define KFD_CRIU_MQD_VI_SDMA	66	/* vi_sdma_mqd */
#define KFD_CRIU_MQD_V9_SDMA	67	/* v9_sdma_mqd */
#define KFD_CRIU_MQD_V10_SDMA	68	/* v10_sdma_mqd */
#define KFD_CRIU_MQD_V11_SDMA	69	/* v11_sdma_mqd */
#define KFD_CRIU_MQD_V12_SDMA	70	/* v12_sdma_mqd */

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
