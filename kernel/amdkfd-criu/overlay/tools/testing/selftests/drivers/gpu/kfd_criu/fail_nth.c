// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * What fails half way leaves nothing: of each operation of both ABIs the first allocation
 * or copy fails, then the second one, and so on to the last, in a process with an object
 * of every kind. Needs a kernel with CONFIG_FAULT_INJECTION_DEBUG_FS and CONFIG_FAILSLAB;
 * without leaks is what kmemleak says afterwards. KFD_CRIU_CHANCE=N begins with the N-th,
 * and the kernel's log says where each was; KFD_CRIU_CHANCE_STEP=N takes each N-th of those
 * that are tried in a process of their own, of which there are most.
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
/* More than any of them has: then something begins anew for ever. */
#define MOST		100000
/* The runner's limit is the one that counts: a debug kernel may take hours. */
#define LIMIT_S		36000

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

/* 1, or what the caller wants. */
static unsigned int number_of(const char *name)
{
	const char *text = getenv(name);
	const unsigned long n = text ? strtoul(text, NULL, 0) : 1;

	return n && n < MOST ? n : 1;
}

static unsigned int first_chance(void)
{
	return number_of("KFD_CRIU_CHANCE");
}

/* Allocations that may wait fail too, and those of pages that programs see. */
static int prepare_kernel(void)
{
	const char *verbose = getenv("KFD_CRIU_CHANCE") ? "2" : "0";
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

struct subject;

/* The operation, with its n-th chance to fail taken. *reached: there was one. */
static int with_failure(unsigned int n, bool *reached,
			int (*operation)(struct kfd *kfd, struct subject *subject),
			struct kfd *kfd, struct subject *subject)
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
	r = operation(kfd, subject);
	/* Looking has a chance to fail too: then the operation had none. */
	memset(text, 0, sizeof(text));
	*reached = pread(fd, text, sizeof(text) - 1, 0) > 0 && !atoi(text);
	if (pwrite(fd, "0", 1, 0) < 0)
		*reached = false;
	close(fd);
	return r;
}

/* What a child of a sweep is told and tells; both see it. */
struct attempt {
	struct leak_baseline before;	/* the first attempt */
	unsigned int n;
	bool reached;
	int result;
	int state;
	/* What does not go on. */
	char wrong[64];
};

/* Of the process that is swept, or checkpointed and restored. */
struct subject {
	struct fixture fixture;
	struct kfd_v1_image v1;
	struct kfd_v2_image v2;
	struct attempt *attempt;
};

FIXTURE(fail_nth) {
	struct kfd kfd;
	struct subject subject;
};

FIXTURE_SETUP(fail_nth)
{
	struct subject *subject = &self->subject;

	memset(subject, 0, sizeof(*subject));
	subject->attempt = MAP_FAILED;
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	if (prepare_kernel())
		SKIP(return, "the kernel does not inject failures");
	ASSERT_EQ(0, fixture_create(&self->kfd, &subject->fixture, FIXTURE_FULL));
	subject->attempt = mmap(NULL, sizeof(*subject->attempt),
				PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, subject->attempt);
}

FIXTURE_TEARDOWN(fail_nth)
{
	struct subject *subject = &self->subject;

	if (subject->attempt != MAP_FAILED)
		munmap(subject->attempt, sizeof(*subject->attempt));
	kfd_v1_image_close_files(&subject->v1);
	kfd_v1_image_free(&subject->v1);
	free(subject->v2.data);
	fixture_free(&subject->fixture);
	kfd_close(&self->kfd);
}

/* What a failure that was injected may be called. */
static bool is_named(int r)
{
	return r == 0 || r == -ENOMEM || r == -EFAULT || r == -ENOSPC ||
	       r == -EMFILE;
}

/* ---- operations; each leaves the state as it was if it fails ---- */

static int process_info(struct kfd *kfd, struct subject *subject)
{
	return kfd_v1_op(kfd->fd, KFD_CRIU_OP_PROCESS_INFO);
}

static int pause_v2(struct kfd *kfd, struct subject *subject)
{
	return kfd_v2_op(kfd->fd, KFD_CRIU_V2_PAUSE);
}

static int unpause(struct kfd *kfd, struct subject *subject)
{
	return kfd_v1_op(kfd->fd, KFD_CRIU_OP_UNPAUSE);
}

static int unpause_v2(struct kfd *kfd, struct subject *subject)
{
	return kfd_v2_op(kfd->fd, KFD_CRIU_V2_UNPAUSE);
}

static int checkpoint(struct kfd *kfd, struct subject *subject)
{
	return kfd_v1_image_checkpoint(kfd->fd, &subject->v1);
}

static int checkpoint_v2(struct kfd *kfd, struct subject *subject)
{
	return kfd_v2_image_checkpoint(kfd->fd, &subject->v2);
}

/* Where the copy of the args to their caller fails, there is a file that nobody knows
 * of, as after every ioctl that makes one.
 */
static int export(struct kfd *kfd, struct subject *subject)
{
	const int next = dup(kfd->fd);
	int fd, r;

	close(next);
	r = kfd_v2_export(kfd, subject->fixture.gtt.handle, &fd);
	close(next);
	return r;
}

static int bo_offset(struct kfd *kfd, struct subject *subject)
{
	struct kfd_criu_v2_args args = {
		.op = KFD_CRIU_V2_BO_OFFSET,
		.gpu_id = subject->fixture.gtt.handle >> 32,
		.handle = subject->fixture.gtt.handle,
	};

	return kfd_v2(kfd->fd, &args);
}

static int state_of(struct kfd *kfd, struct subject *subject)
{
	const int state = kfd_v2_state(kfd);

	return state < 0 ? state : 0;
}

static int probe(struct kfd *kfd, struct subject *subject)
{
	struct kfd_criu_v2_probe answer;
	struct kfd_criu_v2_args args = {
		.op = KFD_CRIU_V2_PROBE,
		.data = (unsigned long)&answer,
		.data_size = sizeof(answer),
	};

	return kfd_v2(kfd->fd, &args);
}

/* ---- in this process ---- */

struct operation {
	int (*run)(struct kfd *kfd, struct subject *subject);
	/* Takes back what it did when it succeeded; NULL: nothing is left of it. */
	int (*undo)(struct kfd *kfd, struct subject *subject);
	/* What there may be to take back even when it failed. */
	void (*clean)(struct subject *subject);
};

/* The last thing that can fail is to tell the caller: then it is done all the same. */
static bool is_done(int r, int before, int now)
{
	return !r || (r == -EFAULT && now != before);
}

/* What is wrong after it came back with r; NULL: nothing. */
static const char *wrong_after(const struct operation *operation,
			       struct kfd *kfd, struct subject *subject, int r,
			       int state, int files)
{
	if (!is_named(r))
		return "is no answer";
	if (is_done(r, state, kfd_v2_state(kfd)) && operation->undo &&
	    operation->undo(kfd, subject))
		return "is not undone";
	if (operation->clean)
		operation->clean(subject);
	if (kfd_v2_state(kfd) != state)
		return "changed the state";
	if (count_files() != files)
		return "left a file";
	return state == KFD_CRIU_STATE_RUNNING ? fixture_run_queues(kfd, &subject->fixture) :
						 NULL;
}

/* All chances of an operation in this process; their number, or -1. */
static int sweep(struct __test_metadata *_metadata,
		 const struct operation *operation, struct kfd *kfd,
		 struct subject *subject)
{
	const int state = kfd_v2_state(kfd), files = count_files();
	const char *wrong;
	bool reached;
	int n = first_chance() - 1, r;

	do {
		r = with_failure(++n, &reached, operation->run, kfd, subject);
		wrong = wrong_after(operation, kfd, subject, r, state, files);
		if (wrong)
			TH_LOG("chance %d: %d %s", n, r, wrong);
	} while (!wrong && reached && n < MOST);
	TH_LOG("%d chances to fail", n - 1);
	return wrong || n == MOST ? -1 : n - 1;
}

TEST_F_TIMEOUT(fail_nth, of_a_pause_leave_it_running, LIMIT_S)
{
	const struct operation v1 = { process_info, unpause };
	const struct operation v2 = { pause_v2, unpause_v2 };

	EXPECT_LT(0, sweep(_metadata, &v1, &self->kfd, &self->subject));
	EXPECT_LT(0, sweep(_metadata, &v2, &self->kfd, &self->subject));
}

/* A run list that there was no memory for may come a little later. */
static int run_and_pause(struct kfd *kfd, struct subject *subject)
{
	return fixture_run_queues(kfd, &subject->fixture) ? -ETIME :
						 process_info(kfd, subject);
}

TEST_F_TIMEOUT(fail_nth, of_the_end_of_a_pause_leave_it_paused_or_it_runs, LIMIT_S)
{
	const struct operation v1 = { unpause, run_and_pause };
	const struct operation v2 = { unpause_v2, run_and_pause };

	ASSERT_EQ(0, process_info(&self->kfd, NULL));
	EXPECT_LT(0, sweep(_metadata, &v1, &self->kfd, &self->subject));
	EXPECT_LT(0, sweep(_metadata, &v2, &self->kfd, &self->subject));
	EXPECT_EQ(0, unpause(&self->kfd, NULL));
	EXPECT_EQ(NULL, fixture_run_queues(&self->kfd, &self->subject.fixture));
}

/* They are in the buckets, though the args may not have come back. */
static void close_files(struct subject *subject)
{
	kfd_v1_image_close_files(&subject->v1);
}

TEST_F_TIMEOUT(fail_nth, of_a_checkpoint_leave_no_file, LIMIT_S)
{
	const struct operation v1 = { checkpoint, .clean = close_files };
	const struct operation v2 = { checkpoint_v2 };
	struct subject *subject = &self->subject;

	ASSERT_EQ(0, kfd_v1_image_prepare(self->kfd.fd, &subject->v1));
	EXPECT_LT(0, sweep(_metadata, &v1, &self->kfd, subject));
	ASSERT_EQ(0, kfd_v2_image_prepare(self->kfd.fd, &subject->v2));
	EXPECT_LT(0, sweep(_metadata, &v2, &self->kfd, subject));
	EXPECT_EQ(0, unpause(&self->kfd, NULL));
	EXPECT_EQ(NULL, fixture_run_queues(&self->kfd, &subject->fixture));
}

TEST_F_TIMEOUT(fail_nth, of_questions_change_nothing, LIMIT_S)
{
	static const struct operation questions[] = {
		{ export }, { bo_offset }, { state_of }, { probe },
	};
	unsigned int i;

	ASSERT_EQ(0, process_info(&self->kfd, NULL));
	for (i = 0; i < sizeof(questions) / sizeof(*questions); i++) {
		EXPECT_LT(0, sweep(_metadata, &questions[i], &self->kfd,
				   &self->subject))
			TH_LOG("question %u", i);
	}
	EXPECT_EQ(0, unpause(&self->kfd, NULL));
	EXPECT_EQ(NULL, fixture_run_queues(&self->kfd, &self->subject.fixture));
}

/* ---- in children that are restored ---- */

static int restore(struct kfd *kfd, struct subject *subject)
{
	return kfd_v1_image_restore(kfd, &subject->fixture.v1);
}

static int restore_v2(struct kfd *kfd, struct subject *subject)
{
	return kfd_v2_image_restore(kfd, &subject->fixture.v2);
}

static int resume(struct kfd *kfd, struct subject *subject)
{
	return kfd_v1_resume(kfd->fd, getpid());
}

static int resume_v2(struct kfd *kfd, struct subject *subject)
{
	return kfd_v2_resume(kfd);
}

static int abort_v2(struct kfd *kfd, struct subject *subject)
{
	return kfd_v2_op(kfd->fd, KFD_CRIU_V2_ABORT);
}

static int try_to_fail(struct kfd *kfd, struct subject *subject,
		       int (*operation)(struct kfd *kfd, struct subject *subject))
{
	struct attempt *attempt = subject->attempt;

	attempt->result = with_failure(attempt->n, &attempt->reached, operation,
				       kfd, subject);
	attempt->state = kfd_v2_state(kfd);
	return attempt->result;
}

/* A restore that fails: the process has nothing then. */
static int restore_fails(struct kfd *kfd, struct subject *subject,
			 int (*operation)(struct kfd *kfd, struct subject *subject))
{
	struct leak_baseline before = subject->attempt->before;
	int r;

	before.files = count_files();
	r = try_to_fail(kfd, subject, operation);
	if (subject->attempt->state == KFD_CRIU_STATE_RESTORED)
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

/* 0 if the restored process runs, with all that it had. */
static int goes_on(struct kfd *kfd, struct subject *subject)
{
	const char *wrong;

	if (kfd_v2_state(kfd) != KFD_CRIU_STATE_RUNNING)
		return 10;
	wrong = fixture_check(kfd, &subject->fixture);
	if (wrong)
		snprintf(subject->attempt->wrong, sizeof(subject->attempt->wrong),
			 "%s", wrong);
	return wrong ? 11 : 0;
}

/* RESUME can be tried again, or there is nothing left. */
static int resume_fails(struct kfd *kfd, struct subject *subject,
			int (*operation)(struct kfd *kfd, struct subject *subject))
{
	struct leak_baseline before = subject->attempt->before;
	int r = restore_v2(kfd, subject);

	before.files = 0;
	if (r || fixture_remap(kfd, &subject->fixture))
		return 3;
	r = try_to_fail(kfd, subject, operation);
	switch (subject->attempt->state) {
	case KFD_CRIU_STATE_RUNNING:
		return is_done(r, KFD_CRIU_STATE_RESTORED, KFD_CRIU_STATE_RUNNING) ?
			       goes_on(kfd, subject) : 4;
	case KFD_CRIU_STATE_RESTORED:
		return operation(kfd, subject) ? 5 : goes_on(kfd, subject);
	default:
		fixture_unmap(&subject->fixture);
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

static int abort_fails(struct kfd *kfd, void *data)
{
	struct subject *subject = data;
	struct leak_baseline before = subject->attempt->before;
	int r;

	before.files = count_files();
	if (restore_v2(kfd, subject))
		return 3;
	r = try_to_fail(kfd, subject, abort_v2);
	if (r && subject->attempt->state == KFD_CRIU_STATE_RESTORED &&
	    abort_v2(kfd, subject))
		return 5;
	return leak_check(kfd, &before);
}

/* All chances, each in a child, or some; how many, or -1. */
static int sweep_children(struct __test_metadata *_metadata,
			  const struct kfd *kfd, struct subject *subject,
			  int (*body)(struct kfd *kfd, void *data))
{
	struct attempt *attempt = subject->attempt;
	const unsigned int step = number_of("KFD_CRIU_CHANCE_STEP");
	unsigned int n;
	int tried = 0, r;

	memset(attempt, 0, sizeof(*attempt));
	leak_baseline_take(kfd, &attempt->before);
	for (n = first_chance(); n < MOST; n += step) {
		attempt->n = n;
		r = kfd_in_child(body, subject);
		if (r || !is_named(attempt->result)) {
			TH_LOG("chance %u: %d, state %d, child says %d %s", n,
			       attempt->result, attempt->state, r,
			       attempt->wrong);
			return -1;
		}
		if (!attempt->reached) {
			TH_LOG("failed %d times, last before chance %u", tried,
			       n);
			return tried;
		}
		tried++;
	}
	return -1;
}

TEST_F_TIMEOUT(fail_nth, of_a_restore_leave_nothing, LIMIT_S)
{
	ASSERT_EQ(0, fixture_checkpoint(&self->kfd, &self->subject.fixture));
	EXPECT_LT(0, sweep_children(_metadata, &self->kfd, &self->subject,
				    v1_restore_fails));
}

TEST_F_TIMEOUT(fail_nth, of_an_extensible_restore_leave_nothing, LIMIT_S)
{
	ASSERT_EQ(0, fixture_checkpoint(&self->kfd, &self->subject.fixture));
	EXPECT_LT(0, sweep_children(_metadata, &self->kfd, &self->subject,
				    v2_restore_fails));
}

TEST_F_TIMEOUT(fail_nth, of_a_resume_leave_it_restored_or_nothing, LIMIT_S)
{
	ASSERT_EQ(0, fixture_checkpoint(&self->kfd, &self->subject.fixture));
	EXPECT_LT(0, sweep_children(_metadata, &self->kfd, &self->subject,
				    v1_resume_fails));
	EXPECT_LT(0, sweep_children(_metadata, &self->kfd, &self->subject,
				    v2_resume_fails));
}

TEST_F_TIMEOUT(fail_nth, of_an_abort_leave_it_restored_or_nothing, LIMIT_S)
{
	ASSERT_EQ(0, fixture_checkpoint(&self->kfd, &self->subject.fixture));
	EXPECT_LT(0, sweep_children(_metadata, &self->kfd, &self->subject,
				    abort_fails));
}

KFD_TEST_MAIN
