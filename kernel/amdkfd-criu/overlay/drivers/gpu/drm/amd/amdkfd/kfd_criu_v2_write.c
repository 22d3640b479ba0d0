// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The extensible ABI: writes a process as a sequence of records.
 *
 * Locks: the callers hold p->mutex.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "kfd_criu.h"
#include "kfd_criu_v2.h"
#include "kfd_events.h"
#include "kfd_priv.h"

#define SVM_TRIES	16

/*
 * Appends a record and its payload. Beyond the end of the buffer the record is
 * only counted.
 */
static int kfd_criu_v2_write_record(struct kfd_criu_stream *s, u32 type,
				    struct kfd_criu_record *record,
				    size_t bytes, const void *payload,
				    size_t payload_bytes)
{
	const u64 size = ALIGN(bytes + payload_bytes, 8);
	u8 __user *to = s->data + s->pos;
	const u64 end = s->pos + size;

	record->type = cpu_to_le32(type);
	record->version = cpu_to_le16(1);
	record->flags = cpu_to_le16(KFD_CRIU_RECORD_REQUIRED);
	record->fixed_size = cpu_to_le32(bytes);
	record->size = cpu_to_le64(size);
	s->num_records++;
	s->pos = end;
	if (end > s->size)
		return 0;
	if (copy_to_user(to, record, bytes) ||
	    copy_to_user(to + bytes, payload, payload_bytes) ||
	    clear_user(to + bytes + payload_bytes,
		       size - bytes - payload_bytes))
		return -EFAULT;
	return 0;
}

static int kfd_criu_v2_write_fixed(struct kfd_criu_stream *s, u32 type,
				   struct kfd_criu_record *record, size_t bytes)
{
	return kfd_criu_v2_write_record(s, type, record, bytes, NULL, 0);
}

static int kfd_criu_v2_write_process(struct kfd_criu_stream *s,
				     struct kfd_process *p)
{
	struct kfd_criu_record_process record = {};
	struct kfd_criu_process cp;

	kfd_criu_process_describe(p, &cp);
	record.flags = cpu_to_le64((cp.xnack ? KFD_CRIU_PROCESS_XNACK : 0) |
				   (cp.runtime ? KFD_CRIU_PROCESS_RUNTIME : 0) |
				   (cp.ttmp ? KFD_CRIU_PROCESS_TTMP : 0));
	record.r_debug = cpu_to_le64(cp.r_debug);
	return kfd_criu_v2_write_fixed(s, KFD_CRIU_RECORD_PROCESS,
				       &record.record, sizeof(record));
}

static int kfd_criu_v2_write_device(struct kfd_criu_stream *s,
				    struct kfd_process_device *pdd)
{
	struct kfd_criu_record_device record = {};
	struct kfd_criu_device_compat compat;
	struct kfd_criu_settings cs;
	int r;

	r = kfd_criu_device_compat_describe(pdd->dev, &compat);
	if (r)
		return r;
	kfd_criu_settings_describe(pdd, &cs);
	record.user_gpu_id = cpu_to_le32(pdd->user_gpu_id);
	record.gpu_id = cpu_to_le32(pdd->dev->id);
	record.gfx_target_version = cpu_to_le32(compat.gfx_target_version);
	record.num_xcc = cpu_to_le32(compat.num_xcc);
	record.xcc_mask = cpu_to_le32(pdd->dev->xcc_mask);
	record.cwsr_size = cpu_to_le32(compat.cwsr_size);
	record.ctl_stack_size = cpu_to_le32(compat.ctl_stack_size);
	record.mqd_layout = cpu_to_le32(compat.mqd_layout);
	record.sdma_mqd_layout = cpu_to_le32(compat.sdma_mqd_layout);
	record.flags = cpu_to_le32((pdd->drm_priv ?
					    KFD_CRIU_DEVICE_ACQUIRED : 0) |
				   (cs.policy.is_set ?
					    KFD_CRIU_DEVICE_POLICY : 0));
	record.mec_firmware = cpu_to_le32(pdd->dev->kfd->mec_fw_version);
	record.sdma_firmware = cpu_to_le32(pdd->dev->kfd->sdma_fw_version);
	record.tba = cpu_to_le64(cs.tba);
	record.tma = cpu_to_le64(cs.tma);
	record.scratch = cpu_to_le64(cs.scratch);
	record.default_policy = cpu_to_le32(cs.policy.default_policy);
	record.alternate_policy = cpu_to_le32(cs.policy.alternate_policy);
	record.aperture_base = cpu_to_le64(cs.policy.aperture_base);
	record.aperture_size = cpu_to_le64(cs.policy.aperture_size);
	return kfd_criu_v2_write_fixed(s, KFD_CRIU_RECORD_DEVICE,
				       &record.record, sizeof(record));
}

static int kfd_criu_v2_write_bo(struct kfd_criu_stream *s,
				const struct kfd_process_device *pdd,
				u32 handle, struct kgd_mem *mem)
{
	const struct kfd_process *p = pdd->process;
	struct kfd_criu_record_bo record = {};
	__le32 mapped[MAX_GPU_INSTANCE];
	struct kfd_criu_bo cb;
	unsigned int i, n = 0;
	int r;

	r = kfd_criu_bo_describe(pdd, handle, mem, &cb);
	if (r)
		return r;
	/* When the image is only measured, no DMA-bufs are created. */
	if (s->size) {
		r = kfd_criu_bo_get_inode(mem, &cb.inode);
		if (r)
			return r;
	}
	for_each_set_bit(i, cb.mapped, p->n_pdds)
		mapped[n++] = cpu_to_le32(p->pdds[i]->user_gpu_id);
	record.va = cpu_to_le64(cb.va);
	record.size = cpu_to_le64(cb.size);
	record.user_addr = cpu_to_le64(cb.user_addr);
	record.mmap_offset = cpu_to_le64(cb.mmap_offset);
	record.inode = cpu_to_le64(cb.inode);
	record.gpu_id = cpu_to_le32(cb.gpu_id);
	record.handle = cpu_to_le32(cb.handle);
	record.alloc_flags = cpu_to_le32(cb.flags);
	record.num_mapped = cpu_to_le32(n);
	record.flags = cpu_to_le32(cb.imported ? KFD_CRIU_BO_IMPORTED : 0);
	return kfd_criu_v2_write_record(s, KFD_CRIU_RECORD_BO, &record.record,
					sizeof(record), mapped,
					n * sizeof(*mapped));
}

static int kfd_criu_v2_write_bos(struct kfd_criu_stream *s,
				 struct kfd_process_device *pdd, bool imported)
{
	struct kgd_mem *mem;
	int id, r;

	idr_for_each_entry(&pdd->alloc_idr, mem, id) {
		if (mem->is_imported != imported)
			continue;
		r = kfd_criu_v2_write_bo(s, pdd, id, mem);
		if (r)
			return r;
	}
	return 0;
}

static void kfd_criu_v2_fill_queue(struct kfd_criu_record_queue *record,
				   const struct kfd_criu_queue *cq)
{
	const struct queue_properties *qp = &cq->qp;

	record->ring_address = cpu_to_le64(qp->queue_address);
	record->ring_size = cpu_to_le64(qp->queue_size);
	record->read_pointer = cpu_to_le64((uintptr_t)qp->read_ptr);
	record->write_pointer = cpu_to_le64((uintptr_t)qp->write_ptr);
	record->eop_address = cpu_to_le64(qp->eop_ring_buffer_address);
	record->save_area = cpu_to_le64(qp->ctx_save_restore_area_address);
	record->exception_status = cpu_to_le64(qp->exception_status);
	record->gpu_id = cpu_to_le32(cq->gpu_id);
	record->queue_id = cpu_to_le32(cq->queue_id);
	record->type = cpu_to_le32(kfd_criu_queue_type(qp));
	record->priority = cpu_to_le32(qp->priority);
	record->percentage = cpu_to_le32(qp->queue_percent);
	record->doorbell_id = cpu_to_le32(cq->doorbell_id);
	record->sdma_id = cpu_to_le32(cq->sdma_id);
	record->flags = cpu_to_le32((cq->gws ? KFD_CRIU_QUEUE_GWS : 0) |
				    (qp->is_user_cu_masked ?
					     KFD_CRIU_QUEUE_CU_MASKED : 0));
	record->pm4_target_xcc = cpu_to_le32(qp->pm4_target_xcc);
	record->eop_size = cpu_to_le32(qp->eop_ring_buffer_size);
	record->save_area_size = cpu_to_le32(qp->ctx_save_restore_area_size);
	record->num_xcc = cpu_to_le32(cq->mqd.n_xcc);
	record->ctl_stack_size = cpu_to_le32(cq->mqd.ctl_stack_size);
}

static int kfd_criu_v2_write_queue(struct kfd_criu_stream *s,
				   const struct kfd_process_device *pdd,
				   const struct queue *q)
{
	const u32 num_words = kfd_criu_v2_num_words(pdd->dev, q->properties.type);
	struct kfd_criu_record_queue record = {};
	void *payload = NULL;
	struct kfd_criu_queue cq;
	int r;

	r = kfd_criu_queue_describe(pdd, q, &cq);
	if (r)
		return r;
	/* When the image is only measured, the MQDs need not be copied. */
	if (s->size) {
		r = kfd_criu_queue_save(q, &cq);
		if (r)
			return r;
		payload = kfd_criu_v2_pack_mqds(pdd->dev, &cq);
		if (!payload) {
			r = -ENOMEM;
			goto out_free;
		}
	}
	kfd_criu_v2_fill_queue(&record, &cq);
	record.mqd_layout = cpu_to_le32(kfd_criu_mqd_layout_id(pdd->dev,
							       cq.qp.type));
	record.num_words = cpu_to_le32(num_words);
	r = kfd_criu_v2_write_record(s, KFD_CRIU_RECORD_QUEUE, &record.record,
				     sizeof(record), payload,
				     kfd_criu_v2_mqd_bytes(&cq.mqd, num_words));
	kvfree(payload);
out_free:
	kfd_criu_queue_free(&cq);
	return r;
}

static int kfd_criu_v2_write_queues(struct kfd_criu_stream *s,
				    struct kfd_process_device *pdd)
{
	struct queue *q;

	list_for_each_entry(q, &pdd->qpd.queues_list, list) {
		int r = kfd_criu_v2_write_queue(s, pdd, q);

		if (r)
			return r;
	}
	return 0;
}

static void kfd_criu_v2_fill_event(struct kfd_criu_record_event *record,
				   const struct kfd_criu_event *ce)
{
	const struct kfd_hsa_memory_exception_data *memory =
		&ce->memory_exception;
	const struct kfd_hsa_hw_exception_data *hw = &ce->hw_exception;

	memset(record, 0, sizeof(*record));
	record->event_id = cpu_to_le32(ce->id);
	record->type = cpu_to_le32(ce->type);
	record->flags = cpu_to_le32((ce->auto_reset ?
					     KFD_CRIU_EVENT_AUTO_RESET : 0) |
				    (ce->signaled ?
					     KFD_CRIU_EVENT_SIGNALED : 0));
	record->age = cpu_to_le64(ce->age);
	if (ce->type == KFD_EVENT_TYPE_MEMORY) {
		record->gpu_id = cpu_to_le32(memory->gpu_id);
		record->address = cpu_to_le64(memory->va);
		record->error_type = cpu_to_le32(memory->ErrorType);
		record->failure[0] = cpu_to_le32(memory->failure.NotPresent);
		record->failure[1] = cpu_to_le32(memory->failure.ReadOnly);
		record->failure[2] = cpu_to_le32(memory->failure.NoExecute);
		record->failure[3] = cpu_to_le32(memory->failure.imprecise);
	} else if (ce->type == KFD_EVENT_TYPE_HW_EXCEPTION) {
		record->gpu_id = cpu_to_le32(hw->gpu_id);
		record->reset[0] = cpu_to_le32(hw->reset_type);
		record->reset[1] = cpu_to_le32(hw->reset_cause);
		record->memory_lost = cpu_to_le32(hw->memory_lost);
	}
}

static int kfd_criu_v2_write_events(struct kfd_criu_stream *s,
				    struct kfd_process *p)
{
	struct kfd_criu_record_event_page page = {};
	struct kfd_criu_record_event record;
	struct kfd_criu_event *events;
	u32 i, n;
	int r;

	r = kfd_criu_event_save(p, &events, &n);
	if (r)
		return r;
	if (p->signal_handle) {
		page.handle = cpu_to_le64(p->signal_handle);
		r = kfd_criu_v2_write_fixed(s, KFD_CRIU_RECORD_EVENT_PAGE,
					    &page.record, sizeof(page));
		if (r)
			goto out_free;
	}
	for (i = 0; i < n; i++) {
		kfd_criu_v2_fill_event(&record, &events[i]);
		r = kfd_criu_v2_write_fixed(s, KFD_CRIU_RECORD_EVENT,
					    &record.record, sizeof(record));
		if (r)
			goto out_free;
	}
out_free:
	kvfree(events);
	return r;
}

static int kfd_criu_v2_write_svm_range(struct kfd_criu_stream *s,
				       const struct kfd_process *p,
				       const struct kfd_criu_svm *cs)
{
	struct kfd_criu_record_svm_range record = {};
	struct kfd_criu_svm_device access[MAX_GPU_INSTANCE];
	unsigned int i, n = 0;

	for (i = 0; i < p->n_pdds; i++) {
		if (cs->access[i] == KFD_CRIU_SVM_UNKNOWN)
			continue;
		access[n].gpu_id = cpu_to_le32(p->pdds[i]->user_gpu_id);
		access[n].access =
			cpu_to_le32(kfd_criu_svm_access_to_attr(cs->access[i]));
		n++;
	}
	record.start = cpu_to_le64(cs->start << PAGE_SHIFT);
	record.size = cpu_to_le64(cs->npages << PAGE_SHIFT);
	record.flags = cpu_to_le32(cs->flags);
	record.granularity = cpu_to_le32(cs->granularity);
	record.preferred_location = cpu_to_le32(cs->preferred_loc);
	record.prefetch_location = cpu_to_le32(cs->prefetch_loc);
	record.num_access = cpu_to_le32(n);
	return kfd_criu_v2_write_record(s, KFD_CRIU_RECORD_SVM_RANGE,
					&record.record, sizeof(record), access,
					n * sizeof(*access));
}

static int kfd_criu_v2_write_svm_ranges(struct kfd_criu_stream *s,
					struct kfd_process *p)
{
	unsigned int tries = 0;
	struct kfd_criu_svm *ranges;
	u32 i, n;
	int r;

	/*
	 * The threads of a program may still run, and add and remove SVM ranges
	 * all the time.
	 */
	do {
		r = kfd_criu_svm_count_killable(p, &n);
		if (r)
			return r;
		r = kfd_criu_svm_save(p, &ranges, n);
	} while (r == -EAGAIN && tries++ < SVM_TRIES);
	if (r)
		return r;
	for (i = 0; i < n; i++) {
		r = kfd_criu_v2_write_svm_range(s, p, &ranges[i]);
		if (r)
			goto out_free;
	}
out_free:
	kvfree(ranges);
	return r;
}

static int kfd_criu_v2_write_per_device(struct kfd_criu_stream *s,
					struct kfd_process *p, u32 type)
{
	unsigned int i;
	int r;

	for (i = 0; i < p->n_pdds; i++) {
		if (type == KFD_CRIU_RECORD_DEVICE)
			r = kfd_criu_v2_write_device(s, p->pdds[i]);
		else if (type == KFD_CRIU_RECORD_BO)
			r = kfd_criu_v2_write_bos(s, p->pdds[i], false);
		else
			r = kfd_criu_v2_write_queues(s, p->pdds[i]);
		if (r)
			return r;
	}
	if (type != KFD_CRIU_RECORD_BO)
		return 0;
	/*
	 * Memory must be restored before a BO that imports it, even if that is
	 * on another device.
	 */
	for (i = 0; i < p->n_pdds; i++) {
		r = kfd_criu_v2_write_bos(s, p->pdds[i], true);
		if (r)
			return r;
	}
	return 0;
}

static int kfd_criu_v2_write_objects(struct kfd_criu_stream *s,
				     struct kfd_process *p)
{
	int r;

	r = kfd_criu_v2_write_per_device(s, p, KFD_CRIU_RECORD_DEVICE);
	if (r)
		return r;
	r = kfd_criu_v2_write_process(s, p);
	if (r)
		return r;
	r = kfd_criu_v2_write_per_device(s, p, KFD_CRIU_RECORD_BO);
	if (r)
		return r;
	r = kfd_criu_v2_write_per_device(s, p, KFD_CRIU_RECORD_QUEUE);
	if (r)
		return r;
	r = kfd_criu_v2_write_events(s, p);
	if (r)
		return r;
	return kfd_criu_v2_write_svm_ranges(s, p);
}

/**
 * kfd_criu_write_image - write the image of a process
 * @s: where to write; if its size is 0 the image is only measured, and @s->pos
 *	is its length
 * @p: the process; its queues are evicted
 *
 * The image record is written last, so that an incomplete image is never taken
 * for one.
 *
 * Return: 0; -EFAULT; -ENOMEM; the error of an object that cannot be described.
 * If @s->pos is larger than @s->size afterwards the buffer was too small and
 * does not hold an image.
 */
int kfd_criu_write_image(struct kfd_criu_stream *s, struct kfd_process *p)
{
	struct kfd_criu_record_image record = {
		.magic = cpu_to_le64(KFD_CRIU_IMAGE_MAGIC),
	};
	struct kfd_criu_stream first = *s;
	int r;

	s->pos += sizeof(record);
	s->num_records++;
	r = kfd_criu_v2_write_objects(s, p);
	if (r)
		return r;
	record.size = cpu_to_le64(s->pos);
	record.num_records = cpu_to_le32(s->num_records);
	if (s->pos > s->size)
		first.size = 0;
	return kfd_criu_v2_write_fixed(&first, KFD_CRIU_RECORD_IMAGE,
				       &record.record, sizeof(record));
}
