// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Injects a fault into the first allocation or user copy of each operation of both ABIs,
 * then into the second, and so on to the last, in a process with an object of every kind.
 * An operation that fails must leave nothing behind; leaks of kernel memory show in kmemleak
 * afterwards. Needs CONFIG_FAULT_INJECTION_DEBUG_FS and CONFIG_FAILSLAB.
 *
 * KFD_CRIU_FAIL_NTH=N begins with the N-th fault, and the kernel logs where each one is
 * injected; KFD_CRIU_FAIL_STEP=N injects only every N-th fault into operations that need a
 * child process for each fault, which are most of them.
 *
 * Runs: once, small-bar, debug-per-chip
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include "../../../kselftest_harness.h"
#include "lib/criu_op.h"
#include "lib/fixture.h"
#include "lib/image_v1.h"
#include "lib/image_v2.h"
#include "lib/kfd.h"
#include "lib/leak_check.h"

#define DEBUGFS		"/sys/kernel/debug"
/* No operation has so many places to fail, unless it repeats something for ever. */
#define MAX_FAULTS	100000
/* On a debug kernel a test may take hours; the kselftest runner has its own limit. */
#define LIMIT_S		36000
#define RESUME_LIMIT_US	20000000ULL

static int put(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY);
	int r = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		r = -errno;
	close(fd);
	return r;
}

/* The number in an environment variable, or 1. */
static unsigned int number_of(const char *name)
{
	const char *text = getenv(name);
	const unsigned long n = text ? strtoul(text, NULL, 0) : 1;

	return n && n < MAX_FAULTS ? n : 1;
}

static unsigned int first_fault(void)
{
	return number_of("KFD_CRIU_FAIL_NTH");
}

/* Lets allocations fail that may sleep, and those of pages for user memory. */
static int prepare_kernel(void)
{
	const char *verbose = getenv("KFD_CRIU_FAIL_NTH") ? "2" : "0";
	const char *const settings[][2] = {
		{ DEBUGFS "/failslab/ignore-gfp-wait", "N" },
		{ DEBUGFS "/failslab/verbose", verbose },
		{ DEBUGFS "/fail_page_alloc/ignore-gfp-wait", "N" },
		{ DEBUGFS "/fail_page_alloc/ignore-gfp-highmem", "N" },
		{ DEBUGFS "/fail_page_alloc/min-order", "0" },
		{ DEBUGFS "/fail_page_alloc/verbose", verbose },
		{ DEBUGFS "/fail_usercopy/verbose", verbose },
	};
	unsigned int i;
	int r = 0;

	if (access(DEBUGFS "/failslab", F_OK))
		mount("debugfs", DEBUGFS, "debugfs", 0, NULL);
	for (i = 0; !r && i < sizeof(settings) / sizeof(*settings); i++)
		r = put(settings[i][0], settings[i][1]);
	return r;
}

struct target;

/*
 * Runs the operation and injects the n-th fault. Stores in *reached whether the operation
 * has so many places to fail.
 */
static int with_fault(unsigned int n, bool *reached,
		      int (*operation)(struct kfd *kfd, struct target *target),
			struct kfd *kfd, struct target *target)
{
	const int fd = open("/proc/thread-self/fail-nth", O_RDWR);
	char text[16];
	int length, r;

	if (fd < 0)
		return -errno;
	length = snprintf(text, sizeof(text), "%u", n);
	if (pwrite(fd, text, length, 0) != length) {
		close(fd);
		return -ENOTTY;
	}
	r = operation(kfd, target);
	/* If this read is where the fault is injected, the operation did not reach it. */
	memset(text, 0, sizeof(text));
	*reached = pread(fd, text, sizeof(text) - 1, 0) > 0 && !atoi(text);
	if (pwrite(fd, "0", 1, 0) < 0)
		*reached = false;
	close(fd);
	return r;
}

/* What the test and its child tell each other, in shared memory. */
struct attempt {
	struct leak_baseline before;	/* taken before the first attempt */
	unsigned int n;
	bool reached;
	int result;
	int state;
	/* What does not continue after the restore. */
	char wrong[64];
};

/* The process into whose operations faults are injected. */
struct target {
	struct fixture fixture;
	struct kfd_v1_image v1;
	struct kfd_v2_image v2;
	struct attempt *attempt;
};

FIXTURE(fail_nth) {
	struct kfd kfd;
	struct target target;
};

FIXTURE_SETUP(fail_nth)
{
	struct target *target = &self->target;

	memset(target, 0, sizeof(*target));
	target->attempt = MAP_FAILED;
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	if (prepare_kernel())
		SKIP(return, "the kernel does not inject faults");
	ASSERT_EQ(0, fixture_create(&self->kfd, &target->fixture, FIXTURE_FULL));
	target->attempt = shared_memory(sizeof(*target->attempt));
	ASSERT_NE(MAP_FAILED, target->attempt);
}

FIXTURE_TEARDOWN(fail_nth)
{
	struct target *target = &self->target;

	if (target->attempt != MAP_FAILED)
		munmap(target->attempt, sizeof(*target->attempt));
	kfd_v1_image_close_files(&target->v1);
	kfd_v1_image_free(&target->v1);
	free(target->v2.data);
	fixture_free(&target->fixture);
	kfd_close(&self->kfd);
}

/* Whether an operation may return this errno after a fault. */
static bool is_expected_errno(int r)
{
	return r == 0 || r == -ENOMEM || r == -EFAULT || r == -ENOSPC ||
	       r == -EMFILE;
}

/* ---- operations that keep the state if they fail ---- */

static int process_info(struct kfd *kfd, struct target *target)
{
	return kfd_v1_op(kfd->fd, KFD_CRIU_OP_PROCESS_INFO);
}

/*
 * When the copy of the arguments to the caller fails, a file is open whose number the caller
 * does not get, as with every ioctl that opens a file. It is the next free number.
 */
static int pause_v2(struct kfd *kfd, struct target *target)
{
	const int next = dup(kfd->fd);
	int r;

	close(next);
	r = kfd_v2_pause(kfd->fd, &target->v2.pause_fd);
	if (r)
		target->v2.pause_fd = next;
	return r;
}

static int unpause(struct kfd *kfd, struct target *target)
{
	return kfd_v1_op(kfd->fd, KFD_CRIU_OP_UNPAUSE);
}

/* The file stays open, so a pause that does not end holds on. */
static int unpause_v2(struct kfd *kfd, struct target *target)
{
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_UNPAUSE,
		.pause_fd = target->v2.pause_fd,
	};

	return kfd_v2(kfd->fd, &args);
}

static int end_pause_v2(struct kfd *kfd, struct target *target)
{
	return kfd_v2_unpause(kfd->fd, target->v2.pause_fd);
}

static int checkpoint(struct kfd *kfd, struct target *target)
{
	return kfd_v1_image_checkpoint(kfd->fd, &target->v1);
}

static int checkpoint_v2(struct kfd *kfd, struct target *target)
{
	return kfd_v2_image_checkpoint(kfd->fd, &target->v2);
}

/* As for pause_v2(), the file has the next free number if its caller does not get it. */
static int export(struct kfd *kfd, struct target *target)
{
	const int next = dup(kfd->fd);
	int fd, r;

	close(next);
	r = kfd_v2_export(kfd, target->v2.pause_fd, target->fixture.gtt.handle, &fd);
	close(next);
	return r;
}

static int bo_offset(struct kfd *kfd, struct target *target)
{
	const __u64 handle = target->fixture.gtt.handle;
	__u64 offset;

	return kfd_v2_bo_offset(kfd, target->v2.pause_fd, handle >> 32, handle,
				&offset);
}

static int state_of(struct kfd *kfd, struct target *target)
{
	const int state = kfd_v2_state(kfd);

	return state < 0 ? state : 0;
}

static int probe(struct kfd *kfd, struct target *target)
{
	struct kfd_criu_probe answer;
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_PROBE,
		.data = (unsigned long)&answer,
		.data_size = sizeof(answer),
	};

	return kfd_v2(kfd->fd, &args);
}

/* ---- in this process ---- */

struct operation {
	int (*run)(struct kfd *kfd, struct target *target);
	/* Undoes an operation that succeeded; NULL: there is nothing to undo. */
	int (*undo)(struct kfd *kfd, struct target *target);
	/* Undoes what may remain even when the operation failed; NULL: nothing. */
	void (*clean)(struct target *target);
};

/* The last step, the copy of the arguments, can fail although the operation succeeded. */
static bool is_done(int r, int before, int now)
{
	return !r || (r == -EFAULT && now != before);
}

/* Returns what is wrong after the operation returned r; NULL: nothing. */
static const char *check_after(const struct operation *operation,
			       struct kfd *kfd, struct target *target, int r,
			       int state, int files)
{
	if (!is_expected_errno(r))
		return "is not an expected errno";
	if (is_done(r, state, kfd_v2_state(kfd)) && operation->undo &&
	    operation->undo(kfd, target))
		return "cannot be undone";
	if (operation->clean)
		operation->clean(target);
	if (kfd_v2_state(kfd) != state)
		return "changed the state";
	if (count_files() != files)
		return "left a file";
	return state == KFD_CRIU_STATE_RUNNING ? fixture_run_queues(kfd, &target->fixture) :
						 NULL;
}

/* Injects every fault into an operation of this process. Returns how many, or -1. */
static int sweep(struct __test_metadata *_metadata,
		 const struct operation *operation, struct kfd *kfd,
		 struct target *target)
{
	const int state = kfd_v2_state(kfd), files = count_files();
	const char *wrong;
	bool reached;
	int n = first_fault() - 1, r;

	do {
		r = with_fault(++n, &reached, operation->run, kfd, target);
		wrong = check_after(operation, kfd, target, r, state, files);
		if (wrong)
			TH_LOG("fault %d: %d %s", n, r, wrong);
	} while (!wrong && reached && n < MAX_FAULTS);
	TH_LOG("%d faults", n - 1);
	return wrong || n == MAX_FAULTS ? -1 : n - 1;
}

TEST_F_TIMEOUT(fail_nth, a_pause_that_fails_leaves_the_process_running, LIMIT_S)
{
	const struct operation v1 = { process_info, unpause };
	const struct operation v2 = { pause_v2, end_pause_v2 };

	EXPECT_LT(0, sweep(_metadata, &v1, &self->kfd, &self->target));
	EXPECT_LT(0, sweep(_metadata, &v2, &self->kfd, &self->target));
}

/* If there is no memory for a run list, the driver tries again a little later. */
static int run_and_pause(struct kfd *kfd, struct target *target)
{
	return fixture_run_queues(kfd, &target->fixture) ? -ETIME :
						 process_info(kfd, target);
}

static int run_and_pause_v2(struct kfd *kfd, struct target *target)
{
	close(target->v2.pause_fd);
	return fixture_run_queues(kfd, &target->fixture) ? -ETIME :
						 pause_v2(kfd, target);
}

TEST_F_TIMEOUT(fail_nth, an_unpause_that_fails_leaves_it_paused_or_running, LIMIT_S)
{
	const struct operation v1 = { unpause, run_and_pause };
	const struct operation v2 = { unpause_v2, run_and_pause_v2 };

	ASSERT_EQ(0, process_info(&self->kfd, NULL));
	EXPECT_LT(0, sweep(_metadata, &v1, &self->kfd, &self->target));
	EXPECT_EQ(0, unpause(&self->kfd, NULL));
	ASSERT_EQ(0, pause_v2(&self->kfd, &self->target));
	EXPECT_LT(0, sweep(_metadata, &v2, &self->kfd, &self->target));
	EXPECT_EQ(0, end_pause_v2(&self->kfd, &self->target));
	EXPECT_EQ(NULL, fixture_run_queues(&self->kfd, &self->target.fixture));
}

/* The driver writes the files into the BOs' buckets even if it cannot write the arguments. */
static void close_files(struct target *target)
{
	kfd_v1_image_close_files(&target->v1);
}

TEST_F_TIMEOUT(fail_nth, a_checkpoint_that_fails_leaves_no_file, LIMIT_S)
{
	const struct operation v1 = { checkpoint, .clean = close_files };
	const struct operation v2 = { checkpoint_v2 };
	struct target *target = &self->target;

	ASSERT_EQ(0, kfd_v1_image_prepare(self->kfd.fd, &target->v1));
	EXPECT_LT(0, sweep(_metadata, &v1, &self->kfd, target));
	ASSERT_EQ(0, kfd_v2_image_prepare(self->kfd.fd, &target->v2));
	EXPECT_LT(0, sweep(_metadata, &v2, &self->kfd, target));
	EXPECT_EQ(0, unpause(&self->kfd, target));
	EXPECT_EQ(0, end_pause_v2(&self->kfd, target));
	EXPECT_EQ(NULL, fixture_run_queues(&self->kfd, &target->fixture));
}

TEST_F_TIMEOUT(fail_nth, a_query_that_fails_changes_nothing, LIMIT_S)
{
	static const struct operation operations[] = {
		{ export }, { bo_offset }, { state_of }, { probe },
	};
	unsigned int i;

	ASSERT_EQ(0, pause_v2(&self->kfd, &self->target));
	for (i = 0; i < sizeof(operations) / sizeof(*operations); i++) {
		EXPECT_LT(0, sweep(_metadata, &operations[i], &self->kfd,
				   &self->target))
			TH_LOG("operation %u", i);
	}
	EXPECT_EQ(0, end_pause_v2(&self->kfd, &self->target));
	EXPECT_EQ(NULL, fixture_run_queues(&self->kfd, &self->target.fixture));
}

/* ---- in children that are restored ---- */

static int restore(struct kfd *kfd, struct target *target)
{
	return kfd_v1_image_restore(kfd, &target->fixture.v1);
}

static int restore_v2(struct kfd *kfd, struct target *target)
{
	return kfd_v2_image_restore(kfd, &target->fixture.v2);
}

static int resume(struct kfd *kfd, struct target *target)
{
	return kfd_v1_resume(kfd->fd, getpid());
}

static int resume_v2(struct kfd *kfd, struct target *target)
{
	return kfd_v2_resume(kfd);
}

static int resume_fd(struct kfd *kfd, struct target *target)
{
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_RESUME,
		.flags = KFD_CRIU_RESUME_FD,
	};
	const int r = kfd_v2(kfd->fd, &args);

	if (!r)
		close(args.fd);
	return r;
}

static int abort_v2(struct kfd *kfd, struct target *target)
{
	return kfd_v2_op(kfd->fd, KFD_CRIU_CMD_ABORT);
}

static int run_with_fault(struct kfd *kfd, struct target *target,
			  int (*operation)(struct kfd *kfd, struct target *target))
{
	struct attempt *attempt = target->attempt;

	attempt->result = with_fault(attempt->n, &attempt->reached, operation,
				     kfd, target);
	attempt->state = kfd_v2_state(kfd);
	return attempt->result;
}

/* RESTORE with a fault: when it fails, the process must have no object. */
static int restore_fails(struct kfd *kfd, struct target *target,
			 int (*operation)(struct kfd *kfd, struct target *target))
{
	struct leak_baseline before = target->attempt->before;
	int r;

	before.files = count_files();
	r = run_with_fault(kfd, target, operation);
	if (target->attempt->state == KFD_CRIU_STATE_RESTORED)
		return is_done(r, 0, KFD_CRIU_STATE_RESTORED) ? 0 : 1;
	return r ? leak_check(kfd, &before) : 2;
}

static int v1_restore_fails(struct kfd *kfd, void *data)
{
	return restore_fails(kfd, data, restore);
}

static int v2_restore_fails(struct kfd *kfd, void *data)
{
	return restore_fails(kfd, data, restore_v2);
}

/* Returns 0 if the restored process runs with all its objects. */
static int check_target(struct kfd *kfd, struct target *target)
{
	const char *wrong;

	if (kfd_v2_state(kfd) != KFD_CRIU_STATE_RUNNING)
		return 10;
	wrong = fixture_check(kfd, &target->fixture);
	if (wrong)
		snprintf(target->attempt->wrong, sizeof(target->attempt->wrong),
			 "%s", wrong);
	return wrong ? 11 : 0;
}

/* RESUME with a fault: when it fails, it works the second time, or nothing is left. */
static int resume_fails(struct kfd *kfd, struct target *target,
			int (*operation)(struct kfd *kfd, struct target *target))
{
	struct leak_baseline before = target->attempt->before;
	int r = restore_v2(kfd, target);

	before.files = 0;
	if (r || fixture_remap(kfd, KFD_NO_PAUSE, &target->fixture))
		return 3;
	r = run_with_fault(kfd, target, operation);
	switch (target->attempt->state) {
	case KFD_CRIU_STATE_RUNNING:
		return is_done(r, KFD_CRIU_STATE_RESTORED, KFD_CRIU_STATE_RUNNING) ?
			       check_target(kfd, target) : 4;
	case KFD_CRIU_STATE_RESTORED:
		return operation(kfd, target) ? 5 : check_target(kfd, target);
	default:
		fixture_unmap(&target->fixture);
		return r ? leak_check(kfd, &before) : 6;
	}
}

static int v1_resume_fails(struct kfd *kfd, void *data)
{
	return resume_fails(kfd, data, resume);
}

static int v2_resume_fails(struct kfd *kfd, void *data)
{
	return resume_fails(kfd, data, resume_v2);
}

static bool leaves_resuming(struct kfd *kfd)
{
	const __u64 begin = now_us();

	while (kfd_v2_state(kfd) == KFD_CRIU_STATE_RESUMING)
		if (now_us() - begin > RESUME_LIMIT_US)
			return false;
	return true;
}

/*
 * Without a file to poll, or without its number, RESUME goes on. It can be called again
 * only if it has not begun.
 */
static int resume_without_waiting_fails(struct kfd *kfd, void *data)
{
	struct target *target = data;

	if (restore_v2(kfd, target) ||
	    fixture_remap(kfd, KFD_NO_PAUSE, &target->fixture))
		return 3;
	run_with_fault(kfd, target, resume_fd);
	if (target->attempt->state == KFD_CRIU_STATE_RESTORED &&
	    (!target->attempt->result || resume_fd(kfd, target)))
		return 5;
	return leaves_resuming(kfd) ? check_target(kfd, target) : 6;
}

static int abort_fails(struct kfd *kfd, void *data)
{
	struct target *target = data;
	struct leak_baseline before = target->attempt->before;
	int r;

	before.files = count_files();
	if (restore_v2(kfd, target))
		return 3;
	r = run_with_fault(kfd, target, abort_v2);
	if (r && target->attempt->state == KFD_CRIU_STATE_RESTORED &&
	    abort_v2(kfd, target))
		return 5;
	return leak_check(kfd, &before);
}

/* Injects every fault, or every KFD_CRIU_FAIL_STEP-th, each in a child. Returns how many,
 * or -1.
 */
static int sweep_children(struct __test_metadata *_metadata,
			  const struct kfd *kfd, struct target *target,
			  int (*body)(struct kfd *kfd, void *data))
{
	struct attempt *attempt = target->attempt;
	const unsigned int step = number_of("KFD_CRIU_FAIL_STEP");
	unsigned int n;
	int tried = 0, r;

	memset(attempt, 0, sizeof(*attempt));
	leak_baseline_take(kfd, &attempt->before);
	for (n = first_fault(); n < MAX_FAULTS; n += step) {
		attempt->n = n;
		r = kfd_in_child(body, target);
		if (r || !is_expected_errno(attempt->result)) {
			TH_LOG("fault %u: %d, state %d, the child returned %d %s", n,
			       attempt->result, attempt->state, r,
			       attempt->wrong);
			return -1;
		}
		if (!attempt->reached) {
			TH_LOG("%d faults, the last one before the %u-th", tried,
			       n);
			return tried;
		}
		tried++;
	}
	return -1;
}

TEST_F_TIMEOUT(fail_nth, a_restore_that_fails_leaves_nothing, LIMIT_S)
{
	ASSERT_EQ(0, fixture_checkpoint(&self->kfd, &self->target.fixture));
	EXPECT_LT(0, sweep_children(_metadata, &self->kfd, &self->target,
				    v1_restore_fails));
}

TEST_F_TIMEOUT(fail_nth, an_extensible_restore_that_fails_leaves_nothing, LIMIT_S)
{
	ASSERT_EQ(0, fixture_checkpoint(&self->kfd, &self->target.fixture));
	EXPECT_LT(0, sweep_children(_metadata, &self->kfd, &self->target,
				    v2_restore_fails));
}

TEST_F_TIMEOUT(fail_nth, a_resume_that_fails_leaves_it_restored_or_nothing, LIMIT_S)
{
	ASSERT_EQ(0, fixture_checkpoint(&self->kfd, &self->target.fixture));
	EXPECT_LT(0, sweep_children(_metadata, &self->kfd, &self->target,
				    v1_resume_fails));
	EXPECT_LT(0, sweep_children(_metadata, &self->kfd, &self->target,
				    v2_resume_fails));
}

TEST_F_TIMEOUT(fail_nth, a_resume_that_returns_no_file_goes_on, LIMIT_S)
{
	ASSERT_EQ(0, fixture_checkpoint(&self->kfd, &self->target.fixture));
	EXPECT_LT(0, sweep_children(_metadata, &self->kfd, &self->target,
				    resume_without_waiting_fails));
}

TEST_F_TIMEOUT(fail_nth, an_abort_that_fails_leaves_it_restored_or_nothing, LIMIT_S)
{
	ASSERT_EQ(0, fixture_checkpoint(&self->kfd, &self->target.fixture));
	EXPECT_LT(0, sweep_children(_metadata, &self->kfd, &self->target,
				    abort_fails));
}

KFD_TEST_MAIN
