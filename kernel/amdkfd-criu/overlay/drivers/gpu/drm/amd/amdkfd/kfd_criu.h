/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Checkpoint and restore of amdkfd processes: what its files tell each other and
 * the rest of the driver. Objects are described here as the driver sees them;
 * how an image writes them down is the business of kfd_criu_v1_*.c.
 */
#ifndef KFD_CRIU_H_INCLUDED
#define KFD_CRIU_H_INCLUDED

#include <linux/sched/signal.h>
#include "kfd_priv.h"

struct dma_buf;
struct kfd_criu_memories;
struct kfd_criu_v2_args;
struct kgd_mem;
struct mm_struct;
struct mqd_manager;
struct vm_area_struct;

#define KFD_CRIU_OPS	(KFD_CRIU_OP_RESUME + 1)

/**
 * struct kfd_criu_process - what a process has asked of the driver as a whole
 * @xnack: its GPUs retry faults
 * @runtime: AMDKFD_IOC_RUNTIME_ENABLE
 * @ttmp: with trap temporaries
 * @r_debug: what it was told with that
 */
struct kfd_criu_process {
	bool xnack;
	bool runtime;
	bool ttmp;
	u64 r_debug;
};

/**
 * struct kfd_criu_device_compat - what of a device must be the same elsewhere; compared as
 *	bytes
 * @gfx_target_version: major * 10000 + minor * 100 + stepping
 * @num_xcc: that work on a queue together
 * @cwsr_size: bytes of a compute queue's save area, of one XCC
 * @ctl_stack_size: of them, of the control stack
 * @mqd_size: bytes of a compute queue's MQD
 * @sdma_mqd_size: of an SDMA queue's
 */
struct kfd_criu_device_compat {
	u32 gfx_target_version;
	u32 num_xcc;
	u32 cwsr_size;
	u32 ctl_stack_size;
	u32 mqd_size;
	u32 sdma_mqd_size;
};

/**
 * struct kfd_criu_settings - what a process has set on a device
 * @tba: its trap handler; 0: none
 * @tma: memory of that
 * @scratch: AMDKFD_IOC_SET_SCRATCH_BACKING_VA
 * @policy: of its memory
 */
struct kfd_criu_settings {
	u64 tba;
	u64 tma;
	u64 scratch;
	struct kfd_memory_policy policy;
};

/**
 * struct kfd_criu_device - a device of an image and what takes its place
 * @user_gpu_id: as the program knows it
 * @gpu_id: the device of this machine
 */
struct kfd_criu_device {
	u32 user_gpu_id;
	u32 gpu_id;
};

/**
 * struct kfd_criu_bo - a BO
 * @gpu_id: the device, as the program knows it
 * @handle: as the program knows it, on that device
 * @flags: KFD_IOC_ALLOC_MEM_FLAGS_*
 * @va: in the GPUs' address spaces
 * @size: bytes; a BO that is mapped twice in a row covers twice as much from @va
 * @user_addr: of user memory
 * @mmap_offset: on this machine
 * @identity: of the memory, in an image that tells
 * @imported: the memory is another BO's, of this process or another one
 * @mapped: to which devices of the process, in their order
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
	u64 identity;
	DECLARE_BITMAP(mapped, MAX_GPU_INSTANCE);
};

/**
 * struct kfd_criu_mqd - the MQDs of a queue, one for each XCC
 * @n_xcc: so many
 * @mqd_size: bytes of each
 * @ctl_stack_size: bytes of each one's control stack; 0 where the stack is part
 *	of the save area
 * @data: all MQDs, and behind them all control stacks; for kvfree()
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

/**
 * struct kfd_criu_queue - a queue, off the hardware
 * @gpu_id: the device, as the program knows it
 * @queue_id: as the program knows it
 * @doorbell_id: place in the process's doorbells
 * @sdma_id: of SDMA queues
 * @gws: it has the global wave sync
 * @qp: what was asked for when it was created or updated; the rest is 0
 * @mqd: what the hardware knows
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
 * @id: as the program knows it
 * @type: KFD_EVENT_TYPE_*
 * @auto_reset: as it was asked for
 * @signaled: nobody has waited for it since
 * @age: as waiters compare it; 0: nobody knows
 * @memory_exception: of KFD_EVENT_TYPE_MEMORY
 * @hw_exception: of KFD_EVENT_TYPE_HW_EXCEPTION
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
 * @npages: its length
 * @preferred_loc: GPU as the program knows it, or KFD_IOCTL_SVM_LOCATION_*
 * @prefetch_loc: likewise
 * @flags: KFD_IOCTL_SVM_FLAG_*
 * @granularity: of migrations, log2 of pages
 * @access: of the process's devices, in their order: enum kfd_criu_svm_access
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

/* Whether to go on with what an image asks for, which may be a lot: 0 or -EINTR. */
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
int kfd_criu_session_check(const struct kfd_process *p, enum kfd_criu_op op);
int kfd_criu_pause(struct kfd_process *p, u32 *pid,
		   int (*measure)(struct kfd_process *p, void *args), void *args);
int kfd_criu_unpause(struct kfd_process *p);
int kfd_criu_check_restore(const struct kfd_process *p);
int kfd_criu_begin_restore(struct kfd_process *p);
void kfd_criu_end_restore(struct kfd_process *p, bool failed);
int kfd_criu_abort(struct kfd_process *p);
int kfd_criu_resume(struct kfd_process *p, unsigned int limit_ms);
int kfd_criu_resume_pid(u32 number, u32 *state);

/* kfd_criu_process.c */
void kfd_criu_process_describe(const struct kfd_process *p,
			       struct kfd_criu_process *cp);
int kfd_criu_process_restore(struct kfd_process *p,
			     const struct kfd_criu_process *cp);
int kfd_criu_device_compat_describe(const struct kfd_node *node,
				    struct kfd_criu_device_compat *compat);
int kfd_criu_device_compat_check(u32 gpu_id,
				 const struct kfd_criu_device_compat *compat);
void kfd_criu_settings_describe(const struct kfd_process_device *pdd,
				struct kfd_criu_settings *cs);
int kfd_criu_settings_restore(struct kfd_process *p, u32 user_gpu_id,
			      const struct kfd_criu_settings *cs);
int kfd_criu_xnack_restore(struct kfd_process *p, bool enabled);
int kfd_criu_device_restore(struct kfd_process *p,
			    const struct kfd_criu_device *cd, int drm_fd);
int kfd_criu_device_set_user_gpu_id(struct kfd_process *p,
				    const struct kfd_criu_device *cd);
int kfd_criu_finish_devices(struct kfd_process *p);

/* kfd_criu_bo.c */
u32 kfd_criu_bo_count(const struct kfd_process *p);
bool kfd_criu_bo_has_contents(u32 flags);
u64 kfd_criu_bo_identity(const struct kgd_mem *mem);
int kfd_criu_bo_describe(const struct kfd_process_device *pdd, u32 handle,
			 struct kgd_mem *mem, struct kfd_criu_bo *cb);
int kfd_criu_bo_export(struct kgd_mem *mem, struct file **file);
struct kfd_criu_memories *kfd_criu_memories_create(void);
int kfd_criu_memories_add(struct kfd_criu_memories *memories, u64 identity,
			  struct dma_buf *dmabuf);
void kfd_criu_memories_destroy(struct kfd_criu_memories *memories);
int kfd_criu_bo_restore(struct kfd_process *p, struct kfd_criu_bo *cb,
			struct kfd_criu_memories *memories,
			struct kgd_mem **bo);
void kfd_criu_bo_sync_all(struct kfd_process *p);
void kfd_criu_bo_destroy_all(struct kfd_process *p);

/* kfd_criu_buffers.c */
struct mm_struct *kfd_criu_get_mm(const struct kfd_process *p);
int kfd_criu_queue_acquire_buffers(struct kfd_process_device *pdd,
				   struct queue_properties *qp);
void kfd_criu_queue_release_buffers(struct kfd_process_device *pdd,
				    struct queue_properties *qp);
int kfd_criu_queue_acquire_deferred(struct kfd_process *p);

/* kfd_criu_event.c */
u32 kfd_criu_event_count(struct kfd_process *p);
int kfd_criu_event_drain_interrupts(struct kfd_process *p);
int kfd_criu_event_save(struct kfd_process *p, struct kfd_criu_event **events,
			u32 *n);
int kfd_criu_event_restore(struct kfd_process *p,
			   const struct kfd_criu_event *ce);
void kfd_criu_event_destroy_all(struct kfd_process *p);

/* kfd_criu_mqd.c */
int kfd_criu_mqd_describe(const struct kfd_node *node,
			  const struct queue_properties *qp,
			  struct kfd_criu_mqd *mqd);
int kfd_criu_mqd_save(const struct queue *q, struct kfd_criu_mqd *mqd);
int kfd_criu_mqd_check(const struct kfd_node *node,
		       const struct queue_properties *qp,
		       const struct kfd_criu_mqd *mqd);
void kfd_criu_mqd_restore(struct mqd_manager *mm, struct queue *q,
			  const struct kfd_criu_mqd *mqd);
void kfd_criu_mqd_merge(struct queue *q, const struct kfd_criu_mqd *mqd);
u32 kfd_criu_mqd_target_xcc(const struct kfd_node *node,
			    const struct queue_properties *qp,
			    const struct kfd_criu_mqd *mqd);

/* kfd_criu_queue.c */
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

/* kfd_criu_svm.c */
#if IS_ENABLED(CONFIG_HSA_AMD_SVM)
u32 kfd_criu_svm_count(struct kfd_process *p);
int kfd_criu_svm_save(struct kfd_process *p, struct kfd_criu_svm **ranges,
		      u32 n);
int kfd_criu_svm_add_access(struct kfd_process *p, struct kfd_criu_svm *cs,
			    u32 gpu_id, enum kfd_criu_svm_access access);
int kfd_criu_svm_stage(struct kfd_process *p, const struct kfd_criu_svm *cs);
void kfd_criu_svm_drop_staged(struct kfd_process *p);
int kfd_criu_svm_resume(struct kfd_process *p);
#else
static inline u32 kfd_criu_svm_count(struct kfd_process *p)
{
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

static inline int kfd_criu_svm_resume(struct kfd_process *p)
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
int kfd_criu_v2_check(const struct kfd_criu_v2_args *args);
int kfd_criu_v2_ioctl(struct kfd_process *p, struct kfd_criu_v2_args *args);

/* kfd_criu.c */
int kfd_criu_validate(void *args, unsigned int size);
int kfd_criu_ioctl(struct file *filep, struct kfd_process *p, void *data);

#endif /* KFD_CRIU_H_INCLUDED */
