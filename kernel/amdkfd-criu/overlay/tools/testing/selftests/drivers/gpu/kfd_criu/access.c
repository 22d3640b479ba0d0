// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Who may use AMDKFD_IOC_CRIU_OP: the process itself and its tracer, with
 * CAP_CHECKPOINT_RESTORE in the user namespace of the process.
 *
 * Runs: once
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

/*
 * Calls body in a child of the process. Returns the errno that body returned, as a positive
 * number, or 255 if the child did not exit.
 */
static int run_in_child(int (*body)(struct kfd *kfd, pid_t parent),
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

/* Calls an operation with valid arguments, so that they are not why it is refused. */
static int call_op(const struct kfd *kfd, __u32 op)
{
	static struct kfd_criu_v2_probe buffer;
	struct kfd_criu_v2_args args = { .op = op };

	switch (op) {
	case KFD_CRIU_V2_PROBE:
	case KFD_CRIU_V2_CHECKPOINT:
	case KFD_CRIU_V2_RESTORE:
		args.data = (unsigned long)&buffer;
		args.data_size = sizeof(buffer);
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

/*
 * Calls all operations of both ABIs. Returns 0 if each returned the expected errno, else
 * what the first other one returned.
 */
static int call_all(const struct kfd *kfd, int expected)
{
	__u32 op;
	int r;

	for (op = KFD_CRIU_OP_PROCESS_INFO; op <= KFD_CRIU_OP_RESUME; op++) {
		struct kfd_ioctl_criu_args args = { .op = op, .pid = getpid() };

		r = kfd_v1(kfd->fd, &args);
		if (r != expected)
			return r ?: -ENOTUNIQ;
	}
	for (op = KFD_CRIU_V2_PROBE; op <= KFD_CRIU_V2_BO_OFFSET; op++) {
		r = call_op(kfd, op);
		if (r != expected)
			return r ?: -ENOTUNIQ;
	}
	return 0;
}

TEST_F(access, without_the_capability_every_operation_is_refused)
{
	ASSERT_EQ(0, drop_capabilities());
	EXPECT_EQ(0, call_all(&self->kfd, -EACCES));
}

static int call_as_other_process(struct kfd *kfd, pid_t parent)
{
	(void)parent;
	return call_all(kfd, -EBADF);
}

TEST_F(access, an_inherited_file_gives_no_access)
{
	EXPECT_EQ(0, run_in_child(call_as_other_process, &self->kfd));
	EXPECT_EQ(KFD_CRIU_STATE_RUNNING, kfd_v2_state(&self->kfd));
}

static int trace(pid_t parent)
{
	return ptrace(PTRACE_SEIZE, parent, 0, 0) ? -errno : 0;
}

static int call_as_tracer(struct kfd *kfd, pid_t parent)
{
	int r = trace(parent);

	if (r)
		return r;
	r = kfd_v1_op(kfd->fd, KFD_CRIU_OP_PROCESS_INFO);
	return r ? r : kfd_v1_op(kfd->fd, KFD_CRIU_OP_UNPAUSE);
}

TEST_F(access, a_tracer_may_pause_and_unpause)
{
	EXPECT_EQ(0, run_in_child(call_as_tracer, &self->kfd));
}

/* What a tracer may do; it has neither an image nor a BO of the process. */
static int call_all_as_tracer(struct kfd *kfd, pid_t parent)
{
	static const struct {
		__u32 op;
		int result;
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
			r = call_op(kfd, expected[i].op);
		if (r != expected[i].result)
			return -(int)(100 + i);
		r = 0;
	}
	return r;
}

TEST_F(access, a_tracer_may_do_all_but_restore)
{
	EXPECT_EQ(0, run_in_child(call_all_as_tracer, &self->kfd));
	EXPECT_EQ(KFD_CRIU_STATE_RUNNING, kfd_v2_state(&self->kfd));
}

static int call_as_tracer_without_capability(struct kfd *kfd, pid_t parent)
{
	int r = trace(parent);

	if (!r)
		r = drop_capabilities();
	return r ? r : call_all(kfd, -EACCES);
}

TEST_F(access, a_tracer_needs_the_capability_too)
{
	EXPECT_EQ(0, run_in_child(call_as_tracer_without_capability, &self->kfd));
}

static int resume_untraced_process(struct kfd *kfd, pid_t parent)
{
	struct kfd own;
	int r = kfd_open(&own);

	(void)kfd;
	return r ? -255 : kfd_v1_resume(own.fd, parent);
}

/* RESUME once accepted the id of any process. */
TEST_F(access, a_process_that_is_not_traced_is_not_resumed)
{
	EXPECT_EQ(EBADF, run_in_child(resume_untraced_process, &self->kfd));
}

/* Starts a child that is restored and then stops, to be resumed by its tracer. Returns its
 * process id, or -1.
 */
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

/* Resumes such a child. Returns what RESUME returned, and stores the state it reported. */
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

/* The state is not that of the caller, which is paused. */
TEST_F(access, resume_returns_the_state_of_the_process_that_it_resumes)
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

TEST_F(access, resume_of_a_process_id_that_is_not_used_fails)
{
	EXPECT_EQ(-ESRCH, kfd_v1_resume(self->kfd.fd, 0x3fffffff));
}

/* The caller is root of a container and has no rights outside of it. */
TEST(the_capability_counts_in_the_namespace_of_the_process)
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

static int call_from_child_namespace(struct kfd *kfd, pid_t parent)
{
	int r = trace(parent);

	if (!r && unshare(CLONE_NEWUSER))
		r = -errno;
	return r ? r : call_all(kfd, -EACCES);
}

TEST_F(access, the_capability_in_a_child_namespace_is_not_enough)
{
	EXPECT_EQ(0, run_in_child(call_from_child_namespace, &self->kfd));
}

KFD_TEST_MAIN
