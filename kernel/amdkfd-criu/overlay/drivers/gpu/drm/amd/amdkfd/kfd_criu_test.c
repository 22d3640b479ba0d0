// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * KUnit tests that need neither a GPU nor a device: which operation is
 * permitted in which state, and which args are valid. They run when amdgpu is
 * loaded.
 */
#include <kunit/test.h>
#include <linux/kfd_criu_ioctl.h>
#include "amdgpu.h"
#include "kfd_criu.h"
#include "kfd_priv.h"

/* ---- states ---- */

static struct kfd_process *criu_test_make_process_in(struct kunit *test,
						     enum kfd_criu_state state)
{
	struct kfd_process *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	kfd_criu_session_init(p);
	p->mm = p;	/* any value but NULL */
	p->criu.state = state;
	return p;
}

static int criu_test_check_op(const struct kfd_process *p, enum kfd_criu_op op)
{
	u32 reason;

	return kfd_criu_session_check(p, op, &reason);
}

static void each_operation_has_its_states(struct kunit *test)
{
	/* Columns: RUNNING, PAUSED, RESTORING, RESTORED, ABORTED, RESUMING */
	static const int expected[KFD_CRIU_OPS][KFD_CRIU_STATES] = {
		[KFD_CRIU_OP_PROCESS_INFO] = { 0, 0, -EBUSY, -EBUSY, -EIO,
						-EBUSY },
		[KFD_CRIU_OP_CHECKPOINT] = { -EINVAL, 0, -EBUSY, -EBUSY, -EIO,
					     -EBUSY },
		[KFD_CRIU_OP_UNPAUSE] = { -EINVAL, 0, -EINVAL, -EINVAL,
					  -EINVAL, -EINVAL },
		[KFD_CRIU_OP_RESTORE] = { 0, -EBUSY, -EBUSY, -EBUSY, -EIO,
					  -EBUSY },
		[KFD_CRIU_OP_RESUME] = { -EINVAL, -EINVAL, -EBUSY, 0, -EIO, 0 },
	};
	int op, state;

	for (op = 0; op < KFD_CRIU_OPS; op++) {
		for (state = 0; state < KFD_CRIU_STATES; state++) {
			struct kfd_process *p = criu_test_make_process_in(test, state);

			KUNIT_EXPECT_EQ_MSG(test, expected[op][state],
					    criu_test_check_op(p, op),
					    "operation %d in state %d", op, state);
		}
	}
}

static void a_process_without_mm_is_aborted(struct kunit *test)
{
	int state;

	for (state = 0; state < KFD_CRIU_STATES; state++) {
		struct kfd_process *p = criu_test_make_process_in(test, state);

		KUNIT_EXPECT_EQ(test, state, kfd_criu_session_state(p));
		p->mm = NULL;
		KUNIT_EXPECT_EQ(test, KFD_CRIU_ABORTED,
				kfd_criu_session_state(p));
		KUNIT_EXPECT_EQ(test, -EIO, kfd_criu_session_allows(p));
		KUNIT_EXPECT_EQ(test, -EIO,
				criu_test_check_op(p, KFD_CRIU_OP_PROCESS_INFO));
	}
}

static void a_pause_of_version_1_belongs_to_its_owner(struct kunit *test)
{
	struct kfd_process *p = criu_test_make_process_in(test, KFD_CRIU_PAUSED);

	KUNIT_EXPECT_EQ(test, -EINVAL, kfd_criu_check_owned_pause(p));
	KUNIT_EXPECT_EQ(test, -EINVAL, kfd_criu_owned_unpause(p));
	p->criu.owner = task_tgid(current);
	KUNIT_EXPECT_EQ(test, 0, kfd_criu_check_owned_pause(p));
	p->criu.owner = task_tgid(&init_task);
	KUNIT_EXPECT_EQ(test, -EBUSY, kfd_criu_check_owned_pause(p));
	KUNIT_EXPECT_EQ(test, -EBUSY, kfd_criu_owned_unpause(p));
}

static void criu_test_expect_refusal(struct kunit *test, const struct kfd_process *p,
				     int err, u32 reason)
{
	u32 given = ~0U;

	KUNIT_EXPECT_EQ(test, err,
			kfd_criu_session_check(p, KFD_CRIU_OP_CHECKPOINT,
					       &given));
	KUNIT_EXPECT_EQ(test, reason, given);
	KUNIT_EXPECT_EQ(test, 0, criu_test_check_op(p, KFD_CRIU_OP_UNPAUSE));
}

static void what_an_image_cannot_describe_is_refused(struct kunit *test)
{
	struct kfd_process *p = criu_test_make_process_in(test, KFD_CRIU_PAUSED);

	p->debug_trap_enabled = true;
	criu_test_expect_refusal(test, p, -EOPNOTSUPP, KFD_CRIU_REASON_DEBUGGER);
	p->debug_trap_enabled = false;
	p->pdds[0] = kunit_kzalloc(test, sizeof(*p->pdds[0]), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, p->pdds[0]);
	INIT_LIST_HEAD(&p->pdds[0]->qpd.queues_list);
	p->n_pdds = 1;
	criu_test_expect_refusal(test, p, 0, KFD_CRIU_REASON_NONE);
	p->pdds[0]->is_lost = true;
	criu_test_expect_refusal(test, p, -ENOTRECOVERABLE, KFD_CRIU_REASON_GPU_RESET);
	p->pdds[0]->is_lost = false;
	p->pdds[0]->has_reset_queue = true;
	criu_test_expect_refusal(test, p, -ENOTRECOVERABLE, KFD_CRIU_REASON_QUEUE_RESET);
}

static void queues_that_no_image_describes_are_refused(struct kunit *test)
{
	struct kfd_process *p = criu_test_make_process_in(test, KFD_CRIU_PAUSED);
	struct kfd_process_device *pdd =
		kunit_kzalloc(test, sizeof(*pdd), GFP_KERNEL);
	struct queue q = { .properties.type = KFD_QUEUE_TYPE_DIQ };

	KUNIT_ASSERT_NOT_NULL(test, pdd);
	pdd->dev = kunit_kzalloc(test, sizeof(*pdd->dev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pdd->dev);
	/* A device of no known generation. */
	pdd->dev->adev = kunit_kzalloc(test, sizeof(*pdd->dev->adev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pdd->dev->adev);
	INIT_LIST_HEAD(&pdd->qpd.queues_list);
	list_add(&q.list, &pdd->qpd.queues_list);
	p->pdds[0] = pdd;
	p->n_pdds = 1;
	criu_test_expect_refusal(test, p, -EOPNOTSUPP, KFD_CRIU_REASON_QUEUE_TYPE);
	q.properties.type = KFD_QUEUE_TYPE_COMPUTE;
	criu_test_expect_refusal(test, p, -EOPNOTSUPP, KFD_CRIU_REASON_GPU);
	list_del(&q.list);
	criu_test_expect_refusal(test, p, 0, KFD_CRIU_REASON_NONE);
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
						       -EIO, -EBUSY };
	unsigned int nr, i;
	int state;

	for (state = 0; state < KFD_CRIU_STATES; state++) {
		struct kfd_process *p = criu_test_make_process_in(test, state);

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
#define OP(name)	BIT(KFD_CRIU_CMD_##name - KFD_CRIU_CMD_PROBE)
#define MEMBER(name, ops) { #name, { .name = -1 }, ops }
#define WITH_DATA	(OP(PROBE) | OP(CHECKPOINT) | OP(RESTORE))
#define WITH_BO		(OP(EXPORT_BO) | OP(BO_OFFSET))
#define WITH_PAUSE	(WITH_BO | OP(CHECKPOINT) | OP(UNPAUSE))

static const struct {
	const char *name;
	struct kfd_criu_args args;
	u32 ops;
} members[] = {
	MEMBER(flags, 0),
	MEMBER(data, WITH_DATA),
	MEMBER(data_size, WITH_DATA),
	MEMBER(gpus, OP(RESTORE)),
	MEMBER(num_gpus, OP(RESTORE)),
	MEMBER(gpu_id, WITH_BO),
	MEMBER(handle, WITH_BO),
	MEMBER(pid, OP(RESUME)),
	MEMBER(state, 0),
	MEMBER(fd, 0),
	MEMBER(pause_fd, WITH_PAUSE),
	MEMBER(offset, 0),
	MEMBER(memories, OP(RESTORE)),
	MEMBER(num_memories, OP(RESTORE)),
	MEMBER(timeout_ms, OP(RESUME)),
	MEMBER(reason, 0),
	MEMBER(record, 0),
};

static void members_that_an_operation_does_not_read_must_be_zero(struct kunit *test)
{
	unsigned int i;
	u32 op;

	for (op = KFD_CRIU_CMD_PROBE; op <= KFD_CRIU_CMD_BO_OFFSET + 1; op++) {
		for (i = 0; i < ARRAY_SIZE(members); i++) {
			struct kfd_criu_args args = members[i].args;
			const bool used = members[i].ops &
					  BIT(op - KFD_CRIU_CMD_PROBE);

			args.op = op;
			KUNIT_EXPECT_EQ_MSG(test, used ? 0 : -EINVAL,
					    kfd_criu_v2_check(&args),
					    "%s of operation %#x",
					    members[i].name, op);
		}
	}
}

static void operations_have_their_own_flags(struct kunit *test)
{
	u32 op;

	for (op = KFD_CRIU_CMD_PROBE; op <= KFD_CRIU_CMD_BO_OFFSET; op++) {
		const struct kfd_criu_args args = { .op = op, .flags = 1 };
		const bool has_one = op == KFD_CRIU_CMD_PAUSE ||
				     op == KFD_CRIU_CMD_RESTORE ||
				     op == KFD_CRIU_CMD_RESUME;

		KUNIT_EXPECT_EQ_MSG(test, has_one ? 0 : -EINVAL,
				    kfd_criu_v2_check(&args), "operation %#x",
				    op);
	}
}

static void args_grow_by_zeros(struct kunit *test)
{
	struct {
		struct kfd_criu_args args;
		u64 newer[2];
	} larger = { .args.op = KFD_CRIU_CMD_STATE };

	KUNIT_EXPECT_EQ(test, 0, kfd_criu_validate(&larger, sizeof(larger)));
	larger.newer[1] = 1;
	KUNIT_EXPECT_EQ(test, -E2BIG,
			kfd_criu_validate(&larger, sizeof(larger)));
	KUNIT_EXPECT_EQ(test, 0,
			kfd_criu_validate(&larger, sizeof(larger.args)));
	KUNIT_EXPECT_EQ(test, 0,
			kfd_criu_validate(&larger, KFD_CRIU_ARGS_SIZE_VER0));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			kfd_criu_validate(&larger, KFD_CRIU_ARGS_SIZE_VER0 - 1));
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

static struct kunit_case cases[] = {
	KUNIT_CASE(each_operation_has_its_states),
	KUNIT_CASE(a_process_without_mm_is_aborted),
	KUNIT_CASE(a_pause_of_version_1_belongs_to_its_owner),
	KUNIT_CASE(what_an_image_cannot_describe_is_refused),
	KUNIT_CASE(queues_that_no_image_describes_are_refused),
	KUNIT_CASE(a_program_being_restored_may_only_query),
	KUNIT_CASE(members_that_an_operation_does_not_read_must_be_zero),
	KUNIT_CASE(operations_have_their_own_flags),
	KUNIT_CASE(args_grow_by_zeros),
	KUNIT_CASE(queue_types_are_those_of_the_ioctl),
	{}
};

static struct kunit_suite suite = {
	.name = "kfd_criu",
	.test_cases = cases,
};

kunit_test_suite(suite);
