// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * KUnit tests of MQDs: which words a restore takes from an image, and which
 * values it refuses, on each generation of devices. They need no GPU and run
 * when amdgpu is loaded.
 */
#include <kunit/test.h>
#include "amdgpu.h"
#include "kfd_criu.h"
#include "kfd_priv.h"
#include "kfd_device_queue_manager.h"
#include "kfd_mqd_manager.h"
#include "cik_structs.h"
#include "vi_structs.h"
#include "v9_structs.h"
#include "v10_structs.h"
#include "v11_structs.h"
#include "v12_structs.h"

/*
 * The driver's initialisation fills a new MQD with one pattern, and the image
 * has another one that differs in every bit.
 */
#define DRIVER_PATTERN	0xa5a5a5a5U
#define IMAGE_PATTERN	0x5a5a5a5aU

#define WORD(type, member) (offsetof(struct type, member) / sizeof(u32))
#define NO_WORD		U16_MAX

#define GFX7	1	/* two values that no IP block has */
#define GFX8	2
#define GFX9	IP_VERSION(9, 4, 0)
#define GFX90A	IP_VERSION(9, 4, 2)
#define GFX942	IP_VERSION(9, 4, 3)
#define GFX10	IP_VERSION(10, 3, 0)
#define GFX11	IP_VERSION(11, 0, 0)
#define GFX12	IP_VERSION(12, 0, 1)

struct generation {
	const char *name;
	u32 gc;		/* version of the GC IP block */
	enum kfd_queue_type type;
	size_t size;
	/*
	 * Dwords that an image must never change, and dwords that it must
	 * restore.
	 */
	u16 driver_words[12];
	u16 image_words[4];
};

#define COMPUTE(gfx, v, type, wptr, driver1, driver2) \
	{ gfx " compute", v, KFD_QUEUE_TYPE_COMPUTE, sizeof(struct type), \
	  .driver_words = { WORD(type, compute_vmid), WORD(type, cp_hqd_vmid), \
			    WORD(type, cp_hqd_active), \
			    WORD(type, cp_mqd_base_addr_lo), \
			    WORD(type, cp_hqd_pq_base_lo), \
			    WORD(type, cp_hqd_pq_base_hi), \
			    WORD(type, cp_hqd_pq_rptr_report_addr_lo), \
			    WORD(type, cp_hqd_pq_wptr_poll_addr_lo), \
			    WORD(type, cp_hqd_pq_doorbell_control), \
			    WORD(type, cp_hqd_pq_control), \
			    WORD(type, driver1), WORD(type, driver2) }, \
	  .image_words = { WORD(type, cp_hqd_pq_rptr), WORD(type, wptr), \
			   WORD(type, compute_user_data_0), \
			   WORD(type, compute_pgm_rsrc1) } }

#define SDMA(gfx, v, type, rlc, wptr) \
	{ gfx " SDMA", v, KFD_QUEUE_TYPE_SDMA, sizeof(struct type), \
	  .driver_words = { WORD(type, rlc##_rb_cntl), WORD(type, rlc##_rb_base), \
			    WORD(type, rlc##_rb_base_hi), \
			    WORD(type, rlc##_doorbell), NO_WORD, NO_WORD, NO_WORD, \
			    NO_WORD, NO_WORD, NO_WORD, NO_WORD, NO_WORD }, \
	  .image_words = { WORD(type, rlc##_rb_rptr), WORD(type, rlc##_##wptr), \
			   NO_WORD, NO_WORD } }

static const struct generation generations[] = {
	COMPUTE("gfx7", GFX7, cik_mqd, cp_hqd_pq_wptr,
		compute_tba_lo, compute_tma_lo),
	COMPUTE("gfx8", GFX8, vi_mqd, cp_hqd_pq_wptr,
		cp_hqd_ctx_save_base_addr_lo, cp_hqd_ctx_save_size),
	COMPUTE("gfx9", GFX9, v9_mqd, cp_hqd_pq_wptr_lo,
		cp_hqd_ctx_save_base_addr_lo, cp_hqd_ctx_save_size),
	COMPUTE("gfx10", GFX10, v10_compute_mqd, cp_hqd_pq_wptr_lo,
		cp_hqd_ctx_save_base_addr_lo, cp_hqd_ctx_save_size),
	COMPUTE("gfx11", GFX11, v11_compute_mqd, cp_hqd_pq_wptr_lo,
		cp_hqd_ctx_save_base_addr_lo, cp_hqd_ctx_save_size),
	COMPUTE("gfx12", GFX12, v12_compute_mqd, cp_hqd_pq_wptr_lo,
		cp_hqd_ctx_save_base_addr_lo, cp_hqd_ctx_save_size),
	SDMA("gfx7", GFX7, cik_sdma_rlc_registers, sdma_rlc, rb_wptr),
	SDMA("gfx8", GFX8, vi_sdma_mqd, sdmax_rlcx, rb_wptr),
	SDMA("gfx9", GFX9, v9_sdma_mqd, sdmax_rlcx, rb_wptr),
	SDMA("gfx10", GFX10, v10_sdma_mqd, sdmax_rlcx, rb_wptr),
	SDMA("gfx11", GFX11, v11_sdma_mqd, sdmax_rlcx, rb_wptr),
	SDMA("gfx12", GFX12, v12_sdma_mqd, sdmax_rlcx, rb_wptr),
};

static int criu_test_check(const struct kfd_node *node, const struct queue_properties *qp,
			   const struct kfd_criu_mqd *image)
{
	const struct kfd_criu_queue cq = { .qp = *qp, .mqd = *image };

	return kfd_criu_mqd_check(node, &cq);
}

static void criu_test_fill(void *mqd, size_t size, u32 word)
{
	memset32(mqd, word, size / sizeof(word));
}

static void criu_test_init_mqd(struct mqd_manager *mm, void **mqd,
			       struct kfd_mem_obj *mqd_mem_obj, uint64_t *gart_addr,
			       struct queue_properties *q)
{
	criu_test_fill(*mqd, mm->mqd_size, DRIVER_PATTERN);
}

/*
 * Creates a device of a generation without CWSR; saved waves have tests of
 * their own.
 */
static struct mqd_manager *criu_test_manager_for(struct kunit *test,
						 const struct generation *g)
{
	struct kfd_node *node = kunit_kzalloc(test, sizeof(*node), GFP_KERNEL);
	struct mqd_manager *mm = kunit_kzalloc(test, sizeof(*mm), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, node);
	KUNIT_ASSERT_NOT_NULL(test, mm);
	node->kfd = kunit_kzalloc(test, sizeof(*node->kfd), GFP_KERNEL);
	node->dqm = kunit_kzalloc(test, sizeof(*node->dqm), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, node->kfd);
	KUNIT_ASSERT_NOT_NULL(test, node->dqm);
	node->adev = kunit_kzalloc(test, sizeof(*node->adev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, node->adev);
	/* A GPU before gfx9 has no version of its GC IP block. */
	if (g->gc == GFX7)
		node->adev->asic_type = CHIP_HAWAII;
	else if (g->gc == GFX8)
		node->adev->asic_type = CHIP_FIJI;
	else
		node->adev->ip_versions[GC_HWIP][0] = g->gc;
	node->xcc_mask = 1;
	node->dqm->mqd_mgrs[g->type == KFD_QUEUE_TYPE_COMPUTE ?
			    KFD_MQD_TYPE_CP : KFD_MQD_TYPE_SDMA] = mm;
	mm->dev = node;
	mm->mqd_size = g->size;
	mm->init_mqd = criu_test_init_mqd;
	return mm;
}

static const u32 *criu_test_restored_mqd(struct kunit *test, const struct generation *g,
					 bool waves)
{
	struct mqd_manager *mm = criu_test_manager_for(test, g);
	struct kfd_criu_mqd image = { .mqd_size = g->size, .n_xcc = 1 };
	struct queue q = { .device = mm->dev, .properties.type = g->type };

	if (waves) {
		mm->dev->kfd->cwsr_enabled = true;
		q.properties.ctx_save_restore_area_address = PAGE_SIZE;
	}

	/*
	 * On gfx9 a control stack may follow the MQD, which is at most a page.
	 */
	image.data = kunit_kzalloc(test, g->size, GFP_KERNEL);
	q.mqd = kunit_kzalloc(test, 2 * PAGE_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, image.data);
	KUNIT_ASSERT_NOT_NULL(test, q.mqd);
	criu_test_fill(image.data, g->size, IMAGE_PATTERN);
	if (!waves)
		KUNIT_ASSERT_EQ(test, 0, criu_test_check(mm->dev, &q.properties, &image));
	kfd_criu_mqd_restore(mm, &q, &image);
	return q.mqd;
}

static void criu_test_expect_words(struct kunit *test, const u32 *mqd, const u16 *words,
				   unsigned int n, u32 expected)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (words[i] != NO_WORD)
			KUNIT_EXPECT_EQ_MSG(test, expected, mqd[words[i]],
					    "dword %u", words[i]);
}

static void an_image_does_not_decide_where_a_queue_is(struct kunit *test)
{
	const struct generation *g = test->param_value;

	criu_test_expect_words(test, criu_test_restored_mqd(test, g, false),
			       g->driver_words, ARRAY_SIZE(g->driver_words),
			       DRIVER_PATTERN);
}

static void an_image_decides_how_far_a_queue_is(struct kunit *test)
{
	const struct generation *g = test->param_value;

	criu_test_expect_words(test, criu_test_restored_mqd(test, g, false), g->image_words,
			       ARRAY_SIZE(g->image_words), IMAGE_PATTERN);
}

/*
 * A register whose @image_bits are the image's, and @wave_bits if waves were
 * saved.
 */
#define SHARED_REGISTER(v, type, member, image_bits, wave_bits) \
	{ v, sizeof(struct type), WORD(type, member), image_bits, wave_bits }
#define PERSISTENT_STATE(v, type) \
	SHARED_REGISTER(v, type, cp_hqd_persistent_state, 0x80000000, 0x30000000)
#define EOP_CONTROL(v, type, bits) SHARED_REGISTER(v, type, cp_hqd_eop_control, bits, 0)

static void an_image_decides_whether_a_dispatch_goes_on(struct kunit *test)
{
	static const struct {
		u32 gc;
		size_t size;
		u16 word;
		u32 image_bits;
		u32 wave_bits;	/* taken from the image if waves were saved */
	} rows[] = {
		SHARED_REGISTER(GFX7, cik_mqd, cp_hqd_persistent_state, 0x80000000, 0),
		PERSISTENT_STATE(GFX8, vi_mqd),
		PERSISTENT_STATE(GFX9, v9_mqd),
		PERSISTENT_STATE(GFX10, v10_compute_mqd),
		PERSISTENT_STATE(GFX11, v11_compute_mqd),
		PERSISTENT_STATE(GFX12, v12_compute_mqd),
		EOP_CONTROL(GFX8, vi_mqd, 0xe0002100),
		EOP_CONTROL(GFX9, v9_mqd, 0xe0002100),
		EOP_CONTROL(GFX10, v10_compute_mqd, 0xe0002100),
		EOP_CONTROL(GFX11, v11_compute_mqd, 0xe0002100),
		EOP_CONTROL(GFX12, v12_compute_mqd, 0x2100),
		SHARED_REGISTER(GFX11, v11_compute_mqd, cp_hqd_hq_status0, 0, 0x103),
		SHARED_REGISTER(GFX12, v12_compute_mqd, cp_hqd_hq_status0, 0, 0x103),
		SHARED_REGISTER(GFX9, v9_mqd, compute_pgm_rsrc2, 0xffffffbf, 0),
		SHARED_REGISTER(GFX10, v10_compute_mqd, compute_pgm_rsrc2, 0xffffffff, 0),
	};
	unsigned int i;

	for (i = 0; i < 2 * ARRAY_SIZE(rows); i++) {
		const struct generation g = {
			.gc = rows[i / 2].gc,
			.type = KFD_QUEUE_TYPE_COMPUTE,
			.size = rows[i / 2].size,
		};
		const bool waves = i % 2;
		const u32 image_bits = rows[i / 2].image_bits |
				       (waves ? rows[i / 2].wave_bits : 0);

		KUNIT_EXPECT_EQ_MSG(test,
				    (DRIVER_PATTERN & ~image_bits) |
					    (IMAGE_PATTERN & image_bits),
				    criu_test_restored_mqd(test, &g,
							   waves)[rows[i / 2].word],
				    "row %u, waves: %u", i / 2, waves);
	}
}

/*
 * On gfx9 and gfx10 the structs call some dispatch registers by older names, or
 * reserved.
 */
#define MISNAMED(v, queue, type, member) \
	{ v, KFD_QUEUE_TYPE_##queue, sizeof(struct type), WORD(type, member) }

static void an_image_decides_misnamed_registers(struct kunit *test)
{
	static const struct {
		u32 gc;
		enum kfd_queue_type type;
		size_t size;
		u16 word;
	} rows[] = {
		/*
		 * The packet's address, the scratch base, COMPUTE_PGM_RSRC3 and
		 * others.
		 */
		MISNAMED(GFX90A, COMPUTE, v9_mqd, compute_tba_lo),
		MISNAMED(GFX90A, COMPUTE, v9_mqd, compute_tma_lo),
		MISNAMED(GFX90A, COMPUTE, v9_mqd, compute_tma_hi),
		MISNAMED(GFX90A, COMPUTE, v9_mqd, reserved_43),
		MISNAMED(GFX90A, COMPUTE, v9_mqd, reserved_47),
		MISNAMED(GFX10, COMPUTE, v10_compute_mqd, compute_tba_lo),
		MISNAMED(GFX10, COMPUTE, v10_compute_mqd, compute_tma_lo),
		MISNAMED(GFX10, COMPUTE, v10_compute_mqd, compute_tma_hi),
		MISNAMED(GFX10, COMPUTE, v10_compute_mqd, reserved_41),
		MISNAMED(GFX10, COMPUTE, v10_compute_mqd, reserved_47),
		/* The last dword of an interrupted command (midcmd). */
		MISNAMED(GFX942, SDMA, v9_sdma_mqd, reserved_43),
		MISNAMED(GFX10, SDMA, v10_sdma_mqd, reserved_43),
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct generation g = {
			.gc = rows[i].gc,
			.type = rows[i].type,
			.size = rows[i].size,
		};

		KUNIT_EXPECT_EQ_MSG(test, IMAGE_PATTERN,
				    criu_test_restored_mqd(test, &g, false)[rows[i].word],
				    "row %u", i);
	}
}

/* Words that no register of these generations is behind. */
static void an_image_does_not_decide_reserved_words(struct kunit *test)
{
	static const struct generation rows[] = {
		{ .gc = GFX90A, .size = sizeof(struct v9_mqd),
		  .driver_words = { WORD(v9_mqd, reserved_48),
				    WORD(v9_mqd, reserved_55),
				    WORD(v9_mqd, reserved_64) } },
		{ .gc = GFX10, .size = sizeof(struct v10_compute_mqd),
		  .driver_words = { WORD(v10_compute_mqd, reserved_48),
				    WORD(v10_compute_mqd, reserved_64) } },
		{ .gc = GFX11, .size = sizeof(struct v11_compute_mqd),
		  .driver_words = { WORD(v11_compute_mqd, reserved_36),
				    WORD(v11_compute_mqd, reserved_53) } },
		{ .gc = GFX12, .size = sizeof(struct v12_compute_mqd),
		  .driver_words = { WORD(v12_compute_mqd, reserved_36),
				    WORD(v12_compute_mqd, reserved_53) } },
	};
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		for (n = 0; rows[i].driver_words[n]; n++)
			;
		criu_test_expect_words(test, criu_test_restored_mqd(test, &rows[i], false),
				       rows[i].driver_words, n, DRIVER_PATTERN);
	}
}

static void an_image_of_another_size_is_refused(struct kunit *test)
{
	const struct generation *g = test->param_value;
	struct mqd_manager *mm = criu_test_manager_for(test, g);
	struct kfd_criu_mqd image = { .mqd_size = g->size + 4, .n_xcc = 1 };
	const struct queue_properties qp = { .type = g->type };

	KUNIT_EXPECT_EQ(test, -EINVAL, criu_test_check(mm->dev, &qp, &image));
	image.mqd_size = g->size;
	image.ctl_stack_size = PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, -EINVAL, criu_test_check(mm->dev, &qp, &image));
	image.ctl_stack_size = 0;
	image.n_xcc = 2;
	KUNIT_EXPECT_EQ(test, -EINVAL, criu_test_check(mm->dev, &qp, &image));
}

/* ---- where waves were saved ---- */

#define STACK_SIZE	0x1000
#define AREA_SIZE	0x10000

#define WAVES(gfx, v, type) \
	{ gfx, v, sizeof(struct type), WORD(type, cp_hqd_cntl_stack_offset), \
	  WORD(type, cp_hqd_wg_state_offset) }

/* gfx7 has no CWSR. */
static const struct waves {
	const char *name;
	u32 gc;
	size_t size;
	u16 stack;
	u16 waves;
} saved_waves[] = {
	WAVES("gfx8", GFX8, vi_mqd),
	WAVES("gfx9", GFX9, v9_mqd),
	WAVES("gfx10", GFX10, v10_compute_mqd),
	WAVES("gfx11", GFX11, v11_compute_mqd),
	WAVES("gfx12", GFX12, v12_compute_mqd),
};

static void criu_test_waves_name(const struct waves *w, char *text)
{
	strscpy(text, w->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(waves, saved_waves, criu_test_waves_name);

static const struct queue_properties with_waves = {
	.type = KFD_QUEUE_TYPE_COMPUTE,
	.ctl_stack_size = STACK_SIZE,
	.ctx_save_restore_area_address = 0x1000,
	.ctx_save_restore_area_size = AREA_SIZE,
};

static struct mqd_manager *criu_test_manager_with_waves(struct kunit *test, u32 gc,
							size_t size)
{
	const struct generation g = {
		.gc = gc,
		.type = KFD_QUEUE_TYPE_COMPUTE,
		.size = size,
	};
	struct mqd_manager *mm = criu_test_manager_for(test, &g);

	mm->dev->kfd->cwsr_enabled = true;
	return mm;
}

static void waves_are_within_the_save_area(struct kunit *test)
{
	static const struct {
		u32 stack;
		u32 waves;
		int err;
	} rows[] = {
		{ STACK_SIZE, STACK_SIZE, 0 },	/* no waves */
		{ 0, AREA_SIZE, 0 },		/* as many waves as fit */
		{ STACK_SIZE - 8, STACK_SIZE + 64, 0 },
		{ STACK_SIZE + 4, STACK_SIZE, -EINVAL },
		{ STACK_SIZE - 2, STACK_SIZE, -EINVAL },
		{ STACK_SIZE, STACK_SIZE - 4, -EINVAL },
		{ STACK_SIZE, AREA_SIZE + 4, -EINVAL },
		{ STACK_SIZE, STACK_SIZE + 2, -EINVAL },
	};
	const struct waves *w = test->param_value;
	struct mqd_manager *mm = criu_test_manager_with_waves(test, w->gc, w->size);
	struct kfd_criu_mqd image = { .mqd_size = w->size, .n_xcc = 1 };
	unsigned int i;

	if (w->gc == GFX9)
		image.ctl_stack_size = STACK_SIZE;
	image.data = kunit_kzalloc(test, w->size + STACK_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, image.data);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		((u32 *)image.data)[w->stack] = rows[i].stack;
		((u32 *)image.data)[w->waves] = rows[i].waves;
		KUNIT_EXPECT_EQ_MSG(test, rows[i].err,
				    criu_test_check(mm->dev, &with_waves, &image), "row %u",
				    i);
	}
}

static void an_interrupted_save_is_within_the_save_area(struct kunit *test)
{
	static const struct {
		u32 stack;
		u32 dwords;
		u32 waves;
		int err;
	} rows[] = {
		{ 0, 0, 0, 0 },		/* no save was interrupted */
		{ STACK_SIZE, 0, STACK_SIZE, 0 },
		{ 0, STACK_SIZE / 4, AREA_SIZE, 0 },
		{ STACK_SIZE - 8, 2, STACK_SIZE + 64, 0 },
		{ STACK_SIZE + 4, 0, 0, -EINVAL },
		{ STACK_SIZE - 2, 0, 0, -EINVAL },
		{ STACK_SIZE - 8, 3, 0, -EINVAL },
		{ 0, STACK_SIZE / 4 + 1, 0, -EINVAL },
		{ 0, ~0U, 0, -EINVAL },
		{ 0, 0, 4, -EINVAL },
		{ 0, 0, STACK_SIZE - 4, -EINVAL },
		{ 0, 0, AREA_SIZE + 4, -EINVAL },
		{ 0, 0, STACK_SIZE + 2, -EINVAL },
	};
	struct mqd_manager *mm =
		criu_test_manager_with_waves(test, GFX10, sizeof(struct v10_compute_mqd));
	struct v10_compute_mqd *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	const struct kfd_criu_mqd image = { .mqd_size = sizeof(*m), .n_xcc = 1,
					    .data = m };
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	m->cp_hqd_cntl_stack_offset = STACK_SIZE;
	m->cp_hqd_wg_state_offset = STACK_SIZE;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		m->cp_hqd_suspend_cntl_stack_offset = rows[i].stack;
		m->cp_hqd_suspend_cntl_stack_dw_cnt = rows[i].dwords;
		m->cp_hqd_suspend_wg_state_offset = rows[i].waves;
		KUNIT_EXPECT_EQ_MSG(test, rows[i].err,
				    criu_test_check(mm->dev, &with_waves, &image), "row %u",
				    i);
	}
}

static void waves_are_for_a_device_that_restores_them(struct kunit *test)
{
	const struct waves *w = test->param_value;
	struct mqd_manager *mm = criu_test_manager_with_waves(test, w->gc, w->size);
	struct kfd_criu_mqd image = { .mqd_size = w->size, .n_xcc = 1 };
	u32 *words = kunit_kzalloc(test, w->size, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, words);
	mm->dev->kfd->cwsr_enabled = false;
	image.data = words;
	words[w->stack] = STACK_SIZE - 8;
	words[w->waves] = STACK_SIZE + 64;
	KUNIT_EXPECT_EQ(test, -EINVAL, criu_test_check(mm->dev, &with_waves, &image));
	words[w->stack] = STACK_SIZE;
	KUNIT_EXPECT_EQ(test, 0, criu_test_check(mm->dev, &with_waves, &image));
	words[w->stack] = 0;
	KUNIT_EXPECT_EQ(test, 0, criu_test_check(mm->dev, &with_waves, &image));
}

static u64 criu_test_stride(struct mqd_manager *mm, struct queue_properties *q)
{
	return 2 * PAGE_SIZE;
}

/* Older kernels wrote the MQD of the first XCC only. */
static void an_image_of_one_xcc_is_for_all_if_no_dispatch_is_active(struct kunit *test)
{
	struct mqd_manager *mm =
		criu_test_manager_with_waves(test, GFX942, sizeof(struct v9_mqd));
	struct kfd_criu_mqd image = { .mqd_size = sizeof(struct v9_mqd),
				      .ctl_stack_size = STACK_SIZE,
				      .n_xcc = 1 };
	struct queue q = { .device = mm->dev, .properties = with_waves };
	struct v9_mqd *m, *first, *second;

	mm->dev->xcc_mask = 3;
	mm->mqd_stride = criu_test_stride;
	image.data = kunit_kzalloc(test, kfd_criu_mqd_bytes(&image), GFP_KERNEL);
	q.mqd = kunit_kzalloc(test, 4 * PAGE_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, image.data);
	KUNIT_ASSERT_NOT_NULL(test, q.mqd);
	m = image.data;
	m->cp_hqd_cntl_stack_offset = STACK_SIZE - 8;
	m->cp_hqd_wg_state_offset = STACK_SIZE;
	KUNIT_EXPECT_EQ(test, -EINVAL, criu_test_check(mm->dev, &with_waves, &image));
	m->cp_hqd_cntl_stack_offset = STACK_SIZE;
	m->cp_hqd_persistent_state = 0x80000000;
	KUNIT_EXPECT_EQ(test, -EINVAL, criu_test_check(mm->dev, &with_waves, &image));
	m->cp_hqd_persistent_state = 0;
	m->compute_current_logic_xcc_id = 2;
	KUNIT_EXPECT_EQ(test, -EINVAL, criu_test_check(mm->dev, &with_waves, &image));
	m->compute_current_logic_xcc_id = 1;
	m->cp_hqd_pq_rptr = IMAGE_PATTERN;
	KUNIT_ASSERT_EQ(test, 0, criu_test_check(mm->dev, &with_waves, &image));
	first = q.mqd;
	second = q.mqd + 2 * PAGE_SIZE;
	second->compute_current_logic_xcc_id = 1;
	kfd_criu_mqd_restore(mm, &q, &image);
	KUNIT_EXPECT_EQ(test, IMAGE_PATTERN, first->cp_hqd_pq_rptr);
	KUNIT_EXPECT_EQ(test, IMAGE_PATTERN, second->cp_hqd_pq_rptr);
	/*
	 * The driver decides anew which XCC executes which part of a dispatch.
	 */
	KUNIT_EXPECT_EQ(test, DRIVER_PATTERN, first->compute_current_logic_xcc_id);
	KUNIT_EXPECT_EQ(test, 1, second->compute_current_logic_xcc_id);
}

static void pm4_packets_keep_their_target_xcc(struct kunit *test)
{
	struct mqd_manager *mm =
		criu_test_manager_with_waves(test, GFX942, sizeof(struct v9_mqd));
	struct queue_properties qp = { .type = KFD_QUEUE_TYPE_COMPUTE,
				       .format = KFD_QUEUE_FORMAT_PM4 };
	struct v9_mqd *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	const struct kfd_criu_mqd image = { .data = m };

	KUNIT_ASSERT_NOT_NULL(test, m);
	m->pm4_target_xcc_in_xcp = 0x105;
	KUNIT_EXPECT_EQ(test, 0, kfd_criu_mqd_target_xcc(mm->dev, &qp, &image));
	mm->dev->xcc_mask = 0x3f;
	KUNIT_EXPECT_EQ(test, 5, kfd_criu_mqd_target_xcc(mm->dev, &qp, &image));
	qp.format = KFD_QUEUE_FORMAT_AQL;
	KUNIT_EXPECT_EQ(test, 0, kfd_criu_mqd_target_xcc(mm->dev, &qp, &image));
	qp.type = KFD_QUEUE_TYPE_SDMA;
	qp.format = KFD_QUEUE_FORMAT_PM4;
	KUNIT_EXPECT_EQ(test, 0, kfd_criu_mqd_target_xcc(mm->dev, &qp, &image));
}

static void an_unknown_generation_is_refused(struct kunit *test)
{
	/* The first has MQDs of its own, the others do not exist in this driver. */
	static const u32 unknown[] = {
		IP_VERSION(12, 1, 0), IP_VERSION(6, 0, 0), IP_VERSION(9, 4, 5),
		IP_VERSION(9, 5, 0), IP_VERSION(11, 5, 99), IP_VERSION(13, 0, 0),
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(unknown); i++) {
		const struct generation g = {
			.gc = unknown[i],
			.type = KFD_QUEUE_TYPE_COMPUTE,
			.size = sizeof(struct v12_compute_mqd),
		};
		const struct queue_properties qp = { .type = g.type };
		struct mqd_manager *mm = criu_test_manager_for(test, &g);
		struct kfd_criu_mqd image = { .mqd_size = g.size, .n_xcc = 1 };

		mm->dev->dqm->mqd_mgrs[KFD_MQD_TYPE_SDMA] = mm;
		KUNIT_EXPECT_EQ_MSG(test, -EOPNOTSUPP,
				    criu_test_check(mm->dev, &qp, &image), "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, KFD_CRIU_LAYOUT_UNKNOWN,
				    kfd_criu_mqd_layout_id(mm->dev, qp.type),
				    "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, KFD_CRIU_LAYOUT_UNKNOWN,
				    kfd_criu_mqd_layout_id(mm->dev,
							   KFD_QUEUE_TYPE_SDMA),
				    "row %u", i);
	}
}

/* Only gfx9 is known to have an MQD for each XCC. */
static void several_xccs_are_refused_on_other_generations(struct kunit *test)
{
	const struct generation *g = test->param_value;
	const struct queue_properties qp = { .type = g->type };
	struct mqd_manager *mm = criu_test_manager_for(test, g);
	struct kfd_criu_mqd mqd;
	const bool refused = g->gc != GFX9 && g->type == KFD_QUEUE_TYPE_COMPUTE;

	mm->dev->xcc_mask = 3;
	KUNIT_EXPECT_EQ(test, refused ? -EOPNOTSUPP : 0,
			kfd_criu_mqd_describe(mm->dev, &qp, &mqd));
	if (!refused)
		KUNIT_EXPECT_EQ(test,
				g->type == KFD_QUEUE_TYPE_COMPUTE ? 2 : 1,
				mqd.n_xcc);
}

/* The documentation says so, see "What an image decides" there. */
static void no_generation_is_validated(struct kunit *test)
{
	const struct generation *g = test->param_value;
	struct mqd_manager *mm = criu_test_manager_for(test, g);

	KUNIT_EXPECT_FALSE(test, kfd_criu_mqd_is_validated(mm->dev, g->type));
}

/* ---- the global wave sync ---- */

#define GWS_UNITS	64
/* CP_HQD_GDS_RESOURCE_STATE: all units that the fields can name, no OA. */
#define GWS_STATE	0x3f3f0

static struct kfd_criu_queue *criu_test_queue_with_gws_state(struct kunit *test,
							     struct mqd_manager *mm,
							     const struct generation *g)
{
	struct kfd_criu_queue *cq = kunit_kzalloc(test, sizeof(*cq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, cq);
	mm->dev->adev->gds.gws_size = GWS_UNITS;
	cq->qp.type = g->type;
	cq->mqd.n_xcc = 1;
	cq->mqd.mqd_size = g->size;
	cq->mqd.data = kunit_kzalloc(test, g->size, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, cq->mqd.data);
	return cq;
}

/* A word of the state of the global wave sync, and its bits. */
#define GWS(v, type, member, bits) \
	{ v, sizeof(struct type), WORD(type, member), bits }

static void an_image_decides_gws_state_of_its_owner_only(struct kunit *test)
{
	static const struct {
		u32 gc;
		size_t size;
		u16 word;
		u32 bits;
	} rows[] = {
		GWS(GFX8, vi_mqd, cp_hqd_gds_resource_state, GWS_STATE),
		GWS(GFX9, v9_mqd, cp_hqd_gds_resource_state, GWS_STATE),
		GWS(GFX10, v10_compute_mqd, cp_hqd_gds_resource_state, GWS_STATE),
		GWS(GFX11, v11_compute_mqd, cp_hqd_gds_resource_state, GWS_STATE),
		GWS(GFX11, v11_compute_mqd, gws_0_val, ~0U),
		GWS(GFX11, v11_compute_mqd, gws_63_val, ~0U),
		GWS(GFX12, v12_compute_mqd, gws_0_val, ~0U),
		GWS(GFX12, v12_compute_mqd, gws_63_val, ~0U),
	};
	struct kgd_mem gws;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct generation g = {
			.gc = rows[i].gc,
			.type = KFD_QUEUE_TYPE_COMPUTE,
			.size = rows[i].size,
		};
		struct mqd_manager *mm = criu_test_manager_for(test, &g);
		struct kfd_criu_queue *cq = criu_test_queue_with_gws_state(test, mm, &g);
		struct queue q = { .device = mm->dev, .properties = cq->qp };
		u32 *mqd = kunit_kzalloc(test, g.size, GFP_KERNEL);

		KUNIT_ASSERT_NOT_NULL(test, mqd);
		q.mqd = mqd;
		criu_test_fill(cq->mqd.data, g.size, IMAGE_PATTERN);
		kfd_criu_mqd_restore(mm, &q, &cq->mqd);
		KUNIT_EXPECT_EQ_MSG(test, DRIVER_PATTERN, mqd[rows[i].word],
				    "row %u", i);
		q.gws = &gws;
		kfd_criu_mqd_restore(mm, &q, &cq->mqd);
		KUNIT_EXPECT_EQ_MSG(test,
				    (DRIVER_PATTERN & ~rows[i].bits) |
				    (IMAGE_PATTERN & rows[i].bits),
				    mqd[rows[i].word], "row %u", i);
	}
}

static void gws_state_is_within_the_units_of_the_process(struct kunit *test)
{
	static const struct {
		u32 pointer;
		u32 size;
		u32 units;
		int err;
	} rows[] = {
		{ 0, 0, GWS_UNITS, 0 },
		{ 0, 63, GWS_UNITS, 0 },
		{ 32, 32, GWS_UNITS, 0 },
		{ 63, 1, GWS_UNITS, 0 },
		{ 63, 2, GWS_UNITS, -EINVAL },
		{ 2, 63, GWS_UNITS, -EINVAL },
		{ 0, 16, 16, 0 },
		{ 0, 17, 16, -EINVAL },
		{ 0, 1, 0, -EINVAL },
	};
	const struct generation g = {
		.gc = GFX9,
		.type = KFD_QUEUE_TYPE_COMPUTE,
		.size = sizeof(struct v9_mqd),
	};
	struct mqd_manager *mm = criu_test_manager_for(test, &g);
	struct kfd_criu_queue *cq = criu_test_queue_with_gws_state(test, mm, &g);
	struct v9_mqd *m = cq->mqd.data;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		mm->dev->adev->gds.gws_size = rows[i].units;
		m->cp_hqd_gds_resource_state = rows[i].pointer << 12 |
					       rows[i].size << 4;
		cq->gws = true;
		KUNIT_EXPECT_EQ_MSG(test, rows[i].err,
				    kfd_criu_mqd_check(mm->dev, cq), "row %u", i);
		/* The word is not taken. */
		cq->gws = false;
		KUNIT_EXPECT_EQ_MSG(test, 0, kfd_criu_mqd_check(mm->dev, cq),
				    "row %u", i);
	}
}

/* ---- queues that no image describes ---- */

static void a_queue_that_no_image_describes_is_found(struct kunit *test)
{
	const struct generation known = { .gc = GFX12 };
	const struct generation unknown = { .gc = IP_VERSION(12, 1, 0) };
	struct kfd_process *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	struct kfd_process_device *pdd;
	struct queue q = { .properties.type = KFD_QUEUE_TYPE_SDMA };

	KUNIT_ASSERT_NOT_NULL(test, p);
	pdd = kunit_kzalloc(test, sizeof(*pdd), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pdd);
	p->pdds[0] = pdd;
	p->n_pdds = 1;
	INIT_LIST_HEAD(&pdd->qpd.queues_list);
	pdd->dev = criu_test_manager_for(test, &unknown)->dev;
	/* A GPU without queues is no obstacle. */
	KUNIT_EXPECT_FALSE(test, kfd_criu_queue_has_unknown_gpu(p));
	list_add(&q.list, &pdd->qpd.queues_list);
	KUNIT_EXPECT_TRUE(test, kfd_criu_queue_has_unknown_gpu(p));
	KUNIT_EXPECT_FALSE(test, kfd_criu_queue_has_unknown_type(p));
	pdd->dev = criu_test_manager_for(test, &known)->dev;
	KUNIT_EXPECT_FALSE(test, kfd_criu_queue_has_unknown_gpu(p));
	q.properties.type = KFD_QUEUE_TYPE_DIQ;
	KUNIT_EXPECT_TRUE(test, kfd_criu_queue_has_unknown_type(p));
}

static void only_exceptions_of_queues_are_accepted(struct kunit *test)
{
	struct kfd_process_device *pdd =
		kunit_kzalloc(test, sizeof(*pdd), GFP_KERNEL);
	struct kfd_criu_queue cq = {
		.qp.type = KFD_QUEUE_TYPE_COMPUTE,
		.qp.queue_address = PAGE_SIZE,
		.qp.queue_size = PAGE_SIZE,
	};
	unsigned int bit;

	KUNIT_ASSERT_NOT_NULL(test, pdd);
	for (bit = 0; bit < 64; bit++) {
		cq.qp.exception_status = BIT_ULL(bit);
		KUNIT_EXPECT_EQ_MSG(test,
				    BIT_ULL(bit) & KFD_EC_MASK_QUEUE ? 0 : -EINVAL,
				    kfd_criu_queue_check(pdd, &cq), "bit %u", bit);
	}
}

static void criu_test_generation_name(const struct generation *g, char *text)
{
	strscpy(text, g->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(generation, generations, criu_test_generation_name);

static struct kunit_case cases[] = {
	KUNIT_CASE_PARAM(an_image_does_not_decide_where_a_queue_is,
			 generation_gen_params),
	KUNIT_CASE_PARAM(an_image_decides_how_far_a_queue_is,
			 generation_gen_params),
	KUNIT_CASE(an_image_decides_whether_a_dispatch_goes_on),
	KUNIT_CASE(an_image_decides_misnamed_registers),
	KUNIT_CASE(an_image_does_not_decide_reserved_words),
	KUNIT_CASE_PARAM(an_image_of_another_size_is_refused,
			 generation_gen_params),
	KUNIT_CASE_PARAM(waves_are_within_the_save_area, waves_gen_params),
	KUNIT_CASE(an_interrupted_save_is_within_the_save_area),
	KUNIT_CASE_PARAM(waves_are_for_a_device_that_restores_them,
			 waves_gen_params),
	KUNIT_CASE(an_image_of_one_xcc_is_for_all_if_no_dispatch_is_active),
	KUNIT_CASE(pm4_packets_keep_their_target_xcc),
	KUNIT_CASE(an_unknown_generation_is_refused),
	KUNIT_CASE_PARAM(several_xccs_are_refused_on_other_generations,
			 generation_gen_params),
	KUNIT_CASE_PARAM(no_generation_is_validated, generation_gen_params),
	KUNIT_CASE(an_image_decides_gws_state_of_its_owner_only),
	KUNIT_CASE(gws_state_is_within_the_units_of_the_process),
	KUNIT_CASE(a_queue_that_no_image_describes_is_found),
	KUNIT_CASE(only_exceptions_of_queues_are_accepted),
	{}
};

static struct kunit_suite suite = {
	.name = "kfd_criu_mqd",
	.test_cases = cases,
};

kunit_test_suite(suite);
