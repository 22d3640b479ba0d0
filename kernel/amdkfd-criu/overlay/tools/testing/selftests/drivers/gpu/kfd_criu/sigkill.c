// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * A tracer that is killed in the middle of each operation, and a program that is killed
 * while it is paused and checkpointed: what lives goes on, the GPUs are free for others.
 * KFD_CRIU_SEED=N begins with other delays.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
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
#define END_LIMIT_S	20
#define OP_LIMIT_US	10000000
#define KILLS		5	/* of each operation */
#define DELAY_BITS	8	/* of microseconds */

FIXTURE(sigkill) {
	struct kfd kfd;
	struct fixture fixture;
	struct leak_baseline before;
};

FIXTURE_SETUP(sigkill)
{
	int r = fixture_open_checkpointed(&self->kfd, &self->fixture,
					  FIXTURE_IDLE_QUEUE);

	if (r == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, r);
	ASSERT_EQ(0, kfd_v2_op(self->kfd.fd, KFD_CRIU_V2_UNPAUSE));
	leak_baseline_take(&self->kfd, &self->before);
}

FIXTURE_TEARDOWN(sigkill)
{
	fixture_free(&self->fixture);
	kfd_close(&self->kfd);
}

/* Whoever holds a program's memory when it is killed may end it later than the program.
 * Until then it has its queues, and others cannot have those.
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

/* Whoever was killed has left the GPUs to others. */
static void expect_free_gpus(struct __test_metadata *_metadata,
			     const struct kfd *kfd,
			     const struct leak_baseline *before)
{
	expect_nothing_held(_metadata, kfd, before);
	EXPECT_EQ(0, kfd_in_child(can_create_fixture, NULL));
}

static __u64 now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000ULL + now.tv_nsec / 1000;
}

static void wait_us(__u64 us)
{
	const __u64 begin = now_us();

	while (now_us() - begin < us)
		sched_yield();
}

/* Short ones as often as long ones. */
static __u64 some_delay_us(void)
{
	return rand_next() % (1 << rand_next() % DELAY_BITS);
}

/* ---- a tracer that is killed ---- */

/* What it is at; 0: nothing yet. */
enum act {
	PAUSES_V1 = 1,
	CHECKPOINTS_V1,
	UNPAUSES_V1,
	PAUSES_V2,
	CHECKPOINTS_V2,
	EXPORTS,
	UNPAUSES_V2,
	ACTS,
};

/* A program and who traces it; both see it, and the test. */
struct scene {
	struct fixture *fixture;
	struct leak_baseline before;
	__u32 act;	/* enum act, or of a restored program 1 */
	__u32 wanted;
	unsigned int hits;
};

static int act(struct kfd *kfd, struct fixture *fixture, enum act what)
{
	int fd, r;

	switch (what) {
	case PAUSES_V1:
		return kfd_v1_op(kfd->fd, KFD_CRIU_OP_PROCESS_INFO);
	case CHECKPOINTS_V1:
		r = kfd_v1_image_checkpoint(kfd->fd, &fixture->v1);
		kfd_v1_image_close_files(&fixture->v1);
		return r;
	case UNPAUSES_V1:
		return kfd_v1_op(kfd->fd, KFD_CRIU_OP_UNPAUSE);
	case PAUSES_V2:
		return kfd_v2_op(kfd->fd, KFD_CRIU_V2_PAUSE);
	case CHECKPOINTS_V2:
		return kfd_v2_image_checkpoint(kfd->fd, &fixture->v2);
	case EXPORTS:
		r = kfd_v2_export(kfd, fixture->vram[0].handle, &fd);
		if (!r)
			close(fd);
		return r;
	default:
		return kfd_v2_op(kfd->fd, KFD_CRIU_V2_UNPAUSE);
	}
}

/* Again and again, until it is killed or whom it traces is. */
static void trace_and_act(struct kfd *kfd, struct fixture *fixture,
			  struct scene *scene)
{
	__u32 what;

	alarm(END_LIMIT_S);
	if (ptrace(PTRACE_SEIZE, getppid(), 0, 0) ||
	    kfd_v1_image_prepare(kfd->fd, &fixture->v1) ||
	    kfd_v2_image_prepare(kfd->fd, &fixture->v2) ||
	    kfd_v2_op(kfd->fd, KFD_CRIU_V2_UNPAUSE))
		_exit(1);
	for (what = PAUSES_V1;; what = what % (ACTS - 1) + 1) {
		__atomic_store_n(&scene->act, what, __ATOMIC_RELEASE);
		if (act(kfd, fixture, what))
			_exit(2);
	}
}

static bool is_at(const struct scene *scene)
{
	return __atomic_load_n(&scene->act, __ATOMIC_ACQUIRE) == scene->wanted;
}

/* Kills who is at what is wanted, or a little later. */
static bool kill_in_the_middle(struct scene *scene, pid_t pid)
{
	const __u64 begin = now_us();

	while (!is_at(scene))
		if (now_us() - begin > OP_LIMIT_US)
			return false;
	wait_us(some_delay_us());
	kill(pid, SIGKILL);
	scene->hits += is_at(scene);
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

static int loses_a_tracer(struct kfd *kfd, struct fixture *fixture,
			  struct scene *scene)
{
	pid_t pid;

	scene->act = 0;
	pid = fork();
	if (pid == 0)
		trace_and_act(kfd, fixture, scene);
	if (pid < 0 || !kill_in_the_middle(scene, pid))
		return 1;
	if (waitpid(pid, NULL, 0) != pid)
		return 2;
	if (!becomes_running(kfd))
		return 3;
	return kfd_queue_runs(kfd, &fixture->sdma) ? 0 : 4;
}

static int outlives_tracers(struct kfd *kfd, void *data)
{
	struct scene *scene = data;
	struct fixture fixture;
	unsigned int i;
	int r = 0;

	rand_seed(rand_first_seed() + scene->wanted);
	if (fixture_create(kfd, &fixture, FIXTURE_IDLE_QUEUE))
		return 5;
	for (i = 0; !r && i < KILLS; i++)
		r = loses_a_tracer(kfd, &fixture, scene);
	return r;
}

static struct scene *scene_make(struct fixture *fixture,
				const struct leak_baseline *before)
{
	struct scene *scene = mmap(NULL, sizeof(*scene), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (scene == MAP_FAILED)
		return NULL;
	scene->fixture = fixture;
	scene->before = *before;
	return scene;
}

TEST_F_TIMEOUT(sigkill, of_a_tracer_let_the_program_go_on, LIMIT_S)
{
	struct scene *scene = scene_make(&self->fixture, &self->before);

	ASSERT_NE(NULL, scene);
	for (scene->wanted = 1; scene->wanted < ACTS; scene->wanted++) {
		EXPECT_EQ(0, kfd_in_child(outlives_tracers, scene))
			TH_LOG("act %u", scene->wanted);
	}
	TH_LOG("%u of %u in the middle", scene->hits, (ACTS - 1) * KILLS);
	EXPECT_LT(0, scene->hits);
	expect_free_gpus(_metadata, &self->kfd, &self->before);
}

/* RESUME and ABORT of a program that is restored. */
static void trace_and_end(struct kfd *kfd, struct scene *scene)
{
	const pid_t pid = getppid();

	alarm(END_LIMIT_S);
	if (ptrace(PTRACE_SEIZE, pid, 0, 0))
		_exit(1);
	__atomic_store_n(&scene->act, scene->wanted, __ATOMIC_RELEASE);
	if (scene->wanted == 1)
		kfd_v1_resume(kfd->fd, pid);
	else
		kfd_v2_op(kfd->fd, KFD_CRIU_V2_ABORT);
	__atomic_store_n(&scene->act, 0, __ATOMIC_RELEASE);
	pause();
}

static int is_ended_by_a_tracer(struct kfd *kfd, void *data)
{
	struct scene *scene = data;
	struct leak_baseline before = scene->before;
	pid_t pid;

	before.files = 0;
	if (kfd_v2_image_restore(kfd, &scene->fixture->v2))
		return 1;
	pid = fork();
	if (pid == 0)
		trace_and_end(kfd, scene);
	while (!is_at(scene) && kfd_v2_state(kfd) == KFD_CRIU_STATE_RESTORED)
		;
	wait_us(some_delay_us());
	kill(pid, SIGKILL);
	scene->hits += is_at(scene);
	if (waitpid(pid, NULL, 0) != pid)
		return 2;
	/* It may have been too early. */
	if (kfd_v2_state(kfd) == KFD_CRIU_STATE_RESTORED && kfd_v2_resume(kfd))
		return 3;
	return kfd_v2_state(kfd) == KFD_CRIU_STATE_ABORTED ?
		       leak_check(kfd, &before) :
		       -fixture_check_idle_queue(kfd, scene->fixture);
}

TEST_F_TIMEOUT(sigkill, of_a_tracer_let_a_restored_program_go_on_or_have_nothing, LIMIT_S)
{
	struct scene *scene = scene_make(&self->fixture, &self->before);
	unsigned int i;

	ASSERT_NE(NULL, scene);
	rand_seed(rand_first_seed());
	for (i = 0; i < 4 * KILLS; i++) {
		scene->act = 0;
		scene->wanted = 1 + i % 2;
		/* Of the parent: a child would begin anew each time. */
		rand_next();
		EXPECT_EQ(0, kfd_in_child(is_ended_by_a_tracer, scene))
			TH_LOG("round %u", i);
		expect_nothing_held(_metadata, &self->kfd, &self->before);
	}
	TH_LOG("%u of %u in the middle", scene->hits, i);
	expect_free_gpus(_metadata, &self->kfd, &self->before);
}

/* ---- a program that is killed ---- */

static int is_checkpointed(struct kfd *kfd, void *data)
{
	struct scene *scene = data;
	struct fixture fixture;
	pid_t pid;

	if (fixture_create(kfd, &fixture, FIXTURE_IDLE_QUEUE))
		return 1;
	pid = fork();
	if (pid == 0)
		trace_and_act(kfd, &fixture, scene);
	pause();
	return 2;
}

/* Its parent hears of it when its tracer has ended, which an operation tells. */
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

TEST_F_TIMEOUT(sigkill, of_a_program_that_is_checkpointed_leave_nothing, LIMIT_S)
{
	struct scene *scene = scene_make(&self->fixture, &self->before);
	unsigned int i;
	pid_t pid;

	ASSERT_NE(NULL, scene);
	rand_seed(rand_first_seed());
	for (i = 0; i < KILLS * (ACTS - 1); i++) {
		scene->act = 0;
		scene->wanted = 1 + i % (ACTS - 1);
		pid = kfd_start_child(is_checkpointed, scene);
		ASSERT_LT(0, pid);
		ASSERT_TRUE(kill_in_the_middle(scene, pid))
			TH_LOG("act %u", scene->wanted);
		ASSERT_TRUE(is_killed_within(pid, END_LIMIT_S))
			TH_LOG("act %u", scene->wanted);
	}
	TH_LOG("%u of %u in the middle", scene->hits, i);
	EXPECT_LT(0, scene->hits);
	expect_free_gpus(_metadata, &self->kfd, &self->before);
}

KFD_TEST_MAIN
