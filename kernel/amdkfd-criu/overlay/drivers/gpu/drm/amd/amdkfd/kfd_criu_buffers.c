// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Buffers on which a restored queue holds references. They are acquired in two
 * steps, because a restored process has its BOs when its queues are created,
 * but its SVM ranges only when it is resumed.
 *
 * Locks: the callers hold p->mutex.
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include "kfd_criu.h"
#include "kfd_device_queue_manager.h"
#include "kfd_priv.h"
#include "kfd_topology.h"
#include "amdgpu_amdkfd.h"

#define KFD_CRIU_GFX9	90000

static void kfd_criu_queue_put_bos(struct queue_properties *qp)
{
	kfd_queue_buffer_put(&qp->wptr_bo);
	kfd_queue_buffer_put(&qp->rptr_bo);
	kfd_queue_buffer_put(&qp->ring_bo);
	kfd_queue_buffer_put(&qp->eop_buf_bo);
	kfd_queue_buffer_put(&qp->cwsr_bo);
}

/*
 * On gfx7 and gfx8 an AQL ring is mapped twice in a row, so its memory has half
 * the size.
 */
static u64 kfd_criu_ring_mapping_size(const struct queue_properties *qp,
				      const struct kfd_node_properties *node)
{
	if (qp->type == KFD_QUEUE_TYPE_COMPUTE &&
	    qp->format == KFD_QUEUE_FORMAT_AQL &&
	    node->gfx_target_version < KFD_CRIU_GFX9)
		return qp->queue_size / 2;
	return qp->queue_size;
}

static int kfd_criu_cwsr_mapping_size(struct kfd_process_device *pdd,
				      const struct queue_properties *qp,
				      const struct kfd_node_properties *node,
				      u64 *size)
{
	u64 per_xcc = (u64)qp->ctx_save_restore_area_size +
		      node->debug_memory_size;

	if (check_mul_overflow(per_xcc, (u64)NUM_XCC(pdd->dev->xcc_mask), size))
		return -EINVAL;
	*size = ALIGN(*size, PAGE_SIZE);
	return 0;
}

/*
 * The image has no control stack size where the stack is part of the save area,
 * or where the device saves no waves. Then the device's size is used.
 */
static int kfd_criu_queue_check_sizes(struct queue_properties *qp,
				      const struct kfd_node_properties *node)
{
	if (!qp->ctl_stack_size)
		qp->ctl_stack_size = node->ctl_stack_size;
	if (qp->ctl_stack_size != node->ctl_stack_size ||
	    qp->ctx_save_restore_area_size < node->cwsr_size)
		return -EINVAL;
	if (qp->eop_ring_buffer_address &&
	    qp->eop_ring_buffer_size < node->eop_buffer_size)
		return -EINVAL;
	return 0;
}

static int
kfd_criu_queue_acquire_compute_bos(struct kfd_process_device *pdd,
				   struct amdgpu_vm *vm,
				   struct queue_properties *qp,
				   const struct kfd_node_properties *node)
{
	u64 size;
	int r;

	r = kfd_criu_queue_check_sizes(qp, node);
	if (r)
		return r;
	if (qp->eop_ring_buffer_address) {
		r = kfd_queue_buffer_get(vm, (void *)qp->eop_ring_buffer_address,
					 &qp->eop_buf_bo,
					 ALIGN((u64)qp->eop_ring_buffer_size,
					       PAGE_SIZE));
		if (r)
			return r;
	}
	r = kfd_criu_cwsr_mapping_size(pdd, qp, node, &size);
	if (r)
		return r;
	/*
	 * If this is not a BO it must be an SVM range, see
	 * kfd_criu_queue_acquire_deferred().
	 */
	kfd_queue_buffer_get(vm, (void *)qp->ctx_save_restore_area_address,
			     &qp->cwsr_bo, size);
	return 0;
}

static int kfd_criu_queue_acquire_bos(struct kfd_process_device *pdd,
				      struct amdgpu_vm *vm,
				      struct queue_properties *qp,
				      const struct kfd_node_properties *node)
{
	int r;

	r = kfd_queue_buffer_get(vm, qp->write_ptr, &qp->wptr_bo, PAGE_SIZE);
	if (r)
		return r;
	r = kfd_queue_buffer_get(vm, qp->read_ptr, &qp->rptr_bo, PAGE_SIZE);
	if (r)
		return r;
	/* AMDKFD_IOC_UPDATE_QUEUE can remove the ring of a queue. */
	if (qp->queue_address) {
		r = kfd_queue_buffer_get(vm, (void *)qp->queue_address,
					 &qp->ring_bo,
					 kfd_criu_ring_mapping_size(qp, node));
		if (r)
			return r;
	}
	if (qp->type == KFD_QUEUE_TYPE_COMPUTE)
		return kfd_criu_queue_acquire_compute_bos(pdd, vm, qp, node);
	return 0;
}

/* The caller has reserved the root page directory. */
static void kfd_criu_queue_release_bos(struct amdgpu_vm *vm,
				       struct queue_properties *qp)
{
	kfd_queue_unref_bo_va(vm, &qp->wptr_bo);
	kfd_queue_unref_bo_va(vm, &qp->rptr_bo);
	kfd_queue_unref_bo_va(vm, &qp->ring_bo);
	kfd_queue_unref_bo_va(vm, &qp->eop_buf_bo);
	kfd_queue_unref_bo_va(vm, &qp->cwsr_bo);
	kfd_criu_queue_put_bos(qp);
}

/**
 * kfd_criu_queue_release_buffers - release what
 * kfd_criu_queue_acquire_buffers() acquired
 * @pdd: process on the queue's device
 * @qp: properties of the queue
 */
void kfd_criu_queue_release_buffers(struct kfd_process_device *pdd,
				    struct queue_properties *qp)
{
	struct amdgpu_vm *vm = drm_priv_to_vm(pdd->drm_priv);

	/*
	 * Waits without being interruptible, because a buffer with a queue
	 * reference is never freed.
	 */
	if (WARN_ON(amdgpu_bo_reserve(vm->root.bo, true)))
		return;
	kfd_criu_queue_release_bos(vm, qp);
	amdgpu_bo_unreserve(vm->root.bo);
}

/**
 * kfd_criu_queue_acquire_buffers - acquire the BOs of a queue being restored
 * @pdd: process on the queue's device; the process's BOs are mapped in its VM
 * @qp: validated properties from the image; sizes that the image does not have
 *	are set
 *
 * This is the first of two steps. A context save area that is not a BO is left
 * to kfd_criu_queue_acquire_deferred().
 *
 * Return: 0; -EINVAL if a buffer is missing or a size does not fit the device.
 * On failure no reference is held.
 */
int kfd_criu_queue_acquire_buffers(struct kfd_process_device *pdd,
				   struct queue_properties *qp)
{
	struct kfd_topology_device *topo = kfd_topology_device_by_id(pdd->dev->id);
	struct amdgpu_vm *vm;
	int r;

	if (!topo || !pdd->drm_priv)
		return -EINVAL;
	vm = drm_priv_to_vm(pdd->drm_priv);
	r = amdgpu_bo_reserve(vm->root.bo, false);
	if (r)
		return r;
	r = kfd_criu_queue_acquire_bos(pdd, vm, qp, &topo->node_props);
	if (r)
		kfd_criu_queue_release_bos(vm, qp);
	amdgpu_bo_unreserve(vm->root.bo);
	return r;
}

/**
 * kfd_criu_get_mm - get the mm of a process
 * @p: the process
 *
 * Return: the mm, from any thread that has not exited, for mmput_async() (a
 * plain mmput() could free it under p->mutex). NULL if all threads have exited
 * or use another mm since exec, which is not the mm that the driver's notifiers
 * and page tables belong to.
 */
struct mm_struct *kfd_criu_get_mm(const struct kfd_process *p)
{
	struct mm_struct *mm = NULL;
	struct task_struct *thread;

	rcu_read_lock();
	for_each_thread(p->lead_thread, thread) {
		mm = get_task_mm(thread);
		if (mm == READ_ONCE(p->mm))
			break;
		if (mm)
			mmput_async(mm);
		mm = NULL;
	}
	rcu_read_unlock();
	return mm;
}

/**
 * kfd_criu_has_ended - whether nobody needs the result of an operation any more
 * @p: the process
 * @mm: its mm, to which the operation has one reference
 *
 * Return: whether the process has given up @mm, or all of its threads are about
 * to exit. Its first thread alone may have exited before the others.
 */
bool kfd_criu_has_ended(const struct kfd_process *p, const struct mm_struct *mm)
{
	return atomic_read(&mm->mm_users) == 1 ||
	       READ_ONCE(p->lead_thread->signal->flags) & SIGNAL_GROUP_EXIT;
}

/*
 * Without a hardware scheduler the driver loads queues itself, and reads the
 * write pointer from user memory only if the page is present.
 */
static bool kfd_criu_queue_needs_wptr(const struct process_queue_node *pqn)
{
	return pqn->q &&
	       pqn->q->device->dqm->sched_policy == KFD_SCHED_POLICY_NO_HWS;
}

/* Whether kfd_criu_queue_fault_in_wptrs() has something to do. */
static bool kfd_criu_queue_needs_wptrs(const struct kfd_process *p)
{
	const struct process_queue_node *pqn;

	list_for_each_entry(pqn, &p->pqm.queues, process_queue_list)
		if (kfd_criu_queue_needs_wptr(pqn))
			return true;
	return false;
}

/**
 * kfd_criu_queue_fault_in_wptrs - fault in the write pointers of all queues
 * @p: process in the state RESUMING, so that its queues stay; its mutex is not
 *	held, because faults may take long
 * @mm: its mm
 *
 * After a restore the page of a write pointer is not present. If it cannot be
 * faulted in, the queue starts late, at its next doorbell.
 */
void kfd_criu_queue_fault_in_wptrs(struct kfd_process *p, struct mm_struct *mm)
{
	struct process_queue_node *pqn;

	/* The program decides how long its mmap lock is held. */
	if (!kfd_criu_queue_needs_wptrs(p))
		return;
	if (mmap_read_lock_killable(mm))
		return;
	list_for_each_entry(pqn, &p->pqm.queues, process_queue_list) {
		bool unlocked;

		if (!kfd_criu_queue_needs_wptr(pqn))
			continue;
		fixup_user_fault(mm, (unsigned long)
				 pqn->q->properties.write_ptr, 0, &unlocked);
	}
	mmap_read_unlock(mm);
}

/**
 * kfd_criu_queue_acquire_deferred - acquire queue buffers that are user memory
 * @p: process being resumed; its memory is in place and its SVM ranges are
 *	registered
 *
 * This is the second of two steps: context save areas in SVM ranges. No queue may
 * run before it.
 *
 * Return: 0; -EINVAL if the save area of a queue is neither a BO nor an SVM
 * range that is always mapped to the queue's device.
 */
int kfd_criu_queue_acquire_deferred(struct kfd_process *p)
{
	struct process_queue_node *pqn;
	int r;

	list_for_each_entry(pqn, &p->pqm.queues, process_queue_list) {
		struct kfd_topology_device *topo;
		struct kfd_process_device *pdd;
		struct queue_properties *qp;
		u64 size;

		if (!pqn->q)
			continue;
		qp = &pqn->q->properties;
		if (qp->type != KFD_QUEUE_TYPE_COMPUTE || qp->cwsr_bo)
			continue;
		topo = kfd_topology_device_by_id(pqn->q->device->id);
		pdd = kfd_get_process_device_data(pqn->q->device, p);
		if (!topo || !pdd)
			return -EINVAL;
		r = kfd_criu_cwsr_mapping_size(pdd, qp, &topo->node_props,
					       &size);
		if (r)
			return r;
		r = kfd_queue_buffer_svm_get(pdd,
					     qp->ctx_save_restore_area_address,
					     size);
		if (r)
			return r;
	}
	return 0;
}
