// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The extensible ABI: restores objects from a sequence of records.
 *
 * The reader walks over the image twice: first over the headers, so that
 * unknown records are refused before anything is changed, then over everything.
 * User memory may change in between, so the second walk relies on nothing that
 * the first one has checked.
 *
 * Locks: the callers hold p->mutex.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "kfd_criu.h"
#include "kfd_criu_v2.h"
#include "kfd_events.h"
#include "kfd_priv.h"

/* Bytes of a record of version 1 without its payload. */
static const u32 kfd_criu_v2_min_size[KFD_CRIU_MAX_RECORD_TYPE + 1] = {
	[KFD_CRIU_RECORD_IMAGE] = sizeof(struct kfd_criu_record_image),
	[KFD_CRIU_RECORD_PROCESS] = sizeof(struct kfd_criu_record_process),
	[KFD_CRIU_RECORD_DEVICE] = sizeof(struct kfd_criu_record_device),
	[KFD_CRIU_RECORD_BO] = sizeof(struct kfd_criu_record_bo),
	[KFD_CRIU_RECORD_QUEUE] = sizeof(struct kfd_criu_record_queue),
	[KFD_CRIU_RECORD_EVENT_PAGE] = sizeof(struct kfd_criu_record_event_page),
	[KFD_CRIU_RECORD_EVENT] = sizeof(struct kfd_criu_record_event),
	[KFD_CRIU_RECORD_SVM_RANGE] = sizeof(struct kfd_criu_record_svm_range),
};

static bool kfd_criu_v2_record_is_known(const struct kfd_criu_record *record)
{
	const u16 version = le16_to_cpu(record->version);
	const u32 type = le32_to_cpu(record->type);

	return version && version <= kfd_criu_max_record_version(type);
}

/* Types of which an image has at most one record. */
static bool kfd_criu_v2_record_is_unique(u32 type)
{
	return type == KFD_CRIU_RECORD_IMAGE || type == KFD_CRIU_RECORD_PROCESS ||
	       type == KFD_CRIU_RECORD_EVENT_PAGE;
}

static bool kfd_criu_v2_order_is_valid(u32 type, u32 last)
{
	return type > last ||
	       (type == last && !kfd_criu_v2_record_is_unique(type));
}

/*
 * Reads the header of the record at s->pos and checks that the record lies
 * within the image.
 */
static int kfd_criu_v2_read_header(const struct kfd_criu_stream *s,
				   struct kfd_criu_record *record)
{
	u64 size;

	if (s->size - s->pos < sizeof(*record))
		return -EINVAL;
	if (copy_from_user(record, s->data + s->pos, sizeof(*record)))
		return -EFAULT;
	size = le64_to_cpu(record->size);
	if (size < sizeof(*record) || size > s->size - s->pos ||
	    !IS_ALIGNED(size, 8))
		return -EINVAL;
	return 0;
}

static int kfd_criu_v2_check_header(const struct kfd_criu_record *record)
{
	const u32 type = le32_to_cpu(record->type);
	const bool known = kfd_criu_v2_record_is_known(record);

	if (le16_to_cpu(record->flags) & ~KFD_CRIU_RECORD_REQUIRED)
		return -EINVAL;
	if (!known && le16_to_cpu(record->flags) & KFD_CRIU_RECORD_REQUIRED) {
		pr_debug("image has a record of type %u, version %u\n", type,
			 le16_to_cpu(record->version));
		return -EPROTONOSUPPORT;
	}
	if (known && le64_to_cpu(record->size) < kfd_criu_v2_min_size[type])
		return -EINVAL;
	return 0;
}

/*
 * Records of known types must be in the order of their types, unknown ones may
 * be anywhere.
 */
static int kfd_criu_v2_check_records(struct kfd_criu_stream *s)
{
	u32 type, last_type = 0;
	struct kfd_criu_record record;
	int r;

	while (s->pos < s->size) {
		r = kfd_criu_check_killed();
		if (r)
			return r;
		r = kfd_criu_v2_read_header(s, &record);
		if (r)
			return r;
		r = kfd_criu_v2_check_header(&record);
		if (r)
			return r;
		type = 0;
		if (kfd_criu_v2_record_is_known(&record)) {
			type = le32_to_cpu(record.type);
			if (!kfd_criu_v2_order_is_valid(type, last_type))
				return -EINVAL;
			last_type = type;
		}
		if (!s->num_records && type != KFD_CRIU_RECORD_IMAGE)
			return -EINVAL;
		s->pos += le64_to_cpu(record.size);
		s->num_records++;
	}
	return s->num_records ? 0 : -EINVAL;
}

/**
 * kfd_criu_check_image - check that an image can be read, before anything is
 * changed
 * @image: the whole image
 *
 * Return: 0; -EPROTONOSUPPORT if a record is required but its type or version
 * is unknown; -EINVAL if this is not an image or its records are not in order;
 * -EFAULT; -EINTR if the caller was killed.
 */
int kfd_criu_check_image(const struct kfd_criu_stream *image)
{
	struct kfd_criu_record_image record;
	struct kfd_criu_stream s = *image;
	int r;

	r = kfd_criu_v2_check_records(&s);
	if (r)
		return r;
	if (copy_from_user(&record, image->data, sizeof(record)))
		return -EFAULT;
	if (le64_to_cpu(record.magic) != KFD_CRIU_IMAGE_MAGIC ||
	    le64_to_cpu(record.size) != image->size ||
	    le32_to_cpu(record.num_records) != s.num_records || record.reserved)
		return -EINVAL;
	return 0;
}

/*
 * A record that is being read: its fixed part is copied here, its payload is in
 * user memory.
 */
struct kfd_criu_v2_record {
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
	const u8 __user *payload;
	u64 payload_bytes;
};

/*
 * Bytes between the fixed part and the padding. In version 1 nothing else may
 * follow.
 */
static u64 kfd_criu_v2_payload_bytes(const struct kfd_criu_v2_record *in)
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

static int kfd_criu_v2_check_payload(const struct kfd_criu_v2_record *in)
{
	const u64 bytes = kfd_criu_v2_payload_bytes(in);
	int r;

	if (bytes > in->payload_bytes || in->payload_bytes - bytes >= 8)
		return -EINVAL;
	r = check_zeroed_user(in->payload + bytes, in->payload_bytes - bytes);
	if (r < 0)
		return r;
	return r ? 0 : -EINVAL;
}

static int kfd_criu_v2_read_record(struct kfd_criu_stream *s,
				   struct kfd_criu_v2_record *in)
{
	u32 fixed = sizeof(in->record);
	bool known;
	u64 size;
	int r;

	r = kfd_criu_v2_read_header(s, &in->record);
	if (r)
		return r;
	r = kfd_criu_v2_check_header(&in->record);
	if (r)
		return r;
	size = le64_to_cpu(in->record.size);
	known = kfd_criu_v2_record_is_known(&in->record);
	if (known)
		fixed = kfd_criu_v2_min_size[le32_to_cpu(in->record.type)];
	/*
	 * The header is not copied again, so it is the one that was just
	 * checked.
	 */
	if (copy_from_user((u8 *)in + sizeof(in->record),
			   s->data + s->pos + sizeof(in->record),
			   fixed - sizeof(in->record)))
		return -EFAULT;
	in->payload = s->data + s->pos + fixed;
	in->payload_bytes = size - fixed;
	s->pos += size;
	return known ? kfd_criu_v2_check_payload(in) : 0;
}

static int kfd_criu_v2_restore_process(struct kfd_process *p,
				       const struct kfd_criu_v2_record *in)
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

/*
 * Finds the device of this machine that the caller has chosen for a device of
 * the image.
 */
static int kfd_criu_v2_find_device(const struct kfd_criu_v2_args *args,
				   u32 user_gpu_id,
				   struct kfd_criu_v2_device *device)
{
	const struct kfd_criu_v2_device __user *devices =
		u64_to_user_ptr(args->devices);
	u32 i;

	for (i = 0; i < args->num_devices && i < MAX_GPU_INSTANCE; i++) {
		if (copy_from_user(device, &devices[i], sizeof(*device)))
			return -EFAULT;
		if (device->reserved)
			return -EINVAL;
		if (device->user_gpu_id == user_gpu_id)
			return 0;
	}
	return -ENODEV;
}

static int kfd_criu_v2_restore_device(struct kfd_process *p,
				      const struct kfd_criu_v2_record *in,
				      const struct kfd_criu_v2_args *args)
{
	const struct kfd_criu_record_device *record = &in->device;
	const u32 flags = le32_to_cpu(record->flags);
	const struct kfd_criu_device_compat compat = {
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
			.default_policy = le32_to_cpu(record->default_policy),
			.alternate_policy = le32_to_cpu(record->alternate_policy),
			.aperture_base = le64_to_cpu(record->aperture_base),
			.aperture_size = le64_to_cpu(record->aperture_size),
		},
	};
	struct kfd_criu_v2_device device;
	struct kfd_criu_device cd;
	int r;

	if (flags & ~(KFD_CRIU_DEVICE_ACQUIRED | KFD_CRIU_DEVICE_POLICY) ||
	    record->reserved)
		return -EINVAL;
	r = kfd_criu_v2_find_device(args, le32_to_cpu(record->user_gpu_id),
				    &device);
	/*
	 * A device that the program has not acquired need not exist on this
	 * machine.
	 */
	if (r == -ENODEV && !(flags & KFD_CRIU_DEVICE_ACQUIRED))
		return 0;
	if (r)
		return r;
	cd.user_gpu_id = device.user_gpu_id;
	cd.gpu_id = device.gpu_id;
	r = kfd_criu_device_compat_check(device.gpu_id, &compat);
	if (r)
		return r;
	if (!(flags & KFD_CRIU_DEVICE_ACQUIRED))
		return kfd_criu_device_set_user_gpu_id(p, &cd);
	r = kfd_criu_device_restore(p, &cd, device.drm_fd);
	if (r)
		return r;
	return kfd_criu_settings_restore(p, device.user_gpu_id, &cs);
}

static int kfd_criu_v2_parse_mapped(struct kfd_process *p,
				    const struct kfd_criu_v2_record *in,
				    struct kfd_criu_bo *cb)
{
	const u32 n = le32_to_cpu(in->bo.num_mapped);
	__le32 mapped[MAX_GPU_INSTANCE];
	u32 i;

	if (n > MAX_GPU_INSTANCE)
		return -EINVAL;
	if (copy_from_user(mapped, in->payload, n * sizeof(*mapped)))
		return -EFAULT;
	for (i = 0; i < n; i++) {
		const u32 gpu_id = le32_to_cpu(mapped[i]);
		int index = kfd_process_gpuidx_from_gpuid(p, gpu_id);

		if (index < 0)
			return -EINVAL;
		__set_bit(index, cb->mapped);
	}
	return 0;
}

static int kfd_criu_v2_restore_bo(struct kfd_process *p,
				  const struct kfd_criu_v2_record *in,
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
	r = kfd_criu_v2_parse_mapped(p, in, &cb);
	if (r)
		return r;
	return kfd_criu_bo_restore(p, &cb, memories, &mem);
}

static void kfd_criu_v2_parse_queue(struct kfd_criu_queue *cq,
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

/*
 * The device decides how many bytes of MQDs to read; the sizes in the image
 * must agree.
 */
static int kfd_criu_v2_read_mqds(const struct kfd_node *node,
				 const struct kfd_criu_v2_record *in,
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
	if (copy_from_user(mqd->data, in->payload, bytes)) {
		kfd_criu_queue_free(cq);
		return -EFAULT;
	}
	return 0;
}

static int kfd_criu_v2_restore_queue(struct kfd_process *p,
				     const struct kfd_criu_v2_record *in)
{
	const u32 flags = le32_to_cpu(in->queue.flags);
	struct kfd_process_device *pdd;
	struct kfd_criu_queue cq;
	int r;

	if (flags & ~(KFD_CRIU_QUEUE_GWS | KFD_CRIU_QUEUE_CU_MASKED))
		return -EINVAL;
	kfd_criu_v2_parse_queue(&cq, &in->queue);
	r = kfd_criu_queue_set_type(&cq.qp, le32_to_cpu(in->queue.type));
	if (r)
		return r;
	pdd = kfd_process_device_data_by_id(p, cq.gpu_id);
	if (!pdd)
		return -EINVAL;
	r = kfd_criu_queue_check(pdd, &cq);
	if (r)
		return r;
	r = kfd_criu_v2_read_mqds(pdd->dev, in, &cq);
	if (r)
		return r;
	r = kfd_criu_queue_restore(p, pdd, &cq);
	kfd_criu_queue_free(&cq);
	return r;
}

static int kfd_criu_v2_restore_event(struct kfd_process *p,
				     const struct kfd_criu_v2_record *in)
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

static int kfd_criu_v2_parse_access(struct kfd_process *p,
				    const struct kfd_criu_v2_record *in,
				    struct kfd_criu_svm *cs)
{
	const u32 n = le32_to_cpu(in->svm.num_access);
	struct kfd_criu_svm_device access[MAX_GPU_INSTANCE];
	u32 i;

	if (n > MAX_GPU_INSTANCE)
		return -EINVAL;
	if (copy_from_user(access, in->payload, n * sizeof(*access)))
		return -EFAULT;
	for (i = 0; i < n; i++) {
		const u32 attribute = le32_to_cpu(access[i].access);
		const u32 gpu_id = le32_to_cpu(access[i].gpu_id);
		int r = kfd_criu_svm_access_from_attr(attribute);

		if (r < 0)
			return r;
		r = kfd_criu_svm_add_access(p, cs, gpu_id, r);
		if (r)
			return r;
	}
	return 0;
}

static int kfd_criu_v2_stage_svm_range(struct kfd_process *p,
				       const struct kfd_criu_v2_record *in)
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
	r = kfd_criu_v2_parse_access(p, in, &cs);
	if (r)
		return r;
	return kfd_criu_svm_stage(p, &cs);
}

static int kfd_criu_v2_restore_record(struct kfd_process *p,
				      const struct kfd_criu_v2_record *in,
				      const struct kfd_criu_restore_ctx *ctx)
{
	switch (le32_to_cpu(in->record.type)) {
	case KFD_CRIU_RECORD_PROCESS:
		return kfd_criu_v2_restore_process(p, in);
	case KFD_CRIU_RECORD_DEVICE:
		return kfd_criu_v2_restore_device(p, in, ctx->args);
	case KFD_CRIU_RECORD_BO:
		return kfd_criu_v2_restore_bo(p, in, ctx->memories);
	case KFD_CRIU_RECORD_QUEUE:
		return kfd_criu_v2_restore_queue(p, in);
	case KFD_CRIU_RECORD_EVENT_PAGE:
		return kfd_kmap_event_page(p, le64_to_cpu(in->page.handle));
	case KFD_CRIU_RECORD_EVENT:
		return kfd_criu_v2_restore_event(p, in);
	case KFD_CRIU_RECORD_SVM_RANGE:
		return kfd_criu_v2_stage_svm_range(p, in);
	default:
		return 0;
	}
}

/**
 * kfd_criu_read_image - restore the objects that an image describes
 * @p: process after kfd_criu_begin_restore()
 * @s: image that kfd_criu_check_image() has passed; user space may change it
 *	meanwhile
 * @ctx: what the caller supplies besides the image
 *
 * Return: 0; as kfd_criu_check_image(); the error of an object that cannot be
 * restored, then the objects before it exist.
 */
int kfd_criu_read_image(struct kfd_process *p, struct kfd_criu_stream *s,
			const struct kfd_criu_restore_ctx *ctx)
{
	u32 last_type = 0;
	int r;

	while (s->pos < s->size) {
		struct kfd_criu_v2_record in;
		u32 type;

		r = kfd_criu_check_killed();
		if (r)
			return r;
		r = kfd_criu_v2_read_record(s, &in);
		if (r)
			return r;
		if (!kfd_criu_v2_record_is_known(&in.record))
			continue;
		type = le32_to_cpu(in.record.type);
		if (!kfd_criu_v2_order_is_valid(type, last_type))
			return -EINVAL;
		/*
		 * All devices must be bound before any other object is
		 * restored.
		 */
		if (last_type <= KFD_CRIU_RECORD_DEVICE &&
		    type > KFD_CRIU_RECORD_DEVICE) {
			r = kfd_criu_finish_devices(p);
			if (r)
				return r;
		}
		r = kfd_criu_v2_restore_record(p, &in, ctx);
		if (r)
			return r;
		last_type = type;
	}
	if (last_type <= KFD_CRIU_RECORD_DEVICE)
		return kfd_criu_finish_devices(p);
	return 0;
}
