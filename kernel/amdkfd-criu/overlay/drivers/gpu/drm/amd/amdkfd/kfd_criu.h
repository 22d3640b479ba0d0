/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Checkpoint and restore of amdkfd processes: what the kfd_criu*.c files
 * declare for each other and for the rest of the driver. The structures
 * describe objects as the driver sees them; how an image encodes them is known
 * only to kfd_criu_v1*.c and kfd_criu_v2*.c.
 */
#ifndef KFD_CRIU_H_INCLUDED
#define KFD_CRIU_H_INCLUDED

#include <linux/sched/signal.h>
#include "kfd_priv.h"

struct amdgpu_fpriv;
struct dma_buf;
struct file;
struct kfd_criu_memories;
struct kfd_criu_args;
struct kgd_mem;
struct mm_struct;
struct mqd_manager;
struct vm_area_struct;

#define KFD_CRIU_OPS	(KFD_CRIU_OP_RESUME + 1)

/**
 * struct kfd_criu_process - state of a process that belongs to no single device
 * @xnack: XNACK is enabled, so its GPUs retry page faults
 * @runtime: the program has called AMDKFD_IOC_RUNTIME_ENABLE
 * @ttmp: AMDKFD_IOC_RUNTIME_ENABLE asked for trap temporaries
 *	(KFD_RUNTIME_ENABLE_MODE_TTMP_SAVE_MASK)
 * @r_debug: the debugger's r_debug address from AMDKFD_IOC_RUNTIME_ENABLE; 0 if
 *	the program has not called it
 */
struct kfd_criu_process {
	bool xnack;
	bool runtime;
	bool ttmp;
	u64 r_debug;
};

/*
 * Which registers the words of an MQD are: the structure in
 * drivers/gpu/drm/amd/include/ whose words have their indices. The numbers are
 * those of images (KFD_CRIU_MQD_*).
 */
enum kfd_criu_mqd_layout_id {
	KFD_CRIU_LAYOUT_UNKNOWN = 0,
	KFD_CRIU_LAYOUT_CIK = 1,
	KFD_CRIU_LAYOUT_VI = 2,
	KFD_CRIU_LAYOUT_V9 = 3,
	KFD_CRIU_LAYOUT_V10 = 4,
	KFD_CRIU_LAYOUT_V11 = 5,
	KFD_CRIU_LAYOUT_V12 = 6,
	KFD_CRIU_LAYOUT_CIK_SDMA = 65,
	KFD_CRIU_LAYOUT_VI_SDMA = 66,
	KFD_CRIU_LAYOUT_V9_SDMA = 67,
	KFD_CRIU_LAYOUT_V10_SDMA = 68,
	KFD_CRIU_LAYOUT_V11_SDMA = 69,
	KFD_CRIU_LAYOUT_V12_SDMA = 70,
};

/**
 * struct kfd_criu_device_compat - properties of a device that must be equal at
 * restore
 * @gfx_target_version: major * 10000 + minor * 100 + stepping
 * @num_xcc: number of XCCs that execute a compute queue together
 * @cwsr_size: bytes of a compute queue's context save area for one XCC; 0: no
 *	CWSR
 * @ctl_stack_size: bytes of @cwsr_size used by the control stack
 * @mqd_layout: enum kfd_criu_mqd_layout_id of compute queues
 * @sdma_mqd_layout: enum kfd_criu_mqd_layout_id of SDMA queues
 *
 * kfd_criu_device_compat_check() compares two of them with memcmp(), so there
 * must be no padding.
 */
struct kfd_criu_device_compat {
	u32 gfx_target_version;
	u32 num_xcc;
	u32 cwsr_size;
	u32 ctl_stack_size;
	u32 mqd_layout;
	u32 sdma_mqd_layout;
};

/**
 * struct kfd_criu_settings - what the program has set on one device
 * @tba: address of the program's trap handler (AMDKFD_IOC_SET_TRAP_HANDLER); 0:
 *	none
 * @tma: address of the memory that the trap handler uses; 0: none
 * @scratch: address from AMDKFD_IOC_SET_SCRATCH_BACKING_VA; 0: never set
 * @policy: arguments of AMDKFD_IOC_SET_MEMORY_POLICY, valid if @policy.is_set
 */
struct kfd_criu_settings {
	u64 tba;
	u64 tma;
	u64 scratch;
	struct kfd_memory_policy policy;
};

/**
 * struct kfd_criu_device - which device of this machine replaces a device of an
 * image
 * @user_gpu_id: id by which the program knows the device
 * @gpu_id: id that the driver gave the device of this machine
 */
struct kfd_criu_device {
	u32 user_gpu_id;
	u32 gpu_id;
};

/**
 * struct kfd_criu_bo - a BO, without its contents
 * @gpu_id: id by which the program knows the BO's device
 * @handle: IDR handle of the BO on that device
 * @flags: KFD_IOC_ALLOC_MEM_FLAGS_*
 * @imported: the memory was allocated for another BO, of this process or of
 *	another one
 * @va: address in the GPUs' address spaces
 * @size: bytes of memory; an AQL queue BO that is mapped twice covers twice as
 *	much from @va
 * @user_addr: address of the user memory; 0 unless the BO is a userptr
 * @mmap_offset: offset at which this machine maps the BO; restore writes the
 *	new one
 * @inode: inode number of the memory's DMA-buf, equal for all BOs that share the
 *	memory; 0: not known (version 1), or the memory cannot be shared
 * @mapped: bit i is set if the BO is mapped to device i of the process
 *	(kfd_process.pdds)
 */
struct kfd_criu_bo {
	u32 gpu_id;
	u32 handle;
	u32 flags;
	bool imported;
	u64 va;
	u64 size;
	u64 user_addr;
	u64 mmap_offset;
	u64 inode;
	DECLARE_BITMAP(mapped, MAX_GPU_INSTANCE);
};

/*
 * What RESTORE does with a BO whose memory was allocated for a BO that is not in
 * the image, if the caller does not supply that memory.
 */
enum kfd_criu_missing_memory {
	KFD_CRIU_MISSING_REFUSE,	/* fails with -EREMOTE */
	KFD_CRIU_MISSING_COPY,		/* gives the BO memory of its own */
};

/**
 * struct kfd_criu_mqd - the MQDs of a queue, one for each XCC
 * @n_xcc: number of MQDs
 * @mqd_size: bytes of each MQD
 * @ctl_stack_size: bytes of each control stack; 0 where the stack is part of
 *	the context save area in user memory
 * @data: all MQDs, followed by all control stacks; NULL until saved, freed with
 *	kvfree(). From an image it may contain only the words that are restored;
 *	the others are 0.
 */
struct kfd_criu_mqd {
	u32 n_xcc;
	u32 mqd_size;
	u32 ctl_stack_size;
	void *data;
};

static inline size_t kfd_criu_mqd_bytes(const struct kfd_criu_mqd *mqd)
{
	return (size_t)mqd->n_xcc * (mqd->mqd_size + mqd->ctl_stack_size);
}

static inline void *kfd_criu_mqd_words(const struct kfd_criu_mqd *mqd,
				       unsigned int xcc)
{
	return mqd->data + (size_t)xcc * mqd->mqd_size;
}

static inline void *kfd_criu_mqd_ctl_stack(const struct kfd_criu_mqd *mqd,
					   unsigned int xcc)
{
	return mqd->data + (size_t)mqd->n_xcc * mqd->mqd_size +
	       (size_t)xcc * mqd->ctl_stack_size;
}

/**
 * struct kfd_criu_queue - a queue that is not on the hardware
 * @gpu_id: id by which the program knows the queue's device
 * @queue_id: id by which the program knows the queue
 * @doorbell_id: index of the queue's doorbell among the process's doorbells
 * @sdma_id: index of the SDMA queue on the device; 0 for compute queues
 * @gws: the queue has the device's global wave sync
 * @qp: the properties set by create and update; everything else in it is 0
 * @mqd: what the hardware has written while the queue ran
 */
struct kfd_criu_queue {
	u32 gpu_id;
	u32 queue_id;
	u32 doorbell_id;
	u32 sdma_id;
	bool gws;
	struct queue_properties qp;
	struct kfd_criu_mqd mqd;
};

/**
 * struct kfd_criu_event - an event
 * @id: id by which the program knows the event
 * @type: KFD_EVENT_TYPE_*
 * @auto_reset: a waiter that sees the event signaled resets it
 * @signaled: the event is signaled and no waiter has reset it yet
 * @age: number that waiters compare to find out whether the event was signaled
 *	again; 0: not known (version 1)
 * @memory_exception: details, if @type is KFD_EVENT_TYPE_MEMORY
 * @hw_exception: details, if @type is KFD_EVENT_TYPE_HW_EXCEPTION
 */
struct kfd_criu_event {
	u32 id;
	u32 type;
	bool auto_reset;
	bool signaled;
	u64 age;
	union {
		struct kfd_hsa_memory_exception_data memory_exception;
		struct kfd_hsa_hw_exception_data hw_exception;
	};
};

enum kfd_criu_svm_access {
	KFD_CRIU_SVM_UNKNOWN,
	KFD_CRIU_SVM_NO_ACCESS,
	KFD_CRIU_SVM_ACCESS,
	KFD_CRIU_SVM_IN_PLACE,
};

static inline int kfd_criu_svm_access_from_attr(u32 attribute)
{
	switch (attribute) {
	case KFD_IOCTL_SVM_ATTR_ACCESS:
		return KFD_CRIU_SVM_ACCESS;
	case KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE:
		return KFD_CRIU_SVM_IN_PLACE;
	case KFD_IOCTL_SVM_ATTR_NO_ACCESS:
		return KFD_CRIU_SVM_NO_ACCESS;
	default:
		return -EINVAL;
	}
}

static inline u32 kfd_criu_svm_access_to_attr(enum kfd_criu_svm_access access)
{
	if (access == KFD_CRIU_SVM_ACCESS)
		return KFD_IOCTL_SVM_ATTR_ACCESS;
	if (access == KFD_CRIU_SVM_IN_PLACE)
		return KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE;
	return KFD_IOCTL_SVM_ATTR_NO_ACCESS;
}

/**
 * struct kfd_criu_svm - an SVM range
 * @start: first page
 * @npages: number of pages
 * @preferred_loc: GPU id that the program knows, or KFD_IOCTL_SVM_LOCATION_*
 * @prefetch_loc: GPU id that the program knows, or KFD_IOCTL_SVM_LOCATION_*
 * @flags: KFD_IOCTL_SVM_FLAG_*
 * @granularity: log2 of the number of pages that migrate together
 * @access: enum kfd_criu_svm_access for each device of the process
 *	(kfd_process.pdds)
 */
struct kfd_criu_svm {
	u64 start;
	u64 npages;
	u32 preferred_loc;
	u32 prefetch_loc;
	u32 flags;
	u32 granularity;
	u8 access[MAX_GPU_INSTANCE];
};

/**
 * struct kfd_criu_new_file - file that user space does not have yet
 * @file: the file
 * @fd: its descriptor, reserved
 */
struct kfd_criu_new_file {
	struct file *file;
	int fd;
};

/*
 * Called between the objects of an image, of which user space may ask for a
 * lot: yields the CPU, and returns -EINTR once the caller has been killed.
 */
static inline int kfd_criu_check_killed(void)
{
	cond_resched();
	return fatal_signal_pending(current) ? -EINTR : 0;
}

/* kfd_chardev.c */
int kfd_runtime_enable(struct kfd_process *p, uint64_t r_debug,
		       bool enable_ttmp_setup);
int kfd_set_memory_policy(struct kfd_process_device *pdd,
			  const struct kfd_memory_policy *policy);

/* kfd_criu_session.c; see also kfd_criu_session.h */
int kfd_criu_session_check_restoring(const struct kfd_process *p,
				     enum kfd_criu_op op);
int kfd_criu_lock_until(struct kfd_process *p, unsigned long end);
int kfd_criu_session_check(const struct kfd_process *p, enum kfd_criu_op op,
			   u32 *reason);
u32 kfd_criu_session_pid(const struct kfd_process *p);
u32 kfd_criu_session_reset_reason(const struct kfd_process *p);
struct kfd_process *kfd_criu_find_process(u32 number);

/* kfd_criu_session_pause.c */
int kfd_criu_begin_pause(struct kfd_process *p, bool saves_drm_objects,
			 u32 *reason);
int kfd_criu_end_pause(struct kfd_process *p);
int kfd_criu_owned_pause(struct kfd_process *p, u32 *pid,
			 int (*measure)(struct kfd_process *p, void *args),
			 void *args);
int kfd_criu_check_owned_pause(const struct kfd_process *p);
int kfd_criu_owned_unpause(struct kfd_process *p);

/* kfd_criu_session_restore.c */
int kfd_criu_check_restore(const struct kfd_process *p);
int kfd_criu_begin_restore(struct kfd_process *p);
void kfd_criu_end_restore(struct kfd_process *p, bool failed);
int kfd_criu_abort(struct kfd_process *p);
int kfd_criu_start_resume(struct kfd_process *p, unsigned long end);
int kfd_criu_resume(struct kfd_process *p, unsigned int limit_ms);
int kfd_criu_check_running(struct kfd_process *p);

/* kfd_criu_file.c */
int kfd_criu_file_pause(struct kfd_process *p, struct kfd_criu_new_file *new,
			bool saves_drm_objects, u32 *reason,
			int (*measure)(struct kfd_process *p, void *args),
			void *args);
int kfd_criu_file_resume(struct kfd_process *p, struct kfd_criu_new_file *new);
int kfd_criu_file_publish(const struct kfd_criu_new_file *new);
void kfd_criu_file_undo(const struct kfd_criu_new_file *new);
int kfd_criu_file_get(int fd, const struct kfd_process *p, struct file **file);
bool kfd_criu_file_is_paused(const struct file *file);
bool kfd_criu_file_saves_drm_objects(const struct file *file);
int kfd_criu_file_unpause(struct kfd_process *p, struct file *file);

/* kfd_criu_process.c */
void kfd_criu_process_describe(const struct kfd_process *p,
			       struct kfd_criu_process *cp);
int kfd_criu_process_restore(struct kfd_process *p,
			     const struct kfd_criu_process *cp);
bool kfd_criu_process_is_untouched(struct kfd_process *p);
void kfd_criu_process_save_gpu_ids(struct kfd_process *p);
void kfd_criu_process_restore_gpu_ids(struct kfd_process *p);
int kfd_criu_device_compat_describe(const struct kfd_node *node,
				    struct kfd_criu_device_compat *compat);
int kfd_criu_device_compat_check(u32 gpu_id,
				 const struct kfd_criu_device_compat *compat);
void kfd_criu_settings_describe(const struct kfd_process_device *pdd,
				struct kfd_criu_settings *cs);
int kfd_criu_settings_restore(struct kfd_process *p, u32 user_gpu_id,
			      const struct kfd_criu_settings *cs);
int kfd_criu_xnack_restore(struct kfd_process *p, bool enabled);
bool kfd_criu_node_has_vm(const struct kfd_node *node,
			  const struct amdgpu_fpriv *fpriv);
int kfd_criu_device_check(const struct kfd_criu_device *cd,
			  struct file *drm_file);
int kfd_criu_device_restore(struct kfd_process *p,
			    const struct kfd_criu_device *cd,
			    struct file *drm_file);
int kfd_criu_device_set_user_gpu_id(struct kfd_process *p,
				    const struct kfd_criu_device *cd);
int kfd_criu_finish_devices(struct kfd_process *p);

/* kfd_criu_bo.c, kfd_criu_process_bos.c */
u32 kfd_criu_bo_count(const struct kfd_process *p);
bool kfd_criu_bo_has_contents(u32 flags);
int kfd_criu_bo_describe(const struct kfd_process_device *pdd, u32 handle,
			 struct kgd_mem *mem, struct kfd_criu_bo *cb);
int kfd_criu_bo_export(struct kgd_mem *mem, struct file **file);
int kfd_criu_bo_get_inode(struct kgd_mem *mem, u64 *inode);
struct kfd_criu_memories *
kfd_criu_memories_create(enum kfd_criu_missing_memory missing);
int kfd_criu_memories_add(struct kfd_criu_memories *memories, u64 inode,
			  struct dma_buf *dmabuf);
int kfd_criu_memories_check_used(const struct kfd_criu_memories *memories);
void kfd_criu_memories_destroy(struct kfd_criu_memories *memories);
int kfd_criu_bo_restore(struct kfd_process *p, struct kfd_criu_bo *cb,
			struct kfd_criu_memories *memories,
			struct kgd_mem **bo);
int kfd_criu_bo_sync_all(struct kfd_process *p);
void kfd_criu_bo_destroy_all(struct kfd_process *p);

/* kfd_criu_drm_file.c */
int kfd_criu_drm_file_check(struct kfd_process *p, bool saves_objects,
			    u32 *reason);

/* kfd_criu_buffers.c */
struct mm_struct *kfd_criu_get_mm(const struct kfd_process *p);
bool kfd_criu_has_ended(const struct kfd_process *p,
			const struct mm_struct *mm);
int kfd_criu_queue_acquire_buffers(struct kfd_process_device *pdd,
				   struct queue_properties *qp);
void kfd_criu_queue_release_buffers(struct kfd_process_device *pdd,
				    struct queue_properties *qp);
int kfd_criu_queue_acquire_deferred(struct kfd_process *p);
void kfd_criu_queue_fault_in_wptrs(struct kfd_process *p, struct mm_struct *mm);

/* kfd_criu_event.c */
bool kfd_criu_event_has_any(struct kfd_process *p);
int kfd_criu_event_count(struct kfd_process *p, u32 *n);
bool kfd_criu_event_type_is_known(u32 type);
int kfd_criu_event_has_unknown_type(struct kfd_process *p);
int kfd_criu_event_drain_interrupts(struct kfd_process *p);
int kfd_criu_event_save(struct kfd_process *p, struct kfd_criu_event **events,
			u32 *n);
int kfd_criu_event_restore(struct kfd_process *p,
			   const struct kfd_criu_event *ce);
void kfd_criu_event_destroy_all(struct kfd_process *p);

/* kfd_criu_mqd.c */
enum kfd_criu_mqd_layout_id
kfd_criu_mqd_layout_id(const struct kfd_node *node, enum kfd_queue_type type);
bool kfd_criu_mqd_is_validated(const struct kfd_node *node,
			       enum kfd_queue_type type);
bool kfd_criu_mqd_get_run(const struct kfd_node *node, enum kfd_queue_type type,
			  unsigned int index, u32 *first, u32 *count);
bool kfd_criu_mqd_get_mask(const struct kfd_node *node,
			   const struct kfd_criu_queue *cq, u32 word,
			   u32 *mask);
int kfd_criu_mqd_describe(const struct kfd_node *node,
			  const struct queue_properties *qp,
			  struct kfd_criu_mqd *mqd);
int kfd_criu_mqd_save(const struct queue *q, struct kfd_criu_mqd *mqd);
int kfd_criu_mqd_check(const struct kfd_node *node,
		       const struct kfd_criu_queue *cq);
void kfd_criu_mqd_restore(struct mqd_manager *mm, struct queue *q,
			  const struct kfd_criu_mqd *mqd);
void kfd_criu_mqd_merge(struct queue *q, const struct kfd_criu_mqd *mqd);
u32 kfd_criu_mqd_target_xcc(const struct kfd_node *node,
			    const struct queue_properties *qp,
			    const struct kfd_criu_mqd *mqd);

/* kfd_criu_queue.c */
bool kfd_criu_queue_has_unknown_type(const struct kfd_process *p);
bool kfd_criu_queue_has_unknown_gpu(const struct kfd_process *p);
u32 kfd_criu_queue_type(const struct queue_properties *qp);
int kfd_criu_queue_set_type(struct queue_properties *qp, u32 type);
int kfd_criu_queue_describe(const struct kfd_process_device *pdd,
			    const struct queue *q, struct kfd_criu_queue *cq);
int kfd_criu_queue_save(const struct queue *q, struct kfd_criu_queue *cq);
void kfd_criu_queue_free(struct kfd_criu_queue *cq);
int kfd_criu_queue_check(const struct kfd_process_device *pdd,
			 const struct kfd_criu_queue *cq);
int kfd_criu_queue_restore(struct kfd_process *p,
			   struct kfd_process_device *pdd,
			   struct kfd_criu_queue *cq);
void kfd_criu_queue_destroy_all(struct kfd_process *p);

/* kfd_criu_svm.c, kfd_criu_svm_register.c */

/* Flags of SVM ranges that this kernel knows. */
#define KFD_CRIU_SVM_FLAGS	(KFD_IOCTL_SVM_FLAG_HOST_ACCESS | \
				 KFD_IOCTL_SVM_FLAG_COHERENT | \
				 KFD_IOCTL_SVM_FLAG_HIVE_LOCAL | \
				 KFD_IOCTL_SVM_FLAG_GPU_RO | \
				 KFD_IOCTL_SVM_FLAG_GPU_EXEC | \
				 KFD_IOCTL_SVM_FLAG_GPU_READ_MOSTLY | \
				 KFD_IOCTL_SVM_FLAG_GPU_ALWAYS_MAPPED | \
				 KFD_IOCTL_SVM_FLAG_EXT_COHERENT)

#if IS_ENABLED(CONFIG_HSA_AMD_SVM)
u32 kfd_criu_svm_count(struct kfd_process *p);
int kfd_criu_svm_count_killable(struct kfd_process *p, u32 *n);
int kfd_criu_svm_save(struct kfd_process *p, struct kfd_criu_svm **ranges,
		      u32 n);
int kfd_criu_svm_add_access(struct kfd_process *p, struct kfd_criu_svm *cs,
			    u32 gpu_id, enum kfd_criu_svm_access access);
int kfd_criu_svm_stage(struct kfd_process *p, const struct kfd_criu_svm *cs);
void kfd_criu_svm_drop_staged(struct kfd_process *p);
int kfd_criu_svm_resume(struct kfd_process *p, struct mm_struct *mm);
#else
static inline u32 kfd_criu_svm_count(struct kfd_process *p)
{
	return 0;
}

static inline int kfd_criu_svm_count_killable(struct kfd_process *p, u32 *n)
{
	*n = 0;
	return 0;
}

static inline int kfd_criu_svm_save(struct kfd_process *p,
				    struct kfd_criu_svm **ranges, u32 n)
{
	*ranges = NULL;
	return 0;
}

static inline int kfd_criu_svm_add_access(struct kfd_process *p,
					  struct kfd_criu_svm *cs, u32 gpu_id,
					  enum kfd_criu_svm_access access)
{
	return -EOPNOTSUPP;
}

static inline int kfd_criu_svm_stage(struct kfd_process *p,
				     const struct kfd_criu_svm *cs)
{
	return -EOPNOTSUPP;
}

static inline void kfd_criu_svm_drop_staged(struct kfd_process *p)
{
}

static inline int kfd_criu_svm_resume(struct kfd_process *p,
				      struct mm_struct *mm)
{
	return 0;
}
#endif

/* kfd_criu_mmap.c */
struct kfd_node *kfd_criu_mmap_device(struct kfd_process *p,
				      struct vm_area_struct *vma);

/* kfd_criu_v1.c, kfd_criu_v1_queue.c, kfd_criu_v1_event.c, kfd_criu_v1_svm.c */
int kfd_criu_v1_ioctl(struct file *filep, struct kfd_process *p, void *data);
int kfd_criu_v1_queue_sizes(struct kfd_process *p, u32 *count, u64 *bytes);
int kfd_criu_v1_checkpoint_queues(struct kfd_process *p, u8 __user *priv,
				  u64 *offset);
int kfd_criu_v1_restore_queue(struct kfd_process *p, const u8 __user *priv,
			      u64 *offset, u64 size);
int kfd_criu_v1_checkpoint_events(struct kfd_process *p, u8 __user *priv,
				  u64 *offset, u64 size);
int kfd_criu_v1_restore_event(struct kfd_process *p, const u8 __user *priv,
			      u64 *offset, u64 size);
u64 kfd_criu_v1_svm_size(u32 num_devices);
int kfd_criu_v1_checkpoint_svm(struct kfd_process *p, u8 __user *priv,
			       u64 *offset, u64 size);
int kfd_criu_v1_stage_svm(struct kfd_process *p, u32 num_devices,
			  const u8 __user *priv, u64 *offset, u64 size);

/* kfd_criu_v2.c */
int kfd_criu_v2_check(const struct kfd_criu_args *args);
int kfd_criu_v2_ioctl(struct kfd_process *p, struct kfd_criu_args *args);

/* kfd_criu.c */
int kfd_criu_validate(void *args, unsigned int size);
int kfd_criu_ioctl(struct file *filep, struct kfd_process *p, void *data);

#endif /* KFD_CRIU_H_INCLUDED */
