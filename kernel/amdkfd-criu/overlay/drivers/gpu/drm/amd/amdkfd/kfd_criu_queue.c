// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Queues at checkpoint and restore. A queue is restored by creating it again
 * with its old ids. The properties in an image are checked like those of a new
 * queue, because an image is as untrusted as ioctl arguments.
 *
 * Locks: the callers hold p->mutex, so no queue is created or destroyed
 * meanwhile.
 */
#include <linux/log2.h>
#include <linux/slab.h>
#include "kfd_criu.h"
#include "kfd_priv.h"
#include "kfd_device_queue_manager.h"

/*
 * CP_HQD_PQ_BASE and the RB_BASE register of SDMA hold addresses in units of
 * 256 bytes.
 */
#define RING_ALIGNMENT	256

static bool kfd_criu_queue_type_supported(enum kfd_queue_type type)
{
	return type == KFD_QUEUE_TYPE_COMPUTE || type == KFD_QUEUE_TYPE_SDMA ||
	       type == KFD_QUEUE_TYPE_SDMA_XGMI;
}

/**
 * kfd_criu_queue_has_unknown_type - look for queues that no image describes
 * @p: the process
 *
 * Return: whether a queue is of a type that cannot be checkpointed.
 */
bool kfd_criu_queue_has_unknown_type(const struct kfd_process *p)
{
	const struct queue *q;
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		list_for_each_entry(q, &p->pdds[i]->qpd.queues_list, list)
			if (!kfd_criu_queue_type_supported(q->properties.type))
				return true;
	return false;
}

/**
 * kfd_criu_queue_has_unknown_gpu - look for queues of unknown generations
 * @p: the process
 *
 * Return: whether a queue is on a device for which it is not known which words
 * of an MQD the hardware writes.
 */
bool kfd_criu_queue_has_unknown_gpu(const struct kfd_process *p)
{
	const struct queue *q;
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		list_for_each_entry(q, &p->pdds[i]->qpd.queues_list, list)
			if (!kfd_criu_mqd_layout_id(p->pdds[i]->dev,
						    q->properties.type))
				return true;
	return false;
}

/**
 * kfd_criu_queue_type - get the type of a queue as AMDKFD_IOC_CREATE_QUEUE
 * names it
 * @qp: properties of a queue that can be checkpointed
 *
 * Return: KFD_IOC_QUEUE_TYPE_*
 */
u32 kfd_criu_queue_type(const struct queue_properties *qp)
{
	if (qp->type == KFD_QUEUE_TYPE_SDMA)
		return KFD_IOC_QUEUE_TYPE_SDMA;
	if (qp->type == KFD_QUEUE_TYPE_SDMA_XGMI)
		return KFD_IOC_QUEUE_TYPE_SDMA_XGMI;
	return qp->format == KFD_QUEUE_FORMAT_AQL ?
		       KFD_IOC_QUEUE_TYPE_COMPUTE_AQL :
		       KFD_IOC_QUEUE_TYPE_COMPUTE;
}

/**
 * kfd_criu_queue_set_type - set type and format of a queue from the ioctl's
 * type
 * @qp: returns type and format
 * @type: KFD_IOC_QUEUE_TYPE_*
 *
 * Return: 0; -EINVAL if queues of this type cannot be checkpointed.
 */
int kfd_criu_queue_set_type(struct queue_properties *qp, u32 type)
{
	qp->format = KFD_QUEUE_FORMAT_PM4;
	switch (type) {
	case KFD_IOC_QUEUE_TYPE_COMPUTE_AQL:
		qp->format = KFD_QUEUE_FORMAT_AQL;
		fallthrough;
	case KFD_IOC_QUEUE_TYPE_COMPUTE:
		qp->type = KFD_QUEUE_TYPE_COMPUTE;
		return 0;
	case KFD_IOC_QUEUE_TYPE_SDMA:
		qp->type = KFD_QUEUE_TYPE_SDMA;
		return 0;
	case KFD_IOC_QUEUE_TYPE_SDMA_XGMI:
		qp->type = KFD_QUEUE_TYPE_SDMA_XGMI;
		return 0;
	default:
		return -EINVAL;
	}
}

static void kfd_criu_queue_copy_properties(struct queue_properties *to,
					   const struct queue_properties *from)
{
	to->type = from->type;
	to->format = from->format;
	to->queue_percent = from->queue_percent;
	to->priority = from->priority;
	to->queue_address = from->queue_address;
	to->queue_size = from->queue_size;
	to->read_ptr = from->read_ptr;
	to->write_ptr = from->write_ptr;
	to->pm4_target_xcc = from->pm4_target_xcc;
	to->eop_ring_buffer_address = from->eop_ring_buffer_address;
	to->eop_ring_buffer_size = from->eop_ring_buffer_size;
	to->ctx_save_restore_area_address = from->ctx_save_restore_area_address;
	to->ctx_save_restore_area_size = from->ctx_save_restore_area_size;
	to->ctl_stack_size = from->ctl_stack_size;
	to->is_user_cu_masked = from->is_user_cu_masked;
	to->exception_status = from->exception_status & KFD_EC_MASK_QUEUE;
}

/**
 * kfd_criu_queue_describe - describe a queue without the contents of its MQDs
 * @pdd: the process on the queue's device
 * @q: the queue
 * @cq: returns the description; its MQDs have no data yet
 *
 * Return: 0; -EOPNOTSUPP if the type of the queue or the generation of the
 * device cannot be checkpointed.
 */
int kfd_criu_queue_describe(const struct kfd_process_device *pdd,
			    const struct queue *q, struct kfd_criu_queue *cq)
{
	if (!kfd_criu_queue_type_supported(q->properties.type))
		return -EOPNOTSUPP;
	memset(cq, 0, sizeof(*cq));
	cq->gpu_id = pdd->user_gpu_id;
	cq->queue_id = q->properties.queue_id;
	cq->doorbell_id = q->doorbell_id;
	cq->sdma_id = q->sdma_id;
	cq->gws = q->gws;
	kfd_criu_queue_copy_properties(&cq->qp, &q->properties);
	return kfd_criu_mqd_describe(pdd->dev, &cq->qp, &cq->mqd);
}

/**
 * kfd_criu_queue_save - copy a queue's MQDs
 * @q: the queue
 * @cq: description from kfd_criu_queue_describe(); freed by
 *	kfd_criu_queue_free()
 *
 * Return: as kfd_criu_mqd_save().
 */
int kfd_criu_queue_save(const struct queue *q, struct kfd_criu_queue *cq)
{
	return kfd_criu_mqd_save(q, &cq->mqd);
}

/**
 * kfd_criu_queue_free - free the copy of a queue's MQDs
 * @cq: description of the queue; the copy may be missing
 */
void kfd_criu_queue_free(struct kfd_criu_queue *cq)
{
	kvfree(cq->mqd.data);
	cq->mqd.data = NULL;
}

static bool kfd_criu_queue_access_ok(u64 address, size_t size)
{
	return access_ok((const void __user *)(uintptr_t)address, size);
}

static int kfd_criu_queue_check_properties(const struct queue_properties *qp)
{
	if (!kfd_criu_queue_type_supported(qp->type) ||
	    (qp->format != KFD_QUEUE_FORMAT_PM4 &&
	     qp->format != KFD_QUEUE_FORMAT_AQL))
		return -EINVAL;
	if (qp->queue_percent > KFD_MAX_QUEUE_PERCENTAGE ||
	    qp->priority > KFD_MAX_QUEUE_PRIORITY ||
	    qp->pm4_target_xcc > U8_MAX ||
	    qp->exception_status & ~(u64)KFD_EC_MASK_QUEUE)
		return -EINVAL;
	if (!is_power_of_2(qp->queue_size) || qp->queue_size > U32_MAX ||
	    qp->queue_size < KFD_MIN_QUEUE_RING_SIZE ||
	    !IS_ALIGNED(qp->queue_address, RING_ALIGNMENT))
		return -EINVAL;
	if (!kfd_criu_queue_access_ok(qp->queue_address, qp->queue_size) ||
	    !kfd_criu_queue_access_ok((uintptr_t)qp->read_ptr, sizeof(u64)) ||
	    !kfd_criu_queue_access_ok((uintptr_t)qp->write_ptr, sizeof(u64)) ||
	    !kfd_criu_queue_access_ok(qp->eop_ring_buffer_address,
				      qp->eop_ring_buffer_size) ||
	    !kfd_criu_queue_access_ok(qp->ctx_save_restore_area_address,
				      qp->ctx_save_restore_area_size))
		return -EFAULT;
	return 0;
}

/* Makes the checks of AMDKFD_IOC_ALLOC_QUEUE_GWS. */
static int kfd_criu_queue_check_gws(const struct kfd_process_device *pdd,
				    const struct kfd_criu_queue *cq)
{
	if (!cq->gws)
		return 0;
	if (!pdd->dev->gws ||
	    pdd->dev->dqm->sched_policy == KFD_SCHED_POLICY_NO_HWS)
		return -ENODEV;
	if (cq->qp.type != KFD_QUEUE_TYPE_COMPUTE || pdd->qpd.num_gws)
		return -EBUSY;
	return 0;
}

/**
 * kfd_criu_queue_check - check whether a queue can be created on a device
 * @pdd: the process on the device
 * @cq: description from an image; its MQDs are not looked at
 *
 * Return: 0; -EINVAL or -EFAULT if AMDKFD_IOC_CREATE_QUEUE would refuse it;
 * -ENODEV or -EBUSY if the global wave sync is not available.
 */
int kfd_criu_queue_check(const struct kfd_process_device *pdd,
			 const struct kfd_criu_queue *cq)
{
	int r;

	if (cq->queue_id >= KFD_MAX_NUM_OF_QUEUES_PER_PROCESS)
		return -EINVAL;
	r = kfd_criu_queue_check_properties(&cq->qp);
	if (r)
		return r;
	return kfd_criu_queue_check_gws(pdd, cq);
}

static int kfd_criu_queue_create(struct kfd_process *p,
				 struct kfd_process_device *pdd,
				 struct kfd_criu_queue *cq)
{
	const u64 exception_status = cq->qp.exception_status;
	unsigned int queue_id;
	int r;

	r = kfd_criu_mqd_check(pdd->dev, cq);
	if (r)
		return r;
	r = pqm_create_queue(&p->pqm, pdd->dev, NULL, &cq->qp, &queue_id, cq,
			     NULL);
	if (r)
		return r;
	/*
	 * Creation has set EC_QUEUE_NEW, which would make a debugger take the
	 * queue for a new one.
	 */
	pqm_get_user_queue(&p->pqm, queue_id)->properties.exception_status =
		exception_status;
	return 0;
}

static int kfd_criu_queue_restore_gws(struct kfd_process *p,
				      struct kfd_process_device *pdd,
				      const struct kfd_criu_queue *cq)
{
	int r;

	r = pqm_set_gws(&p->pqm, cq->queue_id, pdd->dev->gws);
	if (r)
		return r;
	kfd_criu_mqd_merge(pqm_get_user_queue(&p->pqm, cq->queue_id), &cq->mqd);
	return 0;
}

/**
 * kfd_criu_queue_restore - create a queue from its description
 * @p: process being restored; its queues are evicted, and its BOs are restored
 * @pdd: the process on the queue's device
 * @cq: description that kfd_criu_queue_check() has passed
 *
 * Return: 0; -EINVAL if a buffer is missing or something does not fit the
 * device; -ENOSPC or -EBUSY if an id is in use; -ENOMEM. After a failure the
 * queue may exist without the global wave sync, see
 * kfd_criu_queue_destroy_all().
 */
int kfd_criu_queue_restore(struct kfd_process *p,
			   struct kfd_process_device *pdd,
			   struct kfd_criu_queue *cq)
{
	int r;

	r = kfd_criu_queue_acquire_buffers(pdd, &cq->qp);
	if (r)
		return r;
	r = kfd_criu_queue_create(p, pdd, cq);
	if (r) {
		kfd_criu_queue_release_buffers(pdd, &cq->qp);
		return r;
	}
	if (cq->gws)
		return kfd_criu_queue_restore_gws(p, pdd, cq);
	return 0;
}

/**
 * kfd_criu_queue_destroy_all - destroy all queues of a process
 * @p: process whose restore has failed; its queues are evicted, and not
 *	suspended by a debugger
 */
void kfd_criu_queue_destroy_all(struct kfd_process *p)
{
	struct process_queue_node *pqn, *next;

	list_for_each_entry_safe(pqn, next, &p->pqm.queues, process_queue_list)
		if (pqn->q)
			pqm_destroy_queue(&p->pqm,
					  pqn->q->properties.queue_id);
}
