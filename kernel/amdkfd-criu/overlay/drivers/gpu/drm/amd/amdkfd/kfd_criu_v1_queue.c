// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Queues in the private data of the released ABI, version 1.
 *
 * The private data are a sequence of C structures of this machine without gaps
 * (kfd_priv.h, struct kfd_criu_*_priv_data). A queue is its structure, followed
 * by its MQDs, followed by their control stacks. For a device with several XCCs
 * some kernels write one MQD, others one for each XCC, with the sizes of all of
 * them in the structure. This code writes the latter and reads both.
 *
 * Locks: the callers hold p->mutex.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "kfd_criu.h"
#include "kfd_priv.h"

static u64 kfd_criu_v1_queue_record_size(const struct kfd_criu_mqd *mqd)
{
	return sizeof(struct kfd_criu_queue_priv_data) + kfd_criu_mqd_bytes(mqd);
}

/**
 * kfd_criu_v1_queue_sizes - count the queues and the bytes of their records
 * @p: the process
 * @count: returns the number of queues
 * @bytes: returns the bytes of private data that the queues take
 *
 * Return: 0; -EOPNOTSUPP if there is a queue that cannot be checkpointed.
 */
int kfd_criu_v1_queue_sizes(struct kfd_process *p, u32 *count, u64 *bytes)
{
	unsigned int i;

	*count = 0;
	*bytes = 0;
	for (i = 0; i < p->n_pdds; i++) {
		struct kfd_process_device *pdd = p->pdds[i];
		struct queue *q;

		list_for_each_entry(q, &pdd->qpd.queues_list, list) {
			struct kfd_criu_queue cq;
			int r = kfd_criu_queue_describe(pdd, q, &cq);

			if (r)
				return r;
			*count += 1;
			*bytes += kfd_criu_v1_queue_record_size(&cq.mqd);
		}
	}
	return 0;
}

static void kfd_criu_v1_fill_queue(struct kfd_criu_queue_priv_data *out,
				   const struct kfd_criu_queue *cq)
{
	memset(out, 0, sizeof(*out));
	out->object_type = KFD_CRIU_OBJECT_TYPE_QUEUE;
	out->gpu_id = cq->gpu_id;
	out->q_id = cq->queue_id;
	out->doorbell_id = cq->doorbell_id;
	out->sdma_id = cq->sdma_id;
	out->gws = cq->gws;
	out->type = cq->qp.type;
	out->format = cq->qp.format;
	out->q_address = cq->qp.queue_address;
	out->q_size = cq->qp.queue_size;
	out->priority = cq->qp.priority;
	out->q_percent = cq->qp.queue_percent;
	out->read_ptr_addr = (uintptr_t)cq->qp.read_ptr;
	out->write_ptr_addr = (uintptr_t)cq->qp.write_ptr;
	out->eop_ring_buffer_address = cq->qp.eop_ring_buffer_address;
	out->eop_ring_buffer_size = cq->qp.eop_ring_buffer_size;
	out->ctx_save_restore_area_address =
		cq->qp.ctx_save_restore_area_address;
	out->ctx_save_restore_area_size = cq->qp.ctx_save_restore_area_size;
	out->mqd_size = cq->mqd.n_xcc * cq->mqd.mqd_size;
	out->ctl_stack_size = cq->mqd.n_xcc * cq->mqd.ctl_stack_size;
}

static void kfd_criu_v1_parse_queue(struct kfd_criu_queue *cq,
				    const struct kfd_criu_queue_priv_data *in)
{
	memset(cq, 0, sizeof(*cq));
	cq->gpu_id = in->gpu_id;
	cq->queue_id = in->q_id;
	cq->doorbell_id = in->doorbell_id;
	cq->sdma_id = in->sdma_id;
	cq->gws = in->gws;
	cq->qp.type = in->type;
	cq->qp.format = in->format;
	cq->qp.queue_address = in->q_address;
	cq->qp.queue_size = in->q_size;
	cq->qp.priority = in->priority;
	cq->qp.queue_percent = in->q_percent;
	cq->qp.read_ptr = (void __user *)(uintptr_t)in->read_ptr_addr;
	cq->qp.write_ptr = (void __user *)(uintptr_t)in->write_ptr_addr;
	cq->qp.eop_ring_buffer_address = in->eop_ring_buffer_address;
	cq->qp.eop_ring_buffer_size = in->eop_ring_buffer_size;
	cq->qp.ctx_save_restore_area_address =
		in->ctx_save_restore_area_address;
	cq->qp.ctx_save_restore_area_size = in->ctx_save_restore_area_size;
	/*
	 * Version 1 does not store the exceptions, so a debugger takes the
	 * queue for a new one.
	 */
	cq->qp.exception_status = KFD_EC_MASK(EC_QUEUE_NEW);
}

static int kfd_criu_v1_checkpoint_queue(const struct kfd_process_device *pdd,
					const struct queue *q, u8 __user *priv,
					u64 *offset)
{
	struct kfd_criu_queue_priv_data record;
	struct kfd_criu_queue cq;
	u64 size;
	int r;

	r = kfd_criu_queue_describe(pdd, q, &cq);
	if (r)
		return r;
	r = kfd_criu_queue_save(q, &cq);
	/* The released ABI returns -EINVAL for a queue that still runs. */
	if (r == -EBUSY)
		return -EINVAL;
	if (r)
		return r;
	kfd_criu_v1_fill_queue(&record, &cq);
	size = kfd_criu_v1_queue_record_size(&cq.mqd);
	if (copy_to_user(priv + *offset, &record, sizeof(record)) ||
	    copy_to_user(priv + *offset + sizeof(record), cq.mqd.data,
			 size - sizeof(record))) {
		r = -EFAULT;
		goto out_free;
	}
	*offset += size;
out_free:
	kfd_criu_queue_free(&cq);
	return r;
}

/**
 * kfd_criu_v1_checkpoint_queues - write the records of all queues of a process
 * @p: the process; its queues are evicted
 * @priv: private data
 * @offset: position in the private data; advanced
 *
 * Return: 0; -EINVAL if a queue runs; -EFAULT, -ENOMEM, -EOPNOTSUPP.
 */
int kfd_criu_v1_checkpoint_queues(struct kfd_process *p, u8 __user *priv,
				  u64 *offset)
{
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++) {
		struct kfd_process_device *pdd = p->pdds[i];
		struct queue *q;

		list_for_each_entry(q, &pdd->qpd.queues_list, list) {
			int r = kfd_criu_v1_checkpoint_queue(pdd, q, priv,
							     offset);

			if (r)
				return r;
		}
	}
	return 0;
}

/*
 * Determines from the device how many MQDs follow; the sizes in the image must
 * agree. For a device with several XCCs, kernels since 6.17 use the size of
 * that many MQDs also for an SDMA queue, but only the first one is an MQD.
 */
static int
kfd_criu_v1_parse_mqd_sizes(const struct kfd_node *node,
			    const struct kfd_criu_queue_priv_data *in,
			    struct kfd_criu_queue *cq)
{
	struct kfd_criu_mqd *mqd = &cq->mqd;
	int r;

	cq->qp.ctl_stack_size = node->ctl_stack_size;
	r = kfd_criu_mqd_describe(node, &cq->qp, mqd);
	if (r)
		return r;
	if (in->mqd_size == mqd->mqd_size)
		mqd->n_xcc = 1;
	else if (in->mqd_size != NUM_XCC(node->xcc_mask) * mqd->mqd_size)
		return -EINVAL;
	if (in->ctl_stack_size != mqd->n_xcc * mqd->ctl_stack_size)
		return -EINVAL;
	return 0;
}

static int kfd_criu_v1_read_mqds(struct kfd_criu_mqd *mqd,
				 const u8 __user *from)
{
	const size_t size = kfd_criu_mqd_bytes(mqd);

	mqd->data = kvmalloc(size, GFP_KERNEL_ACCOUNT);
	if (!mqd->data)
		return -ENOMEM;
	if (copy_from_user(mqd->data, from, size)) {
		kvfree(mqd->data);
		mqd->data = NULL;
		return -EFAULT;
	}
	return 0;
}

/**
 * kfd_criu_v1_restore_queue - restore the queue that a record describes
 * @p: process being restored
 * @priv: private data
 * @offset: position of the record in the private data; advanced
 * @size: bytes of private data
 *
 * Return: 0; -EINVAL if the record is invalid; -EFAULT, -ENOMEM; as
 * kfd_criu_queue_check() and kfd_criu_queue_restore().
 */
int kfd_criu_v1_restore_queue(struct kfd_process *p, const u8 __user *priv,
			      u64 *offset, u64 size)
{
	struct kfd_criu_queue_priv_data record;
	struct kfd_process_device *pdd;
	struct kfd_criu_queue cq;
	u64 record_bytes;
	int r;

	if (*offset > size || size - *offset < sizeof(record))
		return -EINVAL;
	if (copy_from_user(&record, priv + *offset, sizeof(record)))
		return -EFAULT;
	kfd_criu_v1_parse_queue(&cq, &record);
	pdd = kfd_process_device_data_by_id(p, cq.gpu_id);
	if (!pdd)
		return -EINVAL;
	r = kfd_criu_queue_check(pdd, &cq);
	if (r)
		return r;
	r = kfd_criu_v1_parse_mqd_sizes(pdd->dev, &record, &cq);
	if (r)
		return r;
	record_bytes =
		sizeof(record) + (u64)record.mqd_size + record.ctl_stack_size;
	if (size - *offset < record_bytes)
		return -EINVAL;
	r = kfd_criu_v1_read_mqds(&cq.mqd, priv + *offset + sizeof(record));
	if (r)
		return r;
	*offset += record_bytes;
	cq.qp.pm4_target_xcc =
		kfd_criu_mqd_target_xcc(pdd->dev, &cq.qp, &cq.mqd);
	r = kfd_criu_queue_restore(p, pdd, &cq);
	kfd_criu_queue_free(&cq);
	return r;
}
