// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The extensible ABI (include/uapi/linux/kfd_criu_ioctl.h): an image is a row of
 * records, each of which says what it is and how long.
 *
 * A reader goes over the image twice. First over the headers only, so that what it
 * does not know is refused while nothing has been done; then over everything. User
 * memory may have changed in between, so nothing is believed the second time that was
 * not looked at the second time.
 */
#include <linux/dma-buf.h>
#include <linux/file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/kfd_criu_ioctl.h>
#include "kfd_criu.h"
#include "kfd_events.h"
#include "kfd_priv.h"

#define NEWEST_TYPE	KFD_CRIU_RECORD_SVM_RANGE

/* Of version 1: bytes at least. */
static const u32 least_size[NEWEST_TYPE + 1] = {
	[KFD_CRIU_RECORD_IMAGE] = sizeof(struct kfd_criu_record_image),
	[KFD_CRIU_RECORD_PROCESS] = sizeof(struct kfd_criu_record_process),
	[KFD_CRIU_RECORD_DEVICE] = sizeof(struct kfd_criu_record_device),
	[KFD_CRIU_RECORD_BO] = sizeof(struct kfd_criu_record_bo),
	[KFD_CRIU_RECORD_QUEUE] = sizeof(struct kfd_criu_record_queue),
	[KFD_CRIU_RECORD_EVENT_PAGE] = sizeof(struct kfd_criu_record_event_page),
	[KFD_CRIU_RECORD_EVENT] = sizeof(struct kfd_criu_record_event),
	[KFD_CRIU_RECORD_SVM_RANGE] = sizeof(struct kfd_criu_record_svm_range),
};

/**
 * struct stream - an image being written, or read
 * @data: where
 * @room: bytes there are
 * @at: next record; beyond @room it is only counted
 * @records: so many so far
 */
struct stream {
	u8 __user *data;
	u64 room;
	u64 at;
	u32 records;
};

static bool is_known(u32 type)
{
	return type && type <= NEWEST_TYPE;
}

/* ---- writing ---- */

/* Appends a record of two parts. Without room for it, it is only counted. */
static int put(struct stream *s, u32 type, struct kfd_criu_record *record,
	       size_t bytes, const void *more, size_t more_bytes)
{
	const u64 size = ALIGN(bytes + more_bytes, 8);
	u8 __user *to = s->data + s->at;
	const u64 end = s->at + size;

	record->type = cpu_to_le32(type);
	record->version = cpu_to_le16(1);
	record->flags = cpu_to_le16(KFD_CRIU_RECORD_REQUIRED);
	record->size = cpu_to_le64(size);
	s->records++;
	s->at = end;
	if (end > s->room)
		return 0;
	if (copy_to_user(to, record, bytes) ||
	    copy_to_user(to + bytes, more, more_bytes) ||
	    clear_user(to + bytes + more_bytes, size - bytes - more_bytes))
		return -EFAULT;
	return 0;
}

static int put_alone(struct stream *s, u32 type, struct kfd_criu_record *record,
		     size_t bytes)
{
	return put(s, type, record, bytes, NULL, 0);
}

static int put_process(struct stream *s, struct kfd_process *p)
{
	struct kfd_criu_record_process record = {};
	struct kfd_criu_process cp;

	kfd_criu_process_describe(p, &cp);
	record.flags = cpu_to_le64((cp.xnack ? KFD_CRIU_PROCESS_XNACK : 0) |
				   (cp.runtime ? KFD_CRIU_PROCESS_RUNTIME : 0) |
				   (cp.ttmp ? KFD_CRIU_PROCESS_TTMP : 0));
	record.r_debug = cpu_to_le64(cp.r_debug);
	return put_alone(s, KFD_CRIU_RECORD_PROCESS, &record.record,
			 sizeof(record));
}

static int put_one_device(struct stream *s, struct kfd_process_device *pdd)
{
	struct kfd_criu_record_device record = {};
	struct kfd_criu_machine cm;
	struct kfd_criu_settings cs;
	int r;

	r = kfd_criu_machine_describe(pdd->dev, &cm);
	if (r)
		return r;
	kfd_criu_settings_describe(pdd, &cs);
	record.user_gpu_id = cpu_to_le32(pdd->user_gpu_id);
	record.gfx_target_version = cpu_to_le32(cm.gfx_target_version);
	record.num_xcc = cpu_to_le32(cm.num_xcc);
	record.xcc_mask = cpu_to_le32(pdd->dev->xcc_mask);
	record.cwsr_size = cpu_to_le32(cm.cwsr_size);
	record.ctl_stack_size = cpu_to_le32(cm.ctl_stack_size);
	record.mqd_size = cpu_to_le32(cm.mqd_size);
	record.sdma_mqd_size = cpu_to_le32(cm.sdma_mqd_size);
	record.flags = cpu_to_le32((pdd->drm_priv ?
					    KFD_CRIU_DEVICE_ACQUIRED : 0) |
				   (cs.policy.is_set ?
					    KFD_CRIU_DEVICE_POLICY : 0));
	record.mec_firmware = cpu_to_le32(pdd->dev->kfd->mec_fw_version);
	record.sdma_firmware = cpu_to_le32(pdd->dev->kfd->sdma_fw_version);
	record.tba = cpu_to_le64(cs.tba);
	record.tma = cpu_to_le64(cs.tma);
	record.scratch = cpu_to_le64(cs.scratch);
	record.default_policy = cpu_to_le32(cs.policy.usual);
	record.alternate_policy = cpu_to_le32(cs.policy.alternate);
	record.aperture_base = cpu_to_le64(cs.policy.base);
	record.aperture_size = cpu_to_le64(cs.policy.size);
	return put_alone(s, KFD_CRIU_RECORD_DEVICE, &record.record,
			 sizeof(record));
}

static int put_bo(struct stream *s, const struct kfd_process_device *pdd,
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
	for_each_set_bit(i, cb.mapped, p->n_pdds)
		mapped[n++] = cpu_to_le32(p->pdds[i]->user_gpu_id);
	record.va = cpu_to_le64(cb.va);
	record.size = cpu_to_le64(cb.size);
	record.user_addr = cpu_to_le64(cb.user_addr);
	record.mmap_offset = cpu_to_le64(cb.mmap_offset);
	record.identity = cpu_to_le64(cb.identity);
	record.gpu_id = cpu_to_le32(cb.gpu_id);
	record.handle = cpu_to_le32(cb.handle);
	record.alloc_flags = cpu_to_le32(cb.flags);
	record.num_mapped = cpu_to_le32(n);
	record.flags = cpu_to_le32(cb.imported ? KFD_CRIU_BO_IMPORTED : 0);
	return put(s, KFD_CRIU_RECORD_BO, &record.record, sizeof(record),
		   mapped, n * sizeof(*mapped));
}

static int put_bos(struct stream *s, struct kfd_process_device *pdd,
		   bool imported)
{
	struct kgd_mem *mem;
	int id, r;

	idr_for_each_entry(&pdd->alloc_idr, mem, id) {
		if (mem->is_imported != imported)
			continue;
		r = put_bo(s, pdd, id, mem);
		if (r)
			return r;
	}
	return 0;
}

static void write_queue(struct kfd_criu_record_queue *record,
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
	record->mqd_size = cpu_to_le32(cq->mqd.mqd_size);
	record->ctl_stack_size = cpu_to_le32(cq->mqd.ctl_stack_size);
}

static int put_queue(struct stream *s, const struct kfd_process_device *pdd,
		     const struct queue *q)
{
	struct kfd_criu_record_queue record = {};
	struct kfd_criu_queue cq;
	int r;

	r = kfd_criu_queue_describe(pdd, q, &cq);
	/* What is only counted is not looked at. */
	if (!r && s->room)
		r = kfd_criu_queue_save(q, &cq);
	if (r)
		return r;
	write_queue(&record, &cq);
	r = put(s, KFD_CRIU_RECORD_QUEUE, &record.record, sizeof(record),
		cq.mqd.data, kfd_criu_mqd_bytes(&cq.mqd));
	kfd_criu_queue_free(&cq);
	return r;
}

static int put_queues(struct stream *s, struct kfd_process_device *pdd)
{
	struct queue *q;

	list_for_each_entry(q, &pdd->qpd.queues_list, list) {
		int r = put_queue(s, pdd, q);

		if (r)
			return r;
	}
	return 0;
}

static void write_event(struct kfd_criu_record_event *record,
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

static int put_events(struct stream *s, struct kfd_process *p)
{
	struct kfd_criu_record_event_page page = {};
	struct kfd_criu_record_event record;
	struct kfd_criu_event *events;
	u32 i, n;
	int r;

	r = kfd_criu_event_save(p, &events, &n);
	if (r)
		return r;
	page.handle = cpu_to_le64(p->signal_handle);
	if (p->signal_handle)
		r = put_alone(s, KFD_CRIU_RECORD_EVENT_PAGE, &page.record,
			      sizeof(page));
	for (i = 0; !r && i < n; i++) {
		write_event(&record, &events[i]);
		r = put_alone(s, KFD_CRIU_RECORD_EVENT, &record.record,
			      sizeof(record));
	}
	kvfree(events);
	return r;
}

static int put_svm_range(struct stream *s, const struct kfd_process *p,
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
			cpu_to_le32(kfd_criu_svm_attribute(cs->access[i]));
		n++;
	}
	record.start = cpu_to_le64(cs->start << PAGE_SHIFT);
	record.size = cpu_to_le64(cs->npages << PAGE_SHIFT);
	record.flags = cpu_to_le32(cs->flags);
	record.granularity = cpu_to_le32(cs->granularity);
	record.preferred_location = cpu_to_le32(cs->preferred_loc);
	record.prefetch_location = cpu_to_le32(cs->prefetch_loc);
	record.num_access = cpu_to_le32(n);
	return put(s, KFD_CRIU_RECORD_SVM_RANGE, &record.record,
		   sizeof(record), access, n * sizeof(*access));
}

static int put_svm_ranges(struct stream *s, struct kfd_process *p)
{
	struct kfd_criu_svm *ranges;
	u32 i, n = kfd_criu_svm_count(p);
	int r;

	r = kfd_criu_svm_save(p, &ranges, n);
	for (i = 0; !r && i < n; i++)
		r = put_svm_range(s, p, &ranges[i]);
	kvfree(ranges);
	return r;
}

static int put_on_devices(struct stream *s, struct kfd_process *p, u32 type)
{
	unsigned int i;
	int r = 0;

	for (i = 0; !r && i < p->n_pdds; i++) {
		if (type == KFD_CRIU_RECORD_DEVICE)
			r = put_one_device(s, p->pdds[i]);
		else if (type == KFD_CRIU_RECORD_BO)
			r = put_bos(s, p->pdds[i], false);
		else
			r = put_queues(s, p->pdds[i]);
	}
	/* Memory comes before what imports it, be it of another device. */
	for (i = 0; !r && type == KFD_CRIU_RECORD_BO && i < p->n_pdds; i++)
		r = put_bos(s, p->pdds[i], true);
	return r;
}

static int put_objects(struct stream *s, struct kfd_process *p)
{
	int r;

	r = put_on_devices(s, p, KFD_CRIU_RECORD_DEVICE);
	if (!r)
		r = put_process(s, p);
	if (!r)
		r = put_on_devices(s, p, KFD_CRIU_RECORD_BO);
	if (!r)
		r = put_on_devices(s, p, KFD_CRIU_RECORD_QUEUE);
	if (!r)
		r = put_events(s, p);
	return r ? r : put_svm_ranges(s, p);
}

/* The first record is written last: before that nothing looks like an image. */
static int put_image(struct stream *s, struct kfd_process *p)
{
	struct kfd_criu_record_image record = {
		.magic = cpu_to_le64(KFD_CRIU_IMAGE_MAGIC),
	};
	struct stream first = *s;
	int r;

	s->at += sizeof(record);
	s->records++;
	r = put_objects(s, p);
	if (r)
		return r;
	record.size = cpu_to_le64(s->at);
	record.num_records = cpu_to_le32(s->records);
	if (s->at > s->room)
		first.room = 0;
	return put_alone(&first, KFD_CRIU_RECORD_IMAGE, &record.record,
			 sizeof(record));
}

/* ---- reading ---- */

/* The header of the record at s->at, if all of it is there and it can be read. */
static int get_header(const struct stream *s, struct kfd_criu_record *record)
{
	u64 size;

	if (s->room - s->at < sizeof(*record))
		return -EINVAL;
	if (copy_from_user(record, s->data + s->at, sizeof(*record)))
		return -EFAULT;
	size = le64_to_cpu(record->size);
	if (size < sizeof(*record) || size > s->room - s->at ||
	    !IS_ALIGNED(size, 8))
		return -EINVAL;
	return 0;
}

static int check_header(const struct kfd_criu_record *record)
{
	const u32 type = le32_to_cpu(record->type);
	const bool known = is_known(type) && le16_to_cpu(record->version) == 1;

	if (le16_to_cpu(record->flags) & ~KFD_CRIU_RECORD_REQUIRED)
		return -EINVAL;
	if (!known && le16_to_cpu(record->flags) & KFD_CRIU_RECORD_REQUIRED) {
		pr_debug("image has a record of type %u, version %u\n", type,
			 le16_to_cpu(record->version));
		return -EPROTONOSUPPORT;
	}
	if (known && le64_to_cpu(record->size) < least_size[type])
		return -EINVAL;
	return 0;
}

/* Types come in their order; what is not known may be anywhere. */
static int check_records(struct stream *s)
{
	u32 type, newest = KFD_CRIU_RECORD_IMAGE;
	struct kfd_criu_record record;
	int r;

	while (s->at < s->room) {
		cond_resched();
		r = get_header(s, &record);
		if (!r)
			r = check_header(&record);
		if (r)
			return r;
		type = le32_to_cpu(record.type);
		if (is_known(type) &&
		    (type < newest || (s->records && type == KFD_CRIU_RECORD_IMAGE)))
			return -EINVAL;
		if (!s->records && type != KFD_CRIU_RECORD_IMAGE)
			return -EINVAL;
		newest = is_known(type) ? type : newest;
		s->at += le64_to_cpu(record.size);
		s->records++;
	}
	return s->records ? 0 : -EINVAL;
}

static int check_image(const struct stream *image)
{
	struct kfd_criu_record_image record;
	struct stream s = *image;
	int r;

	r = check_records(&s);
	if (r)
		return r;
	if (copy_from_user(&record, image->data, sizeof(record)))
		return -EFAULT;
	if (le64_to_cpu(record.magic) != KFD_CRIU_IMAGE_MAGIC ||
	    le64_to_cpu(record.size) != image->room ||
	    le32_to_cpu(record.num_records) != s.records)
		return -EINVAL;
	return 0;
}

/* What is read of a record: its fixed part is copied, the rest is still there. */
struct incoming {
	union {
		struct kfd_criu_record record;
		struct kfd_criu_record_process process;
		struct kfd_criu_record_device device;
		struct kfd_criu_record_bo bo;
		struct kfd_criu_record_queue queue;
		struct kfd_criu_record_event_page page;
		struct kfd_criu_record_event event;
		struct kfd_criu_record_svm_range svm;
	};
	const u8 __user *more;
	u64 more_bytes;
};

static int get(struct stream *s, struct incoming *in)
{
	u32 type, fixed;
	u64 size;
	int r;

	r = get_header(s, &in->record);
	if (!r)
		r = check_header(&in->record);
	if (r)
		return r;
	type = le32_to_cpu(in->record.type);
	size = le64_to_cpu(in->record.size);
	fixed = is_known(type) ? least_size[type] : sizeof(in->record);
	/* The header is the one that was checked. */
	if (copy_from_user((u8 *)in + sizeof(in->record),
			   s->data + s->at + sizeof(in->record),
			   fixed - sizeof(in->record)))
		return -EFAULT;
	in->more = s->data + s->at + fixed;
	in->more_bytes = size - fixed;
	s->at += size;
	return 0;
}

static int get_process(struct kfd_process *p, const struct incoming *in)
{
	const u64 flags = le64_to_cpu(in->process.flags);
	const struct kfd_criu_process cp = {
		.xnack = flags & KFD_CRIU_PROCESS_XNACK,
		.runtime = flags & KFD_CRIU_PROCESS_RUNTIME,
		.ttmp = flags & KFD_CRIU_PROCESS_TTMP,
		.r_debug = le64_to_cpu(in->process.r_debug),
	};

	if (flags & ~(u64)(KFD_CRIU_PROCESS_XNACK | KFD_CRIU_PROCESS_RUNTIME |
			   KFD_CRIU_PROCESS_TTMP))
		return -EINVAL;
	return kfd_criu_process_restore(p, &cp);
}

/**
 * struct given - what an image is restored with
 * @args: of the operation
 * @memories: what its BOs may be
 */
struct given {
	const struct kfd_criu_v2_args *args;
	struct kfd_criu_memories *memories;
};

static int give_one(struct kfd_criu_memories *memories,
		    const struct kfd_criu_v2_memory __user *from)
{
	struct kfd_criu_v2_memory memory;
	struct dma_buf *dmabuf;

	if (copy_from_user(&memory, from, sizeof(memory)))
		return -EFAULT;
	if (memory.reserved || !memory.identity)
		return -EINVAL;
	dmabuf = dma_buf_get(memory.dmabuf_fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	return kfd_criu_memories_add(memories, memory.identity, dmabuf);
}

static int get_given(struct given *given, const struct kfd_criu_v2_args *args)
{
	const struct kfd_criu_v2_memory __user *from =
		u64_to_user_ptr(args->memories);
	u32 i;
	int r = 0;

	given->args = args;
	given->memories = kfd_criu_memories_create();
	if (IS_ERR(given->memories))
		return PTR_ERR(given->memories);
	for (i = 0; !r && i < args->num_memories; i++) {
		cond_resched();
		r = give_one(given->memories, &from[i]);
	}
	if (r)
		kfd_criu_memories_destroy(given->memories);
	return r;
}

/* Which device of this machine takes the place of one of the image. */
static int find_choice(const struct kfd_criu_v2_args *args, u32 user_gpu_id,
		       struct kfd_criu_v2_device *chosen)
{
	const struct kfd_criu_v2_device __user *devices =
		u64_to_user_ptr(args->devices);
	u32 i;

	for (i = 0; i < args->num_devices && i < MAX_GPU_INSTANCE; i++) {
		if (copy_from_user(chosen, &devices[i], sizeof(*chosen)))
			return -EFAULT;
		if (chosen->reserved)
			return -EINVAL;
		if (chosen->user_gpu_id == user_gpu_id)
			return 0;
	}
	return -ENODEV;
}

static int get_one_device(struct kfd_process *p, const struct incoming *in,
			  const struct kfd_criu_v2_args *args)
{
	const struct kfd_criu_record_device *record = &in->device;
	const u32 flags = le32_to_cpu(record->flags);
	const struct kfd_criu_machine cm = {
		.gfx_target_version = le32_to_cpu(record->gfx_target_version),
		.num_xcc = le32_to_cpu(record->num_xcc),
		.cwsr_size = le32_to_cpu(record->cwsr_size),
		.ctl_stack_size = le32_to_cpu(record->ctl_stack_size),
		.mqd_size = le32_to_cpu(record->mqd_size),
		.sdma_mqd_size = le32_to_cpu(record->sdma_mqd_size),
	};
	const struct kfd_criu_settings cs = {
		.tba = le64_to_cpu(record->tba),
		.tma = le64_to_cpu(record->tma),
		.scratch = le64_to_cpu(record->scratch),
		.policy = {
			.is_set = flags & KFD_CRIU_DEVICE_POLICY,
			.usual = le32_to_cpu(record->default_policy),
			.alternate = le32_to_cpu(record->alternate_policy),
			.base = le64_to_cpu(record->aperture_base),
			.size = le64_to_cpu(record->aperture_size),
		},
	};
	struct kfd_criu_v2_device chosen;
	struct kfd_criu_device cd;
	int r;

	if (flags & ~(KFD_CRIU_DEVICE_ACQUIRED | KFD_CRIU_DEVICE_POLICY))
		return -EINVAL;
	if (!(flags & KFD_CRIU_DEVICE_ACQUIRED))
		return 0;
	r = find_choice(args, le32_to_cpu(record->user_gpu_id), &chosen);
	if (r)
		return r;
	cd.user_gpu_id = chosen.user_gpu_id;
	cd.gpu_id = chosen.gpu_id;
	r = kfd_criu_machine_check(chosen.gpu_id, &cm);
	if (!r)
		r = kfd_criu_device_restore(p, &cd, chosen.drm_fd);
	if (!r)
		r = kfd_criu_settings_restore(p, chosen.user_gpu_id, &cs);
	return r;
}

static int get_mapped(struct kfd_process *p, const struct incoming *in,
		      struct kfd_criu_bo *cb)
{
	const u32 n = le32_to_cpu(in->bo.num_mapped);
	__le32 mapped[MAX_GPU_INSTANCE];
	u32 i;

	if (n > MAX_GPU_INSTANCE || n * sizeof(*mapped) > in->more_bytes)
		return -EINVAL;
	if (copy_from_user(mapped, in->more, n * sizeof(*mapped)))
		return -EFAULT;
	for (i = 0; i < n; i++) {
		int at = kfd_process_gpuidx_from_gpuid(p, le32_to_cpu(mapped[i]));

		if (at < 0)
			return -EINVAL;
		__set_bit(at, cb->mapped);
	}
	return 0;
}

static int get_bo(struct kfd_process *p, const struct incoming *in,
		  struct kfd_criu_memories *memories)
{
	const u32 flags = le32_to_cpu(in->bo.flags);
	struct kfd_criu_bo cb = {
		.gpu_id = le32_to_cpu(in->bo.gpu_id),
		.handle = le32_to_cpu(in->bo.handle),
		.flags = le32_to_cpu(in->bo.alloc_flags),
		.va = le64_to_cpu(in->bo.va),
		.size = le64_to_cpu(in->bo.size),
		.user_addr = le64_to_cpu(in->bo.user_addr),
		.identity = le64_to_cpu(in->bo.identity),
		.imported = flags & KFD_CRIU_BO_IMPORTED,
	};
	struct kgd_mem *mem;
	int r;

	if (flags & ~KFD_CRIU_BO_IMPORTED)
		return -EINVAL;
	r = get_mapped(p, in, &cb);
	return r ? r : kfd_criu_bo_restore(p, &cb, memories, &mem);
}

static void read_queue(struct kfd_criu_queue *cq,
		       const struct kfd_criu_record_queue *record)
{
	const u32 flags = le32_to_cpu(record->flags);
	struct queue_properties *qp = &cq->qp;

	memset(cq, 0, sizeof(*cq));
	cq->gpu_id = le32_to_cpu(record->gpu_id);
	cq->queue_id = le32_to_cpu(record->queue_id);
	cq->doorbell_id = le32_to_cpu(record->doorbell_id);
	cq->sdma_id = le32_to_cpu(record->sdma_id);
	cq->gws = flags & KFD_CRIU_QUEUE_GWS;
	qp->is_user_cu_masked = flags & KFD_CRIU_QUEUE_CU_MASKED;
	qp->queue_address = le64_to_cpu(record->ring_address);
	qp->queue_size = le64_to_cpu(record->ring_size);
	qp->read_ptr = u64_to_user_ptr(le64_to_cpu(record->read_pointer));
	qp->write_ptr = u64_to_user_ptr(le64_to_cpu(record->write_pointer));
	qp->eop_ring_buffer_address = le64_to_cpu(record->eop_address);
	qp->eop_ring_buffer_size = le32_to_cpu(record->eop_size);
	qp->ctx_save_restore_area_address = le64_to_cpu(record->save_area);
	qp->ctx_save_restore_area_size = le32_to_cpu(record->save_area_size);
	qp->exception_status = le64_to_cpu(record->exception_status);
	qp->priority = le32_to_cpu(record->priority);
	qp->queue_percent = le32_to_cpu(record->percentage);
	qp->pm4_target_xcc = le32_to_cpu(record->pm4_target_xcc);
}

/* The device says how many bytes of MQDs there must be; the image is only compared. */
static int get_mqds(const struct kfd_node *node, const struct incoming *in,
		    struct kfd_criu_queue *cq)
{
	struct kfd_criu_mqd *mqd = &cq->mqd;
	size_t bytes;
	int r;

	cq->qp.ctl_stack_size = node->ctl_stack_size;
	r = kfd_criu_mqd_describe(node, &cq->qp, mqd);
	if (r)
		return r;
	bytes = kfd_criu_mqd_bytes(mqd);
	if (le32_to_cpu(in->queue.num_xcc) != mqd->n_xcc ||
	    le32_to_cpu(in->queue.mqd_size) != mqd->mqd_size ||
	    le32_to_cpu(in->queue.ctl_stack_size) != mqd->ctl_stack_size ||
	    in->more_bytes < bytes)
		return -EINVAL;
	mqd->data = kvmalloc(bytes, GFP_KERNEL_ACCOUNT);
	if (!mqd->data)
		return -ENOMEM;
	if (!copy_from_user(mqd->data, in->more, bytes))
		return 0;
	kfd_criu_queue_free(cq);
	return -EFAULT;
}

static int get_queue(struct kfd_process *p, const struct incoming *in)
{
	const u32 flags = le32_to_cpu(in->queue.flags);
	struct kfd_process_device *pdd;
	struct kfd_criu_queue cq;
	int r;

	if (flags & ~(KFD_CRIU_QUEUE_GWS | KFD_CRIU_QUEUE_CU_MASKED))
		return -EINVAL;
	read_queue(&cq, &in->queue);
	r = kfd_criu_queue_set_type(&cq.qp, le32_to_cpu(in->queue.type));
	if (r)
		return r;
	pdd = kfd_process_device_data_by_id(p, cq.gpu_id);
	if (!pdd)
		return -EINVAL;
	r = kfd_criu_queue_check(pdd, &cq);
	if (!r)
		r = get_mqds(pdd->dev, in, &cq);
	if (r)
		return r;
	r = kfd_criu_queue_restore(p, pdd, &cq);
	kfd_criu_queue_free(&cq);
	return r;
}

static int get_event(struct kfd_process *p, const struct incoming *in)
{
	const struct kfd_criu_record_event *record = &in->event;
	const u32 flags = le32_to_cpu(record->flags);
	struct kfd_criu_event ce = {
		.id = le32_to_cpu(record->event_id),
		.type = le32_to_cpu(record->type),
		.auto_reset = flags & KFD_CRIU_EVENT_AUTO_RESET,
		.signaled = flags & KFD_CRIU_EVENT_SIGNALED,
		.age = le64_to_cpu(record->age),
	};

	if (flags & ~(KFD_CRIU_EVENT_AUTO_RESET | KFD_CRIU_EVENT_SIGNALED))
		return -EINVAL;
	if (ce.type == KFD_EVENT_TYPE_MEMORY) {
		ce.memory_exception.gpu_id = le32_to_cpu(record->gpu_id);
		ce.memory_exception.va = le64_to_cpu(record->address);
		ce.memory_exception.ErrorType = le32_to_cpu(record->error_type);
		ce.memory_exception.failure.NotPresent =
			le32_to_cpu(record->failure[0]);
		ce.memory_exception.failure.ReadOnly =
			le32_to_cpu(record->failure[1]);
		ce.memory_exception.failure.NoExecute =
			le32_to_cpu(record->failure[2]);
		ce.memory_exception.failure.imprecise =
			le32_to_cpu(record->failure[3]);
	} else if (ce.type == KFD_EVENT_TYPE_HW_EXCEPTION) {
		ce.hw_exception.gpu_id = le32_to_cpu(record->gpu_id);
		ce.hw_exception.reset_type = le32_to_cpu(record->reset[0]);
		ce.hw_exception.reset_cause = le32_to_cpu(record->reset[1]);
		ce.hw_exception.memory_lost = le32_to_cpu(record->memory_lost);
	}
	return kfd_criu_event_restore(p, &ce);
}

static int get_access(struct kfd_process *p, const struct incoming *in,
		      struct kfd_criu_svm *cs)
{
	const u32 n = le32_to_cpu(in->svm.num_access);
	struct kfd_criu_svm_device access[MAX_GPU_INSTANCE];
	u32 i;

	if (n > MAX_GPU_INSTANCE || n * sizeof(*access) > in->more_bytes)
		return -EINVAL;
	if (copy_from_user(access, in->more, n * sizeof(*access)))
		return -EFAULT;
	for (i = 0; i < n; i++) {
		int at = kfd_process_gpuidx_from_gpuid(p,
						       le32_to_cpu(access[i].gpu_id));
		int r;

		if (at < 0)
			return -EINVAL;
		r = kfd_criu_svm_access_of(le32_to_cpu(access[i].access));
		if (r < 0)
			return r;
		cs->access[at] = r;
	}
	return 0;
}

static int get_svm_range(struct kfd_process *p, const struct incoming *in)
{
	const struct kfd_criu_record_svm_range *record = &in->svm;
	struct kfd_criu_svm cs = {
		.start = le64_to_cpu(record->start) >> PAGE_SHIFT,
		.npages = le64_to_cpu(record->size) >> PAGE_SHIFT,
		.flags = le32_to_cpu(record->flags),
		.granularity = le32_to_cpu(record->granularity),
		.preferred_loc = le32_to_cpu(record->preferred_location),
		.prefetch_loc = le32_to_cpu(record->prefetch_location),
	};
	int r;

	if (!PAGE_ALIGNED(le64_to_cpu(record->start)) ||
	    !PAGE_ALIGNED(le64_to_cpu(record->size)))
		return -EINVAL;
	r = get_access(p, in, &cs);
	return r ? r : kfd_criu_svm_stage(p, &cs);
}

static int get_record(struct kfd_process *p, const struct incoming *in,
		      struct given *given)
{
	switch (le32_to_cpu(in->record.type)) {
	case KFD_CRIU_RECORD_PROCESS:
		return get_process(p, in);
	case KFD_CRIU_RECORD_DEVICE:
		return get_one_device(p, in, given->args);
	case KFD_CRIU_RECORD_BO:
		return get_bo(p, in, given->memories);
	case KFD_CRIU_RECORD_QUEUE:
		return get_queue(p, in);
	case KFD_CRIU_RECORD_EVENT_PAGE:
		return kfd_kmap_event_page(p, le64_to_cpu(in->page.handle));
	case KFD_CRIU_RECORD_EVENT:
		return get_event(p, in);
	case KFD_CRIU_RECORD_SVM_RANGE:
		return get_svm_range(p, in);
	default:
		return 0;
	}
}

static int get_image(struct kfd_process *p, struct stream *s,
		     struct given *given)
{
	u32 newest = 0;
	int r = 0;

	while (!r && s->at < s->room) {
		struct incoming in;
		u32 type;

		cond_resched();
		r = get(s, &in);
		if (r)
			break;
		type = le32_to_cpu(in.record.type);
		if (!is_known(type))
			continue;
		if (type < newest)
			return -EINVAL;
		/* The devices are complete before anything is made on them. */
		if (newest <= KFD_CRIU_RECORD_DEVICE &&
		    type > KFD_CRIU_RECORD_DEVICE)
			r = kfd_criu_begin_objects(p);
		if (!r)
			r = get_record(p, &in, given);
		newest = type;
	}
	if (!r && newest <= KFD_CRIU_RECORD_DEVICE)
		r = kfd_criu_begin_objects(p);
	return r;
}

/* ---- operations ---- */

/* Bits of members of struct kfd_criu_v2_args. */
#define USES_DATA	BIT(0)
#define USES_DEVICES	BIT(1)
#define USES_BO		BIT(2)
#define USES_PID	BIT(3)
#define USES_MEMORIES	BIT(4)

static const u8 used[] = {
	[KFD_CRIU_V2_PROBE - KFD_CRIU_V2_PROBE] = USES_DATA,
	[KFD_CRIU_V2_PAUSE - KFD_CRIU_V2_PROBE] = 0,
	[KFD_CRIU_V2_CHECKPOINT - KFD_CRIU_V2_PROBE] = USES_DATA,
	[KFD_CRIU_V2_UNPAUSE - KFD_CRIU_V2_PROBE] = 0,
	[KFD_CRIU_V2_RESTORE - KFD_CRIU_V2_PROBE] = USES_DATA | USES_DEVICES |
						    USES_MEMORIES,
	[KFD_CRIU_V2_RESUME - KFD_CRIU_V2_PROBE] = USES_PID,
	[KFD_CRIU_V2_ABORT - KFD_CRIU_V2_PROBE] = 0,
	[KFD_CRIU_V2_EXPORT_BO - KFD_CRIU_V2_PROBE] = USES_BO,
	[KFD_CRIU_V2_STATE - KFD_CRIU_V2_PROBE] = 0,
	[KFD_CRIU_V2_BO_OFFSET - KFD_CRIU_V2_PROBE] = USES_BO,
};

static int measure(struct kfd_process *p, void *data)
{
	struct kfd_criu_v2_args *args = data;
	struct stream s = {};
	int r;

	r = put_image(&s, p);
	args->data_size = s.at;
	return r;
}

static int probe(const struct kfd_criu_v2_args *args)
{
	struct kfd_criu_v2_probe answer = {
		.size = sizeof(answer),
		.args_size = sizeof(*args),
		.ops = (1ULL << ARRAY_SIZE(used)) - 1,
	};
	u32 type;

	for (type = 1; type <= NEWEST_TYPE; type++)
		answer.record_versions[type] = 1;
	if (args->data_size < sizeof(answer.size))
		return -EINVAL;
	if (copy_to_user(u64_to_user_ptr(args->data), &answer,
			 min_t(u64, args->data_size, sizeof(answer))))
		return -EFAULT;
	return 0;
}

static int checkpoint(struct kfd_process *p, struct kfd_criu_v2_args *args)
{
	struct stream s = {
		.data = u64_to_user_ptr(args->data),
		.room = args->data_size,
	};
	int r;

	r = kfd_criu_session_check(p, KFD_CRIU_OP_CHECKPOINT);
	if (!r)
		r = put_image(&s, p);
	if (r)
		return r;
	args->data_size = s.at;
	return s.at > s.room ? -E2BIG : 0;
}

static int restore(struct kfd_process *p, const struct kfd_criu_v2_args *args)
{
	struct stream s = {
		.data = u64_to_user_ptr(args->data),
		.room = args->data_size,
	};
	struct given given;
	int r;

	r = kfd_criu_may_restore(p);
	if (!r)
		r = check_image(&s);
	if (!r)
		r = get_given(&given, args);
	if (r)
		return r;
	r = kfd_criu_begin_restore(p);
	if (!r) {
		r = get_image(p, &s, &given);
		kfd_criu_end_restore(p, r);
	}
	kfd_criu_memories_destroy(given.memories);
	return r;
}

static int find_bo(struct kfd_process *p, const struct kfd_criu_v2_args *args,
		   struct kfd_process_device **pdd, struct kgd_mem **mem)
{
	int r;

	if (p->criu.state != KFD_CRIU_RESTORED) {
		r = kfd_criu_session_check(p, KFD_CRIU_OP_CHECKPOINT);
		if (r)
			return r;
	}
	*pdd = kfd_process_device_data_by_id(p, args->gpu_id);
	*mem = *pdd ? kfd_process_device_translate_handle(*pdd, args->handle) :
		      NULL;
	return *mem ? 0 : -ENOENT;
}

static int export_bo(struct kfd_process *p, struct kfd_criu_v2_args *args)
{
	struct kfd_process_device *pdd;
	struct kgd_mem *mem;
	struct file *file;
	int fd, r;

	r = find_bo(p, args, &pdd, &mem);
	if (r)
		return r;
	if (!kfd_criu_bo_has_contents(mem->alloc_flags))
		return -EINVAL;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	r = kfd_criu_bo_export(mem, &file);
	if (r) {
		put_unused_fd(fd);
		return r;
	}
	/* From here on it is the caller's, who finds its number in the args. */
	fd_install(fd, file);
	args->fd = fd;
	return 0;
}

static int bo_offset(struct kfd_process *p, struct kfd_criu_v2_args *args)
{
	struct kfd_process_device *pdd;
	struct kfd_criu_bo cb;
	struct kgd_mem *mem;
	int r;

	r = find_bo(p, args, &pdd, &mem);
	if (!r)
		r = kfd_criu_bo_describe(pdd, args->handle, mem, &cb);
	if (!r)
		args->offset = cb.mmap_offset;
	return r;
}

static int locked_op(struct kfd_process *p, struct kfd_criu_v2_args *args)
{
	switch (args->op) {
	case KFD_CRIU_V2_PROBE:
		return probe(args);
	case KFD_CRIU_V2_PAUSE:
		return kfd_criu_pause(p, &args->pid, measure, args);
	case KFD_CRIU_V2_CHECKPOINT:
		return checkpoint(p, args);
	case KFD_CRIU_V2_UNPAUSE:
		return kfd_criu_unpause(p);
	case KFD_CRIU_V2_RESTORE:
		return restore(p, args);
	case KFD_CRIU_V2_ABORT:
		return kfd_criu_abort(p);
	case KFD_CRIU_V2_EXPORT_BO:
		return export_bo(p, args);
	case KFD_CRIU_V2_STATE:
		return 0;
	case KFD_CRIU_V2_BO_OFFSET:
		return bo_offset(p, args);
	default:
		return -EINVAL;
	}
}

/**
 * kfd_criu_v2_check - whether args are args
 * @args: of any operation from KFD_CRIU_V2_PROBE on
 *
 * Return: 0; -EINVAL for an operation, a flag or a member that there is not.
 */
int kfd_criu_v2_check(const struct kfd_criu_v2_args *args)
{
	const u32 op = args->op - KFD_CRIU_V2_PROBE;
	u8 uses;

	if (op >= ARRAY_SIZE(used) || args->flags || args->reserved ||
	    args->reserved2)
		return -EINVAL;
	uses = used[op];
	if ((!(uses & USES_DATA) && (args->data || args->data_size)) ||
	    (!(uses & USES_DEVICES) && (args->devices || args->num_devices)) ||
	    (!(uses & USES_BO) && (args->gpu_id || args->handle)) ||
	    (!(uses & USES_PID) && args->pid) ||
	    (!(uses & USES_MEMORIES) && (args->memories || args->num_memories)) ||
	    args->state || args->fd || args->offset)
		return -EINVAL;
	return 0;
}

/**
 * kfd_criu_v2_ioctl - the operations of the extensible ABI
 * @p: the process; the caller may checkpoint and restore it
 * @args: kfd_criu_v2_check() has passed them
 *
 * Return: 0 or a negative errno, as the operations say in kfd_criu_ioctl.h.
 */
int kfd_criu_v2_ioctl(struct kfd_process *p, struct kfd_criu_v2_args *args)
{
	int r;

	if (args->op == KFD_CRIU_V2_RESUME) {
		r = kfd_criu_resume_pid(args->pid);
	} else {
		mutex_lock(&p->mutex);
		r = locked_op(p, args);
		mutex_unlock(&p->mutex);
	}
	args->state = READ_ONCE(p->criu.state);
	return r;
}
