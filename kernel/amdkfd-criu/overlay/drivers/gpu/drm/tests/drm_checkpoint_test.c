// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * KUnit tests of drm_checkpoint_may() with a driver that has nothing but one
 * word of state. Each test prints who may do what, and compares that with a
 * table. Owners of clients are kernel threads with a user's credentials; callers
 * are the test itself with overridden credentials.
 */
#include <kunit/test.h>
#include <linux/completion.h>
#include <linux/cred.h>
#include <linux/init_task.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/sched/coredump.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/user_namespace.h>
#include <drm/drm_checkpoint.h>

#define USER		1000
#define STRANGER	2000
#define STATE		0x1234

/* ---- a driver ---- */

enum {
	OP_QUIESCE,
	OP_READ,
	OP_WRITE_VALIDATED,
	OP_WRITE,
	OPS,
};

struct fake_client {
	struct task_struct *owner;
	bool is_quiesced;
	u32 state;
};

static int checkpoint_test_fake_client_quiesce(struct fake_client *client)
{
	int r;

	r = drm_checkpoint_may(client->owner, DRM_CHECKPOINT_QUIESCE, false);
	if (r)
		return r;
	client->is_quiesced = true;
	return 0;
}

static int checkpoint_test_fake_client_read(const struct fake_client *client, u32 *state)
{
	int r;

	r = drm_checkpoint_may(client->owner, DRM_CHECKPOINT_READ_STATE, false);
	if (r)
		return r;
	*state = client->state;
	return 0;
}

static int checkpoint_test_fake_client_write(struct fake_client *client, u32 state,
					     bool is_validated)
{
	int r;

	r = drm_checkpoint_may(client->owner, DRM_CHECKPOINT_WRITE_STATE,
			       is_validated);
	if (r)
		return r;
	client->state = state;
	return 0;
}

static int checkpoint_test_fake_client_call(struct fake_client *client, unsigned int op)
{
	u32 state;

	switch (op) {
	case OP_QUIESCE:
		return checkpoint_test_fake_client_quiesce(client);
	case OP_READ:
		return checkpoint_test_fake_client_read(client, &state);
	default:
		return checkpoint_test_fake_client_write(client, STATE,
							 op == OP_WRITE_VALIDATED);
	}
}

static void checkpoint_test_fake_client_call_all(struct task_struct *owner, int result[OPS])
{
	unsigned int op;

	for (op = 0; op < OPS; op++) {
		struct fake_client client = { .owner = owner };
		u32 expected;

		result[op] = checkpoint_test_fake_client_call(&client, op);
		/* A refused operation must not have had an effect. */
		expected = !result[op] && op >= OP_WRITE_VALIDATED ? STATE : 0;
		if (client.state != expected ||
		    client.is_quiesced != (!result[op] && op == OP_QUIESCE))
			result[op] = -ENOTRECOVERABLE;
	}
}

/* ---- credentials ---- */

/*
 * Namespaces that USER has created. They never lose their first reference, so
 * the kernel does not try to free them.
 */
static struct user_namespace child_ns = {
	.parent = &init_user_ns,
	.level = 1,
	.owner = KUIDT_INIT(USER),
	.group = KGIDT_INIT(USER),
	.ns.count = REFCOUNT_INIT(1),
};

/* Nobody but the test that counts its references uses this one. */
static struct user_namespace counted_ns = {
	.parent = &init_user_ns,
	.level = 1,
	.owner = KUIDT_INIT(USER),
	.group = KGIDT_INIT(USER),
	.ns.count = REFCOUNT_INIT(1),
};

struct who {
	const char *name;
	struct user_namespace *ns;
	uid_t uid;
	int cap;	/* a capability it has in any case; 0: none */
};

static const struct who root = { "root", &init_user_ns, 0, CAP_SYS_PTRACE };
static const struct who user = { "user", &init_user_ns, USER };
static const struct who stranger = { "stranger", &init_user_ns, STRANGER };
static const struct who child_root = {
	"root of namespace", &child_ns, USER, CAP_SYS_PTRACE
};

static const struct who child_user = { "user of namespace", &child_ns, USER };
static const struct who child_stranger = {
	"stranger of namespace", &child_ns, STRANGER
};

/* Capabilities that are tried; 0 (CAP_CHOWN, which decides nothing here): none */
static const int extra_caps[] = { 0, CAP_CHECKPOINT_RESTORE, CAP_SYS_ADMIN };

static const char *checkpoint_test_cap_name(int cap)
{
	switch (cap) {
	case CAP_CHECKPOINT_RESTORE:
		return "CHECKPOINT_RESTORE";
	case CAP_SYS_ADMIN:
		return "SYS_ADMIN";
	default:
		return "none";
	}
}

static struct cred *checkpoint_test_make_cred(const struct who *who, int extra_cap)
{
	struct cred *cred = prepare_kernel_cred(&init_task);

	if (!cred)
		return NULL;
	cred->uid = KUIDT_INIT(who->uid);
	cred->euid = cred->uid;
	cred->suid = cred->uid;
	cred->fsuid = cred->uid;
	cred->gid = KGIDT_INIT(who->uid);
	cred->egid = cred->gid;
	cred->sgid = cred->gid;
	cred->fsgid = cred->gid;
	cap_clear(cred->cap_permitted);
	if (who->cap)
		cap_raise(cred->cap_permitted, who->cap);
	if (extra_cap)
		cap_raise(cred->cap_permitted, extra_cap);
	cred->cap_effective = cred->cap_permitted;
	put_user_ns(cred->user_ns);
	cred->user_ns = get_user_ns(who->ns);
	return cred;
}

/* ---- owners of clients ---- */

struct owner {
	struct task_struct *task;
	struct cred *cred;
	struct completion ready;
	int dumpable;	/* SUID_DUMP_* of its mm */
	int error;
	int self[OPS];	/* what its operations on itself returned */
};

static int checkpoint_test_owner_fn(void *data)
{
	struct owner *owner = data;
	struct mm_struct *mm;

	commit_creds(owner->cred);
	mm = mm_alloc();
	if (mm) {
		set_mask_bits(&mm->flags, MMF_DUMPABLE_MASK, owner->dumpable);
		kthread_use_mm(mm);
		checkpoint_test_fake_client_call_all(current, owner->self);
	} else {
		owner->error = -ENOMEM;
	}
	complete(&owner->ready);
	for (;;) {
		set_current_state(TASK_IDLE);
		if (kthread_should_stop())
			break;
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	if (mm) {
		kthread_unuse_mm(mm);
		mmput(mm);
	}
	return 0;
}

static void checkpoint_test_start_owner(struct kunit *test, struct owner *owner,
					const struct who *who, int extra_cap, int dumpable)
{
	*owner = (struct owner){ .dumpable = dumpable };
	init_completion(&owner->ready);
	owner->cred = checkpoint_test_make_cred(who, extra_cap);
	KUNIT_ASSERT_NOT_NULL(test, owner->cred);
	owner->task = kthread_create(checkpoint_test_owner_fn, owner, "drm_checkpoint");
	if (IS_ERR(owner->task))
		put_cred(owner->cred);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, owner->task);
	get_task_struct(owner->task);
	wake_up_process(owner->task);
	wait_for_completion(&owner->ready);
	KUNIT_EXPECT_EQ(test, 0, owner->error);
}

static void checkpoint_test_stop_owner(struct owner *owner)
{
	kthread_stop(owner->task);
}

static void checkpoint_test_free_owner(struct owner *owner)
{
	put_task_struct(owner->task);
}

/* ---- the matrix ---- */

struct row {
	const struct who *caller;	/* NULL: the owner itself */
	int without[OPS];	/* without a capability in extra_caps */
	int with[OPS];		/* with any of them */
	bool depends_on_yama;	/* Yama can forbid access to the same user's tasks */
};

#define ALL(errno)	{ [0 ... OPS - 1] = (errno) }

static const char *checkpoint_test_errno_name(int r)
{
	switch (r) {
	case 0:
		return "0";
	case -EPERM:
		return "EPERM";
	case -EACCES:
		return "EACCES";
	default:
		return "wrong";
	}
}

static void checkpoint_test_print_header(struct kunit *test, const struct who *owner)
{
	kunit_info(test, "client of: %s", owner->name);
	kunit_info(test, "%-22s %-19s %8s %8s %8s %8s", "caller", "capability",
		   "quiesce", "read", "write ok", "write");
}

static void checkpoint_test_check_result(struct kunit *test, const char *caller, int cap,
					 const int result[OPS], const struct row *row)
{
	const int *expected = cap ? row->with : row->without;
	unsigned int op;

	kunit_info(test, "%-22s %-19s %8s %8s %8s %8s", caller,
		   checkpoint_test_cap_name(cap),
		   checkpoint_test_errno_name(result[OP_QUIESCE]),
		   checkpoint_test_errno_name(result[OP_READ]),
		   checkpoint_test_errno_name(result[OP_WRITE_VALIDATED]),
		   checkpoint_test_errno_name(result[OP_WRITE]));
	if (row->depends_on_yama && IS_ENABLED(CONFIG_SECURITY_YAMA))
		return;
	for (op = 0; op < OPS; op++)
		KUNIT_EXPECT_EQ_MSG(test, result[op], expected[op],
				    "%s with %s, operation %u", caller,
				    checkpoint_test_cap_name(cap), op);
}

static void checkpoint_test_check_caller(struct kunit *test, const struct owner *owner,
					 const struct row *row, int cap)
{
	struct cred *cred = checkpoint_test_make_cred(row->caller, cap);
	const struct cred *old;
	int result[OPS];

	KUNIT_ASSERT_NOT_NULL(test, cred);
	old = override_creds(cred);
	checkpoint_test_fake_client_call_all(owner->task, result);
	revert_creds(old);
	put_cred(cred);
	checkpoint_test_check_result(test, row->caller->name, cap, result, row);
}

static void checkpoint_test_check_self(struct kunit *test, const struct who *who,
				       const struct row *row, int cap, int dumpable)
{
	struct owner owner;

	checkpoint_test_start_owner(test, &owner, who, cap, dumpable);
	checkpoint_test_stop_owner(&owner);
	checkpoint_test_free_owner(&owner);
	checkpoint_test_check_result(test, "itself", cap, owner.self, row);
}

static void checkpoint_test_check_row(struct kunit *test, const struct owner *owner,
				      const struct who *who, const struct row *row)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(extra_caps); i++) {
		if (row->caller)
			checkpoint_test_check_caller(test, owner, row, extra_caps[i]);
		else
			checkpoint_test_check_self(test, who, row, extra_caps[i],
						   owner->dumpable);
	}
}

static void checkpoint_test_check_matrix(struct kunit *test, const struct who *who,
					 int dumpable, const struct row *rows, size_t n)
{
	struct owner owner;
	size_t i;

	checkpoint_test_start_owner(test, &owner, who, 0, dumpable);
	checkpoint_test_print_header(test, who);
	for (i = 0; i < n; i++)
		checkpoint_test_check_row(test, &owner, who, &rows[i]);
	checkpoint_test_stop_owner(&owner);
	checkpoint_test_free_owner(&owner);
}

static void client_of_a_user(struct kunit *test)
{
	static const struct row rows[] = {
		{ &root, ALL(-EACCES), ALL(0) },
		{ &user, ALL(-EACCES), ALL(0), .depends_on_yama = true },
		{ NULL, ALL(-EACCES), ALL(0) },
		{ &stranger, ALL(-EPERM), ALL(-EPERM) },
		{ &child_root, ALL(-EPERM), ALL(-EPERM) },
	};

	checkpoint_test_check_matrix(test, &user, SUID_DUMP_USER, rows, ARRAY_SIZE(rows));
}

/*
 * Nothing that USER can do by creating a namespace lets it write state that is
 * not validated.
 */
static void client_in_a_user_namespace(struct kunit *test)
{
	static const struct row rows[] = {
		{ &root, ALL(-EACCES), ALL(0) },
		/* The creator of a namespace has all capabilities in it. */
		{ &user, { 0, 0, 0, -EACCES }, ALL(0) },
		{ &child_root, ALL(-EACCES), { 0, 0, 0, -EACCES } },
		{ NULL, ALL(-EACCES), { 0, 0, 0, -EACCES } },
		{ &stranger, ALL(-EPERM), ALL(-EPERM) },
		{ &child_stranger, ALL(-EPERM), ALL(-EPERM) },
	};

	checkpoint_test_check_matrix(test, &child_user, SUID_DUMP_USER, rows,
				     ARRAY_SIZE(rows));
}

static void client_of_a_set_uid_program(struct kunit *test)
{
	static const struct row rows[] = {
		{ &root, ALL(-EACCES), ALL(0) },
		{ &user, ALL(-EPERM), ALL(-EPERM) },
		{ NULL, ALL(-EACCES), ALL(0) },
		{ &stranger, ALL(-EPERM), ALL(-EPERM) },
	};

	checkpoint_test_check_matrix(test, &user, SUID_DUMP_DISABLE, rows,
				     ARRAY_SIZE(rows));
}

/* Its mm is gone, but its credentials and its namespace are still there. */
static void client_of_a_task_that_has_exited(struct kunit *test)
{
	static const struct row rows[] = {
		{ &root, ALL(-EACCES), ALL(0) },
		{ &child_root, ALL(-EPERM), ALL(-EPERM) },
		{ &stranger, ALL(-EPERM), ALL(-EPERM) },
	};
	struct owner owner;
	size_t i;

	checkpoint_test_start_owner(test, &owner, &child_user, 0, SUID_DUMP_USER);
	checkpoint_test_stop_owner(&owner);
	checkpoint_test_print_header(test, &child_user);
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		checkpoint_test_check_row(test, &owner, &child_user, &rows[i]);
	checkpoint_test_free_owner(&owner);
}

/*
 * Tracers have passed the checks of ptrace when they attached, but may have lost
 * since then what these checks look at. So a tracer gets what everybody else gets.
 */
static void client_of_a_task_that_the_caller_traces(struct kunit *test)
{
	static const struct row rows[] = {
		{ &root, ALL(-EACCES), ALL(0) },
		{ &user, ALL(-EACCES), ALL(0), .depends_on_yama = true },
		{ &stranger, ALL(-EPERM), ALL(-EPERM) },
		{ &child_root, ALL(-EPERM), ALL(-EPERM) },
	};
	struct task_struct *parent;
	struct owner owner;
	size_t i;

	checkpoint_test_start_owner(test, &owner, &user, 0, SUID_DUMP_USER);
	parent = rcu_access_pointer(owner.task->parent);
	rcu_assign_pointer(owner.task->parent, current);
	owner.task->ptrace = PT_PTRACED;
	checkpoint_test_print_header(test, &user);
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		checkpoint_test_check_row(test, &owner, &user, &rows[i]);
	owner.task->ptrace = 0;
	rcu_assign_pointer(owner.task->parent, parent);
	checkpoint_test_stop_owner(&owner);
	checkpoint_test_free_owner(&owner);
}

/* Each call gives back the reference to the namespace that it has taken. */
static void no_reference_to_the_namespace_is_lost(struct kunit *test)
{
	static const struct who who = { "user", &counted_ns, USER };
	static const struct row row = { &root, ALL(-EACCES), ALL(0) };
	struct owner owner;
	unsigned int before, i;

	checkpoint_test_start_owner(test, &owner, &who, 0, SUID_DUMP_USER);
	before = refcount_read(&counted_ns.ns.count);
	for (i = 0; i < 10; i++)
		checkpoint_test_check_caller(test, &owner, &row, i % 2 ? CAP_SYS_ADMIN : 0);
	KUNIT_EXPECT_EQ(test, refcount_read(&counted_ns.ns.count), before);
	checkpoint_test_stop_owner(&owner);
	checkpoint_test_free_owner(&owner);
}

static bool checkpoint_test_wait_until_unused(const struct user_namespace *ns)
{
	const unsigned long end = jiffies + 10 * HZ;

	while (refcount_read(&ns->ns.count) > 1) {
		if (time_after(jiffies, end))
			return false;
		rcu_barrier();
		schedule_timeout_uninterruptible(1);
	}
	return true;
}

/*
 * In a module the namespaces are part of its memory, so nothing may use them when
 * it is unloaded. The mm of a thread that has ended is kept, and with it its
 * namespace, until the CPU runs a program again. While the kernel boots there is
 * none, and nothing to unload either.
 */
static void drm_checkpoint_test_suite_exit(struct kunit_suite *suite)
{
	if (IS_MODULE(CONFIG_DRM))
		WARN_ON(!checkpoint_test_wait_until_unused(&child_ns) ||
			!checkpoint_test_wait_until_unused(&counted_ns));
}

static struct kunit_case drm_checkpoint_test_cases[] = {
	KUNIT_CASE(client_of_a_user),
	KUNIT_CASE(client_in_a_user_namespace),
	KUNIT_CASE(client_of_a_set_uid_program),
	KUNIT_CASE(client_of_a_task_that_has_exited),
	KUNIT_CASE(client_of_a_task_that_the_caller_traces),
	KUNIT_CASE(no_reference_to_the_namespace_is_lost),
	{}
};

static struct kunit_suite drm_checkpoint_test_suite = {
	.name = "drm_checkpoint",
	.suite_exit = drm_checkpoint_test_suite_exit,
	.test_cases = drm_checkpoint_test_cases,
};

kunit_test_suite(drm_checkpoint_test_suite);

MODULE_IMPORT_NS(EXPORTED_FOR_KUNIT_TESTING);
