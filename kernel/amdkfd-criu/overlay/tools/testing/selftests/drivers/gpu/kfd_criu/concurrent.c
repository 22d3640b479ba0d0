// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Two threads of a process call operations of both ABIs on the process at the same time.
 * KFD_CRIU_SEED=N begins with another sequence of operations and delays.
 *
 * Runs: once
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
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
#define CALLS		400
#define ROUNDS	40
#define DELAY_US	1000

FIXTURE(concurrent) {
	struct kfd kfd;
	struct fixture fixture;
	struct leak_baseline before;
};

FIXTURE_SETUP(concurrent)
{
	int r = fixture_open_running(&self->kfd, &self->fixture,
				     FIXTURE_IDLE_QUEUE, &self->before);

	if (r == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, r);
}

FIXTURE_TEARDOWN(concurrent)
{
	fixture_free(&self->fixture);
	kfd_close(&self->kfd);
}

struct caller {
	struct kfd *kfd;
	struct fixture *fixture;
	struct kfd_v1_image v1;
	struct kfd_v2_image v2;
	pthread_t thread;
	pthread_barrier_t *start;
	unsigned int seed;
	bool is_v2;
	/* How often each operation succeeded. */
	unsigned int pauses, checkpoints, unpauses, restores, resumes, aborts;
	int wrong;	/* the first errno that is not expected, or 0 */
};

/* Counts an operation that succeeded; else its errno must be one of two. */
static void count(struct caller *caller, int r, unsigned int *succeeded,
		  int one, int other)
{
	if (!r)
		(*succeeded)++;
	else if (r != one && r != other && !caller->wrong)
		caller->wrong = r;
}

static int run_threads(struct caller *callers, void *(*body)(void *caller))
{
	pthread_barrier_t start;
	unsigned int i;
	int r = 0;

	pthread_barrier_init(&start, NULL, 2);
	for (i = 0; i < 2; i++) {
		callers[i].start = &start;
		callers[i].is_v2 = i;
		r |= pthread_create(&callers[i].thread, NULL, body, &callers[i]);
	}
	for (i = 0; !r && i < 2; i++)
		pthread_join(callers[i].thread, NULL);
	for (i = 0; !r && i < 2; i++)
		if (callers[i].wrong)
			printf("# thread %u: %s\n", i, strerror(-callers[i].wrong));
	fflush(stdout);
	return r ? -r : callers[0].wrong ?: callers[1].wrong;
}

static int checkpoint_v1(struct caller *caller)
{
	const int r = kfd_v1_image_checkpoint(caller->kfd->fd, &caller->v1);

	if (!r)
		kfd_v1_image_close_files(&caller->v1);
	return r;
}

/* Begins the caller's own pause of version 2, or ends it. */
static void pause_or_unpause_v2(struct caller *caller)
{
	const int fd = caller->kfd->fd;

	if (caller->v2.pause_fd == KFD_NO_PAUSE) {
		count(caller, kfd_v2_pause(fd, &caller->v2.pause_fd),
		      &caller->pauses, 0, 0);
		return;
	}
	count(caller, kfd_v2_unpause(fd, caller->v2.pause_fd),
	      &caller->unpauses, 0, 0);
	caller->v2.pause_fd = KFD_NO_PAUSE;
}

/*
 * Both threads share the pause of version 1, which one UNPAUSE ends, and each has a pause
 * of version 2 of its own.
 */
static void *pause_and_unpause(void *data)
{
	struct caller *caller = data;
	const int fd = caller->kfd->fd;
	unsigned int i;

	pthread_barrier_wait(caller->start);
	for (i = 0; i < CALLS; i++) {
		switch (rand_r(&caller->seed) % 5) {
		case 0:
			count(caller, kfd_v1_op(fd, KFD_CRIU_OP_PROCESS_INFO),
			      &caller->pauses, 0, 0);
			break;
		case 1:
			pause_or_unpause_v2(caller);
			break;
		case 2:
			count(caller, checkpoint_v1(caller), &caller->checkpoints,
			      -EINVAL, 0);
			break;
		case 3:
			count(caller, kfd_v2_image_checkpoint(fd, &caller->v2),
			      &caller->checkpoints, -EBADF, 0);
			break;
		default:
			count(caller, kfd_v1_op(fd, KFD_CRIU_OP_UNPAUSE),
			      &caller->unpauses, -EINVAL, 0);
		}
	}
	if (caller->v2.pause_fd != KFD_NO_PAUSE)
		pause_or_unpause_v2(caller);
	return NULL;
}

static int checkpoints_by_two_threads(struct kfd *kfd, void *data)
{
	struct caller callers[2] = {};
	struct fixture fixture;
	unsigned int i;
	int files;

	(void)data;
	if (fixture_create(kfd, &fixture, FIXTURE_IDLE_QUEUE))
		return 1;
	for (i = 0; i < 2; i++) {
		callers[i].kfd = kfd;
		callers[i].seed = rand_first_seed() + i;
		if (kfd_v1_image_prepare(kfd->fd, &callers[i].v1) ||
		    kfd_v2_image_prepare(kfd->fd, &callers[i].v2))
			return 2;
	}
	files = count_files();
	if (run_threads(callers, pause_and_unpause))
		return 3;
	/* The first pause of each caller was begun before the threads. */
	if (callers[0].unpauses + callers[1].unpauses >
	    callers[0].pauses + callers[1].pauses + 3)
		return 4;
	if (!callers[0].checkpoints || !callers[1].checkpoints)
		return 5;
	/* The files of the two pauses are closed. */
	if (count_files() != files - 2)
		return 6;
	kfd_v1_op(kfd->fd, KFD_CRIU_OP_UNPAUSE);
	if (kfd_v2_state(kfd) != KFD_CRIU_STATE_RUNNING)
		return 7;
	return kfd_queue_runs(kfd, &fixture.sdma) ? 0 : 8;
}

TEST_F_TIMEOUT(concurrent, checkpoints_by_two_threads_do_not_mix, LIMIT_S)
{
	EXPECT_EQ(0, kfd_in_child(checkpoints_by_two_threads, NULL));
}

static int restore(struct caller *caller)
{
	int r;

	if (caller->is_v2)
		return kfd_v2_image_restore(caller->kfd, &caller->v2);
	r = kfd_v1_image_restore(caller->kfd, &caller->v1);
	if (!r)
		kfd_v1_image_close_files(&caller->v1);
	return r;
}

static int resume(const struct caller *caller)
{
	return caller->is_v2 ? kfd_v2_resume(caller->kfd) :
			       kfd_v1_resume(caller->kfd->fd, getpid());
}

/* The slower thread finds the process restored, running or aborted. */
static void *restore_and_end(void *data)
{
	struct caller *caller = data;
	int r;

	pthread_barrier_wait(caller->start);
	usleep(rand_r(&caller->seed) % DELAY_US);
	r = restore(caller);
	count(caller, r == -EIO ? -EBUSY : r, &caller->restores, -EBUSY, -EINVAL);
	if (rand_r(&caller->seed) % 2) {
		r = resume(caller);
		/* EBUSY: the other thread's RESTORE is not finished. */
		count(caller, r == -EBUSY ? -EINVAL : r, &caller->resumes, -EINVAL,
		      -EIO);
	} else {
		count(caller, kfd_v2_op(caller->kfd->fd, KFD_CRIU_CMD_ABORT),
		      &caller->aborts, -EINVAL, -EBUSY);
	}
	return NULL;
}

/* What the test shares with its child: how often the process was aborted, and resumed. */
struct round {
	struct fixture *fixture;
	struct leak_baseline before;
	unsigned int *ends;
	unsigned long seed;
};

static int check_restored(const struct kfd *kfd, struct fixture *fixture)
{
	if (kfd_v2_state(kfd) != KFD_CRIU_STATE_RUNNING)
		return 10;
	return fixture_check_idle_queue(kfd, fixture) ? 11 : 0;
}

static int restores_by_two_threads(struct kfd *kfd, void *data)
{
	const struct round *round = data;
	struct leak_baseline before = round->before;
	struct caller callers[2] = {};
	unsigned int i, restores = 0, resumes = 0, aborts = 0;

	before.files = count_files();
	for (i = 0; i < 2; i++) {
		callers[i].kfd = kfd;
		callers[i].v1 = round->fixture->v1;
		callers[i].v2 = round->fixture->v2;
		callers[i].seed = round->seed + 1000 * i;
	}
	if (run_threads(callers, restore_and_end))
		return 1;
	for (i = 0; i < 2; i++) {
		restores += callers[i].restores;
		resumes += callers[i].resumes;
		aborts += callers[i].aborts;
	}
	if (restores != 1)
		return 2;
	/* A second RESUME may find the first one in progress, and joins it. */
	if (!resumes == !aborts || aborts > 1)
		return 3;
	round->ends[resumes > 0]++;
	return resumes ? check_restored(kfd, round->fixture) :
			 leak_check(kfd, &before);
}

TEST_F_TIMEOUT(concurrent, one_of_two_threads_restores_and_one_ends_the_restore, LIMIT_S)
{
	struct round round = {
		.fixture = &self->fixture,
		.before = self->before,
		.seed = rand_first_seed(),
	};
	unsigned int i;

	round.ends = shared_memory(KFD_PAGE);
	ASSERT_NE(MAP_FAILED, round.ends);
	for (i = 0; i < ROUNDS; i++, round.seed++) {
		ASSERT_EQ(0, kfd_in_child(restores_by_two_threads, &round))
			TH_LOG("KFD_CRIU_SEED=%lu", round.seed);
	}
	TH_LOG("%u aborted, %u resumed", round.ends[0], round.ends[1]);
	EXPECT_LT(0, round.ends[0]);
	EXPECT_LT(0, round.ends[1]);
	munmap(round.ends, KFD_PAGE);
}

KFD_TEST_MAIN
