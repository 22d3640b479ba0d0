// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * KUnit tests of images of the extensible ABI: which sequences of records are a
 * valid image, which GPUs the caller may choose for it, and that the writer
 * produces valid images. As in real use, the images are in user memory.
 */
#include <kunit/test.h>
#include <linux/mman.h>
#include <linux/uaccess.h>
#include "kfd_criu.h"
#include "kfd_criu_v2.h"
#include "kfd_priv.h"

#define BUFFER_SIZE		PAGE_SIZE
#define HEADER		sizeof(struct kfd_criu_record)
#define FIRST		sizeof(struct kfd_criu_record_image)
#define REQUIRED	KFD_CRIU_RECORD_REQUIRED
#define UNKNOWN		(KFD_CRIU_MAX_RECORD_TYPE + 1)

/* Bytes of records of version 1 without payload, as the ABI defines them. */
static const u32 sizes[KFD_CRIU_MAX_RECORD_TYPE + 1] = {
	[KFD_CRIU_RECORD_IMAGE] = 48,
	[KFD_CRIU_RECORD_DEVICE] = 120,
	[KFD_CRIU_RECORD_PROCESS] = 40,
	[KFD_CRIU_RECORD_BO] = 88,
	[KFD_CRIU_RECORD_QUEUE] = 144,
	[KFD_CRIU_RECORD_EVENT_PAGE] = 32,
	[KFD_CRIU_RECORD_EVENT] = 88,
	[KFD_CRIU_RECORD_SVM_RANGE] = 64,
};

/* Bytes of the members that were appended to these records later. */
static const u32 appended[KFD_CRIU_MAX_RECORD_TYPE + 1] = {};

/*
 * An image under construction, a page of user memory that is followed by an
 * unmapped one, and the GPUs that the caller of RESTORE has chosen: by default
 * none.
 */
struct draft {
	u8 bytes[BUFFER_SIZE];
	u64 size;
	u32 records;
	u8 __user *page;
	struct kfd_criu_restore_ctx ctx;
};

static int criu_test_init(struct kunit *test)
{
	struct draft *draft = kunit_kzalloc(test, sizeof(*draft), GFP_KERNEL);
	unsigned long at;

	if (!draft)
		return -ENOMEM;
	at = kunit_vm_mmap(test, NULL, 0, 2 * BUFFER_SIZE, PROT_READ | PROT_WRITE,
			   MAP_ANONYMOUS | MAP_PRIVATE, 0);
	if (!at || IS_ERR_VALUE(at) || vm_munmap(at + BUFFER_SIZE, BUFFER_SIZE))
		return -ENOMEM;
	draft->page = (u8 __user *)at;
	draft->ctx.gpus = kunit_kzalloc(test, struct_size(draft->ctx.gpus,
							  choices, 2),
					GFP_KERNEL);
	if (!draft->ctx.gpus)
		return -ENOMEM;
	test->priv = draft;
	return 0;
}

/*
 * Whether this kernel knows the record type, which for SVM depends on the
 * configuration.
 */
static bool criu_test_is_supported(u32 type)
{
	return type != KFD_CRIU_RECORD_SVM_RANGE ||
	       IS_ENABLED(CONFIG_HSA_AMD_SVM);
}

/* Returns the record, whose members the caller may set. */
static void *criu_test_add(struct draft *draft, u32 type, u16 version, u16 flags, u64 size)
{
	struct kfd_criu_record *record = (void *)(draft->bytes + draft->size);
	const bool is_known = version == 1 && type &&
			      type <= KFD_CRIU_MAX_RECORD_TYPE;

	record->type = cpu_to_le32(type);
	record->version = cpu_to_le16(version);
	record->flags = cpu_to_le16(flags);
	record->fixed_size = cpu_to_le32(is_known ? sizes[type] : HEADER);
	record->size = cpu_to_le64(size);
	draft->size += size;
	draft->records++;
	return record;
}

/* Adds a record as this kernel writes it. */
static void criu_test_add_record(struct draft *draft, u32 type)
{
	criu_test_add(draft, type, 1, REQUIRED, sizes[type]);
}

static void criu_test_begin_draft(struct draft *draft)
{
	memset(draft->bytes, 0, sizeof(draft->bytes));
	draft->size = 0;
	draft->records = 0;
	criu_test_add_record(draft, KFD_CRIU_RECORD_IMAGE);
}

static struct kfd_criu_record_image *criu_test_image_record(struct draft *draft)
{
	return (void *)draft->bytes;
}

static void criu_test_finish_draft(struct draft *draft)
{
	criu_test_image_record(draft)->magic = cpu_to_le64(KFD_CRIU_IMAGE_MAGIC);
	criu_test_image_record(draft)->size = cpu_to_le64(draft->size);
	criu_test_image_record(draft)->num_records = cpu_to_le32(draft->records);
}

/*
 * Checks the first @size bytes of the draft, placed so that the next byte is
 * not mapped.
 */
static int criu_test_check_bytes(struct kunit *test, struct draft *draft, u64 size)
{
	struct kfd_criu_stream image = {
		.data = draft->page + BUFFER_SIZE - size,
		.size = size,
	};

	KUNIT_ASSERT_LE(test, size, BUFFER_SIZE);
	KUNIT_ASSERT_EQ(test, 0, copy_to_user(image.data, draft->bytes, size));
	return kfd_criu_check_image(&image, &draft->ctx);
}

static int criu_test_finish_and_check(struct kunit *test, struct draft *draft)
{
	criu_test_finish_draft(draft);
	return criu_test_check_bytes(test, draft, draft->size);
}

/* Makes an image with one record of each type that this kernel knows. */
static void criu_test_make_full_image(struct draft *draft)
{
	u32 type;

	criu_test_begin_draft(draft);
	for (type = KFD_CRIU_RECORD_DEVICE; type <= KFD_CRIU_MAX_RECORD_TYPE;
	     type++)
		if (criu_test_is_supported(type))
			criu_test_add_record(draft, type);
	criu_test_finish_draft(draft);
}

static void an_image_has_records_of_each_type(struct kunit *test)
{
	struct draft *draft = test->priv;

	criu_test_make_full_image(draft);
	KUNIT_EXPECT_EQ(test, 0, criu_test_finish_and_check(test, draft));
	criu_test_begin_draft(draft);
	KUNIT_EXPECT_EQ(test, 0, criu_test_finish_and_check(test, draft));
}

static void an_image_that_is_cut_is_none(struct kunit *test)
{
	struct draft *draft = test->priv;
	u64 size;

	criu_test_make_full_image(draft);
	for (size = 0; size < draft->size; size++)
		KUNIT_EXPECT_EQ_MSG(test, -EINVAL, criu_test_check_bytes(test, draft, size),
				    "%llu bytes", size);
	/*
	 * Also when the image record gives the shorter size, if it ends inside
	 * a record.
	 */
	for (size = FIRST; size < draft->size; size++) {
		criu_test_image_record(draft)->size = cpu_to_le64(size);
		KUNIT_EXPECT_EQ_MSG(test, -EINVAL, criu_test_check_bytes(test, draft, size),
				    "%llu bytes", size);
	}
}

static void the_image_record_must_match_the_image(struct kunit *test)
{
	struct draft *draft = test->priv;

	criu_test_make_full_image(draft);
	criu_test_image_record(draft)->magic++;
	KUNIT_EXPECT_EQ(test, -EINVAL, criu_test_check_bytes(test, draft, draft->size));
	criu_test_finish_draft(draft);
	criu_test_image_record(draft)->size = cpu_to_le64(draft->size + 8);
	KUNIT_EXPECT_EQ(test, -EINVAL, criu_test_check_bytes(test, draft, draft->size));
	criu_test_finish_draft(draft);
	criu_test_image_record(draft)->num_records = cpu_to_le32(draft->records - 1);
	KUNIT_EXPECT_EQ(test, -EINVAL, criu_test_check_bytes(test, draft, draft->size));
	criu_test_finish_draft(draft);
	criu_test_image_record(draft)->reserved = cpu_to_le32(1);
	KUNIT_EXPECT_EQ(test, -EINVAL, criu_test_check_bytes(test, draft, draft->size));
	criu_test_image_record(draft)->reserved = 0;
	KUNIT_EXPECT_EQ(test, 0, criu_test_check_bytes(test, draft, draft->size));
}

static void an_image_begins_with_its_own_record(struct kunit *test)
{
	struct draft *draft = test->priv;
	u32 type;

	for (type = 0; type <= UNKNOWN; type++) {
		if (type == KFD_CRIU_RECORD_IMAGE)
			continue;
		/* Only type and flags of the first record change. */
		criu_test_make_full_image(draft);
		criu_test_image_record(draft)->record.type = cpu_to_le32(type);
		criu_test_image_record(draft)->record.flags = 0;
		KUNIT_EXPECT_EQ_MSG(test, -EINVAL,
				    criu_test_check_bytes(test, draft, draft->size),
				    "first of type %u", type);
	}
	criu_test_make_full_image(draft);
	criu_test_image_record(draft)->record.version = cpu_to_le16(2);
	criu_test_image_record(draft)->record.flags = 0;
	KUNIT_EXPECT_EQ(test, -EINVAL, criu_test_check_bytes(test, draft, draft->size));
}

static void records_are_in_the_order_of_their_types(struct kunit *test)
{
	static const u32 repeatable = BIT(KFD_CRIU_RECORD_DEVICE) |
				BIT(KFD_CRIU_RECORD_BO) |
				BIT(KFD_CRIU_RECORD_QUEUE) |
				BIT(KFD_CRIU_RECORD_EVENT) |
				BIT(KFD_CRIU_RECORD_SVM_RANGE);
	struct draft *draft = test->priv;
	u32 one, two;

	for (one = KFD_CRIU_RECORD_IMAGE; one <= KFD_CRIU_MAX_RECORD_TYPE;
	     one++) {
		for (two = KFD_CRIU_RECORD_IMAGE;
		     two <= KFD_CRIU_MAX_RECORD_TYPE; two++) {
			const bool good = one > KFD_CRIU_RECORD_IMAGE &&
					  (two > one ||
					   (two == one && repeatable & BIT(one)));

			if (!criu_test_is_supported(one) || !criu_test_is_supported(two))
				continue;
			criu_test_begin_draft(draft);
			criu_test_add_record(draft, one);
			/*
			 * An unknown record does not affect the order of the
			 * others.
			 */
			criu_test_add(draft, UNKNOWN, 1, 0, HEADER);
			criu_test_add_record(draft, two);
			KUNIT_EXPECT_EQ_MSG(test, good ? 0 : -EINVAL,
					    criu_test_finish_and_check(test, draft),
					    "type %u behind type %u", two, one);
		}
	}
}

static void unknown_records_are_skipped_or_refused(struct kunit *test)
{
	static const struct {
		u32 type;
		u16 version;
	} unknown[] = {
		{ 0, 1 },
		{ UNKNOWN, 1 },
		{ U32_MAX, U16_MAX },
		{ KFD_CRIU_RECORD_IMAGE, 2 },
		{ KFD_CRIU_RECORD_DEVICE, 0 },
		{ KFD_CRIU_RECORD_BO, 2 },
		{ KFD_CRIU_RECORD_EVENT, U16_MAX },
	};
	struct draft *draft = test->priv;
	unsigned int i;
	u32 place;
	u64 size;

	for (i = 0; i < ARRAY_SIZE(unknown); i++) {
		for (place = KFD_CRIU_RECORD_DEVICE; place <= UNKNOWN; place++) {
			for (size = HEADER; size <= HEADER + 16; size += 8) {
				u64 at;
				u32 type;

				criu_test_begin_draft(draft);
				for (type = KFD_CRIU_RECORD_DEVICE;
				     type < place; type++)
					if (criu_test_is_supported(type))
						criu_test_add_record(draft, type);
				at = draft->size;
				criu_test_add(draft, unknown[i].type, unknown[i].version, 0,
					      size);
				for (; type <= KFD_CRIU_MAX_RECORD_TYPE; type++)
					if (criu_test_is_supported(type))
						criu_test_add_record(draft, type);
				KUNIT_EXPECT_EQ_MSG(test, 0,
						    criu_test_finish_and_check(test, draft),
						    "%u before type %u", i, place);
				((struct kfd_criu_record *)(draft->bytes + at))
					->flags = cpu_to_le16(REQUIRED);
				KUNIT_EXPECT_EQ_MSG(test, -EPROTONOSUPPORT,
						    criu_test_finish_and_check(test, draft),
						    "%u before type %u", i, place);
			}
		}
	}
}

static void an_unknown_flag_is_refused(struct kunit *test)
{
	struct draft *draft = test->priv;
	unsigned int bit;

	for (bit = 0; bit < 16; bit++) {
		const int expected = bit ? -EINVAL : 0;

		criu_test_begin_draft(draft);
		criu_test_add(draft, KFD_CRIU_RECORD_PROCESS, 1, BIT(bit),
			      sizes[KFD_CRIU_RECORD_PROCESS]);
		KUNIT_EXPECT_EQ_MSG(test, expected, criu_test_finish_and_check(test, draft),
				    "bit %u", bit);
		if (!bit)
			continue;
		criu_test_begin_draft(draft);
		criu_test_add(draft, UNKNOWN, 1, BIT(bit), HEADER);
		KUNIT_EXPECT_EQ_MSG(test, expected, criu_test_finish_and_check(test, draft),
				    "bit %u of an unknown record", bit);
	}
}

static void records_are_as_long_as_their_type(struct kunit *test)
{
	struct draft *draft = test->priv;
	u64 size;
	u32 type;

	/* Their members say that the records have no payload. */
	for (type = KFD_CRIU_RECORD_DEVICE; type <= KFD_CRIU_MAX_RECORD_TYPE;
	     type++) {
		if (!criu_test_is_supported(type))
			continue;
		for (size = 0; size <= sizes[type] + 16; size++) {
			criu_test_begin_draft(draft);
			criu_test_add(draft, type, 1, REQUIRED, size);
			KUNIT_EXPECT_EQ_MSG(test, size == sizes[type] ? 0 : -EINVAL,
					    criu_test_finish_and_check(test, draft),
					    "type %u, %llu bytes", type, size);
		}
	}
	for (size = 0; size <= HEADER + 16; size++) {
		criu_test_begin_draft(draft);
		criu_test_add(draft, UNKNOWN, 1, 0, size);
		KUNIT_EXPECT_EQ_MSG(test, size >= HEADER && size % 8 == 0 ? 0 : -EINVAL,
				    criu_test_finish_and_check(test, draft), "%llu bytes",
				    size);
	}
}

static void the_fixed_part_has_the_known_members(struct kunit *test)
{
	struct draft *draft = test->priv;
	u32 type, fixed;

	for (type = KFD_CRIU_RECORD_DEVICE; type <= UNKNOWN; type++) {
		const u32 least = type == UNKNOWN ? HEADER : sizes[type];
		const u32 size = least + 16;

		if (!criu_test_is_supported(type))
			continue;
		for (fixed = 0; fixed <= size + 8; fixed++) {
			/* A known record without payload has no other bytes. */
			const bool good = fixed % 8 == 0 &&
					  (type == UNKNOWN ? fixed >= least &&
							     fixed <= size :
							     fixed == size);
			struct kfd_criu_record *record;

			criu_test_begin_draft(draft);
			record = criu_test_add(draft, type, 1, 0, size);
			record->fixed_size = cpu_to_le32(fixed);
			KUNIT_EXPECT_EQ_MSG(test, good ? 0 : -EINVAL,
					    criu_test_finish_and_check(test, draft),
					    "type %u, %u bytes", type, fixed);
		}
	}
}

static void unknown_members_must_be_zero(struct kunit *test)
{
	struct draft *draft = test->priv;
	u32 type, at;

	for (type = KFD_CRIU_RECORD_DEVICE; type <= KFD_CRIU_MAX_RECORD_TYPE;
	     type++) {
		const u32 known = sizes[type] + appended[type];
		const u32 size = known + 16;

		if (!criu_test_is_supported(type))
			continue;
		for (at = known; at < size; at++) {
			struct kfd_criu_record *record;

			/* A record that may be skipped is not, if it is known. */
			criu_test_begin_draft(draft);
			record = criu_test_add(draft, type, 1, at & 1 ? REQUIRED : 0, size);
			record->fixed_size = cpu_to_le32(size);
			KUNIT_EXPECT_EQ(test, 0, criu_test_finish_and_check(test, draft));
			((u8 *)record)[at] = 1;
			KUNIT_EXPECT_EQ_MSG(test, -EPROTONOSUPPORT,
					    criu_test_finish_and_check(test, draft),
					    "type %u, byte %u", type, at);
			KUNIT_EXPECT_EQ(test, 2, draft->ctx.record);
		}
	}
}

/*
 * Checks a BO that says it is mapped to so many GPUs and has a payload of 12
 * bytes and 4 of padding, behind @more unknown members.
 */
static int criu_test_check_payload(struct kunit *test, u32 num_mapped, u32 more, u8 padding)
{
	const u32 fixed = sizes[KFD_CRIU_RECORD_BO] + more;
	struct draft *draft = test->priv;
	struct kfd_criu_record_bo *bo;
	u8 *payload;

	criu_test_begin_draft(draft);
	bo = criu_test_add(draft, KFD_CRIU_RECORD_BO, 1, REQUIRED, fixed + 16);
	bo->record.fixed_size = cpu_to_le32(fixed);
	bo->num_mapped = cpu_to_le32(num_mapped);
	payload = (u8 *)bo + fixed;
	memset(payload, 0xff, 12);
	payload[15] = padding;
	return criu_test_finish_and_check(test, draft);
}

static void the_payload_follows_all_members(struct kunit *test)
{
	u32 more;

	for (more = 0; more <= 16; more += 8) {
		KUNIT_EXPECT_EQ(test, 0, criu_test_check_payload(test, 3, more, 0));
		KUNIT_EXPECT_EQ(test, 0, criu_test_check_payload(test, 4, more, 1));
		KUNIT_EXPECT_EQ(test, -EINVAL, criu_test_check_payload(test, 3, more, 1));
		KUNIT_EXPECT_EQ(test, -EINVAL, criu_test_check_payload(test, 2, more, 0));
		KUNIT_EXPECT_EQ(test, -EINVAL, criu_test_check_payload(test, 5, more, 0));
		KUNIT_EXPECT_EQ(test, -EINVAL,
				criu_test_check_payload(test, U32_MAX, more, 0));
	}
}

/* The numbers multiply to 2^64 or a little more, which must not count as little. */
static void the_bytes_of_a_payload_cannot_overflow(struct kunit *test)
{
	struct draft *draft = test->priv;
	struct kfd_criu_record_queue *queue;

	criu_test_begin_draft(draft);
	queue = criu_test_add(draft, KFD_CRIU_RECORD_QUEUE, 1, REQUIRED,
			      sizes[KFD_CRIU_RECORD_QUEUE]);
	queue->num_xcc = cpu_to_le32(1U << 31);
	queue->num_words = cpu_to_le32(1U << 31);
	KUNIT_EXPECT_EQ(test, -EINVAL, criu_test_finish_and_check(test, draft));
}

static void the_refused_record_is_named(struct kunit *test)
{
	struct draft *draft = test->priv;
	struct kfd_criu_record *record;
	u32 number;
	u64 at;

	criu_test_make_full_image(draft);
	for (at = 0, number = 1; at < draft->size; number++) {
		record = (void *)(draft->bytes + at);
		KUNIT_EXPECT_EQ(test, 0, criu_test_check_bytes(test, draft, draft->size));
		KUNIT_EXPECT_EQ(test, 0, draft->ctx.record);
		record->reserved = cpu_to_le32(1);
		KUNIT_EXPECT_EQ(test, -EINVAL,
				criu_test_check_bytes(test, draft, draft->size));
		KUNIT_EXPECT_EQ(test, number, draft->ctx.record);
		record->reserved = 0;
		at += le64_to_cpu(record->size);
	}
	KUNIT_EXPECT_EQ(test, draft->records, number - 1);
	criu_test_image_record(draft)->num_records = 0;
	KUNIT_EXPECT_EQ(test, -EINVAL, criu_test_check_bytes(test, draft, draft->size));
	KUNIT_EXPECT_EQ(test, 1, draft->ctx.record);
}

/* ---- the chosen GPUs ---- */

static struct kfd_criu_record_device *criu_test_add_device(struct draft *draft, u32 flags)
{
	struct kfd_criu_record_device *device =
		criu_test_add(draft, KFD_CRIU_RECORD_DEVICE, 1, REQUIRED,
			      sizes[KFD_CRIU_RECORD_DEVICE]);

	device->user_gpu_id = cpu_to_le32(draft->records);
	device->flags = cpu_to_le32(flags);
	return device;
}

static void gpus_are_those_of_the_image(struct kunit *test)
{
	struct draft *draft = test->priv;
	struct kfd_criu_gpus *gpus = draft->ctx.gpus;
	struct kfd_criu_record_device *device;

	criu_test_begin_draft(draft);
	device = criu_test_add_device(draft, KFD_CRIU_DEVICE_ACQUIRED);
	KUNIT_EXPECT_EQ(test, -ENODEV, criu_test_finish_and_check(test, draft));
	KUNIT_EXPECT_EQ(test, 2, draft->ctx.record);
	device->flags = 0;
	KUNIT_EXPECT_EQ(test, 0, criu_test_finish_and_check(test, draft));
	device->flags = cpu_to_le32(KFD_CRIU_DEVICE_POLICY << 1);
	KUNIT_EXPECT_EQ(test, -EINVAL, criu_test_finish_and_check(test, draft));
	/* A GPU that no record has. */
	device->flags = 0;
	gpus->n = 1;
	gpus->choices[0].device.user_gpu_id = 77;
	gpus->choices[0].device.gpu_id = U32_MAX;
	KUNIT_EXPECT_EQ(test, -EINVAL, criu_test_finish_and_check(test, draft));
	KUNIT_EXPECT_EQ(test, 0, draft->ctx.record);
	/* One that has a record, and no machine has. */
	device->user_gpu_id = cpu_to_le32(77);
	KUNIT_EXPECT_EQ(test, -ENODEV, criu_test_finish_and_check(test, draft));
	KUNIT_EXPECT_EQ(test, 2, draft->ctx.record);
	/* The program has acquired it, but there is no file. */
	device->flags = cpu_to_le32(KFD_CRIU_DEVICE_ACQUIRED);
	KUNIT_EXPECT_EQ(test, -EINVAL, criu_test_finish_and_check(test, draft));
	/* There is a file, but the program has not acquired it. */
	device->flags = 0;
	gpus->choices[0].drm_file = (void *)draft;	/* only compared with NULL */
	KUNIT_EXPECT_EQ(test, -EINVAL, criu_test_finish_and_check(test, draft));
	KUNIT_EXPECT_EQ(test, 2, draft->ctx.record);
}

static int criu_test_choose(struct draft *draft, const struct kfd_criu_gpu *gpus, u32 n)
{
	const struct kfd_criu_args args = {
		.gpus = (unsigned long)draft->page,
		.num_gpus = n,
	};
	struct kfd_criu_gpus *copy;

	if (copy_to_user(draft->page, gpus, n * sizeof(*gpus)))
		return -EFAULT;
	copy = kfd_criu_gpus_create(&args);
	if (IS_ERR(copy))
		return PTR_ERR(copy);
	kfd_criu_gpus_destroy(copy);
	return 0;
}

static void wrong_gpus_are_refused(struct kunit *test)
{
	static const struct {
		struct kfd_criu_gpu gpu;
		int error;
	} wrong[] = {
		{ { 1, U32_MAX, -1, 0 }, -ENODEV },
		{ { 1, U32_MAX, -1, 1 }, -EINVAL },
		{ { 1, U32_MAX, -2, 0 }, -EINVAL },
		{ { 1, U32_MAX, INT_MAX, 0 }, -EINVAL },
		{ { 0, U32_MAX, -1, 0 }, -EINVAL },
		{ { 0x10000, U32_MAX, -1, 0 }, -EINVAL },
	};
	struct draft *draft = test->priv;
	struct kfd_criu_args args = {
		.gpus = (unsigned long)draft->page + BUFFER_SIZE,
		.num_gpus = 1,
	};
	struct kfd_criu_gpu *many;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++)
		KUNIT_EXPECT_EQ_MSG(test, wrong[i].error,
				    criu_test_choose(draft, &wrong[i].gpu, 1), "%u", i);
	many = kunit_kcalloc(test, KFD_CRIU_MAX_GPUS + 1, sizeof(*many),
			     GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, many);
	KUNIT_EXPECT_EQ(test, 0, criu_test_choose(draft, many, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			criu_test_choose(draft, many, KFD_CRIU_MAX_GPUS + 1));
	KUNIT_EXPECT_EQ(test, -EFAULT, PTR_ERR(kfd_criu_gpus_create(&args)));
}

static void a_record_ends_within_the_image(struct kunit *test)
{
	static const u64 beyond[] = {
		8, BUFFER_SIZE, S64_MAX - 7, (u64)S64_MAX + 1, U64_MAX - 7,
		U64_MAX - FIRST + 1, U64_MAX,
	};
	struct draft *draft = test->priv;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(beyond); i++) {
		struct kfd_criu_record *record;

		criu_test_begin_draft(draft);
		record = (void *)(draft->bytes + draft->size);
		criu_test_add_record(draft, KFD_CRIU_RECORD_PROCESS);
		/* The sum may wrap around, and is too small then. */
		record->size = cpu_to_le64(le64_to_cpu(record->size) + beyond[i]);
		KUNIT_EXPECT_EQ_MSG(test, -EINVAL, criu_test_finish_and_check(test, draft),
				    "%#llx bytes more", beyond[i]);
		criu_test_image_record(draft)->size = cpu_to_le64(draft->size + beyond[i]);
		KUNIT_EXPECT_EQ_MSG(test, -EINVAL,
				    criu_test_check_bytes(test, draft, draft->size),
				    "%#llx bytes more", beyond[i]);
	}
	/* The third record ends where it begins: the reader must not loop. */
	criu_test_begin_draft(draft);
	criu_test_add(draft, UNKNOWN, 1, 0, HEADER);
	criu_test_add(draft, UNKNOWN, 1, 0, -HEADER);
	draft->size += 2 * HEADER;
	KUNIT_EXPECT_EQ(test, -EINVAL, criu_test_finish_and_check(test, draft));
}

static void what_cannot_be_read_is_a_fault(struct kunit *test)
{
	struct draft *draft = test->priv;
	struct kfd_criu_stream image;

	criu_test_make_full_image(draft);
	/*
	 * The header of the second record is not mapped at all, or not to its
	 * last byte.
	 */
	image.size = draft->size;
	image.pos = 0;
	image.num_records = 0;
	image.data = draft->page + BUFFER_SIZE - FIRST;
	KUNIT_ASSERT_EQ(test, 0, copy_to_user(image.data, draft->bytes, FIRST));
	KUNIT_EXPECT_EQ(test, -EFAULT, kfd_criu_check_image(&image, &draft->ctx));
	image.data = draft->page + BUFFER_SIZE - FIRST - HEADER + 1;
	KUNIT_ASSERT_EQ(test, 0, copy_to_user(image.data, draft->bytes,
					      FIRST + HEADER - 1));
	KUNIT_EXPECT_EQ(test, -EFAULT, kfd_criu_check_image(&image, &draft->ctx));
	image.data = draft->page + BUFFER_SIZE;
	KUNIT_EXPECT_EQ(test, -EFAULT, kfd_criu_check_image(&image, &draft->ctx));
	/* Kernel memory must not be accepted as an image. */
	image.data = (u8 __force __user *)draft->bytes;
	KUNIT_EXPECT_EQ(test, -EFAULT, kfd_criu_check_image(&image, &draft->ctx));
}

#if IS_ENABLED(CONFIG_HSA_AMD_SVM)
static void criu_test_no_deferred_work(struct work_struct *work)
{
}

static void criu_test_init_svms(struct kfd_process *p)
{
	mutex_init(&p->svms.lock);
	INIT_LIST_HEAD(&p->svms.list);
	INIT_WORK(&p->svms.deferred_list_work, criu_test_no_deferred_work);
}
#else
static void criu_test_init_svms(struct kfd_process *p)
{
}
#endif

static struct kfd_process *criu_test_make_process(struct kunit *test)
{
	struct kfd_process *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	mutex_init(&p->event_mutex);
	idr_init(&p->event_idr);
	criu_test_init_svms(p);
	return p;
}

/* Writes an image into exactly @size bytes at the end of the page. */
static int criu_test_write_into(struct draft *draft, struct kfd_process *p, u64 size,
				struct kfd_criu_stream *s)
{
	s->data = draft->page + BUFFER_SIZE - size;
	s->size = size;
	s->pos = 0;
	s->num_records = 0;
	return kfd_criu_write_image(s, p);
}

static void what_is_written_is_an_image(struct kunit *test)
{
	const u64 expected = FIRST + sizeof(struct kfd_criu_record_process) +
			     sizeof(struct kfd_criu_record_event_page);
	struct kfd_process *p = criu_test_make_process(test);
	struct draft *draft = test->priv;
	struct kfd_criu_record_process process;
	struct kfd_criu_record_event_page page;
	struct kfd_criu_stream s;
	u64 size;

	p->xnack_enabled = true;
	p->signal_handle = 0x1234567800000009;
	KUNIT_EXPECT_EQ(test, 0, criu_test_write_into(draft, p, 0, &s));
	KUNIT_EXPECT_EQ(test, expected, s.pos);
	/* A smaller buffer yields the same length, but no image. */
	for (size = 0; size <= expected; size += 8) {
		KUNIT_ASSERT_EQ(test, 0, clear_user(draft->page, BUFFER_SIZE));
		KUNIT_EXPECT_EQ(test, 0, criu_test_write_into(draft, p, size, &s));
		KUNIT_EXPECT_EQ(test, expected, s.pos);
		KUNIT_EXPECT_EQ(test, 3, s.num_records);
		KUNIT_EXPECT_EQ(test, size == expected ? 0 : -EINVAL,
				kfd_criu_check_image(&(struct kfd_criu_stream){
					.data = s.data, .size = size },
					&draft->ctx));
		/* The buffer does not begin with an image record. */
		if (size >= FIRST && size < expected) {
			KUNIT_ASSERT_EQ(test, 0, copy_from_user(draft->bytes, s.data,
								FIRST));
			KUNIT_EXPECT_TRUE(test, !memchr_inv(draft->bytes, 0, FIRST));
		}
	}
	KUNIT_ASSERT_EQ(test, 0, copy_from_user(&process, s.data + FIRST,
						sizeof(process)));
	KUNIT_EXPECT_EQ(test, KFD_CRIU_RECORD_PROCESS,
			le32_to_cpu(process.record.type));
	KUNIT_EXPECT_EQ(test, KFD_CRIU_PROCESS_XNACK,
			le64_to_cpu(process.flags));
	KUNIT_ASSERT_EQ(test, 0,
			copy_from_user(&page, s.data + FIRST + sizeof(process),
				       sizeof(page)));
	KUNIT_EXPECT_EQ(test, KFD_CRIU_RECORD_EVENT_PAGE,
			le32_to_cpu(page.record.type));
	KUNIT_EXPECT_EQ(test, 0x1234567800000009, le64_to_cpu(page.handle));
	idr_destroy(&p->event_idr);
}

static void what_cannot_be_written_is_a_fault(struct kunit *test)
{
	struct kfd_process *p = criu_test_make_process(test);
	struct draft *draft = test->priv;
	struct kfd_criu_stream s = {
		.data = draft->page + BUFFER_SIZE - FIRST,
		.size = BUFFER_SIZE,
	};

	KUNIT_EXPECT_EQ(test, -EFAULT, kfd_criu_write_image(&s, p));
	idr_destroy(&p->event_idr);
}

/*
 * User space can add a queue to an image after kfd_criu_check_image() has seen
 * none.
 */
static void a_queue_that_comes_late_is_refused(struct kunit *test)
{
	struct kfd_process *p = criu_test_make_process(test);
	struct draft *draft = test->priv;
	struct {
		struct kfd_criu_record_image image;
		struct kfd_criu_record_queue queue;
	} records = {
		.image.record = {
			.type = cpu_to_le32(KFD_CRIU_RECORD_IMAGE),
			.version = cpu_to_le16(1),
			.fixed_size = cpu_to_le32(sizeof(records.image)),
			.size = cpu_to_le64(sizeof(records.image)),
		},
		.queue.record = {
			.type = cpu_to_le32(KFD_CRIU_RECORD_QUEUE),
			.version = cpu_to_le16(1),
			.fixed_size = cpu_to_le32(sizeof(records.queue)),
			.size = cpu_to_le64(sizeof(records.queue)),
		},
	};
	struct kfd_criu_stream s = {
		.data = draft->page,
		.size = sizeof(records),
	};
	struct kfd_criu_restore_ctx ctx = { .may_write_registers = false };
	struct amdkfd_process_info info = {};

	mutex_init(&info.notifier_lock);
	mutex_init(&info.lock);
	p->kgd_process_info = &info;
	KUNIT_ASSERT_EQ(test, 0, copy_to_user(s.data, &records, sizeof(records)));
	KUNIT_EXPECT_EQ(test, -EACCES, kfd_criu_read_image(p, &s, &ctx));
	/* With access it is the queue that is refused: it has no GPU. */
	s.pos = 0;
	ctx.may_write_registers = true;
	KUNIT_EXPECT_EQ(test, -EINVAL, kfd_criu_read_image(p, &s, &ctx));
	p->kgd_process_info = NULL;
	idr_destroy(&p->event_idr);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(an_image_has_records_of_each_type),
	KUNIT_CASE(an_image_that_is_cut_is_none),
	KUNIT_CASE(the_image_record_must_match_the_image),
	KUNIT_CASE(an_image_begins_with_its_own_record),
	KUNIT_CASE(records_are_in_the_order_of_their_types),
	KUNIT_CASE(unknown_records_are_skipped_or_refused),
	KUNIT_CASE(an_unknown_flag_is_refused),
	KUNIT_CASE(records_are_as_long_as_their_type),
	KUNIT_CASE(the_fixed_part_has_the_known_members),
	KUNIT_CASE(unknown_members_must_be_zero),
	KUNIT_CASE(the_payload_follows_all_members),
	KUNIT_CASE(the_bytes_of_a_payload_cannot_overflow),
	KUNIT_CASE(the_refused_record_is_named),
	KUNIT_CASE(gpus_are_those_of_the_image),
	KUNIT_CASE(wrong_gpus_are_refused),
	KUNIT_CASE(a_record_ends_within_the_image),
	KUNIT_CASE(what_cannot_be_read_is_a_fault),
	KUNIT_CASE(what_is_written_is_an_image),
	KUNIT_CASE(what_cannot_be_written_is_a_fault),
	KUNIT_CASE(a_queue_that_comes_late_is_refused),
	{}
};

static struct kunit_suite suite = {
	.name = "kfd_criu_image",
	.init = criu_test_init,
	.test_cases = cases,
};

kunit_test_suite(suite);
