// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * A pause belongs to who asked for it, and ends with it.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include "../../../kselftest_harness.h"
#include "kfd.h"

#define LIMIT_MS	10000

FIXTURE(pause) {
	struct kfd kfd;
	struct kfd_bo bo;
	int *told;	/* by the tracer, once it has paused us */
	pid_t tracer;
};

static void pause_until_killed(struct kfd *kfd, pid_t program, int *told)
{
	if (ptrace(PTRACE_SEIZE, program, 0, 0))
		_exit(1);
	__atomic_store_n(told, kfd_criu_op(kfd->fd, KFD_CRIU_OP_PROCESS_INFO) ?: 1,
			 __ATOMIC_RELEASE);
	for (;;)
		sleep(1000);
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
	self->told = mmap(NULL, KFD_PAGE, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->told);
	self->tracer = fork();
	ASSERT_LE(0, self->tracer);
	if (!self->tracer)
		pause_until_killed(&self->kfd, program, self->told);
	for (i = 0; i < LIMIT_MS; i++) {
		if (__atomic_load_n(self->told, __ATOMIC_ACQUIRE))
			break;
		usleep(1000);
	}
	ASSERT_EQ(1, *self->told);
}

FIXTURE_TEARDOWN(pause)
{
	if (self->tracer > 0) {
		kill(self->tracer, SIGKILL);
		waitpid(self->tracer, NULL, 0);
	}
	kfd_close(&self->kfd);
}

TEST_F(pause, nobody_else_has_a_say)
{
	struct kfd_image none = { 0 };

	none.args.devices = 1;
	none.args.bos = 1;
	none.args.priv_data = 1;
	EXPECT_EQ(-EBUSY, kfd_criu_op(self->kfd.fd, KFD_CRIU_OP_PROCESS_INFO));
	EXPECT_EQ(-EBUSY, kfd_image_checkpoint(self->kfd.fd, &none));
	EXPECT_EQ(-EBUSY, kfd_criu_op(self->kfd.fd, KFD_CRIU_OP_UNPAUSE));
}

TEST_F(pause, ends_with_its_owner)
{
	int i, r = -EBUSY;

	kill(self->tracer, SIGKILL);
	ASSERT_EQ(self->tracer, waitpid(self->tracer, NULL, 0));
	self->tracer = 0;
	for (i = 0; i < LIMIT_MS / 50 && r == -EBUSY; i++) {
		usleep(50 * 1000);
		r = kfd_criu_op(self->kfd.fd, KFD_CRIU_OP_UNPAUSE);
	}
	/* It runs already. */
	EXPECT_EQ(-EINVAL, r);
	EXPECT_EQ(0, kfd_criu_op(self->kfd.fd, KFD_CRIU_OP_PROCESS_INFO));
	EXPECT_EQ(0, kfd_criu_op(self->kfd.fd, KFD_CRIU_OP_UNPAUSE));
}

TEST_HARNESS_MAIN
