// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * MQDs at checkpoint and restore. A restore initialises new MQDs as for a new
 * queue and merges from the image only the words that the hardware wrote while
 * the queue ran. Addresses, VMID, doorbell, privileges, priority and the context
 * save area are always set by the driver. An image of version 1 contains whole
 * MQDs, an image of the extensible ABI only the words that are merged.
 *
 * On gfx9 the control stack follows the MQD in kernel memory. On a device with
 * several XCCs each XCC has its own MQD and control stack.
 *
 * Locks: the callers hold p->mutex; kfd_criu_mqd_restore() is called with the
 * lock of the device's queue manager.
 */
#include <linux/bitfield.h>
#include <linux/slab.h>
#include "amdgpu.h"
#include "kfd_criu.h"
#include "kfd_criu_mqd_words.h"
#include "kfd_priv.h"
#include "kfd_device_queue_manager.h"
#include "kfd_mqd_manager.h"
#include "v9_structs.h"

/*
 * A device that is not listed may have other MQDs than its relatives, as gfx12.1
 * has, so it is unknown until a developer has compared them.
 */
static const struct kfd_criu_mqd_generation *
kfd_criu_mqd_get_generation(const struct kfd_node *node)
{
	switch (node->adev->asic_type) {
	case CHIP_KAVERI:
	case CHIP_HAWAII:
		return &cik_generation;
	case CHIP_CARRIZO:
	case CHIP_TONGA:
	case CHIP_FIJI:
	case CHIP_POLARIS10:
	case CHIP_POLARIS11:
	case CHIP_POLARIS12:
	case CHIP_VEGAM:
		return &vi_generation;
	default:
		break;
	}
	switch (KFD_GC_VERSION(node)) {
	case IP_VERSION(9, 0, 1):
	case IP_VERSION(9, 1, 0):
	case IP_VERSION(9, 2, 1):
	case IP_VERSION(9, 2, 2):
	case IP_VERSION(9, 3, 0):
	case IP_VERSION(9, 4, 0):
	case IP_VERSION(9, 4, 1):
	case IP_VERSION(9, 4, 2):
	case IP_VERSION(9, 4, 3):
	case IP_VERSION(9, 4, 4):
		return &v9_generation;
	case IP_VERSION(10, 1, 1):
	case IP_VERSION(10, 1, 2):
	case IP_VERSION(10, 1, 3):
	case IP_VERSION(10, 1, 4):
	case IP_VERSION(10, 1, 10):
	case IP_VERSION(10, 3, 0):
	case IP_VERSION(10, 3, 1):
	case IP_VERSION(10, 3, 2):
	case IP_VERSION(10, 3, 3):
	case IP_VERSION(10, 3, 4):
	case IP_VERSION(10, 3, 5):
	case IP_VERSION(10, 3, 6):
	case IP_VERSION(10, 3, 7):
		return &v10_generation;
	case IP_VERSION(11, 0, 0):
	case IP_VERSION(11, 0, 1):
	case IP_VERSION(11, 0, 2):
	case IP_VERSION(11, 0, 3):
	case IP_VERSION(11, 0, 4):
	case IP_VERSION(11, 5, 0):
	case IP_VERSION(11, 5, 1):
	case IP_VERSION(11, 5, 2):
		return &v11_generation;
	case IP_VERSION(12, 0, 0):
	case IP_VERSION(12, 0, 1):
		return &v12_generation;
	default:
		return NULL;
	}
}

static const struct kfd_criu_mqd_layout *
kfd_criu_mqd_get_layout(const struct kfd_node *node, enum kfd_queue_type type)
{
	const struct kfd_criu_mqd_generation *generation =
		kfd_criu_mqd_get_generation(node);

	if (!generation)
		return NULL;
	if (type != KFD_QUEUE_TYPE_COMPUTE)
		return &generation->sdma;
	if (NUM_XCC(node->xcc_mask) > 1 && !generation->cp.per_xcc)
		return NULL;
	return &generation->cp;
}

/**
 * kfd_criu_mqd_layout_id - identify the words of the MQDs of a device
 * @node: the device
 * @type: type of the queues that have the MQDs
 *
 * Return: the layout; KFD_CRIU_LAYOUT_UNKNOWN if the queues cannot be
 * checkpointed.
 */
enum kfd_criu_mqd_layout_id
kfd_criu_mqd_layout_id(const struct kfd_node *node, enum kfd_queue_type type)
{
	const struct kfd_criu_mqd_layout *layout =
		kfd_criu_mqd_get_layout(node, type);

	return layout ? layout->id : KFD_CRIU_LAYOUT_UNKNOWN;
}

/**
 * kfd_criu_mqd_is_validated - tell whether the driver checks all that an image
 * decides
 * @node: the device
 * @type: type of the queue
 *
 * Return: false if RESTORE of such a queue writes registers which no other
 * ioctl can set, and whose values the driver does not check completely.
 */
bool kfd_criu_mqd_is_validated(const struct kfd_node *node,
			       enum kfd_queue_type type)
{
	const struct kfd_criu_mqd_layout *layout =
		kfd_criu_mqd_get_layout(node, type);

	return layout && layout->validated;
}

static u32 kfd_criu_mqd_range_last(const struct kfd_criu_mqd_range *range)
{
	return max(range->first, range->last);
}

/**
 * kfd_criu_mqd_get_run - get words of an MQD that an image contains
 * @node: the device
 * @type: type of the queue
 * @index: number of the run, starting at 0
 * @first: returns the index of the first word
 * @count: returns the number of words
 *
 * Return: true; false if there are not so many runs.
 */
bool kfd_criu_mqd_get_run(const struct kfd_node *node, enum kfd_queue_type type,
			  unsigned int index, u32 *first, u32 *count)
{
	const struct kfd_criu_mqd_layout *layout =
		kfd_criu_mqd_get_layout(node, type);

	if (!layout || index >= layout->num_ranges)
		return false;
	*first = layout->ranges[index].first;
	*count = kfd_criu_mqd_range_last(&layout->ranges[index]) - *first + 1;
	return true;
}

static bool kfd_criu_mqd_saves_waves(const struct kfd_criu_mqd_layout *layout,
				     const struct kfd_node *node,
				     const struct queue_properties *qp)
{
	return layout->stack_offset && node->kfd->cwsr_enabled &&
	       qp->ctx_save_restore_area_address;
}

static u32 kfd_criu_mqd_range_mask(const struct kfd_criu_mqd_range *range,
				   bool with_waves, bool with_gws)
{
	return range->mask | (with_waves ? range->wave_mask : 0) |
	       (with_gws ? range->gws_mask : 0);
}

/**
 * kfd_criu_mqd_get_mask - get the bits of a word that an image decides
 * @node: the device
 * @cq: the queue; its MQDs are not looked at
 * @word: index of the word in the MQD
 * @mask: returns the bits, which can be none
 *
 * Return: true; false if images have no such word.
 */
bool kfd_criu_mqd_get_mask(const struct kfd_node *node,
			   const struct kfd_criu_queue *cq, u32 word, u32 *mask)
{
	const struct kfd_criu_mqd_layout *layout =
		kfd_criu_mqd_get_layout(node, cq->qp.type);
	unsigned int i;
	bool waves;

	for (i = 0; layout && i < layout->num_ranges; i++) {
		const struct kfd_criu_mqd_range *range = &layout->ranges[i];

		if (word < range->first || word > kfd_criu_mqd_range_last(range))
			continue;
		waves = kfd_criu_mqd_saves_waves(layout, node, &cq->qp);
		*mask = kfd_criu_mqd_range_mask(range, waves, cq->gws);
		return true;
	}
	return false;
}

static struct mqd_manager *kfd_criu_mqd_get_manager(const struct kfd_node *node,
						    enum kfd_queue_type type)
{
	return node->dqm->mqd_mgrs[type == KFD_QUEUE_TYPE_COMPUTE ?
				   KFD_MQD_TYPE_CP : KFD_MQD_TYPE_SDMA];
}

/**
 * kfd_criu_mqd_describe - get number and sizes of a queue's MQDs on its device
 * @node: the device
 * @qp: properties of the queue, validated
 * @mqd: returns number and sizes; its data is left alone
 *
 * Return: 0; -EOPNOTSUPP if the generation of the device is unknown.
 */
int kfd_criu_mqd_describe(const struct kfd_node *node,
			  const struct queue_properties *qp,
			  struct kfd_criu_mqd *mqd)
{
	const struct kfd_criu_mqd_layout *layout =
		kfd_criu_mqd_get_layout(node, qp->type);

	if (!layout)
		return -EOPNOTSUPP;
	mqd->mqd_size = kfd_criu_mqd_get_manager(node, qp->type)->mqd_size;
	mqd->n_xcc = layout->per_xcc ? NUM_XCC(node->xcc_mask) : 1;
	mqd->ctl_stack_size = 0;
	/* Other generations keep the control stack in the save area. */
	if (layout->has_ctl_stack && kfd_criu_mqd_saves_waves(layout, node, qp))
		mqd->ctl_stack_size = qp->ctl_stack_size;
	return 0;
}

/*
 * The control stack grows down. The unused part is cleared in the copy, because
 * it holds whatever was in that memory before the queue was created.
 */
static void kfd_criu_mqd_copy_ctl_stack(void *to, const void *mqd, u32 size)
{
	const u32 *words = mqd;
	const u32 used_from =
		min(words[DWORD(v9_mqd, cp_hqd_cntl_stack_offset)], size);

	memset(to, 0, used_from);
	memcpy(to + used_from, mqd + PAGE_SIZE + used_from, size - used_from);
}

/**
 * kfd_criu_mqd_save - copy a queue's MQDs and control stacks
 * @q: the queue, evicted
 * @mqd: number and sizes from kfd_criu_mqd_describe(); returns data, to be
 *	freed with kvfree()
 *
 * Return: 0; -EBUSY if the queue is on the hardware; -ENOMEM.
 */
int kfd_criu_mqd_save(const struct queue *q, struct kfd_criu_mqd *mqd)
{
	struct device_queue_manager *dqm = q->device->dqm;
	struct queue_properties qp = q->properties;
	unsigned int xcc;
	u64 stride = 0;
	int r = 0;

	mqd->data = kvmalloc(kfd_criu_mqd_bytes(mqd), GFP_KERNEL_ACCOUNT);
	if (!mqd->data)
		return -ENOMEM;
	if (mqd->n_xcc > 1) {
		struct mqd_manager *mm =
			kfd_criu_mqd_get_manager(q->device, qp.type);

		stride = mm->mqd_stride(mm, &qp);
	}
	dqm_lock(dqm);
	if (q->properties.is_active) {
		r = -EBUSY;
		goto out;
	}
	for (xcc = 0; xcc < mqd->n_xcc; xcc++) {
		const void *from = q->mqd + xcc * stride;

		memcpy(kfd_criu_mqd_words(mqd, xcc), from, mqd->mqd_size);
		if (mqd->ctl_stack_size)
			kfd_criu_mqd_copy_ctl_stack(kfd_criu_mqd_ctl_stack(mqd, xcc),
						    from, mqd->ctl_stack_size);
	}
out:
	dqm_unlock(dqm);
	if (r) {
		kvfree(mqd->data);
		mqd->data = NULL;
	}
	return r;
}

/*
 * In the save area the control stack grows down from ctl_stack_size, the wave
 * data up.
 */
static bool kfd_criu_mqd_offsets_valid(const struct kfd_criu_mqd_layout *layout,
				       const struct queue_properties *qp,
				       const u32 *words)
{
	u32 stack = words[layout->stack_offset];
	u32 waves = words[layout->wave_offset];

	return stack <= qp->ctl_stack_size && IS_ALIGNED(stack, sizeof(u32)) &&
	       waves >= qp->ctl_stack_size &&
	       waves <= qp->ctx_save_restore_area_size &&
	       IS_ALIGNED(waves, sizeof(u32));
}

/*
 * The position of an interrupted save in the same area; 0: no save was
 * interrupted.
 */
static bool kfd_criu_mqd_suspend_valid(const struct kfd_criu_mqd_layout *layout,
				       const struct queue_properties *qp,
				       const u32 *words)
{
	const u32 *suspend = &words[layout->suspend_offset];
	u32 stack = suspend[0], dwords = suspend[1], waves = suspend[2];

	if (!layout->suspend_offset)
		return true;
	return stack <= qp->ctl_stack_size && IS_ALIGNED(stack, sizeof(u32)) &&
	       dwords <= (qp->ctl_stack_size - stack) / sizeof(u32) &&
	       (!waves || waves >= qp->ctl_stack_size) &&
	       waves <= qp->ctx_save_restore_area_size &&
	       IS_ALIGNED(waves, sizeof(u32));
}

/*
 * pqm_set_gws() gives the process all units of the device, numbered from 0. A
 * queue without the global wave sync takes nothing from the word.
 */
static bool kfd_criu_mqd_gws_valid(const struct kfd_criu_mqd_layout *layout,
				   const struct kfd_node *node,
				   const struct kfd_criu_queue *cq,
				   const u32 *words)
{
	u32 state = words[layout->gds_resource_state];

	if (!cq->gws || !layout->gds_resource_state)
		return true;
	return FIELD_GET(GWS_POINTER, state) + FIELD_GET(GWS_SIZE, state) <=
	       node->adev->gds.gws_size;
}

/* On a device with several XCCs each MQD has the number of its XCC. */
static bool kfd_criu_mqd_xcc_id_valid(const void *mqd, unsigned int n_xcc)
{
	const struct v9_mqd *m = mqd;

	return n_xcc == 1 || m->compute_current_logic_xcc_id < n_xcc;
}

/*
 * A dispatch was active when the MQD was saved, or saved waves have to be
 * restored.
 */
static bool kfd_criu_mqd_dispatch_active(const void *mqd)
{
	const struct v9_mqd *m = mqd;

	return m->cp_hqd_persistent_state &
	       (DISPATCH_PROGRESS | RESTORE_PROGRESS);
}

/*
 * The image has saved waves, which this GPU (no CWSR) would never restore. If
 * there are none, the offset is 0 or ctl_stack_size.
 */
static bool
kfd_criu_mqd_has_stray_waves(const struct kfd_criu_mqd_layout *layout,
			     const struct queue_properties *qp,
			     const u32 *words)
{
	return layout->stack_offset && qp->ctx_save_restore_area_address &&
	       words[layout->stack_offset] &&
	       words[layout->stack_offset] != qp->ctl_stack_size;
}

static bool kfd_criu_mqd_xcc_valid(const struct kfd_criu_mqd_layout *layout,
				   const struct kfd_node *node,
				   const struct kfd_criu_queue *cq,
				   const u32 *words, bool saves)
{
	if (!kfd_criu_mqd_gws_valid(layout, node, cq, words))
		return false;
	if (!saves)
		return !kfd_criu_mqd_has_stray_waves(layout, &cq->qp, words);
	return kfd_criu_mqd_offsets_valid(layout, &cq->qp, words) &&
	       kfd_criu_mqd_suspend_valid(layout, &cq->qp, words);
}

/**
 * kfd_criu_mqd_check - check that saved MQDs can be used on a device
 * @node: device on which the queue is to be restored
 * @cq: the queue with MQDs from an image; its properties are validated and
 *	completed from the device
 *
 * An image with the MQD of one XCC is accepted for a device with several XCCs
 * if no dispatch was active. Older kernels wrote such images; they do not say
 * how far the other XCCs had got with a dispatch. Saved waves are accepted only
 * if the device restores them.
 *
 * Return: 0; -EOPNOTSUPP if the generation is unknown; -EINVAL if a size or an
 * offset is wrong.
 */
int kfd_criu_mqd_check(const struct kfd_node *node,
		       const struct kfd_criu_queue *cq)
{
	const struct kfd_criu_mqd_layout *layout =
		kfd_criu_mqd_get_layout(node, cq->qp.type);
	const struct queue_properties *qp = &cq->qp;
	const struct kfd_criu_mqd *mqd = &cq->mqd;
	struct kfd_criu_mqd device_mqd;
	unsigned int xcc;
	bool saves;
	int r;

	r = kfd_criu_mqd_describe(node, qp, &device_mqd);
	if (r)
		return r;
	saves = kfd_criu_mqd_saves_waves(layout, node, qp);
	if (mqd->mqd_size != device_mqd.mqd_size ||
	    mqd->ctl_stack_size != device_mqd.ctl_stack_size ||
	    (mqd->n_xcc != device_mqd.n_xcc && mqd->n_xcc != 1))
		return -EINVAL;
	for (xcc = 0; xcc < mqd->n_xcc; xcc++) {
		const u32 *words = kfd_criu_mqd_words(mqd, xcc);

		if (!kfd_criu_mqd_xcc_id_valid(words, device_mqd.n_xcc) ||
		    !kfd_criu_mqd_xcc_valid(layout, node, cq, words, saves))
			return -EINVAL;
		if (mqd->n_xcc == device_mqd.n_xcc)
			continue;
		if (kfd_criu_mqd_dispatch_active(words) ||
		    (saves &&
		     words[layout->stack_offset] != qp->ctl_stack_size))
			return -EINVAL;
	}
	return 0;
}

static void kfd_criu_mqd_merge_ranges(const struct kfd_criu_mqd_layout *layout,
				      u32 *to, const u32 *from, bool with_waves,
				      bool with_gws)
{
	unsigned int i, word;

	for (i = 0; i < layout->num_ranges; i++) {
		const struct kfd_criu_mqd_range *range = &layout->ranges[i];
		u32 mask = kfd_criu_mqd_range_mask(range, with_waves, with_gws);
		u32 last = kfd_criu_mqd_range_last(range);

		for (word = range->first; mask && word <= last; word++)
			to[word] = (to[word] & ~mask) | (from[word] & mask);
	}
}

/*
 * Every XCC gets the pointers of the only XCC in the image, but keeps its own
 * number.
 */
static void
kfd_criu_mqd_merge_first_xcc(const struct kfd_criu_mqd_layout *layout, u32 *to,
			     const u32 *from, bool with_gws)
{
	struct v9_mqd *m = (struct v9_mqd *)to;
	u32 id = m->compute_current_logic_xcc_id;

	kfd_criu_mqd_merge_ranges(layout, to, from, false, with_gws);
	m->compute_current_logic_xcc_id = id;
}

static void kfd_criu_mqd_merge_all(struct mqd_manager *mm, struct queue *q,
				   const struct kfd_criu_mqd *mqd)
{
	const struct kfd_criu_mqd_layout *layout =
		kfd_criu_mqd_get_layout(mm->dev, q->properties.type);
	bool waves = kfd_criu_mqd_saves_waves(layout, mm->dev, &q->properties);
	struct kfd_criu_mqd device_mqd;
	unsigned int xcc;
	u64 stride = 0;

	kfd_criu_mqd_describe(mm->dev, &q->properties, &device_mqd);
	if (device_mqd.n_xcc > 1)
		stride = mm->mqd_stride(mm, &q->properties);
	for (xcc = 0; xcc < device_mqd.n_xcc; xcc++) {
		void *to = q->mqd + xcc * stride;

		if (mqd->n_xcc != device_mqd.n_xcc) {
			kfd_criu_mqd_merge_first_xcc(layout, to,
						     kfd_criu_mqd_words(mqd, 0),
						     q->gws);
			continue;
		}
		kfd_criu_mqd_merge_ranges(layout, to,
					  kfd_criu_mqd_words(mqd, xcc), waves,
					  q->gws);
		memcpy(to + PAGE_SIZE, kfd_criu_mqd_ctl_stack(mqd, xcc),
		       mqd->ctl_stack_size);
	}
}

/**
 * kfd_criu_mqd_restore - initialise the MQDs of a restored queue
 * @mm: MQD manager of the queue's device and type
 * @q: queue with memory for its MQDs, and with its final properties
 * @mqd: MQDs from an image that kfd_criu_mqd_check() has passed
 */
void kfd_criu_mqd_restore(struct mqd_manager *mm, struct queue *q,
			  const struct kfd_criu_mqd *mqd)
{
	mm->init_mqd(mm, &q->mqd, q->mqd_mem_obj, &q->gart_mqd_addr,
		     &q->properties);
	kfd_criu_mqd_merge_all(mm, q, mqd);
}

/**
 * kfd_criu_mqd_merge - merge the image again after a restored queue was updated
 * @q: queue that has not run since kfd_criu_mqd_restore()
 * @mqd: the MQDs that were passed to kfd_criu_mqd_restore()
 *
 * An update overwrites whole registers, including the fields that the hardware
 * wrote.
 */
void kfd_criu_mqd_merge(struct queue *q, const struct kfd_criu_mqd *mqd)
{
	struct device_queue_manager *dqm = q->device->dqm;

	dqm_lock(dqm);
	kfd_criu_mqd_merge_all(kfd_criu_mqd_get_manager(q->device,
							q->properties.type),
			       q, mqd);
	dqm_unlock(dqm);
}

/**
 * kfd_criu_mqd_target_xcc - find out which XCC executes a queue's PM4 packets
 * @node: the device
 * @qp: properties of the queue
 * @mqd: saved MQDs; images of version 1 have this number only there
 *
 * Return: the number that was passed to AMDKFD_IOC_CREATE_QUEUE; 0 if there is
 * no choice.
 */
u32 kfd_criu_mqd_target_xcc(const struct kfd_node *node,
			    const struct queue_properties *qp,
			    const struct kfd_criu_mqd *mqd)
{
	const struct kfd_criu_mqd_layout *layout =
		kfd_criu_mqd_get_layout(node, qp->type);
	const struct v9_mqd *m = mqd->data;

	if (qp->format != KFD_QUEUE_FORMAT_PM4 || !layout || !layout->per_xcc ||
	    NUM_XCC(node->xcc_mask) == 1)
		return 0;
	return m->pm4_target_xcc_in_xcp & U8_MAX;
}
