// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The extensible ABI: objects of a row of records.
 *
 * A reader goes over the image twice. First over the headers only, so that what it
 * does not know is refused while nothing has been done; then over everything. User
 * memory may have changed in between, so nothing is believed the second time that was
 * not looked at the second time.
 *
 * Locks: the callers hold p->mutex.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "kfd_criu.h"
#include "kfd_criu_v2.h"
#include "kfd_events.h"
#include "kfd_priv.h"

/* Of version 1: bytes at least. */
static const u32 least_size[KFD_CRIU_NEWEST_TYPE + 1] = {
	[KFD_CRIU_RECORD_IMAGE] = sizeof(struct kfd_criu_record_image),
	[KFD_CRIU_RECORD_PROCESS] = sizeof(struct kfd_criu_record_process),
	[KFD_CRIU_RECORD_DEVICE] = sizeof(struct kfd_criu_record_device),
	[KFD_CRIU_RECORD_BO] = sizeof(struct kfd_criu_record_bo),
	[KFD_CRIU_RECORD_QUEUE] = sizeof(struct kfd_criu_record_queue),
	[KFD_CRIU_RECORD_EVENT_PAGE] = sizeof(struct kfd_criu_record_event_page),
	[KFD_CRIU_RECORD_EVENT] = sizeof(struct kfd_criu_record_event),
	[KFD_CRIU_RECORD_SVM_RANGE] = sizeof(struct kfd_criu_record_svm_range),
};

static bool is_known(const struct kfd_criu_record *record)
{
	const u16 version = le16_to_cpu(record->version);

	return version &&
	       version <= kfd_criu_newest_version(le32_to_cpu(record->type));
}

/* Of which there is one at most. */
static bool is_single(u32 type)
{
	return type == KFD_CRIU_RECORD_IMAGE || type == KFD_CRIU_RECORD_PROCESS ||
	       type == KFD_CRIU_RECORD_EVENT_PAGE;
}

static bool may_follow(u32 type, u32 last)
{
	return type > last || (type == last && !is_single(type));
}

/* The header of the record at s->at, if all of it is there and it can be read. */
static int get_header(const struct kfd_criu_stream *s,
		      struct kfd_criu_record *record)
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
	const bool known = is_known(record);

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
static int check_records(struct kfd_criu_stream *s)
{
	u32 type, newest = 0;
	struct kfd_criu_record record;
	int r;

	while (s->at < s->room) {
		r = kfd_criu_go_on();
		if (!r)
			r = get_header(s, &record);
		if (!r)
			r = check_header(&record);
		if (r)
			return r;
		type = is_known(&record) ? le32_to_cpu(record.type) : 0;
		if (type && !may_follow(type, newest))
			return -EINVAL;
		if (!s->records && type != KFD_CRIU_RECORD_IMAGE)
			return -EINVAL;
		newest = type ? type : newest;
		s->at += le64_to_cpu(record.size);
		s->records++;
	}
	return s->records ? 0 : -EINVAL;
}

/**
 * kfd_criu_check_image - whether an image can be read at all
 * @image: all of it
 *
 * Return: 0; -EPROTONOSUPPORT if a record is required and not known; -EINVAL if it is no
 * image, or records are not in their order; -EFAULT.
 */
int kfd_criu_check_image(const struct kfd_criu_stream *image)
{
	struct kfd_criu_record_image record;
	struct kfd_criu_stream s = *image;
	int r;

	r = check_records(&s);
	if (r)
		return r;
	if (copy_from_user(&record, image->data, sizeof(record)))
		return -EFAULT;
	if (le64_to_cpu(record.magic) != KFD_CRIU_IMAGE_MAGIC ||
	    le64_to_cpu(record.size) != image->room ||
	    le32_to_cpu(record.num_records) != s.records || record.reserved)
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

/* Behind the fixed part, before the padding. Version 1 has nothing else. */
static u64 variable_bytes(const struct incoming *in)
{
	switch (le32_to_cpu(in->record.type)) {
	case KFD_CRIU_RECORD_BO:
		return (u64)le32_to_cpu(in->bo.num_mapped) * sizeof(__le32);
	case KFD_CRIU_RECORD_QUEUE:
		return le32_to_cpu(in->queue.num_xcc) *
		       ((u64)le32_to_cpu(in->queue.mqd_size) +
			le32_to_cpu(in->queue.ctl_stack_size));
	case KFD_CRIU_RECORD_SVM_RANGE:
		return (u64)le32_to_cpu(in->svm.num_access) *
		       sizeof(struct kfd_criu_svm_device);
	default:
		return 0;
	}
}

static int check_rest(const struct incoming *in)
{
	const u64 bytes = variable_bytes(in);
	int r;

	if (bytes > in->more_bytes || in->more_bytes - bytes >= 8)
		return -EINVAL;
	r = check_zeroed_user(in->more + bytes, in->more_bytes - bytes);
	return r < 0 ? r : r ? 0 : -EINVAL;
}

static int get(struct kfd_criu_stream *s, struct incoming *in)
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
	fixed = is_known(&in->record) ? least_size[type] : sizeof(in->record);
	/* The header is the one that was checked. */
	if (copy_from_user((u8 *)in + sizeof(in->record),
			   s->data + s->at + sizeof(in->record),
			   fixed - sizeof(in->record)))
		return -EFAULT;
	in->more = s->data + s->at + fixed;
	in->more_bytes = size - fixed;
	s->at += size;
	return is_known(&in->record) ? check_rest(in) : 0;
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

	if (flags & ~(KFD_CRIU_DEVICE_ACQUIRED | KFD_CRIU_DEVICE_POLICY) ||
	    record->reserved)
		return -EINVAL;
	r = find_choice(args, le32_to_cpu(record->user_gpu_id), &chosen);
	/* One that is not used need not be there. */
	if (r == -ENODEV && !(flags & KFD_CRIU_DEVICE_ACQUIRED))
		return 0;
	if (r)
		return r;
	cd.user_gpu_id = chosen.user_gpu_id;
	cd.gpu_id = chosen.gpu_id;
	r = kfd_criu_machine_check(chosen.gpu_id, &cm);
	if (!r && !(flags & KFD_CRIU_DEVICE_ACQUIRED))
		return kfd_criu_device_name(p, &cd);
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

	if (n > MAX_GPU_INSTANCE)
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

	if (flags & ~KFD_CRIU_BO_IMPORTED || in->bo.reserved)
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
	    le32_to_cpu(in->queue.ctl_stack_size) != mqd->ctl_stack_size)
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

	if (n > MAX_GPU_INSTANCE)
		return -EINVAL;
	if (copy_from_user(access, in->more, n * sizeof(*access)))
		return -EFAULT;
	for (i = 0; i < n; i++) {
		int r = kfd_criu_svm_access_of(le32_to_cpu(access[i].access));

		if (r >= 0)
			r = kfd_criu_svm_add_access(p, cs,
						    le32_to_cpu(access[i].gpu_id), r);
		if (r)
			return r;
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
	    !PAGE_ALIGNED(le64_to_cpu(record->size)) || record->reserved)
		return -EINVAL;
	r = get_access(p, in, &cs);
	return r ? r : kfd_criu_svm_stage(p, &cs);
}

static int get_record(struct kfd_process *p, const struct incoming *in,
		      const struct kfd_criu_given *given)
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

/**
 * kfd_criu_read_image - make what is in an image
 * @p: process after kfd_criu_begin_restore()
 * @s: the image, which kfd_criu_check_image() has passed; the caller can change it still
 * @given: what it is restored with
 *
 * Return: 0; as kfd_criu_check_image(); why an object cannot be made. Then some have been.
 */
int kfd_criu_read_image(struct kfd_process *p, struct kfd_criu_stream *s,
			const struct kfd_criu_given *given)
{
	u32 newest = 0;
	int r = 0;

	while (!r && s->at < s->room) {
		struct incoming in;
		u32 type;

		r = kfd_criu_go_on();
		if (!r)
			r = get(s, &in);
		if (r)
			break;
		if (!is_known(&in.record))
			continue;
		type = le32_to_cpu(in.record.type);
		if (!may_follow(type, newest))
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
