// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * A program that is in the middle of an ioctl on itself which does not end, because the
 * program has given it memory whose page faults never end. Neither other operations nor
 * their callers may hang.
 *
 * Runs: once
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include "../../../kselftest_harness.h"
#include "lib/bo.h"
#include "lib/criu_op.h"
#include "lib/event.h"
#include "lib/image_v2.h"
#include "lib/kfd.h"
#include "lib/slow_image.h"
#include "lib/svm.h"

#define LIMIT_S		120
/* An operation that need not wait takes milliseconds; a busy host may double that. */
#define CALL_LIMIT_MS	3000
#define END_LIMIT_MS	20000
#define RESUME_MS	300
/* More than a workqueue executes works at a time (WQ_MAX_ACTIVE). */
#define PAUSES		600
/* If each of them takes as long as close() waits, a caller ends late. */
#define KEPT_PAUSES	64
#define CLOSERS		20

enum activity {
	PROBES,		/* PROBE cannot write its answer */
	CHECKS_IMAGE,	/* RESTORE reads the image for the first time; nothing is changed */
	RESTORES,	/* RESTORE reads the image again, in KFD_CRIU_STATE_RESTORING */
	CHECKPOINTS,	/* CHECKPOINT cannot write the image */
	WAITS,		/* AMDKFD_IOC_WAIT_EVENTS cannot read its array, and has the events locked */
};

/* What the program, its callers and the test tell each other, in memory that they share. */
struct shared {
	enum activity activity;
	int fd;		/* number of the program's file of /dev/kfd */
	__u32 open;	/* the program has opened it */
	__u32 begin;	/* the program shall begin */
	__u32 busy;	/* the operation of the program waits for a page */
	__u32 supply;	/* the program shall supply the pages */
	__u32 calls;	/* a caller has begun its operation */
	__u32 kept;	/* a caller has pauses of the program that is busy */
	int result;	/* of the caller's operation */
};

FIXTURE(busy_program) {
	struct kfd kfd;
	struct kfd_bo bo;
	void *range;	/* an SVM range; NULL: the driver offers none */
	struct kfd_v2_image image;
	struct shared *shared;
	pid_t program;
};

/* What the child processes need; they inherit it. */
static struct {
	const struct kfd_v2_image *image;
	struct shared *shared;
	pid_t program;
	/* Image of a program that is paused before it begins, for checkpoints(). */
	struct kfd_v2_image checkpoint;
} test;

/* ---- the program ---- */

struct operation {
	struct kfd *kfd;
	struct blocking_image memory;
	/* What the pages are filled with in the end. */
	struct kfd_v2_image contents;
	struct kfd_event_data event;
	int pause_fd;
	int result;
};

static int wait_for_event(const struct operation *operation)
{
	struct kfd_ioctl_wait_events_args args = {
		.events_ptr = (unsigned long)operation->memory.image.data,
		.num_events = 1,
	};

	return kfd_call(operation->kfd->fd, AMDKFD_IOC_WAIT_EVENTS, &args);
}

static void *operate(void *data)
{
	struct operation *operation = data;
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_PROBE,
		.data = (unsigned long)operation->memory.image.data,
		.data_size = operation->memory.image.size,
	};

	if (test.shared->activity == CHECKS_IMAGE ||
	    test.shared->activity == RESTORES) {
		operation->result = kfd_v2_image_restore(operation->kfd,
							 &operation->memory.image);
		return NULL;
	}
	if (test.shared->activity == WAITS) {
		operation->result = wait_for_event(operation);
		return NULL;
	}
	if (test.shared->activity == CHECKPOINTS) {
		args.op = KFD_CRIU_CMD_CHECKPOINT;
		args.pause_fd = operation->pause_fd;
	}
	operation->result = kfd_v2(operation->kfd->fd, &args);
	return NULL;
}

static int prepare_event(struct operation *operation)
{
	const int id = kfd_event_create(operation->kfd);

	operation->event.event_id = id;
	operation->contents.data = (void *)&operation->event;
	operation->contents.size = sizeof(operation->event);
	return id < 0 ? id : 0;
}

/* Makes the memory of the operation, and what it needs besides. */
static int prepare(struct operation *operation)
{
	const struct kfd_criu_record *last = v2_nth(test.image,
						    KFD_CRIU_RECORD_SVM_RANGE, 0);
	struct kfd *kfd = operation->kfd;
	int r;

	operation->contents = *test.image;
	if (test.shared->activity == WAITS && prepare_event(operation))
		return -ENODEV;
	/* RESTORE reads the payload of a range only when it creates objects. */
	if (test.shared->activity == RESTORES)
		r = blocking_image_create_tail(&operation->memory, test.image,
					       test.image->size - last->size +
					       last->fixed_size);
	else
		r = blocking_image_create(&operation->memory, operation->contents.size);
	operation->memory.image.gpus_of = test.image;
	if (!r && test.shared->activity == CHECKPOINTS)
		r = kfd_v2_pause(kfd->fd, &operation->pause_fd);
	return r;
}

/* Whether the program runs again; other pauses were closed during the operation. */
static bool ends_pause(const struct operation *operation)
{
	const __u64 begin = now_us();

	close(operation->pause_fd);
	while (kfd_v2_state(operation->kfd) != KFD_CRIU_STATE_RUNNING) {
		if (now_us() - begin > CALL_LIMIT_MS * 1000ULL)
			return false;
		usleep(1000);
	}
	return true;
}

static int is_busy(struct kfd *kfd, void *data)
{
	struct operation operation = { .kfd = kfd };
	struct shared *shared = data;
	pthread_t thread;

	shared->fd = kfd->fd;
	if (shared->activity >= CHECKPOINTS && kfd_acquire_vms(kfd))
		return 1;
	set_word(&shared->open);
	if (!wait_for_word(&shared->begin, 1) || prepare(&operation))
		return 2;
	if (pthread_create(&thread, NULL, operate, &operation) ||
	    !blocking_image_is_read(&operation.memory))
		return 3;
	set_word(&shared->busy);
	while (!__atomic_load_n(&shared->supply, __ATOMIC_ACQUIRE))
		usleep(1000);
	if (blocking_image_fill(&operation.memory, &operation.contents))
		return 4;
	pthread_join(thread, NULL);
	if (shared->activity == CHECKPOINTS && !ends_pause(&operation))
		return 6;
	return operation.result ? 5 : 0;
}

/* ---- the callers ---- */

static int pauses(int fd)
{
	int pause_fd;

	return kfd_v2_pause(fd, &pause_fd);
}

static int pauses_v1(int fd)
{
	if (ptrace(PTRACE_SEIZE, test.program, 0, 0))
		return -errno;
	return kfd_v1_op(fd, KFD_CRIU_OP_PROCESS_INFO);
}

static int calls_unknown_v1(int fd)
{
	int r;

	if (ptrace(PTRACE_SEIZE, test.program, 0, 0))
		return -errno;
	r = kfd_v1_op(fd, KFD_CRIU_OP_RESUME + 1);
	return r == -EINVAL ? kfd_v1_op(fd, 255) : r;
}

static int aborts(int fd)
{
	return kfd_v2_op(fd, KFD_CRIU_CMD_ABORT);
}

static int resumes_within(int fd, __u32 limit_ms)
{
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_RESUME,
		.timeout_ms = limit_ms,
	};

	return kfd_v2(fd, &args);
}

static int resumes(int fd)
{
	return resumes_within(fd, END_LIMIT_MS);
}

static int resumes_in_time(int fd)
{
	return resumes_within(fd, RESUME_MS);
}

static int exports(int fd)
{
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_EXPORT_BO,
		.pause_fd = KFD_NO_PAUSE,
	};

	return kfd_v2(fd, &args);
}

static int checkpoints(int fd)
{
	return kfd_v2_image_checkpoint(fd, &test.checkpoint);
}

/* Pauses the program before it begins, and closes the pause when it is busy. */
static int closes_pause(int fd)
{
	int pause_fd, r = kfd_v2_pause(fd, &pause_fd);

	set_word(&test.shared->begin);
	if (r || !wait_for_word(&test.shared->busy, 1))
		return r ? r : -ETIME;
	return close(pause_fd) ? -errno : 0;
}

/* Pauses the program many times before it begins, and waits to be killed. */
static int keeps_pauses(int fd)
{
	int pause_fd, r = 0;
	unsigned int i;

	for (i = 0; !r && i < KEPT_PAUSES; i++)
		r = kfd_v2_pause(fd, &pause_fd);
	set_word(&test.shared->begin);
	if (r || !wait_for_word(&test.shared->busy, 1))
		return r ? r : -ETIME;
	set_word(&test.shared->kept);
	pause();
	return -EINTR;
}

static pid_t start_caller(int (*call)(int fd))
{
	const pid_t pid = fork();
	int fd;

	if (pid)
		return pid;
	fd = kfd_take_file(test.program, test.shared->fd);
	if (fd < 0)
		_exit(1);
	set_word(&test.shared->calls);
	test.shared->result = call(fd);
	_exit(0);
}

/* The errno of the operation in another process, or -ETIME if it does not return. */
static int call_from_outside(int (*call)(int fd))
{
	const pid_t pid = start_caller(call);
	const int status = ends_within(pid, CALL_LIMIT_MS);

	if (status == -ETIME) {
		kill(pid, SIGKILL);
		return -ETIME;
	}
	return status ? -ECHILD : test.shared->result;
}

/* ---- the tests ---- */

FIXTURE_SETUP(busy_program)
{
	memset(&self->image, 0, sizeof(self->image));
	self->range = NULL;
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	if (!blocking_images_are_supported())
		SKIP(return, "no userfaultfd");
	ASSERT_EQ(0, kfd_acquire_vms(&self->kfd));
	ASSERT_EQ(0, kfd_bo_create(&self->kfd, 0, KFD_BO_GTT, KFD_PAGE, &self->bo));
	/* The record of the range is the last one of the image. */
	if (svm_is_supported(&self->kfd)) {
		self->range = svm_memory(KFD_PAGE);
		ASSERT_NE(NULL, self->range);
		ASSERT_EQ(0, svm_set_access(&self->kfd, self->range, KFD_PAGE, 0,
					    KFD_IOCTL_SVM_ATTR_ACCESS));
	}
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &self->image));
	self->shared = shared_memory(sizeof(*self->shared));
	ASSERT_NE(MAP_FAILED, self->shared);
	test.image = &self->image;
	test.shared = self->shared;
}

FIXTURE_TEARDOWN(busy_program)
{
	free(self->image.data);
	kfd_close(&self->kfd);
}

static int start_program(enum activity activity)
{
	test.shared->activity = activity;
	test.program = kfd_start_child(is_busy, test.shared);
	return test.program > 0 && wait_for_word(&test.shared->open, 1) ? 0 : -ECHILD;
}

static int make_busy(enum activity activity)
{
	const int r = start_program(activity);

	set_word(&test.shared->begin);
	if (!r && !wait_for_word(&test.shared->busy, 1))
		return -ETIME;
	return r;
}

/* The operation of the program ends as if no process had looked. */
static int end_program(void)
{
	set_word(&test.shared->supply);
	return ends_within(test.program, END_LIMIT_MS);
}

TEST_F_TIMEOUT(busy_program, a_probe_without_an_answer_stops_nobody, LIMIT_S)
{
	ASSERT_EQ(0, make_busy(PROBES));
	/* The program has no VM. */
	EXPECT_EQ(-ENODEV, call_from_outside(pauses));
	EXPECT_EQ(-EINVAL, call_from_outside(aborts));
	EXPECT_EQ(0, end_program());
}

/* Kills a caller whose operation waits for that of the program. */
static int kill_caller(int (*call)(int fd))
{
	pid_t pid;
	int status;

	test.shared->calls = 0;
	pid = start_caller(call);
	if (!wait_for_word(&test.shared->calls, 1))
		return -ECHILD;
	status = ends_within(pid, 100);
	if (status != -ETIME)
		return -EALREADY;
	kill(pid, SIGKILL);
	return ends_within(pid, CALL_LIMIT_MS);
}

TEST_F_TIMEOUT(busy_program, callers_that_wait_for_a_restore_can_be_killed, LIMIT_S)
{
	ASSERT_EQ(0, make_busy(CHECKS_IMAGE));
	EXPECT_EQ(SIGKILL, kill_caller(pauses));
	EXPECT_EQ(SIGKILL, kill_caller(pauses_v1));
	EXPECT_EQ(SIGKILL, kill_caller(aborts));
	EXPECT_EQ(SIGKILL, kill_caller(resumes));
	EXPECT_EQ(0, end_program());
}

TEST_F_TIMEOUT(busy_program, a_resume_that_waits_for_a_restore_returns_in_time, LIMIT_S)
{
	ASSERT_EQ(0, make_busy(CHECKS_IMAGE));
	EXPECT_EQ(-EBUSY, call_from_outside(resumes_in_time));
	EXPECT_EQ(0, end_program());
}

/* The state is reported while the operation waits, and not when it has ended. */
TEST_F_TIMEOUT(busy_program, that_is_being_restored_refuses_other_operations, LIMIT_S)
{
	if (!self->range)
		SKIP(return, "the driver offers no SVM on this GPU");
	ASSERT_EQ(0, make_busy(RESTORES));
	EXPECT_EQ(-EBUSY, call_from_outside(pauses));
	EXPECT_EQ(-EBUSY, call_from_outside(pauses_v1));
	EXPECT_EQ(-EBUSY, call_from_outside(resumes));
	EXPECT_EQ(-EINVAL, call_from_outside(aborts));
	EXPECT_EQ(-EINVAL, call_from_outside(exports));
	EXPECT_EQ(-EINVAL, call_from_outside(calls_unknown_v1));
	EXPECT_EQ(0, end_program());
}

TEST_F_TIMEOUT(busy_program, does_not_keep_the_file_of_a_pause_from_being_closed, LIMIT_S)
{
	ASSERT_EQ(0, start_program(CHECKPOINTS));
	EXPECT_EQ(0, call_from_outside(closes_pause));
	EXPECT_EQ(0, end_program());
}

TEST_F_TIMEOUT(busy_program, does_not_delay_the_end_of_a_caller_with_many_pauses, LIMIT_S)
{
	pid_t caller;

	ASSERT_EQ(0, start_program(CHECKPOINTS));
	caller = start_caller(keeps_pauses);
	ASSERT_LT(0, caller);
	ASSERT_TRUE(wait_for_word(&self->shared->kept, 1));
	kill(caller, SIGKILL);
	EXPECT_EQ(SIGKILL, ends_within(caller, CALL_LIMIT_MS));
	EXPECT_EQ(0, end_program());
}

static void *close_files(void *data)
{
	const int *files = data;
	unsigned int i;

	for (i = 0; i < PAUSES / CLOSERS; i++)
		close(files[i]);
	return NULL;
}

/* The program has that many pauses, and they are closed while it is busy. */
static int make_busy_and_close_pauses(unsigned int n)
{
	static int files[PAUSES];
	pthread_t closers[CLOSERS];
	unsigned int i;
	int fd, r;

	r = start_program(CHECKPOINTS);
	if (r)
		return r;
	fd = kfd_take_file(test.program, test.shared->fd);
	memset(files, -1, sizeof(files));
	for (i = 0; !r && i < n; i++)
		r = kfd_v2_pause(fd, &files[i]);
	close(fd);
	set_word(&test.shared->begin);
	if (r || !wait_for_word(&test.shared->busy, 1))
		return r ? r : -ETIME;
	/* Each close() waits a while before it leaves the end of the pause to the driver. */
	for (i = 0; i < CLOSERS; i++)
		if (pthread_create(&closers[i], NULL, close_files,
				   &files[i * (PAUSES / CLOSERS)]))
			return -EAGAIN;
	for (i = 0; i < CLOSERS; i++)
		pthread_join(closers[i], NULL);
	return 0;
}

TEST_F_TIMEOUT(busy_program, whose_pauses_are_closed_does_not_keep_others_paused, LIMIT_S)
{
	pid_t first;

	ASSERT_EQ(0, make_busy_and_close_pauses(PAUSES));
	first = test.program;
	test.shared = shared_memory(sizeof(*test.shared));
	ASSERT_NE(MAP_FAILED, test.shared);
	ASSERT_EQ(0, make_busy_and_close_pauses(1));
	EXPECT_EQ(0, end_program());
	test.program = first;
	test.shared = self->shared;
	EXPECT_EQ(0, end_program());
}

TEST_F_TIMEOUT(busy_program, callers_that_wait_for_its_events_can_be_killed, LIMIT_S)
{
	int fd;

	ASSERT_EQ(0, start_program(WAITS));
	fd = kfd_take_file(test.program, self->shared->fd);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, kfd_v2_image_prepare(fd, &test.checkpoint));
	set_word(&self->shared->begin);
	ASSERT_TRUE(wait_for_word(&self->shared->busy, 1));
	EXPECT_EQ(SIGKILL, kill_caller(pauses));
	EXPECT_EQ(SIGKILL, kill_caller(pauses_v1));
	EXPECT_EQ(SIGKILL, kill_caller(checkpoints));
	EXPECT_EQ(0, end_program());
	close(test.checkpoint.pause_fd);
	free(test.checkpoint.data);
	close(fd);
}

KFD_TEST_MAIN
