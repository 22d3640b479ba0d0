// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * SIGKILL for a tracer in the middle of each operation, and for a process that its tracer
 * pauses and checkpoints: the survivor continues, and other processes can use the GPUs.
 * KFD_CRIU_SEED=N begins with other delays.
 *
 * Runs: per-scheduler
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include "../../../kselftest_harness.h"
#include "lib/criu_op.h"
#include "lib/fixture.h"
#include "lib/image_v1.h"
#include "lib/image_v2.h"
#include "lib/kfd.h"
#include "lib/leak_check.h"
#include "lib/queue.h"
#include "lib/rand.h"

#define LIMIT_S		600
#define END_LIMIT_S	120
/* Includes the time that a new process needs for its memory and its queues. */
#define OP_LIMIT_US	60000000
#define KILLS		5	/* in each step */
#define DELAY_BITS	8	/* delays in microseconds have fewer bits */

FIXTURE(sigkill) {
	struct kfd kfd;
	struct fixture fixture;
	struct leak_baseline before;
};

FIXTURE_SETUP(sigkill)
{
	int r = fixture_open_running(&self->kfd, &self->fixture,
				     FIXTURE_IDLE_QUEUE, &self->before);

	if (r == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, r);
}

FIXTURE_TEARDOWN(sigkill)
{
	fixture_free(&self->fixture);
	kfd_close(&self->kfd);
}

/*
 * Waits until the memory of a killed process is freed. The driver frees it, and the slots of
 * its queues, when the last user of its address space is gone, which may be its tracer.
 */
static void expect_nothing_held(struct __test_metadata *_metadata,
				const struct kfd *kfd,
				const struct leak_baseline *before)
{
	unsigned int i;

	for (i = 0; i < kfd->num_gpus; i++) {
		EXPECT_TRUE(kfd_available_becomes(kfd, i, before->available[i]))
			TH_LOG("GPU %u", i);
	}
}

static int can_create_fixture(struct kfd *kfd, void *data)
{
	struct fixture fixture;

	(void)data;
	return fixture_create(kfd, &fixture, FIXTURE_IDLE_QUEUE) ||
	       !kfd_queue_runs(kfd, &fixture.sdma);
}

/* Checks that another process gets everything on the GPUs that the killed process had. */
static void expect_free_gpus(struct __test_metadata *_metadata,
			     const struct kfd *kfd,
			     const struct leak_baseline *before)
{
	expect_nothing_held(_metadata, kfd, before);
	EXPECT_EQ(0, kfd_in_child(can_create_fixture, NULL));
}

static void wait_us(__u64 us)
{
	const __u64 begin = now_us();

	while (now_us() - begin < us)
		sched_yield();
}

/* A random delay; short delays are as frequent as long ones. */
static __u64 random_delay_us(void)
{
	return rand_next() % (1 << rand_next() % DELAY_BITS);
}

/* ---- a tracer that is killed ---- */

/* The operation in which the tracer is; 0: it has not begun. */
enum step {
	PAUSE_V1 = 1,
	CHECKPOINT_V1,
	UNPAUSE_V1,
	PAUSE_V2,
	CHECKPOINT_V2,
	EXPORT,
	UNPAUSE_V2,
	STEPS,
};

/* What the process, its tracer and the test tell each other, in shared memory. */
struct shared {
	struct fixture *fixture;
	struct leak_baseline before;
	__u32 step;	/* where the tracer is: enum step, or RESUME (1) or ABORT (2) */
	__u32 wanted;	/* the step in which it is killed */
	unsigned int hits; /* how often it was killed in that step */
	int error;	/* what RESTORE or RESUME returned last */
};

static int do_step(struct kfd *kfd, struct fixture *fixture, enum step step)
{
	int fd, r;

	switch (step) {
	case PAUSE_V1:
		return kfd_v1_op(kfd->fd, KFD_CRIU_OP_PROCESS_INFO);
	case CHECKPOINT_V1:
		r = kfd_v1_image_checkpoint(kfd->fd, &fixture->v1);
		kfd_v1_image_close_files(&fixture->v1);
		return r;
	case UNPAUSE_V1:
		return kfd_v1_op(kfd->fd, KFD_CRIU_OP_UNPAUSE);
	case PAUSE_V2:
		return kfd_v2_pause(kfd->fd, &fixture->v2.pause_fd);
	case CHECKPOINT_V2:
		return kfd_v2_image_checkpoint(kfd->fd, &fixture->v2);
	case EXPORT:
		r = kfd_v2_export(kfd, fixture->v2.pause_fd, fixture->vram[0].handle,
				  &fd);
		if (!r)
			close(fd);
		return r;
	default:
		return kfd_v2_unpause(kfd->fd, fixture->v2.pause_fd);
	}
}

/* Goes through all steps again and again, until the tracer or the traced process is killed. */
static void trace_and_checkpoint(struct kfd *kfd, struct fixture *fixture,
				 struct shared *shared)
{
	__u32 step;

	alarm(END_LIMIT_S);
	if (ptrace(PTRACE_SEIZE, getppid(), 0, 0) ||
	    kfd_v1_image_prepare(kfd->fd, &fixture->v1) ||
	    kfd_v1_op(kfd->fd, KFD_CRIU_OP_UNPAUSE) ||
	    kfd_v2_image_prepare(kfd->fd, &fixture->v2) ||
	    kfd_v2_unpause(kfd->fd, fixture->v2.pause_fd))
		_exit(1);
	for (step = PAUSE_V1;; step = step % (STEPS - 1) + 1) {
		__atomic_store_n(&shared->step, step, __ATOMIC_RELEASE);
		if (do_step(kfd, fixture, step))
			_exit(2);
	}
}

static bool is_in_step(const struct shared *shared)
{
	return __atomic_load_n(&shared->step, __ATOMIC_ACQUIRE) == shared->wanted;
}

/* Kills the process when the tracer is in the wanted step, or a little later. */
static bool kill_in_the_middle(struct shared *shared, pid_t pid)
{
	const __u64 begin = now_us();

	while (!is_in_step(shared))
		if (now_us() - begin > OP_LIMIT_US)
			return false;
	wait_us(random_delay_us());
	kill(pid, SIGKILL);
	shared->hits += is_in_step(shared);
	return true;
}

static bool becomes_running(const struct kfd *kfd)
{
	const __u64 begin = now_us();

	while (kfd_v2_state(kfd) != KFD_CRIU_STATE_RUNNING) {
		if (now_us() - begin > OP_LIMIT_US)
			return false;
		usleep(1000);
	}
	return true;
}

static int kill_a_tracer(struct kfd *kfd, struct fixture *fixture,
			 struct shared *shared)
{
	pid_t pid;

	shared->step = 0;
	pid = fork();
	if (pid == 0)
		trace_and_checkpoint(kfd, fixture, shared);
	if (pid < 0 || !kill_in_the_middle(shared, pid))
		return 1;
	if (waitpid(pid, NULL, 0) != pid)
		return 2;
	if (!becomes_running(kfd))
		return 3;
	return kfd_queue_runs(kfd, &fixture->sdma) ? 0 : 4;
}

static int survives_tracers(struct kfd *kfd, void *data)
{
	struct shared *shared = data;
	struct fixture fixture;
	unsigned int i;
	int r = 0;

	rand_seed(rand_first_seed() + shared->wanted);
	if (fixture_create(kfd, &fixture, FIXTURE_IDLE_QUEUE))
		return 5;
	for (i = 0; !r && i < KILLS; i++)
		r = kill_a_tracer(kfd, &fixture, shared);
	return r;
}

static struct shared *shared_create(struct fixture *fixture,
				    const struct leak_baseline *before)
{
	struct shared *shared = shared_memory(sizeof(*shared));

	if (shared == MAP_FAILED)
		return NULL;
	shared->fixture = fixture;
	shared->before = *before;
	return shared;
}

TEST_F_TIMEOUT(sigkill, a_process_continues_when_its_tracer_is_killed, LIMIT_S)
{
	struct shared *shared = shared_create(&self->fixture, &self->before);

	ASSERT_NE(NULL, shared);
	for (shared->wanted = 1; shared->wanted < STEPS; shared->wanted++) {
		EXPECT_EQ(0, kfd_in_child(survives_tracers, shared))
			TH_LOG("step %u", shared->wanted);
	}
	TH_LOG("%u of %u killed in the step", shared->hits, (STEPS - 1) * KILLS);
	EXPECT_LT(0, shared->hits);
	expect_free_gpus(_metadata, &self->kfd, &self->before);
}

/* Calls RESUME or ABORT for the restored process that it traces. */
static void trace_and_end(struct kfd *kfd, struct shared *shared)
{
	const pid_t pid = getppid();

	alarm(END_LIMIT_S);
	if (ptrace(PTRACE_SEIZE, pid, 0, 0))
		_exit(1);
	__atomic_store_n(&shared->step, shared->wanted, __ATOMIC_RELEASE);
	if (shared->wanted == 1)
		kfd_v1_resume(kfd->fd, pid);
	else
		kfd_v2_op(kfd->fd, KFD_CRIU_CMD_ABORT);
	__atomic_store_n(&shared->step, 0, __ATOMIC_RELEASE);
	pause();
}

static int is_resumed_by_killed_tracer(struct kfd *kfd, void *data)
{
	struct shared *shared = data;
	struct leak_baseline before = shared->before;
	pid_t pid;

	before.files = 0;
	shared->error = kfd_v2_image_restore(kfd, &shared->fixture->v2);
	if (shared->error)
		return 1;
	pid = fork();
	if (pid == 0)
		trace_and_end(kfd, shared);
	while (!is_in_step(shared) && kfd_v2_state(kfd) == KFD_CRIU_STATE_RESTORED)
		;
	wait_us(random_delay_us());
	kill(pid, SIGKILL);
	shared->hits += is_in_step(shared);
	if (waitpid(pid, NULL, 0) != pid)
		return 2;
	/* The tracer may have been killed before the operation began. */
	if (kfd_v2_settled_state(kfd) == KFD_CRIU_STATE_RESTORED)
		shared->error = kfd_v2_resume(kfd);
	if (shared->error)
		return 3;
	return kfd_v2_state(kfd) == KFD_CRIU_STATE_ABORTED ?
		       leak_check(kfd, &before) :
		       -fixture_check_idle_queue(kfd, shared->fixture);
}

TEST_F_TIMEOUT(sigkill, a_restored_process_survives_its_tracer_or_is_aborted, LIMIT_S)
{
	struct shared *shared = shared_create(&self->fixture, &self->before);
	unsigned int i;

	ASSERT_NE(NULL, shared);
	rand_seed(rand_first_seed());
	for (i = 0; i < 4 * KILLS; i++) {
		shared->step = 0;
		shared->wanted = 1 + i % 2;
		/* Advances the sequence here: each child would begin with the same number. */
		rand_next();
		EXPECT_EQ(0, kfd_in_child(is_resumed_by_killed_tracer, shared))
			TH_LOG("round %u, error %d", i, shared->error);
		expect_nothing_held(_metadata, &self->kfd, &self->before);
	}
	TH_LOG("%u of %u killed in the step", shared->hits, i);
	expect_free_gpus(_metadata, &self->kfd, &self->before);
}

/* ---- a process that is killed ---- */

static int is_checkpointed_for_ever(struct kfd *kfd, void *data)
{
	struct shared *shared = data;
	struct fixture fixture;
	pid_t pid;

	if (fixture_create(kfd, &fixture, FIXTURE_IDLE_QUEUE))
		return 1;
	pid = fork();
	if (pid == 0)
		trace_and_checkpoint(kfd, &fixture, shared);
	pause();
	return 2;
}

/*
 * Its parent can wait for a killed process only when its tracer has exited, which happens
 * when an operation fails.
 */
static bool is_killed_within(pid_t pid, unsigned int limit_s)
{
	unsigned int i;
	int status;

	for (i = 0; i < limit_s * 100; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
		usleep(10 * 1000);
	}
	return false;
}

TEST_F_TIMEOUT(sigkill, a_process_that_is_killed_while_it_is_checkpointed_leaves_nothing, LIMIT_S)
{
	struct shared *shared = shared_create(&self->fixture, &self->before);
	unsigned int i;
	pid_t pid;

	ASSERT_NE(NULL, shared);
	rand_seed(rand_first_seed());
	for (i = 0; i < KILLS * (STEPS - 1); i++) {
		shared->step = 0;
		shared->wanted = 1 + i % (STEPS - 1);
		pid = kfd_start_child(is_checkpointed_for_ever, shared);
		ASSERT_LT(0, pid);
		ASSERT_TRUE(kill_in_the_middle(shared, pid))
			TH_LOG("step %u", shared->wanted);
		ASSERT_TRUE(is_killed_within(pid, END_LIMIT_S))
			TH_LOG("step %u", shared->wanted);
	}
	TH_LOG("%u of %u killed in the step", shared->hits, i);
	EXPECT_LT(0, shared->hits);
	expect_free_gpus(_metadata, &self->kfd, &self->before);
}

KFD_TEST_MAIN
