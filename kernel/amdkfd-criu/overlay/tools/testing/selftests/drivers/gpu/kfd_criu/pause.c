// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * A pause belongs to the process that asked for it and ends when that process exits.
 *
 * Runs: once
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include "../../../kselftest_harness.h"
#include "lib/bo.h"
#include "lib/criu_op.h"
#include "lib/image_v1.h"
#include "lib/kfd.h"
#include "lib/queue.h"

#define LIMIT_MS	10000
/* Queues must not execute anything for so long while the process is paused. */
#define PAUSE_HOLDS_MS	50

/* Words of the BO. */
enum {
	GATE,
	SDMA_BEHIND,
	PM4_BEHIND,
};

FIXTURE(pause) {
	struct kfd kfd;
	struct kfd_bo bo, area;
	struct kfd_queue sdma, pm4;
	int *paused;	/* what PROCESS_INFO returned to the tracer, or 1 for success */
	pid_t tracer;
};

static void pause_until_killed(struct kfd *kfd, pid_t program, int *paused)
{
	if (ptrace(PTRACE_SEIZE, program, 0, 0))
		_exit(1);
	__atomic_store_n(paused, kfd_v1_op(kfd->fd, KFD_CRIU_OP_PROCESS_INFO) ?: 1,
			 __ATOMIC_RELEASE);
	for (;;)
		sleep(1000);
}

static __u64 word_va(const struct kfd_bo *bo, unsigned int i)
{
	return bo->va + i * sizeof(__u32);
}

/* Creates two queues that wait at a closed gate, each with a packet behind it. */
static int make_queues(struct kfd *kfd, const struct kfd_bo *bo,
		       struct kfd_bo *area, struct kfd_queue *sdma,
		       struct kfd_queue *pm4)
{
	const struct kfd_compute_queue_options wish = {
		.type = KFD_IOC_QUEUE_TYPE_COMPUTE,
		.percentage = KFD_MAX_QUEUE_PERCENTAGE,
		.area = area,
	};
	int r = kfd_queue_create(kfd, 0, sdma);

	r = r ? r : kfd_cwsr_area_create(kfd, 0, area);
	r = r ? r : kfd_compute_queue_create(kfd, 0, &wish, pm4);
	if (r)
		return r;
	kfd_sdma_wait(sdma, word_va(bo, GATE), 1);
	kfd_sdma_write(sdma, word_va(bo, SDMA_BEHIND), 1);
	kfd_pm4_wait(pm4, word_va(bo, GATE), 1);
	kfd_pm4_write(pm4, word_va(bo, PM4_BEHIND), 1);
	return 0;
}

FIXTURE_SETUP(pause)
{
	const pid_t program = getpid();
	int i;

	self->tracer = 0;
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, kfd_acquire_vms(&self->kfd));
	ASSERT_EQ(0, kfd_bo_create(&self->kfd, 0, KFD_BO_GTT, KFD_PAGE,
				   &self->bo));
	ASSERT_EQ(0, make_queues(&self->kfd, &self->bo, &self->area,
				 &self->sdma, &self->pm4));
	self->paused = shared_memory(KFD_PAGE);
	ASSERT_NE(MAP_FAILED, self->paused);
	self->tracer = fork();
	ASSERT_LE(0, self->tracer);
	if (!self->tracer)
		pause_until_killed(&self->kfd, program, self->paused);
	for (i = 0; i < LIMIT_MS; i++) {
		if (__atomic_load_n(self->paused, __ATOMIC_ACQUIRE))
			break;
		usleep(1000);
	}
	ASSERT_EQ(1, *self->paused);
}

FIXTURE_TEARDOWN(pause)
{
	if (self->tracer > 0) {
		kill(self->tracer, SIGKILL);
		waitpid(self->tracer, NULL, 0);
	}
	kfd_close(&self->kfd);
}

TEST_F(pause, belongs_to_the_process_that_asked_for_it)
{
	struct kfd_v1_image none = { 0 };

	none.args.devices = 1;
	none.args.bos = 1;
	none.args.priv_data = 1;
	EXPECT_EQ(-EBUSY, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_PROCESS_INFO));
	EXPECT_EQ(-EBUSY, kfd_v1_image_checkpoint(self->kfd.fd, &none));
	EXPECT_EQ(-EBUSY, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_UNPAUSE));
}

static int kill_owner(pid_t *tracer)
{
	const pid_t pid = *tracer;

	*tracer = 0;
	kill(pid, SIGKILL);
	return waitpid(pid, NULL, 0) == pid ? 0 : -ECHILD;
}

TEST_F(pause, ends_when_its_owner_exits)
{
	int i, r = -EBUSY;

	ASSERT_EQ(0, kill_owner(&self->tracer));
	for (i = 0; i < LIMIT_MS / 50 && r == -EBUSY; i++) {
		usleep(50 * 1000);
		r = kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_UNPAUSE);
	}
	/* The driver has ended the pause already. */
	EXPECT_EQ(-EINVAL, r);
	EXPECT_EQ(0, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_PROCESS_INFO));
	EXPECT_EQ(0, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_UNPAUSE));
}

/* The queues must continue although nobody rings their doorbells after the pause. */
TEST_F(pause, lets_queues_with_work_continue_when_its_owner_exits)
{
	__u32 *words = self->bo.cpu;

	__atomic_store_n(&words[GATE], 1, __ATOMIC_RELEASE);
	usleep(PAUSE_HOLDS_MS * 1000);
	EXPECT_EQ(0, __atomic_load_n(&words[SDMA_BEHIND], __ATOMIC_ACQUIRE));
	EXPECT_EQ(0, __atomic_load_n(&words[PM4_BEHIND], __ATOMIC_ACQUIRE));
	ASSERT_EQ(0, kill_owner(&self->tracer));
	EXPECT_TRUE(wait_for_word(&words[SDMA_BEHIND], 1));
	EXPECT_TRUE(wait_for_word(&words[PM4_BEHIND], 1));
	EXPECT_EQ(KFD_CRIU_STATE_RUNNING, kfd_v2_state(&self->kfd));
}

KFD_TEST_MAIN
