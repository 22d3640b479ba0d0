// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * KUnit tests that need neither a GPU nor a device: which operation is
 * permitted in which state, which args are valid, and which fields of an MQD
 * are taken from an image. They run when amdgpu is loaded.
 */
#include <kunit/test.h>
#include <linux/kfd_criu_ioctl.h>
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

/* ---- states ---- */

static struct kfd_process *make_process_in(struct kunit *test,
					   enum kfd_criu_state state)
{
	struct kfd_process *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	kfd_criu_session_init(p);
	p->mm = p;	/* any value but NULL */
	p->criu.state = state;
	return p;
}

static void each_operation_has_its_states(struct kunit *test)
{
	/* Columns: RUNNING, PAUSED, RESTORING, RESTORED, ABORTED */
	static const int expected[KFD_CRIU_OPS][KFD_CRIU_STATES] = {
		[KFD_CRIU_OP_PROCESS_INFO] = { 0, 0, -EBUSY, -EBUSY, -EIO },
		[KFD_CRIU_OP_CHECKPOINT] = { -EINVAL, 0, -EBUSY, -EBUSY, -EIO },
		[KFD_CRIU_OP_UNPAUSE] = { -EINVAL, 0, -EINVAL, -EINVAL,
					  -EINVAL },
		[KFD_CRIU_OP_RESTORE] = { 0, -EBUSY, -EBUSY, -EBUSY, -EIO },
		[KFD_CRIU_OP_RESUME] = { -EINVAL, -EINVAL, -EBUSY, 0, -EIO },
	};
	int op, state;

	for (op = 0; op < KFD_CRIU_OPS; op++) {
		for (state = 0; state < KFD_CRIU_STATES; state++) {
			struct kfd_process *p = make_process_in(test, state);

			KUNIT_EXPECT_EQ_MSG(test, expected[op][state],
					    kfd_criu_session_check(p, op),
					    "operation %d in state %d", op,
					    state);
		}
	}
}

static void a_process_without_mm_is_aborted(struct kunit *test)
{
	int state;

	for (state = 0; state < KFD_CRIU_STATES; state++) {
		struct kfd_process *p = make_process_in(test, state);

		KUNIT_EXPECT_EQ(test, state, kfd_criu_session_state(p));
		p->mm = NULL;
		KUNIT_EXPECT_EQ(test, KFD_CRIU_ABORTED,
				kfd_criu_session_state(p));
		KUNIT_EXPECT_EQ(test, -EIO, kfd_criu_session_allows(p));
		KUNIT_EXPECT_EQ(test, -EIO,
				kfd_criu_session_check(p, KFD_CRIU_OP_PROCESS_INFO));
	}
}

static void a_pause_belongs_to_its_owner(struct kunit *test)
{
	struct kfd_process *p = make_process_in(test, KFD_CRIU_PAUSED);

	p->criu.owner = task_tgid(current);
	KUNIT_EXPECT_EQ(test, 0, kfd_criu_session_check(p, KFD_CRIU_OP_UNPAUSE));
	p->criu.owner = task_tgid(&init_task);
	KUNIT_EXPECT_EQ(test, -EBUSY,
			kfd_criu_session_check(p, KFD_CRIU_OP_UNPAUSE));
	KUNIT_EXPECT_EQ(test, -EBUSY,
			kfd_criu_session_check(p, KFD_CRIU_OP_CHECKPOINT));
}

static void what_an_image_cannot_describe_is_refused(struct kunit *test)
{
	struct kfd_process *p = make_process_in(test, KFD_CRIU_PAUSED);

	p->debug_trap_enabled = true;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP,
			kfd_criu_session_check(p, KFD_CRIU_OP_CHECKPOINT));
	KUNIT_EXPECT_EQ(test, 0, kfd_criu_session_check(p, KFD_CRIU_OP_UNPAUSE));
	p->debug_trap_enabled = false;
	p->pdds[0] = kunit_kzalloc(test, sizeof(*p->pdds[0]), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, p->pdds[0]);
	p->n_pdds = 1;
	KUNIT_EXPECT_EQ(test, 0,
			kfd_criu_session_check(p, KFD_CRIU_OP_CHECKPOINT));
	p->pdds[0]->is_lost = true;
	KUNIT_EXPECT_EQ(test, -ENOTRECOVERABLE,
			kfd_criu_session_check(p, KFD_CRIU_OP_CHECKPOINT));
	p->pdds[0]->is_lost = false;
	p->pdds[0]->has_reset_queue = true;
	KUNIT_EXPECT_EQ(test, -ENOTRECOVERABLE,
			kfd_criu_session_check(p, KFD_CRIU_OP_PROCESS_INFO));
	KUNIT_EXPECT_EQ(test, 0, kfd_criu_session_check(p, KFD_CRIU_OP_UNPAUSE));
}

static void a_program_being_restored_may_only_query(struct kunit *test)
{
	static const unsigned int queries[] = {
		_IOC_NR(AMDKFD_IOC_GET_VERSION),
		_IOC_NR(AMDKFD_IOC_GET_CLOCK_COUNTERS),
		_IOC_NR(AMDKFD_IOC_GET_PROCESS_APERTURES),
		_IOC_NR(AMDKFD_IOC_GET_PROCESS_APERTURES_NEW),
		_IOC_NR(AMDKFD_IOC_GET_TILE_CONFIG),
		_IOC_NR(AMDKFD_IOC_AVAILABLE_MEMORY),
		_IOC_NR(AMDKFD_IOC_CRIU_OP),
	};
	static const int expected[KFD_CRIU_STATES] = { 0, 0, -EBUSY, -EBUSY,
						       -EIO };
	unsigned int nr, i;
	int state;

	for (state = 0; state < KFD_CRIU_STATES; state++) {
		struct kfd_process *p = make_process_in(test, state);

		for (nr = AMDKFD_COMMAND_START; nr < AMDKFD_COMMAND_END; nr++) {
			int r, err = expected[state];

			for (i = 0; i < ARRAY_SIZE(queries); i++)
				if (nr == queries[i])
					err = 0;
			r = kfd_criu_session_begin_ioctl(p, nr);
			KUNIT_EXPECT_EQ_MSG(test, err, r,
					    "ioctl %u in state %d", nr, state);
			if (!r)
				kfd_criu_session_end_ioctl(p, nr);
		}
		KUNIT_EXPECT_FALSE(test, rwsem_is_locked(&p->criu.ioctl_sem));
	}
}

/* ---- args ---- */

/*
 * A member of the args, and the operations that may have it set to non-zero, as
 * bits.
 */
#define OP(name)	BIT(KFD_CRIU_V2_##name - KFD_CRIU_V2_PROBE)
#define MEMBER(name, ops) { #name, { .name = -1 }, ops }
#define WITH_DATA	(OP(PROBE) | OP(CHECKPOINT) | OP(RESTORE))
#define WITH_BO		(OP(EXPORT_BO) | OP(BO_OFFSET))
/*
 * Members that the kernel only writes may hold the result of another operation.
 */
#define EVERY_OP	((OP(BO_OFFSET) << 1) - 1)

static const struct {
	const char *name;
	struct kfd_criu_v2_args args;
	u32 ops;
} members[] = {
	MEMBER(flags, 0),
	MEMBER(data, WITH_DATA),
	MEMBER(data_size, WITH_DATA | OP(PAUSE)),
	MEMBER(devices, OP(RESTORE)),
	MEMBER(num_devices, OP(RESTORE)),
	MEMBER(gpu_id, WITH_BO),
	MEMBER(handle, WITH_BO),
	MEMBER(pid, OP(RESUME) | OP(PAUSE)),
	MEMBER(state, EVERY_OP),
	MEMBER(fd, EVERY_OP),
	MEMBER(reserved, 0),
	MEMBER(offset, EVERY_OP),
	MEMBER(memories, OP(RESTORE)),
	MEMBER(num_memories, OP(RESTORE)),
	MEMBER(reserved2, 0),
};

static void members_that_an_operation_does_not_use_must_be_zero(struct kunit *test)
{
	unsigned int i;
	u32 op;

	for (op = KFD_CRIU_V2_PROBE; op <= KFD_CRIU_V2_BO_OFFSET + 1; op++) {
		for (i = 0; i < ARRAY_SIZE(members); i++) {
			struct kfd_criu_v2_args args = members[i].args;
			const bool used = members[i].ops &
					  BIT(op - KFD_CRIU_V2_PROBE);

			args.op = op;
			KUNIT_EXPECT_EQ_MSG(test, used ? 0 : -EINVAL,
					    kfd_criu_v2_check(&args),
					    "%s of operation %#x",
					    members[i].name, op);
		}
	}
}

static void args_grow_by_zeros(struct kunit *test)
{
	struct {
		struct kfd_criu_v2_args args;
		u64 newer[2];
	} larger = { .args.op = KFD_CRIU_V2_STATE };

	KUNIT_EXPECT_EQ(test, 0, kfd_criu_validate(&larger, sizeof(larger)));
	larger.newer[1] = 1;
	KUNIT_EXPECT_EQ(test, -E2BIG,
			kfd_criu_validate(&larger, sizeof(larger)));
	KUNIT_EXPECT_EQ(test, 0,
			kfd_criu_validate(&larger, sizeof(larger.args)));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kfd_criu_validate(&larger,
					  sizeof(struct kfd_ioctl_criu_args)));
	larger.args.op = KFD_CRIU_OP_RESUME;
	KUNIT_EXPECT_EQ(test, 0,
			kfd_criu_validate(&larger,
					  sizeof(struct kfd_ioctl_criu_args)));
}

static void queue_types_are_those_of_the_ioctl(struct kunit *test)
{
	static const u32 types[] = {
		KFD_IOC_QUEUE_TYPE_COMPUTE,
		KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
		KFD_IOC_QUEUE_TYPE_SDMA,
		KFD_IOC_QUEUE_TYPE_SDMA_XGMI,
	};
	struct queue_properties qp = {};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		KUNIT_EXPECT_EQ(test, 0, kfd_criu_queue_set_type(&qp, types[i]));
		KUNIT_EXPECT_EQ(test, types[i], kfd_criu_queue_type(&qp));
	}
	KUNIT_EXPECT_EQ(test, -EINVAL, kfd_criu_queue_set_type(&qp, ~0U));
}

/* ---- MQDs ---- */

/*
 * The driver's initialisation fills a new MQD with one pattern, and the image
 * has another one that differs in every bit.
 */
#define DRIVER_PATTERN	0xa5a5a5a5U
#define IMAGE_PATTERN	0x5a5a5a5aU

#define WORD(type, member) (offsetof(struct type, member) / sizeof(u32))
#define NO_WORD		U16_MAX

struct generation {
	const char *name;
	u32 version;	/* gfx_target_version */
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
	COMPUTE("gfx7", 70001, cik_mqd, cp_hqd_pq_wptr,
		compute_tba_lo, compute_tma_lo),
	COMPUTE("gfx8", 80003, vi_mqd, cp_hqd_pq_wptr,
		cp_hqd_ctx_save_base_addr_lo, cp_hqd_ctx_save_size),
	COMPUTE("gfx9", 90006, v9_mqd, cp_hqd_pq_wptr_lo,
		cp_hqd_ctx_save_base_addr_lo, cp_hqd_ctx_save_size),
	COMPUTE("gfx10", 100300, v10_compute_mqd, cp_hqd_pq_wptr_lo,
		cp_hqd_ctx_save_base_addr_lo, cp_hqd_ctx_save_size),
	COMPUTE("gfx11", 110000, v11_compute_mqd, cp_hqd_pq_wptr_lo,
		cp_hqd_ctx_save_base_addr_lo, cp_hqd_ctx_save_size),
	COMPUTE("gfx12", 120001, v12_compute_mqd, cp_hqd_pq_wptr_lo,
		cp_hqd_ctx_save_base_addr_lo, cp_hqd_ctx_save_size),
	SDMA("gfx7", 70001, cik_sdma_rlc_registers, sdma_rlc, rb_wptr),
	SDMA("gfx8", 80003, vi_sdma_mqd, sdmax_rlcx, rb_wptr),
	SDMA("gfx9", 90006, v9_sdma_mqd, sdmax_rlcx, rb_wptr),
	SDMA("gfx10", 100300, v10_sdma_mqd, sdmax_rlcx, rb_wptr),
	SDMA("gfx11", 110000, v11_sdma_mqd, sdmax_rlcx, rb_wptr),
	SDMA("gfx12", 120001, v12_sdma_mqd, sdmax_rlcx, rb_wptr),
};

static void fill(void *mqd, size_t size, u32 word)
{
	memset32(mqd, word, size / sizeof(word));
}

static void init_mqd(struct mqd_manager *mm, void **mqd,
		     struct kfd_mem_obj *mqd_mem_obj, uint64_t *gart_addr,
		     struct queue_properties *q)
{
	fill(*mqd, mm->mqd_size, DRIVER_PATTERN);
}

/*
 * Creates a device of a generation without CWSR; saved waves have tests of
 * their own.
 */
static struct mqd_manager *manager_for(struct kunit *test,
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
	node->kfd->device_info.gfx_target_version = g->version;
	node->xcc_mask = 1;
	node->dqm->mqd_mgrs[g->type == KFD_QUEUE_TYPE_COMPUTE ?
			    KFD_MQD_TYPE_CP : KFD_MQD_TYPE_SDMA] = mm;
	mm->dev = node;
	mm->mqd_size = g->size;
	mm->init_mqd = init_mqd;
	return mm;
}

static const u32 *restored_mqd(struct kunit *test, const struct generation *g,
			       bool waves)
{
	struct mqd_manager *mm = manager_for(test, g);
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
	fill(image.data, g->size, IMAGE_PATTERN);
	if (!waves)
		KUNIT_ASSERT_EQ(test, 0,
				kfd_criu_mqd_check(mm->dev, &q.properties, &image));
	kfd_criu_mqd_restore(mm, &q, &image);
	return q.mqd;
}

static void expect_words(struct kunit *test, const u32 *mqd, const u16 *words,
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

	expect_words(test, restored_mqd(test, g, false), g->driver_words,
		     ARRAY_SIZE(g->driver_words), DRIVER_PATTERN);
}

static void an_image_decides_how_far_a_queue_is(struct kunit *test)
{
	const struct generation *g = test->param_value;

	expect_words(test, restored_mqd(test, g, false), g->image_words,
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
		u32 version;
		size_t size;
		u16 word;
		u32 image_bits;
		u32 wave_bits;	/* taken from the image if waves were saved */
	} rows[] = {
		SHARED_REGISTER(70001, cik_mqd, cp_hqd_persistent_state, 0x80000000, 0),
		PERSISTENT_STATE(80003, vi_mqd),
		PERSISTENT_STATE(90006, v9_mqd),
		PERSISTENT_STATE(100300, v10_compute_mqd),
		PERSISTENT_STATE(110000, v11_compute_mqd),
		PERSISTENT_STATE(120001, v12_compute_mqd),
		EOP_CONTROL(80003, vi_mqd, 0xe0002100),
		EOP_CONTROL(90006, v9_mqd, 0xe0002100),
		EOP_CONTROL(100300, v10_compute_mqd, 0xe0002100),
		EOP_CONTROL(110000, v11_compute_mqd, 0xe0002100),
		EOP_CONTROL(120001, v12_compute_mqd, 0x2100),
		SHARED_REGISTER(110000, v11_compute_mqd, cp_hqd_hq_status0, 0, 0x103),
		SHARED_REGISTER(120001, v12_compute_mqd, cp_hqd_hq_status0, 0, 0x103),
		SHARED_REGISTER(90006, v9_mqd, compute_pgm_rsrc2, 0xffffffbf, 0),
		SHARED_REGISTER(100300, v10_compute_mqd, compute_pgm_rsrc2, 0xffffffff, 0),
	};
	unsigned int i;

	for (i = 0; i < 2 * ARRAY_SIZE(rows); i++) {
		const struct generation g = {
			.version = rows[i / 2].version,
			.type = KFD_QUEUE_TYPE_COMPUTE,
			.size = rows[i / 2].size,
		};
		const bool waves = i % 2;
		const u32 image_bits = rows[i / 2].image_bits |
				       (waves ? rows[i / 2].wave_bits : 0);

		KUNIT_EXPECT_EQ_MSG(test,
				    (DRIVER_PATTERN & ~image_bits) |
				    (IMAGE_PATTERN & image_bits),
				    restored_mqd(test, &g, waves)[rows[i / 2].word],
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
		u32 version;
		enum kfd_queue_type type;
		size_t size;
		u16 word;
	} rows[] = {
		/*
		 * The packet's address, the scratch base, COMPUTE_PGM_RSRC3 and
		 * others.
		 */
		MISNAMED(90010, COMPUTE, v9_mqd, compute_tba_lo),
		MISNAMED(90010, COMPUTE, v9_mqd, compute_tma_lo),
		MISNAMED(90010, COMPUTE, v9_mqd, compute_tma_hi),
		MISNAMED(90010, COMPUTE, v9_mqd, reserved_46),
		MISNAMED(90010, COMPUTE, v9_mqd, reserved_47),
		MISNAMED(100300, COMPUTE, v10_compute_mqd, compute_tba_lo),
		MISNAMED(100300, COMPUTE, v10_compute_mqd, compute_tma_lo),
		MISNAMED(100300, COMPUTE, v10_compute_mqd, compute_tma_hi),
		MISNAMED(100300, COMPUTE, v10_compute_mqd, reserved_41),
		MISNAMED(100300, COMPUTE, v10_compute_mqd, reserved_47),
		/* The last dword of an interrupted command (midcmd). */
		MISNAMED(90402, SDMA, v9_sdma_mqd, reserved_43),
		MISNAMED(100300, SDMA, v10_sdma_mqd, reserved_43),
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct generation g = {
			.version = rows[i].version,
			.type = rows[i].type,
			.size = rows[i].size,
		};

		KUNIT_EXPECT_EQ_MSG(test, IMAGE_PATTERN,
				    restored_mqd(test, &g, false)[rows[i].word],
				    "row %u", i);
	}
}

static void an_image_of_another_size_is_refused(struct kunit *test)
{
	const struct generation *g = test->param_value;
	struct mqd_manager *mm = manager_for(test, g);
	struct kfd_criu_mqd image = { .mqd_size = g->size + 4, .n_xcc = 1 };
	const struct queue_properties qp = { .type = g->type };

	KUNIT_EXPECT_EQ(test, -EINVAL, kfd_criu_mqd_check(mm->dev, &qp, &image));
	image.mqd_size = g->size;
	image.ctl_stack_size = PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, -EINVAL, kfd_criu_mqd_check(mm->dev, &qp, &image));
	image.ctl_stack_size = 0;
	image.n_xcc = 2;
	KUNIT_EXPECT_EQ(test, -EINVAL, kfd_criu_mqd_check(mm->dev, &qp, &image));
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
	u32 version;
	size_t size;
	u16 stack;
	u16 waves;
} saved_waves[] = {
	WAVES("gfx8", 80003, vi_mqd),
	WAVES("gfx9", 90006, v9_mqd),
	WAVES("gfx10", 100300, v10_compute_mqd),
	WAVES("gfx11", 110000, v11_compute_mqd),
	WAVES("gfx12", 120001, v12_compute_mqd),
};

static void waves_name(const struct waves *w, char *text)
{
	strscpy(text, w->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(waves, saved_waves, waves_name);

static const struct queue_properties with_waves = {
	.type = KFD_QUEUE_TYPE_COMPUTE,
	.ctl_stack_size = STACK_SIZE,
	.ctx_save_restore_area_address = 0x1000,
	.ctx_save_restore_area_size = AREA_SIZE,
};

static struct mqd_manager *manager_with_waves(struct kunit *test, u32 version,
					      size_t size)
{
	const struct generation g = {
		.version = version,
		.type = KFD_QUEUE_TYPE_COMPUTE,
		.size = size,
	};
	struct mqd_manager *mm = manager_for(test, &g);

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
	struct mqd_manager *mm = manager_with_waves(test, w->version, w->size);
	struct kfd_criu_mqd image = { .mqd_size = w->size, .n_xcc = 1 };
	unsigned int i;

	if (w->version / 10000 == 9)
		image.ctl_stack_size = STACK_SIZE;
	image.data = kunit_kzalloc(test, w->size + STACK_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, image.data);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		((u32 *)image.data)[w->stack] = rows[i].stack;
		((u32 *)image.data)[w->waves] = rows[i].waves;
		KUNIT_EXPECT_EQ_MSG(test, rows[i].err,
				    kfd_criu_mqd_check(mm->dev, &with_waves, &image),
				    "row %u", i);
	}
}

static void waves_are_for_a_device_that_restores_them(struct kunit *test)
{
	const struct waves *w = test->param_value;
	struct mqd_manager *mm = manager_with_waves(test, w->version, w->size);
	struct kfd_criu_mqd image = { .mqd_size = w->size, .n_xcc = 1 };
	u32 *words = kunit_kzalloc(test, w->size, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, words);
	mm->dev->kfd->cwsr_enabled = false;
	image.data = words;
	words[w->stack] = STACK_SIZE - 8;
	words[w->waves] = STACK_SIZE + 64;
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kfd_criu_mqd_check(mm->dev, &with_waves, &image));
	words[w->stack] = STACK_SIZE;
	KUNIT_EXPECT_EQ(test, 0,
			kfd_criu_mqd_check(mm->dev, &with_waves, &image));
	words[w->stack] = 0;
	KUNIT_EXPECT_EQ(test, 0,
			kfd_criu_mqd_check(mm->dev, &with_waves, &image));
}

static u64 stride(struct mqd_manager *mm, struct queue_properties *q)
{
	return 2 * PAGE_SIZE;
}

/* Older kernels wrote the MQD of the first XCC only. */
static void an_image_of_one_xcc_is_for_all_if_no_dispatch_is_active(struct kunit *test)
{
	struct mqd_manager *mm = manager_with_waves(test, 90402,
						    sizeof(struct v9_mqd));
	struct kfd_criu_mqd image = { .mqd_size = sizeof(struct v9_mqd),
				      .ctl_stack_size = STACK_SIZE,
				      .n_xcc = 1 };
	struct queue q = { .device = mm->dev, .properties = with_waves };
	struct v9_mqd *m, *first, *second;

	mm->dev->xcc_mask = 3;
	mm->mqd_stride = stride;
	image.data = kunit_kzalloc(test, kfd_criu_mqd_bytes(&image), GFP_KERNEL);
	q.mqd = kunit_kzalloc(test, 4 * PAGE_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, image.data);
	KUNIT_ASSERT_NOT_NULL(test, q.mqd);
	m = image.data;
	m->cp_hqd_cntl_stack_offset = STACK_SIZE - 8;
	m->cp_hqd_wg_state_offset = STACK_SIZE;
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kfd_criu_mqd_check(mm->dev, &with_waves, &image));
	m->cp_hqd_cntl_stack_offset = STACK_SIZE;
	m->cp_hqd_persistent_state = 0x80000000;
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kfd_criu_mqd_check(mm->dev, &with_waves, &image));
	m->cp_hqd_persistent_state = 0;
	m->compute_current_logic_xcc_id = 2;
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kfd_criu_mqd_check(mm->dev, &with_waves, &image));
	m->compute_current_logic_xcc_id = 1;
	m->cp_hqd_pq_rptr = IMAGE_PATTERN;
	KUNIT_ASSERT_EQ(test, 0,
			kfd_criu_mqd_check(mm->dev, &with_waves, &image));
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
	struct mqd_manager *mm = manager_with_waves(test, 90402,
						    sizeof(struct v9_mqd));
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
	struct generation g = generations[0];
	struct kfd_criu_mqd image = { .mqd_size = g.size, .n_xcc = 1 };
	const struct queue_properties qp = { .type = g.type };
	struct mqd_manager *mm;

	g.version = 60000;
	mm = manager_for(test, &g);
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP,
			kfd_criu_mqd_check(mm->dev, &qp, &image));
	g.version = 130000;
	mm = manager_for(test, &g);
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP,
			kfd_criu_mqd_check(mm->dev, &qp, &image));
}

static void generation_name(const struct generation *g, char *text)
{
	strscpy(text, g->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(generation, generations, generation_name);

static struct kunit_case cases[] = {
	KUNIT_CASE(each_operation_has_its_states),
	KUNIT_CASE(a_process_without_mm_is_aborted),
	KUNIT_CASE(a_pause_belongs_to_its_owner),
	KUNIT_CASE(what_an_image_cannot_describe_is_refused),
	KUNIT_CASE(a_program_being_restored_may_only_query),
	KUNIT_CASE(members_that_an_operation_does_not_use_must_be_zero),
	KUNIT_CASE(args_grow_by_zeros),
	KUNIT_CASE(queue_types_are_those_of_the_ioctl),
	KUNIT_CASE_PARAM(an_image_does_not_decide_where_a_queue_is,
			 generation_gen_params),
	KUNIT_CASE_PARAM(an_image_decides_how_far_a_queue_is,
			 generation_gen_params),
	KUNIT_CASE(an_image_decides_whether_a_dispatch_goes_on),
	KUNIT_CASE(an_image_decides_misnamed_registers),
	KUNIT_CASE_PARAM(an_image_of_another_size_is_refused,
			 generation_gen_params),
	KUNIT_CASE_PARAM(waves_are_within_the_save_area, waves_gen_params),
	KUNIT_CASE_PARAM(waves_are_for_a_device_that_restores_them,
			 waves_gen_params),
	KUNIT_CASE(an_image_of_one_xcc_is_for_all_if_no_dispatch_is_active),
	KUNIT_CASE(pm4_packets_keep_their_target_xcc),
	KUNIT_CASE(an_unknown_generation_is_refused),
	{}
};

static struct kunit_suite suite = {
	.name = "kfd_criu",
	.test_cases = cases,
};

kunit_test_suite(suite);
