// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Reads the records of an image without knowing what they mean: their headers,
 * their order, members and payload. User memory may change at any time, so
 * everything is copied before it is checked.
 */
#include <linux/overflow.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include "kfd_criu.h"
#include "kfd_criu_v2.h"

/*
 * Bytes of the header and the members of a record. Members that are appended
 * change the size that this kernel knows, but not the least size of a record:
 * that is the size in the first kernel with the record.
 */
static const struct {
	u32 min;
	u32 known;
} kfd_criu_record_sizes[KFD_CRIU_MAX_RECORD_TYPE + 1] = {
	[KFD_CRIU_RECORD_IMAGE] = {
		48, sizeof(struct kfd_criu_record_image)
	},
	[KFD_CRIU_RECORD_DEVICE] = {
		120, sizeof(struct kfd_criu_record_device)
	},
	[KFD_CRIU_RECORD_PROCESS] = {
		40, sizeof(struct kfd_criu_record_process)
	},
	[KFD_CRIU_RECORD_BO] = {
		88, sizeof(struct kfd_criu_record_bo)
	},
	[KFD_CRIU_RECORD_QUEUE] = {
		144, sizeof(struct kfd_criu_record_queue)
	},
	[KFD_CRIU_RECORD_EVENT_PAGE] = {
		32, sizeof(struct kfd_criu_record_event_page)
	},
	[KFD_CRIU_RECORD_EVENT] = {
		88, sizeof(struct kfd_criu_record_event)
	},
	[KFD_CRIU_RECORD_SVM_RANGE] = {
		64, sizeof(struct kfd_criu_record_svm_range)
	},
};

static bool kfd_criu_record_is_known(const struct kfd_criu_record *record)
{
	const u16 version = le16_to_cpu(record->version);
	const u32 type = le32_to_cpu(record->type);

	return version && version <= kfd_criu_max_record_version(type);
}

/* Types of which an image has at most one record. */
static bool kfd_criu_record_is_unique(u32 type)
{
	return type == KFD_CRIU_RECORD_IMAGE || type == KFD_CRIU_RECORD_PROCESS ||
	       type == KFD_CRIU_RECORD_EVENT_PAGE;
}

static bool kfd_criu_record_order_is_valid(u32 type, u32 last)
{
	return type > last ||
	       (type == last && !kfd_criu_record_is_unique(type));
}

/*
 * Reads the header of the record at s->pos and checks that the record lies
 * within the image.
 */
static int kfd_criu_record_read_header(const struct kfd_criu_stream *s,
				       struct kfd_criu_record *record)
{
	u32 fixed_size;
	u64 size;

	if (s->size - s->pos < sizeof(*record))
		return -EINVAL;
	if (copy_from_user(record, s->data + s->pos, sizeof(*record)))
		return -EFAULT;
	size = le64_to_cpu(record->size);
	fixed_size = le32_to_cpu(record->fixed_size);
	if (fixed_size < sizeof(*record) || !IS_ALIGNED(fixed_size, 8) ||
	    size < fixed_size || size > s->size - s->pos ||
	    !IS_ALIGNED(size, 8))
		return -EINVAL;
	return 0;
}

static int kfd_criu_record_check_header(const struct kfd_criu_record *record)
{
	const u32 type = le32_to_cpu(record->type);
	const bool known = kfd_criu_record_is_known(record);

	if (le16_to_cpu(record->flags) & ~KFD_CRIU_RECORD_REQUIRED)
		return -EINVAL;
	if (!known && le16_to_cpu(record->flags) & KFD_CRIU_RECORD_REQUIRED) {
		pr_debug("image has a record of type %u, version %u\n", type,
			 le16_to_cpu(record->version));
		return -EPROTONOSUPPORT;
	}
	if (record->reserved)
		return -EINVAL;
	if (known && le32_to_cpu(record->fixed_size) < kfd_criu_record_sizes[type].min)
		return -EINVAL;
	return 0;
}

/*
 * Stores how many bytes of the payload the members of the record describe.
 * False: more than any image has.
 */
static bool kfd_criu_record_payload_bytes(const struct kfd_criu_v2_record *in,
					  u64 *bytes)
{
	u64 count, size;

	switch (le32_to_cpu(in->record.type)) {
	case KFD_CRIU_RECORD_BO:
		count = le32_to_cpu(in->bo.num_mapped);
		size = sizeof(__le32);
		break;
	case KFD_CRIU_RECORD_QUEUE:
		count = le32_to_cpu(in->queue.num_xcc);
		size = (u64)le32_to_cpu(in->queue.num_words) * sizeof(u32) +
		       le32_to_cpu(in->queue.ctl_stack_size);
		break;
	case KFD_CRIU_RECORD_SVM_RANGE:
		count = le32_to_cpu(in->svm.num_access);
		size = sizeof(struct kfd_criu_svm_device);
		break;
	default:
		count = 0;
		size = 0;
	}
	return !check_mul_overflow(count, size, bytes);
}

/* Padding may follow the payload, and nothing else. */
static int kfd_criu_record_check_payload(const struct kfd_criu_v2_record *in)
{
	u64 bytes;
	int r;

	if (!kfd_criu_record_payload_bytes(in, &bytes) ||
	    bytes > in->payload_bytes || in->payload_bytes - bytes >= 8)
		return -EINVAL;
	r = check_zeroed_user(in->payload + bytes, in->payload_bytes - bytes);
	if (r < 0)
		return r;
	return r ? 0 : -EINVAL;
}

/*
 * The writer may know members that this kernel does not. They must be 0, which
 * means that the record says nothing that this kernel does not understand.
 */
static int kfd_criu_record_check_tail(const u8 __user *tail, u64 bytes)
{
	const int r = check_zeroed_user(tail, bytes);

	if (r < 0)
		return r;
	return r ? 0 : -EPROTONOSUPPORT;
}

/*
 * Copies the members that this kernel knows. Those that the writer did not know
 * are 0. The header is not copied again, so it is the one that was checked.
 */
static int kfd_criu_record_copy_members(struct kfd_criu_v2_record *in,
					const u8 __user *from)
{
	const u32 known = kfd_criu_record_sizes[le32_to_cpu(in->record.type)].known;
	const u32 fixed = le32_to_cpu(in->record.fixed_size);
	const u32 header = sizeof(in->record);

	memset((u8 *)in + header, 0, sizeof(*in) - header);
	if (copy_from_user((u8 *)in + header, from + header,
			   min(known, fixed) - header))
		return -EFAULT;
	if (fixed <= known)
		return 0;
	return kfd_criu_record_check_tail(from + known, fixed - known);
}

/* Reads what follows the header at @from. */
static int kfd_criu_record_read_contents(struct kfd_criu_v2_record *in,
					 const u8 __user *from)
{
	const u32 fixed_size = le32_to_cpu(in->record.fixed_size);
	int r;

	r = kfd_criu_record_copy_members(in, from);
	if (r)
		return r;
	in->payload = from + fixed_size;
	in->payload_bytes = le64_to_cpu(in->record.size) - fixed_size;
	return kfd_criu_record_check_payload(in);
}

/**
 * kfd_criu_next_record - read the record at the position of a stream
 * @s: image that is being read
 * @in: returns the record
 * @ctx: returns the number of the record
 * @last_type: type of the record before it; 0: none
 * @type: returns the type; 0 if the record is unknown and may be skipped
 *
 * Records of known types must be in the order of their types, unknown ones may
 * be anywhere but first.
 *
 * Return: 0; -EPROTONOSUPPORT if the record is required and its type or version
 * is unknown, or if an unknown member is not 0; -EINVAL if it is too short, too
 * long or out of order, or its header is invalid; -EFAULT; -EINTR if the caller
 * was killed.
 */
int kfd_criu_next_record(struct kfd_criu_stream *s,
			 struct kfd_criu_v2_record *in,
			 struct kfd_criu_restore_ctx *ctx, u32 last_type,
			 u32 *type)
{
	const u8 __user *from = s->data + s->pos;
	int r;

	r = kfd_criu_check_killed();
	if (r)
		return r;
	ctx->record = ++s->num_records;
	r = kfd_criu_record_read_header(s, &in->record);
	if (r)
		return r;
	r = kfd_criu_record_check_header(&in->record);
	if (r)
		return r;
	s->pos += le64_to_cpu(in->record.size);
	*type = 0;
	if (kfd_criu_record_is_known(&in->record))
		*type = le32_to_cpu(in->record.type);
	if (s->num_records == 1 && *type != KFD_CRIU_RECORD_IMAGE)
		return -EINVAL;
	if (!*type)
		return 0;
	if (!kfd_criu_record_order_is_valid(*type, last_type))
		return -EINVAL;
	return kfd_criu_record_read_contents(in, from);
}
