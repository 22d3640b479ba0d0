// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * What fails half way leaves nothing: of each operation the first allocation or copy
 * fails, then the second one, and so on to the last. Needs a kernel with
 * CONFIG_FAULT_INJECTION_DEBUG_FS and CONFIG_FAILSLAB; without leaks is what kmemleak
 * says afterwards. KFD_CRIU_CHANCE=N begins with the N-th, and the kernel's log says
 * where each was.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include "../../../kselftest_harness.h"
#include "kfd.h"

#define DEBUGFS		"/sys/kernel/debug"
/* More than any of them has: then something begins anew for ever. */
#define MOST		100000
#define LIMIT_S		3600

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

static unsigned int first_chance(void)
{
	const char *text = getenv("KFD_CRIU_CHANCE");

	return text ? strtoul(text, NULL, 0) : 1;
}

/* Allocations that may wait fail too. */
static int prepare_kernel(void)
{
	const char *verbose = getenv("KFD_CRIU_CHANCE") ? "2" : "0";
	const char *const settings[][2] = {
		{ DEBUGFS "/failslab/ignore-gfp-wait", "N" },
		{ DEBUGFS "/failslab/verbose", verbose },
		{ DEBUGFS "/fail_page_alloc/ignore-gfp-wait", "N" },
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

/* The operation, with its n-th chance to fail taken. *reached: there was one. */
static int with_failure(unsigned int n, bool *reached,
			int (*operation)(struct kfd *kfd, void *data),
			struct kfd *kfd, void *data)
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
	r = operation(kfd, data);
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
	struct kfd_image v1;
	struct kfd_v2_image v2;
	long long available;	/* VRAM, before the first attempt */
	unsigned int n;
	bool reached;
	int result;
	int state;
};

FIXTURE(failures) {
	struct kfd kfd;
	struct kfd_objects has;
	struct attempt *attempt;
	struct kfd_bo import;	/* of the VRAM: one memory, two handles */
	struct kfd_queue queue;
};

static int import_vram(struct kfd *kfd, const struct kfd_bo *vram,
		       struct kfd_bo *import)
{
	int fd, r;

	r = kfd_bo_export(kfd, vram->handle, &fd);
	if (r)
		return r;
	r = kfd_bo_import(kfd, 0, fd, KFD_VRAM_SIZE, import);
	close(fd);
	return r;
}

FIXTURE_SETUP(failures)
{
	int r;

	self->attempt = MAP_FAILED;
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	r = prepare_kernel();
	if (r)
		SKIP(return, "the kernel does not inject failures");
	ASSERT_EQ(0, kfd_acquire_vms(&self->kfd));
	ASSERT_EQ(0, kfd_objects_create(&self->kfd, &self->has));
	ASSERT_EQ(0, import_vram(&self->kfd, &self->has.vram, &self->import));
	ASSERT_EQ(0, kfd_queue_create(&self->kfd, 0, &self->queue));
	self->attempt = mmap(NULL, sizeof(*self->attempt),
			     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			     -1, 0);
	ASSERT_NE(MAP_FAILED, self->attempt);
}

FIXTURE_TEARDOWN(failures)
{
	if (self->attempt != MAP_FAILED) {
		kfd_image_close_files(&self->attempt->v1);
		kfd_image_free(&self->attempt->v1);
		free(self->attempt->v2.data);
		munmap(self->attempt, sizeof(*self->attempt));
	}
	kfd_close(&self->kfd);
}

/* What a failure that was injected may be called. */
static bool is_named(int r)
{
	return r == 0 || r == -ENOMEM || r == -EFAULT || r == -ENOSPC ||
	       r == -EMFILE;
}

/* Each of these leaves the state as it was if it fails. */
static int process_info(struct kfd *kfd, void *data)
{
	return kfd_criu_op(kfd->fd, KFD_CRIU_OP_PROCESS_INFO);
}

static int pause_v2(struct kfd *kfd, void *data)
{
	return kfd_v2_op(kfd->fd, KFD_CRIU_V2_PAUSE);
}

static int unpause(struct kfd *kfd, void *data)
{
	return kfd_criu_op(kfd->fd, KFD_CRIU_OP_UNPAUSE);
}

static int checkpoint(struct kfd *kfd, void *data)
{
	struct attempt *attempt = data;

	return kfd_image_checkpoint(kfd->fd, &attempt->v1);
}

static int checkpoint_v2(struct kfd *kfd, void *data)
{
	struct attempt *attempt = data;

	return kfd_v2_image_checkpoint(kfd->fd, &attempt->v2);
}

/* Where the copy of the args to their caller fails, there is a file that nobody knows
 * of, as after every ioctl that makes one.
 */
static int export(struct kfd *kfd, void *data)
{
	const __u64 *handle = data;
	const int next = dup(kfd->fd);
	int fd, r;

	close(next);
	r = kfd_v2_export(kfd, *handle, &fd);
	close(next);
	return r;
}

static int probe(struct kfd *kfd, void *data)
{
	struct kfd_criu_v2_probe answer;
	struct kfd_criu_v2_args args = {
		.op = KFD_CRIU_V2_PROBE,
		.data = (unsigned long)&answer,
		.data_size = sizeof(answer),
	};

	return kfd_v2(kfd->fd, &args);
}

struct operation {
	int (*run)(struct kfd *kfd, void *data);
	/* Takes back what it did when it succeeded; NULL: nothing is left of it. */
	int (*undo)(struct kfd *kfd, void *data);
	/* What there may be to take back even when it failed. */
	void (*clean)(struct kfd *kfd, void *data);
};

/* The last thing that can fail is to tell the caller: then it is done all the same. */
static bool is_done(int r, int before, int now)
{
	return !r || (r == -EFAULT && now != before);
}

/* What is wrong after it came back with r; NULL: nothing. */
static const char *wrong_after(const struct operation *operation,
			       struct kfd *kfd, struct kfd_queue *queue,
			       void *data, int r, int state, int files)
{
	if (!is_named(r))
		return "is no answer";
	if (is_done(r, state, kfd_v2_state(kfd)) && operation->undo &&
	    operation->undo(kfd, data))
		return "is not undone";
	if (operation->clean)
		operation->clean(kfd, data);
	if (kfd_v2_state(kfd) != state)
		return "changed the state";
	if (count_files() != files)
		return "left a file";
	if (state == KFD_CRIU_STATE_RUNNING && !kfd_queue_runs(kfd, queue))
		return "stopped the queue";
	return NULL;
}

/* All chances of an operation in this process; their number, or -1. */
static int sweep(struct __test_metadata *_metadata,
		 const struct operation *operation, struct kfd *kfd,
		 struct kfd_queue *queue, void *data)
{
	const int state = kfd_v2_state(kfd), files = count_files();
	const char *wrong;
	bool reached;
	int n = first_chance() - 1, r;

	do {
		r = with_failure(++n, &reached, operation->run, kfd, data);
		wrong = wrong_after(operation, kfd, queue, data, r, state,
				    files);
		if (wrong)
			TH_LOG("chance %d: %d %s", n, r, wrong);
	} while (!wrong && reached && n < MOST);
	TH_LOG("%d chances to fail", n - 1);
	return wrong || n == MOST ? -1 : n - 1;
}

TEST_F_TIMEOUT(failures, of_a_pause_leave_it_running, LIMIT_S)
{
	const struct operation v1 = { process_info, unpause };
	const struct operation v2 = { pause_v2, unpause };

	EXPECT_LT(0, sweep(_metadata, &v1, &self->kfd, &self->queue, NULL));
	EXPECT_LT(0, sweep(_metadata, &v2, &self->kfd, &self->queue, NULL));
}

TEST_F_TIMEOUT(failures, of_the_end_of_a_pause_leave_it_paused, LIMIT_S)
{
	const struct operation end = { unpause, process_info };

	ASSERT_EQ(0, process_info(&self->kfd, NULL));
	EXPECT_LT(0, sweep(_metadata, &end, &self->kfd, &self->queue, NULL));
	EXPECT_EQ(0, unpause(&self->kfd, NULL));
}

/* They are in the buckets, though the args may not have come back. */
static void close_files(struct kfd *kfd, void *data)
{
	struct attempt *attempt = data;

	kfd_image_close_files(&attempt->v1);
}

TEST_F_TIMEOUT(failures, of_a_checkpoint_leave_no_file, LIMIT_S)
{
	const struct operation v1 = { checkpoint, .clean = close_files };
	const struct operation v2 = { checkpoint_v2 }, one = { export };
	const struct operation look = { probe };

	ASSERT_EQ(0, kfd_image_prepare(self->kfd.fd, &self->attempt->v1));
	EXPECT_LT(0, sweep(_metadata, &v1, &self->kfd, &self->queue, self->attempt));
	ASSERT_EQ(0, kfd_v2_image_prepare(self->kfd.fd, &self->attempt->v2));
	EXPECT_LT(0, sweep(_metadata, &v2, &self->kfd, &self->queue, self->attempt));
	EXPECT_LT(0, sweep(_metadata, &one, &self->kfd, &self->queue,
			   &self->has.gtt.handle));
	EXPECT_LT(0, sweep(_metadata, &look, &self->kfd, &self->queue, NULL));
	EXPECT_EQ(0, unpause(&self->kfd, NULL));
}

static int restore(struct kfd *kfd, void *data)
{
	struct attempt *attempt = data;

	return kfd_image_restore(kfd, &attempt->v1);
}

static int restore_v2(struct kfd *kfd, void *data)
{
	struct attempt *attempt = data;

	return kfd_v2_image_restore(kfd, &attempt->v2);
}

static int resume(struct kfd *kfd, void *data)
{
	return kfd_criu_resume(kfd->fd, getpid());
}

static int abort_v2(struct kfd *kfd, void *data)
{
	return kfd_v2_op(kfd->fd, KFD_CRIU_V2_ABORT);
}

/* A restore that fails, in a child: it has nothing then. */
static int restore_fails(struct kfd *kfd, struct attempt *attempt,
			 int (*operation)(struct kfd *kfd, void *data))
{
	const int files = count_files();

	attempt->result = with_failure(attempt->n, &attempt->reached, operation,
				       kfd, attempt);
	attempt->state = kfd_v2_state(kfd);
	if (is_done(attempt->result, KFD_CRIU_STATE_ABORTED, attempt->state) &&
	    attempt->state == KFD_CRIU_STATE_RESTORED)
		return 0;
	if (!attempt->result || (attempt->state != KFD_CRIU_STATE_RUNNING &&
				 attempt->state != KFD_CRIU_STATE_ABORTED))
		return 1;
	if (count_files() != files)
		return 2;
	return kfd_available_becomes(kfd, 0, attempt->available) ? 0 : 3;
}

static int v1_restore_fails(struct kfd *kfd, void *data)
{
	return restore_fails(kfd, data, restore);
}

static int v2_restore_fails(struct kfd *kfd, void *data)
{
	return restore_fails(kfd, data, restore_v2);
}

/* One that fails after RESTORE. It can be tried again, or there is nothing left. */
static int later_fails(struct kfd *kfd, struct attempt *attempt,
		       int (*operation)(struct kfd *kfd, void *data), int goal)
{
	int r = restore_v2(kfd, attempt);

	if (r)
		return 1;
	r = with_failure(attempt->n, &attempt->reached, operation, kfd, attempt);
	attempt->result = r;
	attempt->state = kfd_v2_state(kfd);
	if (is_done(r, KFD_CRIU_STATE_RESTORED, attempt->state) &&
	    attempt->state == goal)
		return 0;
	if (attempt->state == KFD_CRIU_STATE_RESTORED)
		return operation(kfd, attempt) ? 2 : 0;
	if (attempt->state != KFD_CRIU_STATE_ABORTED)
		return 3;
	return kfd_available_becomes(kfd, 0, attempt->available) ? 0 : 4;
}

static int resume_fails(struct kfd *kfd, void *data)
{
	return later_fails(kfd, data, resume, KFD_CRIU_STATE_RUNNING);
}

static int abort_fails(struct kfd *kfd, void *data)
{
	return later_fails(kfd, data, abort_v2, KFD_CRIU_STATE_ABORTED);
}

/* All chances, each in a child; their number, or -1. */
static int sweep_children(struct __test_metadata *_metadata,
			  const struct kfd *kfd, struct attempt *attempt,
			  int (*body)(struct kfd *kfd, void *data))
{
	int n = first_chance() - 1, r;

	attempt->available = kfd_available(kfd, 0);
	do {
		attempt->n = ++n;
		r = kfd_in_child(body, attempt);
		if (r || !is_named(attempt->result)) {
			TH_LOG("chance %d: %d, state %d, child says %d", n,
			       attempt->result, attempt->state, r);
			return -1;
		}
	} while (attempt->reached && n < MOST);
	TH_LOG("%d chances to fail", n - 1);
	return n == MOST ? -1 : n - 1;
}

TEST_F_TIMEOUT(failures, of_a_restore_leave_nothing, LIMIT_S)
{
	ASSERT_EQ(0, kfd_image_take(self->kfd.fd, &self->attempt->v1));
	ASSERT_EQ(0, kfd_queue_destroy(&self->kfd, &self->queue));
	EXPECT_LT(0, sweep_children(_metadata, &self->kfd, self->attempt,
				    v1_restore_fails));
}

TEST_F_TIMEOUT(failures, of_an_extensible_restore_leave_nothing, LIMIT_S)
{
	ASSERT_EQ(0, kfd_v2_image_take(self->kfd.fd, &self->attempt->v2));
	ASSERT_EQ(0, kfd_queue_destroy(&self->kfd, &self->queue));
	EXPECT_LT(0, sweep_children(_metadata, &self->kfd, self->attempt,
				    v2_restore_fails));
}

TEST_F_TIMEOUT(failures, after_a_restore_leave_it_or_nothing, LIMIT_S)
{
	ASSERT_EQ(0, kfd_v2_image_take(self->kfd.fd, &self->attempt->v2));
	ASSERT_EQ(0, kfd_queue_destroy(&self->kfd, &self->queue));
	EXPECT_LT(0, sweep_children(_metadata, &self->kfd, self->attempt, resume_fails));
	EXPECT_LT(0, sweep_children(_metadata, &self->kfd, self->attempt, abort_fails));
}

TEST_HARNESS_MAIN
