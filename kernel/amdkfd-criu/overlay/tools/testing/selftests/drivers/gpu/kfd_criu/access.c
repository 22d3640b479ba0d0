// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Who may: the process itself and its tracer, with CAP_CHECKPOINT_RESTORE in the user
 * namespace that the process is in.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/capability.h>
#include "../../../kselftest_harness.h"
#include "lib/criu_op.h"
#include "lib/image_v2.h"
#include "lib/kfd.h"
#include "lib/svm.h"

#define CHILD_LIMIT_S	60

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct none[2] = {};

	return syscall(SYS_capset, &header, none) ? -errno : 0;
}

/* What a child of the process is answered, as a positive errno; 255: something else
 * went wrong.
 */
static int ask_child(int (*body)(struct kfd *kfd, pid_t parent),
		     struct kfd *kfd)
{
	const pid_t parent = getpid();
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(-body(kfd, parent));
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 255;
	return WEXITSTATUS(status);
}

FIXTURE(access) {
	struct kfd kfd;
};

FIXTURE_SETUP(access)
{
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, kfd_acquire_vms(&self->kfd));
}

FIXTURE_TEARDOWN(access)
{
	kfd_close(&self->kfd);
}

/* Args that an operation takes: what it is refused for is not them. */
static int ask(const struct kfd *kfd, __u32 op)
{
	static struct kfd_criu_v2_probe room;
	struct kfd_criu_v2_args args = { .op = op };

	switch (op) {
	case KFD_CRIU_V2_PROBE:
	case KFD_CRIU_V2_CHECKPOINT:
	case KFD_CRIU_V2_RESTORE:
		args.data = (unsigned long)&room;
		args.data_size = sizeof(room);
		break;
	case KFD_CRIU_V2_EXPORT_BO:
	case KFD_CRIU_V2_BO_OFFSET:
		args.gpu_id = kfd->gpus[0].id;
		break;
	case KFD_CRIU_V2_RESUME:
		args.pid = getpid();
	}
	return kfd_v2(kfd->fd, &args);
}

/* 0 if all operations are answered the same, else that of the first one that is not. */
static int ask_all(const struct kfd *kfd, int answer)
{
	__u32 op;
	int r;

	for (op = KFD_CRIU_OP_PROCESS_INFO; op <= KFD_CRIU_OP_RESUME; op++) {
		struct kfd_ioctl_criu_args args = { .op = op, .pid = getpid() };

		r = kfd_v1(kfd->fd, &args);
		if (r != answer)
			return r ?: -ENOTUNIQ;
	}
	for (op = KFD_CRIU_V2_PROBE; op <= KFD_CRIU_V2_BO_OFFSET; op++) {
		r = ask(kfd, op);
		if (r != answer)
			return r ?: -ENOTUNIQ;
	}
	return 0;
}

TEST_F(access, without_the_capability_every_operation_is_refused)
{
	ASSERT_EQ(0, drop_capabilities());
	EXPECT_EQ(0, ask_all(&self->kfd, -EACCES));
}

static int ask_as_stranger(struct kfd *kfd, pid_t parent)
{
	(void)parent;
	return ask_all(kfd, -EBADF);
}

TEST_F(access, an_inherited_file_is_not_a_right_to_anything)
{
	EXPECT_EQ(0, ask_child(ask_as_stranger, &self->kfd));
	EXPECT_EQ(KFD_CRIU_STATE_RUNNING, kfd_v2_state(&self->kfd));
}

static int trace(pid_t parent)
{
	return ptrace(PTRACE_SEIZE, parent, 0, 0) ? -errno : 0;
}

static int ask_as_tracer(struct kfd *kfd, pid_t parent)
{
	int r = trace(parent);

	if (r)
		return r;
	r = kfd_v1_op(kfd->fd, KFD_CRIU_OP_PROCESS_INFO);
	return r ? r : kfd_v1_op(kfd->fd, KFD_CRIU_OP_UNPAUSE);
}

TEST_F(access, a_tracer_may)
{
	EXPECT_EQ(0, ask_child(ask_as_tracer, &self->kfd));
}

/* As the operations say whose they are; there is neither an image nor a BO. */
static int ask_all_as_tracer(struct kfd *kfd, pid_t parent)
{
	static const struct {
		__u32 op;
		int answer;
	} expected[] = {
		{ KFD_CRIU_V2_PROBE, 0 },
		{ KFD_CRIU_V2_STATE, 0 },
		{ KFD_CRIU_V2_RESTORE, -EPERM },
		{ KFD_CRIU_V2_ABORT, -EINVAL },
		{ KFD_CRIU_V2_PAUSE, 0 },
		{ KFD_CRIU_V2_CHECKPOINT, 0 },
		{ KFD_CRIU_V2_EXPORT_BO, -ENOENT },
		{ KFD_CRIU_V2_BO_OFFSET, -ENOENT },
		{ KFD_CRIU_V2_UNPAUSE, 0 },
	};
	struct kfd_v2_image image;
	unsigned int i;
	int r = trace(parent);

	for (i = 0; !r && i < sizeof(expected) / sizeof(*expected); i++) {
		if (expected[i].op == KFD_CRIU_V2_CHECKPOINT)
			r = kfd_v2_image_dump(kfd->fd, &image);
		else
			r = ask(kfd, expected[i].op);
		if (r != expected[i].answer)
			return -(int)(100 + i);
		r = 0;
	}
	return r;
}

TEST_F(access, a_tracer_may_all_but_restore)
{
	EXPECT_EQ(0, ask_child(ask_all_as_tracer, &self->kfd));
	EXPECT_EQ(KFD_CRIU_STATE_RUNNING, kfd_v2_state(&self->kfd));
}

static int ask_as_weak_tracer(struct kfd *kfd, pid_t parent)
{
	int r = trace(parent);

	if (!r)
		r = drop_capabilities();
	return r ? r : ask_all(kfd, -EACCES);
}

TEST_F(access, a_tracer_needs_the_capability_too)
{
	EXPECT_EQ(0, ask_child(ask_as_weak_tracer, &self->kfd));
}

static int resume_a_stranger(struct kfd *kfd, pid_t parent)
{
	struct kfd own;
	int r = kfd_open(&own);

	(void)kfd;
	return r ? -255 : kfd_v1_resume(own.fd, parent);
}

/* H6 of the incumbent: RESUME takes any process. */
TEST_F(access, a_stranger_is_not_resumed)
{
	EXPECT_EQ(EBADF, ask_child(resume_a_stranger, &self->kfd));
}

/* A child that is restored, and stops where it can be resumed: its id, or -1. */
static pid_t restore_child(const struct kfd_v2_image *image)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct kfd kfd;

		alarm(CHILD_LIMIT_S);
		if (kfd_open(&kfd) || kfd_v2_image_restore(&kfd, image) ||
		    ptrace(PTRACE_TRACEME, 0, 0, 0))
			_exit(1);
		raise(SIGSTOP);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return -1;
	return pid;
}

/* What RESUME of such a child answers, and which state it tells. */
static int resume_child(const struct kfd *kfd, const struct kfd_v2_image *image,
			__u32 *state)
{
	struct kfd_criu_v2_args args = { .op = KFD_CRIU_V2_RESUME };
	const pid_t pid = restore_child(image);
	int r;

	if (pid < 0)
		return -ECHILD;
	args.pid = pid;
	r = kfd_v2(kfd->fd, &args);
	*state = args.state;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return r;
}

/* Its own is another one: it is paused. */
TEST_F(access, a_tracer_is_told_the_state_of_whom_it_resumes)
{
	struct kfd_criu_record_svm_range *range;
	struct kfd_v2_image image;
	__u32 state = ~0U;
	void *memory;

	if (!svm_is_supported(&self->kfd))
		SKIP(return, "no SVM before gfx9");
	memory = svm_memory(KFD_PAGE);
	ASSERT_NE(NULL, memory);
	ASSERT_EQ(0, svm_set_access(&self->kfd, memory, KFD_PAGE, 0,
				    KFD_IOCTL_SVM_ATTR_ACCESS));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &image));
	EXPECT_EQ(0, resume_child(&self->kfd, &image, &state));
	EXPECT_EQ(KFD_CRIU_STATE_RUNNING, state);
	range = (void *)v2_nth(&image, KFD_CRIU_RECORD_SVM_RANGE, 0);
	ASSERT_NE(NULL, range);
	range->start += SVM_AWAY;
	EXPECT_EQ(-EFAULT, resume_child(&self->kfd, &image, &state));
	EXPECT_EQ(KFD_CRIU_STATE_ABORTED, state);
	EXPECT_EQ(KFD_CRIU_STATE_PAUSED, kfd_v2_state(&self->kfd));
	free(image.data);
}

TEST_F(access, nobody_is_resumed_who_is_not_there)
{
	EXPECT_EQ(-ESRCH, kfd_v1_resume(self->kfd.fd, 0x3fffffff));
}

/* As root of a container that has no rights outside. */
TEST(the_capability_is_that_of_the_process_s_namespace)
{
	struct kfd kfd;

	if (unshare(CLONE_NEWUSER))
		SKIP(return, "no user namespaces");
	if (kfd_open(&kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, kfd_acquire_vms(&kfd));
	EXPECT_EQ(0, kfd_v1_op(kfd.fd, KFD_CRIU_OP_PROCESS_INFO));
	EXPECT_EQ(0, kfd_v1_op(kfd.fd, KFD_CRIU_OP_UNPAUSE));
	ASSERT_EQ(0, drop_capabilities());
	EXPECT_EQ(-EACCES, kfd_v1_op(kfd.fd, KFD_CRIU_OP_PROCESS_INFO));
}

static int ask_from_a_container(struct kfd *kfd, pid_t parent)
{
	int r = trace(parent);

	if (!r && unshare(CLONE_NEWUSER))
		r = -errno;
	return r ? r : ask_all(kfd, -EACCES);
}

TEST_F(access, rights_in_a_namespace_within_are_not_enough)
{
	EXPECT_EQ(0, ask_child(ask_from_a_container, &self->kfd));
}

KFD_TEST_MAIN
