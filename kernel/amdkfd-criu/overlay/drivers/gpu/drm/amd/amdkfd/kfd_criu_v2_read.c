// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The extensible ABI: restores objects from a sequence of records.
 *
 * The reader walks over the image twice: first it checks the records and what
 * they say about devices, so that most wrong images are refused before anything
 * is changed, then it restores the objects. User memory may change in between,
 * so the second walk relies on nothing that the first one has checked.
 *
 * Locks: the callers hold p->mutex.
 */
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include "kfd_criu.h"
#include "kfd_criu_v2.h"
#include "kfd_events.h"
#include "kfd_priv.h"

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

/* Members of the memory policy must be 0 if there is none. */
static bool kfd_criu_v2_policy_is_valid(const struct kfd_criu_record_device *record)
{
	if (le32_to_cpu(record->flags) & KFD_CRIU_DEVICE_POLICY)
		return true;
	return !record->default_policy && !record->alternate_policy &&
	       !record->aperture_base && !record->aperture_size;
}

/*
 * Checks what a record says about a device, and finds the device of this machine
 * that the caller has chosen for it. NULL: a device that the program has not
 * acquired need not exist on this machine.
 */
static int kfd_criu_v2_check_device(const struct kfd_criu_v2_record *in,
				    const struct kfd_criu_restore_ctx *ctx,
				    struct kfd_criu_gpu_choice **choice)
{
	const struct kfd_criu_record_device *record = &in->device;
	const u32 flags = le32_to_cpu(record->flags);
	const bool acquired = flags & KFD_CRIU_DEVICE_ACQUIRED;
	const struct kfd_criu_device_compat compat = {
		.gfx_target_version = le32_to_cpu(record->gfx_target_version),
		.num_xcc = le32_to_cpu(record->num_xcc),
		.cwsr_size = le32_to_cpu(record->cwsr_size),
		.ctl_stack_size = le32_to_cpu(record->ctl_stack_size),
		.mqd_layout = le32_to_cpu(record->mqd_layout),
		.sdma_mqd_layout = le32_to_cpu(record->sdma_mqd_layout),
	};

	if (flags & ~(KFD_CRIU_DEVICE_ACQUIRED | KFD_CRIU_DEVICE_POLICY) ||
	    !kfd_criu_v2_policy_is_valid(record))
		return -EINVAL;
	*choice = kfd_criu_gpus_find(ctx->gpus,
				     le32_to_cpu(record->user_gpu_id));
	if (!*choice)
		return acquired ? -ENODEV : 0;
	if (acquired != !!(*choice)->drm_file)
		return -EINVAL;
	return kfd_criu_device_compat_check((*choice)->device.gpu_id, &compat);
}

static int kfd_criu_v2_restore_device(struct kfd_process *p,
				      const struct kfd_criu_v2_record *in,
				      const struct kfd_criu_restore_ctx *ctx)
{
	const struct kfd_criu_record_device *record = &in->device;
	const u32 flags = le32_to_cpu(record->flags);
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
	struct kfd_criu_gpu_choice *choice;
	int r;

	r = kfd_criu_v2_check_device(in, ctx, &choice);
	if (r || !choice)
		return r;
	if (!choice->drm_file)
		return kfd_criu_device_set_user_gpu_id(p, &choice->device);
	r = kfd_criu_device_restore(p, &choice->device, choice->drm_file);
	if (r)
		return r;
	return kfd_criu_settings_restore(p, choice->device.user_gpu_id, &cs);
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
		.inode = le64_to_cpu(in->bo.inode),
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
 * The device decides how many words and control stacks to read; the sizes in the
 * image must agree. An image may have fewer words than this kernel knows, but
 * none that it does not know.
 */
static int kfd_criu_v2_read_mqds(const struct kfd_node *node,
				 const struct kfd_criu_v2_record *in,
				 struct kfd_criu_queue *cq)
{
	const enum kfd_queue_type type = cq->qp.type;
	const u32 num_words = le32_to_cpu(in->queue.num_words);
	void *payload;
	int r;

	cq->qp.ctl_stack_size = node->ctl_stack_size;
	r = kfd_criu_mqd_describe(node, &cq->qp, &cq->mqd);
	if (r)
		return r;
	if (le32_to_cpu(in->queue.mqd_layout) !=
		    kfd_criu_mqd_layout_id(node, type) ||
	    le32_to_cpu(in->queue.num_xcc) != cq->mqd.n_xcc ||
	    le32_to_cpu(in->queue.ctl_stack_size) != cq->mqd.ctl_stack_size ||
	    !num_words || !IS_ALIGNED(num_words, 2) ||
	    num_words > kfd_criu_v2_num_words(node, type))
		return -EINVAL;
	payload = vmemdup_user(in->payload,
			       kfd_criu_v2_mqd_bytes(&cq->mqd, num_words));
	if (IS_ERR(payload))
		return PTR_ERR(payload);
	r = kfd_criu_v2_unpack_mqds(node, cq, num_words, payload);
	kvfree(payload);
	return r;
}

static int kfd_criu_v2_restore_queue(struct kfd_process *p,
				     const struct kfd_criu_v2_record *in,
				     bool may_write_registers)
{
	const u32 flags = le32_to_cpu(in->queue.flags);
	struct kfd_process_device *pdd;
	struct kfd_criu_queue cq;
	int r;

	if (flags & ~(KFD_CRIU_QUEUE_GWS | KFD_CRIU_QUEUE_CU_MASKED) ||
	    in->queue.reserved)
		return -EINVAL;
	kfd_criu_v2_parse_queue(&cq, &in->queue);
	r = kfd_criu_queue_set_type(&cq.qp, le32_to_cpu(in->queue.type));
	if (r)
		return r;
	pdd = kfd_process_device_data_by_id(p, cq.gpu_id);
	/* User space may have added the record after the first look. */
	if (!may_write_registers &&
	    !(pdd && kfd_criu_mqd_is_validated(pdd->dev, cq.qp.type)))
		return -EACCES;
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

/* Members that describe another kind of exception must be 0. */
static bool kfd_criu_v2_exception_is_valid(const struct kfd_criu_record_event *record)
{
	const u32 type = le32_to_cpu(record->type);
	const bool memory = type == KFD_EVENT_TYPE_MEMORY;
	const bool hardware = type == KFD_EVENT_TYPE_HW_EXCEPTION;

	if (!memory && !hardware && record->gpu_id)
		return false;
	if (!memory && (record->address || record->error_type ||
			memchr_inv(record->failure, 0, sizeof(record->failure))))
		return false;
	return hardware || (!record->memory_lost &&
			    !memchr_inv(record->reset, 0, sizeof(record->reset)));
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

	if (flags & ~(KFD_CRIU_EVENT_AUTO_RESET | KFD_CRIU_EVENT_SIGNALED) ||
	    !kfd_criu_event_type_is_known(ce.type) ||
	    !kfd_criu_v2_exception_is_valid(record))
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
	    !PAGE_ALIGNED(le64_to_cpu(record->size)) || record->reserved ||
	    cs.flags & ~KFD_CRIU_SVM_FLAGS)
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
		return kfd_criu_v2_restore_device(p, in, ctx);
	case KFD_CRIU_RECORD_BO:
		return kfd_criu_v2_restore_bo(p, in, ctx->memories);
	case KFD_CRIU_RECORD_QUEUE:
		return kfd_criu_v2_restore_queue(p, in,
						 ctx->may_write_registers);
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

static int kfd_criu_v2_check_device_record(const struct kfd_criu_v2_record *in,
					   const struct kfd_criu_restore_ctx *ctx)
{
	struct kfd_criu_gpu_choice *choice;
	int r;

	r = kfd_criu_v2_check_device(in, ctx, &choice);
	if (r || !choice)
		return r;
	if (choice->has_record)
		return -EINVAL;
	choice->has_record = true;
	return 0;
}

static int kfd_criu_v2_check_image_record(const struct kfd_criu_record_image *image,
					  u64 size)
{
	return le64_to_cpu(image->magic) == KFD_CRIU_IMAGE_MAGIC &&
	       le64_to_cpu(image->size) == size && !image->reserved ? 0 : -EINVAL;
}

/* The driver checks everything that the record of a queue decides. */
static bool
kfd_criu_v2_queue_is_validated(const struct kfd_criu_v2_record *in,
			       const struct kfd_criu_restore_ctx *ctx)
{
	const struct kfd_criu_gpu_choice *choice =
		kfd_criu_gpus_find(ctx->gpus, le32_to_cpu(in->queue.gpu_id));
	const struct kfd_node *node =
		choice ? kfd_device_by_id(choice->device.gpu_id) : NULL;
	struct queue_properties qp;

	return node &&
	       !kfd_criu_queue_set_type(&qp, le32_to_cpu(in->queue.type)) &&
	       kfd_criu_mqd_is_validated(node, qp.type);
}

/* Stores the number of records that the image says it has. */
static int kfd_criu_v2_check_records(struct kfd_criu_stream *s,
				     struct kfd_criu_restore_ctx *ctx,
				     u32 *num_records)
{
	u32 type, last_type = 0;
	struct kfd_criu_v2_record in;
	int r;

	while (s->pos < s->size) {
		r = kfd_criu_next_record(s, &in, ctx, last_type, &type);
		if (r)
			return r;
		if (type == KFD_CRIU_RECORD_IMAGE) {
			*num_records = le32_to_cpu(in.image.num_records);
			r = kfd_criu_v2_check_image_record(&in.image, s->size);
		} else if (type == KFD_CRIU_RECORD_DEVICE) {
			r = kfd_criu_v2_check_device_record(&in, ctx);
		}
		if (r)
			return r;
		if (type == KFD_CRIU_RECORD_QUEUE &&
		    !kfd_criu_v2_queue_is_validated(&in, ctx))
			ctx->needs_registers = true;
		last_type = type ? type : last_type;
	}
	ctx->record = 0;
	return 0;
}

/**
 * kfd_criu_check_image - check an image before anything is changed
 * @image: the whole image
 * @ctx: what the caller supplies besides the image
 *
 * Checks whether all records can be read, and whether the GPUs that the caller
 * has chosen can replace those of the image.
 *
 * Return: 0; -EPROTONOSUPPORT if a record is required but its type, its version
 * or a member is unknown; -EINVAL if this is not an image, its records are not
 * in order, or a GPU was chosen that the image does not have; -ENODEV if no GPU
 * was chosen for one that the program has acquired; -ENXIO if one has other
 * properties; -EFAULT; -EINTR if the caller was killed.
 */
int kfd_criu_check_image(const struct kfd_criu_stream *image,
			 struct kfd_criu_restore_ctx *ctx)
{
	struct kfd_criu_stream s = *image;
	u32 num_records = 0;
	int r;

	r = kfd_criu_v2_check_records(&s, ctx, &num_records);
	if (r)
		return r;
	if (!s.num_records)
		return -EINVAL;
	if (s.num_records != num_records) {
		ctx->record = 1;
		return -EINVAL;
	}
	return kfd_criu_gpus_all_in_image(ctx->gpus) ? 0 : -EINVAL;
}

/*
 * All devices must be bound before any other object is restored. If that fails
 * it is the fault of no single record.
 */
static int kfd_criu_v2_finish_devices(struct kfd_process *p,
				      struct kfd_criu_restore_ctx *ctx)
{
	const u32 record = ctx->record;
	int r;

	ctx->record = 0;
	r = kfd_criu_finish_devices(p);
	if (!r)
		ctx->record = record;
	return r;
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
			struct kfd_criu_restore_ctx *ctx)
{
	u32 type, last_type = 0;
	int r;

	while (s->pos < s->size) {
		struct kfd_criu_v2_record in;

		r = kfd_criu_next_record(s, &in, ctx, last_type, &type);
		if (r)
			return r;
		if (!type)
			continue;
		if (last_type <= KFD_CRIU_RECORD_DEVICE &&
		    type > KFD_CRIU_RECORD_DEVICE) {
			r = kfd_criu_v2_finish_devices(p, ctx);
			if (r)
				return r;
		}
		r = kfd_criu_v2_restore_record(p, &in, ctx);
		if (r)
			return r;
		last_type = type;
	}
	if (last_type <= KFD_CRIU_RECORD_DEVICE) {
		r = kfd_criu_v2_finish_devices(p, ctx);
		if (r)
			return r;
	}
	ctx->record = 0;
	return 0;
}
