// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * KUnit tests of the MQDs in images of the extensible ABI: what the writer puts
 * into an image and what it leaves out, and which words the reader refuses. The
 * MQDs are made by the driver's own MQD managers. The tests need no GPU and run
 * when amdgpu is loaded.
 */
#include <kunit/test.h>
#include <linux/kfd_criu_ioctl.h>
#include "amdgpu.h"
#include "kfd_criu.h"
#include "kfd_criu_v2.h"
#include "kfd_priv.h"
#include "kfd_device_queue_manager.h"
#include "kfd_mqd_manager.h"
#include "v9_structs.h"

#define STACK_SIZE	0x2000
#define AREA_SIZE	0x10000
/* An MQD takes at most two pages, and a control stack may follow. */
#define MQD_BYTES	(2 * PAGE_SIZE + STACK_SIZE)
/* What no image may tell. Each 32-bit half occurs in no other value. */
#define GART_ADDRESS	0x00007fabcdef5000ULL
#define DOORBELL	0x1c7
#define VMID		0xd
#define PATTERN		0x5a5a5a5aU
/* More bytes than an MQD has, as if members had been appended. */
#define GROWN_BY	64

typedef struct mqd_manager *(*init_fn)(enum KFD_MQD_TYPE type,
				       struct kfd_node *node);

struct layout {
	const char *name;
	enum amd_asic_type asic;
	u32 gc;
	init_fn init;
	enum kfd_queue_type type;
	u32 id;
};

/* From gfx9 on the driver looks at the version of the GC IP block. */
#define NEWER		CHIP_IP_DISCOVERY
#define COMPUTE(gfx, asic, gc, init, layout) \
	{ gfx " compute", asic, gc, init, KFD_QUEUE_TYPE_COMPUTE, \
	  KFD_CRIU_MQD_##layout }
#define SDMA(gfx, asic, gc, init, layout) \
	{ gfx " SDMA", asic, gc, init, KFD_QUEUE_TYPE_SDMA, \
	  KFD_CRIU_MQD_##layout##_SDMA }

static const struct layout layouts[] = {
	COMPUTE("gfx7", CHIP_HAWAII, 0, mqd_manager_init_cik, CIK),
	COMPUTE("gfx8", CHIP_FIJI, 0, mqd_manager_init_vi, VI),
	COMPUTE("gfx906", NEWER, IP_VERSION(9, 4, 0), mqd_manager_init_v9, V9),
	COMPUTE("gfx942", NEWER, IP_VERSION(9, 4, 3), mqd_manager_init_v9, V9),
	COMPUTE("gfx10", NEWER, IP_VERSION(10, 3, 0), mqd_manager_init_v10, V10),
	COMPUTE("gfx11", NEWER, IP_VERSION(11, 0, 0), mqd_manager_init_v11, V11),
	COMPUTE("gfx12", NEWER, IP_VERSION(12, 0, 1), mqd_manager_init_v12, V12),
	SDMA("gfx7", CHIP_HAWAII, 0, mqd_manager_init_cik, CIK),
	SDMA("gfx8", CHIP_FIJI, 0, mqd_manager_init_vi, VI),
	SDMA("gfx906", NEWER, IP_VERSION(9, 4, 0), mqd_manager_init_v9, V9),
	SDMA("gfx942", NEWER, IP_VERSION(9, 4, 3), mqd_manager_init_v9, V9),
	SDMA("gfx10", NEWER, IP_VERSION(10, 3, 0), mqd_manager_init_v10, V10),
	SDMA("gfx11", NEWER, IP_VERSION(11, 0, 0), mqd_manager_init_v11, V11),
	SDMA("gfx12", NEWER, IP_VERSION(12, 0, 1), mqd_manager_init_v12, V12),
};

static void criu_test_layout_name(const struct layout *l, char *text)
{
	strscpy(text, l->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(layout, layouts, criu_test_layout_name);

/* A device with an MQD manager, and a queue that has its MQDs. */
struct fake {
	struct amdgpu_device adev;
	struct kfd_dev kfd;
	struct kfd_node node;
	struct device_queue_manager dqm;
	struct mqd_manager *mm;
	struct queue q;
	struct kfd_criu_queue cq;
	u32 num_words;
};

static void criu_test_free_manager(void *mm)
{
	kfree(mm);
}

static struct fake *criu_test_make_fake(struct kunit *test, const struct layout *l)
{
	struct fake *fake = kunit_kzalloc(test, sizeof(*fake), GFP_KERNEL);
	const bool compute = l->type == KFD_QUEUE_TYPE_COMPUTE;

	KUNIT_ASSERT_NOT_NULL(test, fake);
	fake->adev.asic_type = l->asic;
	fake->adev.ip_versions[GC_HWIP][0] = l->gc;
	fake->adev.gds.gws_size = 64;
	fake->kfd.adev = &fake->adev;
	fake->kfd.cwsr_enabled = true;
	fake->node.adev = &fake->adev;
	fake->node.kfd = &fake->kfd;
	fake->node.dqm = &fake->dqm;
	fake->node.xcc_mask = 1;
	fake->node.ctl_stack_size = STACK_SIZE;
	mutex_init(&fake->dqm.lock_hidden);
	fake->mm = l->init(compute ? KFD_MQD_TYPE_CP : KFD_MQD_TYPE_SDMA,
			   &fake->node);
	KUNIT_ASSERT_NOT_NULL(test, fake->mm);
	KUNIT_ASSERT_EQ(test, 0,
			kunit_add_action_or_reset(test, criu_test_free_manager, fake->mm));
	fake->dqm.mqd_mgrs[compute ? KFD_MQD_TYPE_CP : KFD_MQD_TYPE_SDMA] =
		fake->mm;
	fake->q.device = &fake->node;
	fake->q.properties = (struct queue_properties){
		.type = l->type,
		.format = KFD_QUEUE_FORMAT_AQL,
		.queue_address = 0x100000,
		.queue_size = 0x1000,
		.read_ptr = (void __user *)0x200000,
		.write_ptr = (void __user *)0x200008,
		.doorbell_off = DOORBELL,
		.vmid = VMID,
		.eop_ring_buffer_address = 0x300000,
		.eop_ring_buffer_size = 0x1000,
		.ctx_save_restore_area_address = compute ? 0x400000 : 0,
		.ctx_save_restore_area_size = compute ? AREA_SIZE : 0,
		.ctl_stack_size = STACK_SIZE,
	};
	fake->num_words = kfd_criu_v2_num_words(&fake->node, l->type);
	return fake;
}

/* Initialises MQDs as the driver does it for a new queue. */
static void criu_test_init_mqds(struct kunit *test, struct fake *fake)
{
	const unsigned int n = NUM_XCC(fake->node.xcc_mask);
	struct kfd_mem_obj mem = { .gpu_addr = GART_ADDRESS };
	u64 gart;

	mem.cpu_ptr = kunit_kzalloc(test, n * MQD_BYTES, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mem.cpu_ptr);
	fake->mm->init_mqd(fake->mm, &fake->q.mqd, &mem, &gart,
			   &fake->q.properties);
	fake->q.properties.is_active = false;
}

/* Makes the payload of the queue's record. */
static __le32 *criu_test_pack(struct kunit *test, struct fake *fake)
{
	struct kfd_criu_queue *cq = &fake->cq;
	__le32 *payload, *copy;
	size_t bytes;

	cq->qp = fake->q.properties;
	KUNIT_ASSERT_EQ(test, 0, kfd_criu_mqd_describe(&fake->node, &cq->qp,
						       &cq->mqd));
	KUNIT_ASSERT_EQ(test, 0, kfd_criu_queue_save(&fake->q, cq));
	payload = kfd_criu_v2_pack_mqds(&fake->node, cq);
	kfd_criu_queue_free(cq);
	KUNIT_ASSERT_NOT_NULL(test, payload);
	bytes = kfd_criu_v2_mqd_bytes(&cq->mqd, fake->num_words);
	copy = kunit_kzalloc(test, bytes, GFP_KERNEL);
	if (copy)
		memcpy(copy, payload, bytes);
	kvfree(payload);
	KUNIT_ASSERT_NOT_NULL(test, copy);
	return copy;
}

/* Makes MQDs from a payload and checks them, as RESTORE does. */
static int criu_test_unpack(struct fake *fake, const __le32 *payload, u32 num_words)
{
	struct kfd_criu_queue *cq = &fake->cq;
	int r;

	cq->qp = fake->q.properties;
	r = kfd_criu_mqd_describe(&fake->node, &cq->qp, &cq->mqd);
	if (r)
		return r;
	r = kfd_criu_v2_unpack_mqds(&fake->node, cq, num_words, payload);
	if (r)
		return r;
	r = kfd_criu_mqd_check(&fake->node, cq);
	if (r)
		kfd_criu_queue_free(cq);
	return r;
}

static bool criu_test_has_word(const void *data, size_t bytes, u32 word)
{
	const u32 *words = data;
	size_t i;

	for (i = 0; i < bytes / sizeof(word); i++)
		if (words[i] == word)
			return true;
	return false;
}

static void runs_are_in_order_and_leave_no_word_twice(struct kunit *test)
{
	const struct layout *l = test->param_value;
	struct fake *fake = criu_test_make_fake(test, l);
	u32 first, count, next = 0, words = 0;
	unsigned int i;

	KUNIT_EXPECT_EQ(test, l->id, kfd_criu_mqd_layout_id(&fake->node, l->type));
	for (i = 0; kfd_criu_mqd_get_run(&fake->node, l->type, i, &first, &count);
	     i++) {
		KUNIT_EXPECT_GE_MSG(test, first, next, "run %u", i);
		KUNIT_EXPECT_GT_MSG(test, count, 0, "run %u", i);
		next = first + count;
		words += 1 + count;
	}
	KUNIT_EXPECT_LE(test, next * sizeof(u32), fake->mm->mqd_size);
	KUNIT_EXPECT_EQ(test, ALIGN(words, 2), fake->num_words);
	KUNIT_EXPECT_GT(test, fake->num_words, 0);
}

static void an_image_has_nothing_of_the_driver(struct kunit *test)
{
	const struct layout *l = test->param_value;
	struct fake *fake = criu_test_make_fake(test, l);
	const u32 low = lower_32_bits(GART_ADDRESS);
	__le32 *payload;
	size_t bytes;

	criu_test_init_mqds(test, fake);
	/* The MQD of an SDMA queue does not have its own address. */
	if (l->type == KFD_QUEUE_TYPE_COMPUTE)
		KUNIT_EXPECT_TRUE(test, criu_test_has_word(fake->q.mqd, MQD_BYTES, low));
	payload = criu_test_pack(test, fake);
	bytes = kfd_criu_v2_mqd_bytes(&fake->cq.mqd, fake->num_words);
	KUNIT_EXPECT_FALSE(test, criu_test_has_word(payload, bytes, low));
	KUNIT_EXPECT_FALSE(test,
			   criu_test_has_word(payload, bytes, upper_32_bits(GART_ADDRESS)));
	KUNIT_EXPECT_FALSE(test, criu_test_has_word(payload, bytes,
						    lower_32_bits(GART_ADDRESS >> 8)));
	KUNIT_EXPECT_FALSE(test, criu_test_has_word(payload, bytes, VMID));
}

/* Every bit that is not the image's must be 0, whatever the MQD has there. */
static void bits_of_the_driver_are_zero_in_an_image(struct kunit *test)
{
	const struct layout *l = test->param_value;
	struct fake *fake = criu_test_make_fake(test, l);
	u32 first, count, mask, at = 0, n;
	unsigned int i;
	__le32 *payload;

	criu_test_init_mqds(test, fake);
	memset(fake->q.mqd, 0xff, fake->mm->mqd_size);
	payload = criu_test_pack(test, fake);
	for (i = 0; kfd_criu_mqd_get_run(&fake->node, l->type, i, &first, &count);
	     i++) {
		const struct kfd_criu_mqd_words *run = (void *)&payload[at++];

		KUNIT_ASSERT_EQ(test, first, le16_to_cpu(run->first));
		KUNIT_ASSERT_EQ(test, count, le16_to_cpu(run->count));
		for (n = 0; n < count; n++, at++) {
			KUNIT_ASSERT_TRUE(test,
					  kfd_criu_mqd_get_mask(&fake->node,
								&fake->cq,
								first + n,
								&mask));
			KUNIT_EXPECT_EQ_MSG(test, mask, le32_to_cpu(payload[at]),
					    "word %u", first + n);
		}
	}
	if (at < fake->num_words)
		KUNIT_EXPECT_EQ(test, 0, le32_to_cpu(payload[at]));
}

/* Fills the words that an image decides, except those that are checked. */
static void criu_test_fill_image_words(struct kunit *test, struct fake *fake)
{
	const struct layout *l = test->param_value;
	struct kfd_criu_queue cq = { .qp = fake->q.properties };
	struct kfd_criu_queue plain = { .qp.type = l->type };
	u32 first, count, word, mask, plain_mask;
	u32 *mqd = fake->q.mqd;
	unsigned int i;

	for (i = 0; kfd_criu_mqd_get_run(&fake->node, l->type, i, &first, &count);
	     i++) {
		for (word = first; word < first + count; word++) {
			kfd_criu_mqd_get_mask(&fake->node, &cq, word, &mask);
			kfd_criu_mqd_get_mask(&fake->node, &plain, word,
					      &plain_mask);
			/* Pointers into the save area keep their valid values. */
			if (mask && !plain_mask)
				continue;
			mqd[word] = (mqd[word] & ~mask) | (PATTERN & mask);
		}
	}
}

static void criu_test_restore_into(struct kunit *test, struct fake *to,
				   const __le32 *payload, u32 num_words)
{
	criu_test_init_mqds(test, to);
	KUNIT_ASSERT_EQ(test, 0, criu_test_unpack(to, payload, num_words));
	kfd_criu_mqd_merge(&to->q, &to->cq.mqd);
	kfd_criu_queue_free(&to->cq);
}

/*
 * The kernel that wrote the image has a larger MQD, or the one that reads it
 * has.
 */
static void an_image_of_a_kernel_with_another_mqd_is_restored(struct kunit *test)
{
	const struct layout *l = test->param_value;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		struct fake *from = criu_test_make_fake(test, l);
		struct fake *to = criu_test_make_fake(test, l);
		const size_t size = from->mm->mqd_size;
		__le32 *payload;

		from->mm->mqd_size += i == 1 ? GROWN_BY : 0;
		to->mm->mqd_size += i == 2 ? GROWN_BY : 0;
		criu_test_init_mqds(test, from);
		criu_test_fill_image_words(test, from);
		payload = criu_test_pack(test, from);
		criu_test_restore_into(test, to, payload, from->num_words);
		KUNIT_EXPECT_MEMEQ_MSG(test, from->q.mqd, to->q.mqd, size,
				       "case %u", i);
	}
}

static void each_xcc_has_its_words_and_its_control_stack(struct kunit *test)
{
	static const struct layout gfx942 = {
		"gfx942", NEWER, IP_VERSION(9, 4, 3), mqd_manager_init_v9,
		KFD_QUEUE_TYPE_COMPUTE, KFD_CRIU_MQD_V9,
	};
	struct fake *from = criu_test_make_fake(test, &gfx942);
	struct fake *to = criu_test_make_fake(test, &gfx942);
	struct v9_mqd *m[2], *restored[2];
	u8 *stack[2];
	u64 stride;
	__le32 *payload;
	unsigned int i;

	from->node.xcc_mask = 0x3;
	to->node.xcc_mask = 0xc;
	criu_test_init_mqds(test, from);
	stride = from->mm->mqd_stride(from->mm, &from->q.properties);
	for (i = 0; i < 2; i++) {
		m[i] = from->q.mqd + i * stride;
		stack[i] = (u8 *)m[i] + PAGE_SIZE;
		m[i]->cp_hqd_pq_rptr = 100 + i;
		m[i]->cp_hqd_cntl_stack_offset = STACK_SIZE - 64;
		m[i]->cp_hqd_wg_state_offset = STACK_SIZE + 128;
		memset(stack[i], 'x' + i, STACK_SIZE);
	}
	payload = criu_test_pack(test, from);
	KUNIT_EXPECT_EQ(test, 2, from->cq.mqd.n_xcc);
	criu_test_restore_into(test, to, payload, from->num_words);
	for (i = 0; i < 2; i++) {
		restored[i] = to->q.mqd + i * stride;
		KUNIT_EXPECT_EQ(test, 100 + i, restored[i]->cp_hqd_pq_rptr);
		KUNIT_EXPECT_EQ(test, STACK_SIZE - 64,
				restored[i]->cp_hqd_cntl_stack_offset);
		/* Only the used part is in the image. */
		KUNIT_EXPECT_TRUE(test, !memchr_inv((u8 *)restored[i] + PAGE_SIZE,
						    0, STACK_SIZE - 64));
		KUNIT_EXPECT_MEMEQ(test,
				   (u8 *)restored[i] + PAGE_SIZE + STACK_SIZE - 64,
				   stack[i] + STACK_SIZE - 64, 64);
	}
}

/* ---- refusals ---- */

/* Finds the header of the n-th run in a payload. */
static struct kfd_criu_mqd_words *criu_test_nth_run(__le32 *payload, unsigned int n)
{
	struct kfd_criu_mqd_words *run = (void *)payload;

	while (n--) {
		payload += 1 + le16_to_cpu(run->count);
		run = (void *)payload;
	}
	return run;
}

static unsigned int criu_test_count_runs(const struct fake *fake)
{
	u32 first, count;
	unsigned int n = 0;

	while (kfd_criu_mqd_get_run(&fake->node, fake->q.properties.type, n,
				    &first, &count))
		n++;
	return n;
}

static void a_header_that_does_not_fit_is_refused(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test, test->param_value);
	const unsigned int runs = criu_test_count_runs(fake);
	__le32 *payload;
	unsigned int i;

	criu_test_init_mqds(test, fake);
	payload = criu_test_pack(test, fake);
	for (i = 0; i < runs; i++) {
		struct kfd_criu_mqd_words *run = criu_test_nth_run(payload, i);
		const struct kfd_criu_mqd_words was = *run;
		const struct kfd_criu_mqd_words wrong[] = {
			{ was.first, 0 },
			{ was.first, cpu_to_le16(U16_MAX) },
			{ 0, was.count }, /* a word of the driver */
			{ cpu_to_le16(U16_MAX), was.count },
			/* That word is the driver's or the last run's. */
			{ cpu_to_le16(le16_to_cpu(was.first) - 1), was.count },
			i ? *criu_test_nth_run(payload, i - 1) :
			    (struct kfd_criu_mqd_words){},
		};
		unsigned int n;

		for (n = 0; n < ARRAY_SIZE(wrong); n++) {
			*run = wrong[n];
			KUNIT_EXPECT_EQ_MSG(test, -EINVAL,
					    criu_test_unpack(fake, payload,
							     fake->num_words),
					    "run %u, case %u", i, n);
			*run = was;
		}
	}
	KUNIT_ASSERT_EQ(test, 0, criu_test_unpack(fake, payload, fake->num_words));
	kfd_criu_queue_free(&fake->cq);
}

/* Words of the driver are refused even if they are 0. */
static void a_word_of_the_driver_is_refused(struct kunit *test)
{
	struct fake *fake = criu_test_make_fake(test, test->param_value);
	const u32 words = fake->mm->mqd_size / sizeof(u32);
	__le32 payload[2] = {};
	u32 word, mask, refused = 0;
	int r;

	criu_test_init_mqds(test, fake);
	fake->cq.qp = fake->q.properties;
	KUNIT_ASSERT_EQ(test, 0, kfd_criu_mqd_describe(&fake->node, &fake->cq.qp,
						       &fake->cq.mqd));
	/* Only words are tested here, so there is no control stack behind. */
	fake->cq.mqd.ctl_stack_size = 0;
	for (word = 0; word < words + 16; word++) {
		struct kfd_criu_mqd_words *run = (void *)payload;
		const bool known = kfd_criu_mqd_get_mask(&fake->node, &fake->cq,
							 word, &mask);

		run->first = cpu_to_le16(word);
		run->count = cpu_to_le16(1);
		payload[1] = 0;
		r = kfd_criu_v2_unpack_mqds(&fake->node, &fake->cq, 2, payload);
		KUNIT_EXPECT_EQ_MSG(test, known ? 0 : -EINVAL, r, "word %u", word);
		if (!r)
			kfd_criu_queue_free(&fake->cq);
		if (!known)
			refused++;
		if (!known || mask == ~0U)
			continue;
		/* One bit that is not the image's. */
		payload[1] = cpu_to_le32(BIT(__ffs(~mask)));
		KUNIT_EXPECT_EQ_MSG(test, -EINVAL,
				    kfd_criu_v2_unpack_mqds(&fake->node,
							    &fake->cq, 2,
							    payload),
				    "bits of word %u", word);
	}
	KUNIT_EXPECT_GT(test, refused, 16);
}

static void only_the_last_word_is_padding(struct kunit *test)
{
	static const struct {
		u32 words[6];
		u32 num;
		int err;
	} rows[] = {
		/* first 3, count 1; then the read pointer of an SDMA queue */
		{ { 0x00010003, 5 }, 2, 0 },
		{ { 0x00020003, 5, 6, 0 }, 4, 0 },
		{ { 0x00020003, 5, 6, 1 }, 4, -EINVAL },
		{ { 0x00010003, 5, 0, 0 }, 4, -EINVAL },
		{ { 0, 0, 0x00010003, 5 }, 4, -EINVAL },
		{ { 0x00010003, 5, 0x00010003, 5 }, 4, -EINVAL },
		{ { 0x00010004, 5, 0x00010003, 5 }, 4, -EINVAL },
		{ { 0x00010003, 5, 0x00010004, 5 }, 4, 0 },
		{ { 0x00030003, 5, 5, 5, 0x00010004, 5 }, 6, -EINVAL },
		{ { 0x00040003, 5, 5, 5 }, 4, -EINVAL },
		{ { 0x00000003, 5 }, 2, -EINVAL },
	};
	static const struct layout gfx9 = {
		"gfx906", NEWER, IP_VERSION(9, 4, 0), mqd_manager_init_v9,
		KFD_QUEUE_TYPE_SDMA, KFD_CRIU_MQD_V9_SDMA,
	};
	struct fake *fake = criu_test_make_fake(test, &gfx9);
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		__le32 payload[ARRAY_SIZE(rows[0].words)];
		int r;

		for (n = 0; n < ARRAY_SIZE(payload); n++)
			payload[n] = cpu_to_le32(rows[i].words[n]);
		r = criu_test_unpack(fake, payload, rows[i].num);
		KUNIT_EXPECT_EQ_MSG(test, rows[i].err, r, "row %u", i);
		if (r)
			continue;
		KUNIT_EXPECT_EQ(test, 5, *((u32 *)fake->cq.mqd.data + 3));
		/* A word that is not given is 0. */
		KUNIT_EXPECT_EQ(test, 0, *((u32 *)fake->cq.mqd.data + 5));
		kfd_criu_queue_free(&fake->cq);
	}
}

static void sizes_do_not_wrap(struct kunit *test)
{
	struct kfd_criu_mqd mqd = { .n_xcc = 2, .ctl_stack_size = 8 };

	KUNIT_EXPECT_EQ(test, 2 * (4 * 4 + 8), kfd_criu_v2_mqd_bytes(&mqd, 4));
	mqd.n_xcc = U32_MAX;
	mqd.ctl_stack_size = U32_MAX;
	KUNIT_EXPECT_EQ(test, SIZE_MAX, kfd_criu_v2_mqd_bytes(&mqd, U32_MAX));
	mqd.n_xcc = 0;
	KUNIT_EXPECT_EQ(test, 0, kfd_criu_v2_mqd_bytes(&mqd, U32_MAX));
}

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(runs_are_in_order_and_leave_no_word_twice,
			 layout_gen_params),
	KUNIT_CASE_PARAM(an_image_has_nothing_of_the_driver, layout_gen_params),
	KUNIT_CASE_PARAM(bits_of_the_driver_are_zero_in_an_image,
			 layout_gen_params),
	KUNIT_CASE_PARAM(an_image_of_a_kernel_with_another_mqd_is_restored,
			 layout_gen_params),
	KUNIT_CASE(each_xcc_has_its_words_and_its_control_stack),
	KUNIT_CASE_PARAM(a_header_that_does_not_fit_is_refused,
			 layout_gen_params),
	KUNIT_CASE_PARAM(a_word_of_the_driver_is_refused, layout_gen_params),
	KUNIT_CASE(only_the_last_word_is_padding),
	KUNIT_CASE(sizes_do_not_wrap),
	{}
};

static struct kunit_suite suite = {
	.name = "kfd_criu_v2_mqd",
	.test_cases = cases,
};

kunit_test_suite(suite);
