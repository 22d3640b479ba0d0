// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * KUnit tests of images of the extensible ABI: which sequences of record
 * headers are a valid image, and that the writer produces valid ones. As in
 * real use, the images are in user memory.
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
	[KFD_CRIU_RECORD_IMAGE] = 40,
	[KFD_CRIU_RECORD_DEVICE] = 112,
	[KFD_CRIU_RECORD_PROCESS] = 32,
	[KFD_CRIU_RECORD_BO] = 80,
	[KFD_CRIU_RECORD_QUEUE] = 128,
	[KFD_CRIU_RECORD_EVENT_PAGE] = 24,
	[KFD_CRIU_RECORD_EVENT] = 80,
	[KFD_CRIU_RECORD_SVM_RANGE] = 56,
};

/*
 * An image under construction, and a page of user memory that is followed by an
 * unmapped one.
 */
struct draft {
	u8 bytes[BUFFER_SIZE];
	u64 size;
	u32 records;
	u8 __user *page;
};

static int init_test(struct kunit *test)
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
	test->priv = draft;
	return 0;
}

/*
 * Whether this kernel knows the record type, which for SVM depends on the
 * configuration.
 */
static bool is_supported(u32 type)
{
	return type != KFD_CRIU_RECORD_SVM_RANGE ||
	       IS_ENABLED(CONFIG_HSA_AMD_SVM);
}

static void add(struct draft *draft, u32 type, u16 version, u16 flags, u64 size)
{
	struct kfd_criu_record *record = (void *)(draft->bytes + draft->size);

	record->type = cpu_to_le32(type);
	record->version = cpu_to_le16(version);
	record->flags = cpu_to_le16(flags);
	record->size = cpu_to_le64(size);
	draft->size += size;
	draft->records++;
}

/* Adds a record as this kernel writes it. */
static void add_record(struct draft *draft, u32 type)
{
	add(draft, type, 1, REQUIRED, sizes[type]);
}

static void begin_draft(struct draft *draft)
{
	memset(draft->bytes, 0, sizeof(draft->bytes));
	draft->size = 0;
	draft->records = 0;
	add_record(draft, KFD_CRIU_RECORD_IMAGE);
}

static struct kfd_criu_record_image *image_record(struct draft *draft)
{
	return (void *)draft->bytes;
}

static void finish_draft(struct draft *draft)
{
	image_record(draft)->magic = cpu_to_le64(KFD_CRIU_IMAGE_MAGIC);
	image_record(draft)->size = cpu_to_le64(draft->size);
	image_record(draft)->num_records = cpu_to_le32(draft->records);
}

/*
 * Checks the first @size bytes of the draft, placed so that the next byte is
 * not mapped.
 */
static int check_bytes(struct kunit *test, struct draft *draft, u64 size)
{
	const struct kfd_criu_stream image = {
		.data = draft->page + BUFFER_SIZE - size,
		.size = size,
	};

	KUNIT_ASSERT_LE(test, size, BUFFER_SIZE);
	KUNIT_ASSERT_EQ(test, 0, copy_to_user(image.data, draft->bytes, size));
	return kfd_criu_check_image(&image);
}

static int finish_and_check(struct kunit *test, struct draft *draft)
{
	finish_draft(draft);
	return check_bytes(test, draft, draft->size);
}

/* Makes an image with one record of each type that this kernel knows. */
static void make_full_image(struct draft *draft)
{
	u32 type;

	begin_draft(draft);
	for (type = KFD_CRIU_RECORD_DEVICE; type <= KFD_CRIU_MAX_RECORD_TYPE;
	     type++)
		if (is_supported(type))
			add_record(draft, type);
	finish_draft(draft);
}

static void an_image_has_records_of_each_type(struct kunit *test)
{
	struct draft *draft = test->priv;

	make_full_image(draft);
	KUNIT_EXPECT_EQ(test, 0, finish_and_check(test, draft));
	begin_draft(draft);
	KUNIT_EXPECT_EQ(test, 0, finish_and_check(test, draft));
}

static void an_image_that_is_cut_is_none(struct kunit *test)
{
	struct draft *draft = test->priv;
	u64 size;

	make_full_image(draft);
	for (size = 0; size < draft->size; size++)
		KUNIT_EXPECT_EQ_MSG(test, -EINVAL, check_bytes(test, draft, size),
				    "%llu bytes", size);
	/*
	 * Also when the image record gives the shorter size, if it ends inside
	 * a record.
	 */
	for (size = FIRST; size < draft->size; size++) {
		image_record(draft)->size = cpu_to_le64(size);
		KUNIT_EXPECT_EQ_MSG(test, -EINVAL, check_bytes(test, draft, size),
				    "%llu bytes", size);
	}
}

static void the_image_record_must_match_the_image(struct kunit *test)
{
	struct draft *draft = test->priv;

	make_full_image(draft);
	image_record(draft)->magic++;
	KUNIT_EXPECT_EQ(test, -EINVAL, check_bytes(test, draft, draft->size));
	finish_draft(draft);
	image_record(draft)->size = cpu_to_le64(draft->size + 8);
	KUNIT_EXPECT_EQ(test, -EINVAL, check_bytes(test, draft, draft->size));
	finish_draft(draft);
	image_record(draft)->num_records = cpu_to_le32(draft->records - 1);
	KUNIT_EXPECT_EQ(test, -EINVAL, check_bytes(test, draft, draft->size));
	finish_draft(draft);
	image_record(draft)->reserved = cpu_to_le32(1);
	KUNIT_EXPECT_EQ(test, -EINVAL, check_bytes(test, draft, draft->size));
	image_record(draft)->reserved = 0;
	KUNIT_EXPECT_EQ(test, 0, check_bytes(test, draft, draft->size));
}

static void an_image_begins_with_its_own_record(struct kunit *test)
{
	struct draft *draft = test->priv;
	u32 type;

	for (type = 0; type <= UNKNOWN; type++) {
		if (type == KFD_CRIU_RECORD_IMAGE)
			continue;
		/* Only type and flags of the first record change. */
		make_full_image(draft);
		image_record(draft)->record.type = cpu_to_le32(type);
		image_record(draft)->record.flags = 0;
		KUNIT_EXPECT_EQ_MSG(test, -EINVAL,
				    check_bytes(test, draft, draft->size),
				    "first of type %u", type);
	}
	make_full_image(draft);
	image_record(draft)->record.version = cpu_to_le16(2);
	image_record(draft)->record.flags = 0;
	KUNIT_EXPECT_EQ(test, -EINVAL, check_bytes(test, draft, draft->size));
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

			if (!is_supported(one) || !is_supported(two))
				continue;
			begin_draft(draft);
			add_record(draft, one);
			/*
			 * An unknown record does not affect the order of the
			 * others.
			 */
			add(draft, UNKNOWN, 1, 0, HEADER);
			add_record(draft, two);
			KUNIT_EXPECT_EQ_MSG(test, good ? 0 : -EINVAL,
					    finish_and_check(test, draft),
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

				begin_draft(draft);
				for (type = KFD_CRIU_RECORD_DEVICE;
				     type < place; type++)
					if (is_supported(type))
						add_record(draft, type);
				at = draft->size;
				add(draft, unknown[i].type, unknown[i].version,
				    0, size);
				for (; type <= KFD_CRIU_MAX_RECORD_TYPE; type++)
					if (is_supported(type))
						add_record(draft, type);
				KUNIT_EXPECT_EQ_MSG(test, 0,
						    finish_and_check(test, draft),
						    "%u before type %u", i,
						    place);
				((struct kfd_criu_record *)(draft->bytes + at))
					->flags = cpu_to_le16(REQUIRED);
				KUNIT_EXPECT_EQ_MSG(test, -EPROTONOSUPPORT,
						    finish_and_check(test, draft),
						    "%u before type %u", i,
						    place);
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

		begin_draft(draft);
		add(draft, KFD_CRIU_RECORD_PROCESS, 1, BIT(bit),
		    sizes[KFD_CRIU_RECORD_PROCESS]);
		KUNIT_EXPECT_EQ_MSG(test, expected, finish_and_check(test, draft),
				    "bit %u", bit);
		if (!bit)
			continue;
		begin_draft(draft);
		add(draft, UNKNOWN, 1, BIT(bit), HEADER);
		KUNIT_EXPECT_EQ_MSG(test, expected, finish_and_check(test, draft),
				    "bit %u of an unknown record", bit);
	}
}

/*
 * The payload is checked when the record is read, which these tests do not do.
 */
static void records_are_as_long_as_their_type(struct kunit *test)
{
	struct draft *draft = test->priv;
	u64 size;
	u32 type;

	for (type = KFD_CRIU_RECORD_DEVICE; type <= KFD_CRIU_MAX_RECORD_TYPE;
	     type++) {
		if (!is_supported(type))
			continue;
		for (size = 0; size <= sizes[type] + 16; size++) {
			const bool good = size >= sizes[type] && size % 8 == 0;

			begin_draft(draft);
			add(draft, type, 1, REQUIRED, size);
			KUNIT_EXPECT_EQ_MSG(test, good ? 0 : -EINVAL,
					    finish_and_check(test, draft),
					    "type %u, %llu bytes", type, size);
		}
	}
	for (size = 0; size <= HEADER + 16; size++) {
		begin_draft(draft);
		add(draft, UNKNOWN, 1, 0, size);
		KUNIT_EXPECT_EQ_MSG(test,
				    size >= HEADER && size % 8 == 0 ? 0 : -EINVAL,
				    finish_and_check(test, draft), "%llu bytes", size);
	}
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

		begin_draft(draft);
		record = (void *)(draft->bytes + draft->size);
		add_record(draft, KFD_CRIU_RECORD_PROCESS);
		/* The sum may wrap around, and is too small then. */
		record->size = cpu_to_le64(le64_to_cpu(record->size) + beyond[i]);
		KUNIT_EXPECT_EQ_MSG(test, -EINVAL, finish_and_check(test, draft),
				    "%#llx bytes more", beyond[i]);
		image_record(draft)->size = cpu_to_le64(draft->size + beyond[i]);
		KUNIT_EXPECT_EQ_MSG(test, -EINVAL,
				    check_bytes(test, draft, draft->size),
				    "%#llx bytes more", beyond[i]);
	}
	/* The third record ends where it begins: the reader must not loop. */
	begin_draft(draft);
	add(draft, UNKNOWN, 1, 0, HEADER);
	add(draft, UNKNOWN, 1, 0, -HEADER);
	draft->size += 2 * HEADER;
	KUNIT_EXPECT_EQ(test, -EINVAL, finish_and_check(test, draft));
}

static void what_cannot_be_read_is_a_fault(struct kunit *test)
{
	struct draft *draft = test->priv;
	struct kfd_criu_stream image;

	make_full_image(draft);
	/*
	 * The header of the second record is not mapped at all, or not to its
	 * last byte.
	 */
	image.size = draft->size;
	image.pos = 0;
	image.num_records = 0;
	image.data = draft->page + BUFFER_SIZE - FIRST;
	KUNIT_ASSERT_EQ(test, 0, copy_to_user(image.data, draft->bytes, FIRST));
	KUNIT_EXPECT_EQ(test, -EFAULT, kfd_criu_check_image(&image));
	image.data = draft->page + BUFFER_SIZE - FIRST - HEADER + 1;
	KUNIT_ASSERT_EQ(test, 0, copy_to_user(image.data, draft->bytes,
					      FIRST + HEADER - 1));
	KUNIT_EXPECT_EQ(test, -EFAULT, kfd_criu_check_image(&image));
	image.data = draft->page + BUFFER_SIZE;
	KUNIT_EXPECT_EQ(test, -EFAULT, kfd_criu_check_image(&image));
	/* Kernel memory must not be accepted as an image. */
	image.data = (u8 __force __user *)draft->bytes;
	KUNIT_EXPECT_EQ(test, -EFAULT, kfd_criu_check_image(&image));
}

#if IS_ENABLED(CONFIG_HSA_AMD_SVM)
static void no_deferred_work(struct work_struct *work)
{
}

static void init_svms(struct kfd_process *p)
{
	mutex_init(&p->svms.lock);
	INIT_LIST_HEAD(&p->svms.list);
	INIT_WORK(&p->svms.deferred_list_work, no_deferred_work);
}
#else
static void init_svms(struct kfd_process *p)
{
}
#endif

static struct kfd_process *make_process(struct kunit *test)
{
	struct kfd_process *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	mutex_init(&p->event_mutex);
	idr_init(&p->event_idr);
	init_svms(p);
	return p;
}

/* Writes an image into exactly @size bytes at the end of the page. */
static int write_into(struct draft *draft, struct kfd_process *p, u64 size,
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
	struct kfd_process *p = make_process(test);
	struct draft *draft = test->priv;
	struct kfd_criu_record_process process;
	struct kfd_criu_record_event_page page;
	struct kfd_criu_stream s;
	u64 size;

	p->xnack_enabled = true;
	p->signal_handle = 0x1234567800000009;
	KUNIT_EXPECT_EQ(test, 0, write_into(draft, p, 0, &s));
	KUNIT_EXPECT_EQ(test, expected, s.pos);
	/* A smaller buffer yields the same length, but no image. */
	for (size = 0; size <= expected; size += 8) {
		KUNIT_ASSERT_EQ(test, 0, clear_user(draft->page, BUFFER_SIZE));
		KUNIT_EXPECT_EQ(test, 0, write_into(draft, p, size, &s));
		KUNIT_EXPECT_EQ(test, expected, s.pos);
		KUNIT_EXPECT_EQ(test, 3, s.num_records);
		KUNIT_EXPECT_EQ(test, size == expected ? 0 : -EINVAL,
				kfd_criu_check_image(&(struct kfd_criu_stream){
					.data = s.data, .size = size }));
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
	struct kfd_process *p = make_process(test);
	struct draft *draft = test->priv;
	struct kfd_criu_stream s = {
		.data = draft->page + BUFFER_SIZE - FIRST,
		.size = BUFFER_SIZE,
	};

	KUNIT_EXPECT_EQ(test, -EFAULT, kfd_criu_write_image(&s, p));
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
	KUNIT_CASE(a_record_ends_within_the_image),
	KUNIT_CASE(what_cannot_be_read_is_a_fault),
	KUNIT_CASE(what_is_written_is_an_image),
	KUNIT_CASE(what_cannot_be_written_is_a_fault),
	{}
};

static struct kunit_suite suite = {
	.name = "kfd_criu_image",
	.init = init_test,
	.test_cases = cases,
};

kunit_test_suite(suite);
