// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * A process id is used again while a file of the process that had it before is still open.
 * KFD names its directory in sysfs by the process id, so the second process has none. A
 * restore meets this case: CRIU gives processes the ids that they had.
 *
 * Runs: once
 */
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../../kselftest_harness.h"
#include "lib/kfd.h"

/* The kernel frees the state of a process in a worker; more processes, more chances to crash. */
#define PROCESSES	20

/* Like fork(); the child has this process id, or any if it is 0. */
static pid_t fork_as(pid_t pid)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = pid ? (__u64)(unsigned long)&pid : 0,
		.set_tid_size = pid ? 1 : 0,
	};

	return syscall(SYS_clone3, &args, sizeof(args));
}

static bool has_sysfs_directory(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/class/kfd/kfd/proc/%d", pid);
	return !access(path, F_OK);
}

/* Opens /dev/kfd and exits; a child of it has the file until `until` has no writer. */
static void exit_with_file_open(int until)
{
	const int fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	char byte;

	if (fd < 0)
		_exit(1);
	switch (fork()) {
	case -1:
		_exit(1);
	case 0:
		_exit(read(until, &byte, 1) ? 1 : 0);
	default:
		_exit(0);
	}
}

static void open_and_exit(void)
{
	const int fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);

	_exit(fd < 0);
}

TEST(a_process_without_a_directory_in_sysfs_opens_kfd_and_exits)
{
	int hold[2], status = -1, i;
	pid_t first, next;

	ASSERT_EQ(0, pipe(hold));
	first = fork_as(0);
	ASSERT_LE(0, first);
	if (!first) {
		close(hold[1]);
		exit_with_file_open(hold[0]);
	}
	ASSERT_EQ(first, waitpid(first, &status, 0));
	ASSERT_EQ(0, status);
	ASSERT_TRUE(has_sysfs_directory(first));

	for (i = 0; i < PROCESSES; i++) {
		next = fork_as(first);
		ASSERT_LE(0, next);
		if (!next)
			open_and_exit();
		ASSERT_EQ(first, next);
		ASSERT_EQ(first, waitpid(first, &status, 0));
		EXPECT_EQ(0, status);
		/* The directory is that of the first process. */
		EXPECT_TRUE(has_sysfs_directory(first));
	}
	close(hold[1]);
	close(hold[0]);
	EXPECT_TRUE(kfd_process_is_released(first));
	EXPECT_FALSE(has_sysfs_directory(first));
}

KFD_TEST_MAIN
