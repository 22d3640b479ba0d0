// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Who may use which operation of AMDKFD_IOC_CRIU_OP, as one table of callers and
 * capabilities; and that root of a user namespace cannot write registers.
 *
 * Runs: once
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <linux/capability.h>
#include "../../../kselftest_harness.h"
#include "lib/bo.h"
#include "lib/criu_op.h"
#include "lib/image_v1.h"
#include "lib/image_v2.h"
#include "lib/kfd.h"
#include "lib/queue.h"
#include "lib/svm.h"

#define CHILD_LIMIT_S	60
#define USER		1000
#define STRANGER	2000

/* ---- operations ---- */

enum op {
	V1_PROCESS_INFO,
	V1_CHECKPOINT,
	V1_UNPAUSE,
	V1_RESTORE,
	V1_RESUME,
	PROBE,
	STATE,
	PAUSE,
	CHECKPOINT,
	EXPORT_BO,
	BO_OFFSET,
	UNPAUSE,
	RESTORE,
	RESTORE_QUEUE,	/* RESTORE of an image that has a queue */
	RESUME,
	ABORT,
	OPS,
};

static const struct {
	const char *name;
	/*
	 * What the operation returns to a caller who has access. The process is
	 * neither empty nor restored, so some operations are refused by its state.
	 */
	int result;
} ops[OPS] = {
	[V1_PROCESS_INFO] = { "info", 0 },
	[V1_CHECKPOINT] = { "checkp", 0 },
	[V1_UNPAUSE] = { "unpause", 0 },
	[V1_RESTORE] = { "restore", -EINVAL },
	[V1_RESUME] = { "resume", -EINVAL },
	[PROBE] = { "PROBE", 0 },
	[STATE] = { "STATE", 0 },
	[PAUSE] = { "PAUSE", 0 },
	[CHECKPOINT] = { "CHECKP", 0 },
	[EXPORT_BO] = { "EXPORT", 0 },
	[BO_OFFSET] = { "OFFSET", 0 },
	[UNPAUSE] = { "UNPAUSE", 0 },
	[RESTORE] = { "RESTORE", -EINVAL },
	[RESTORE_QUEUE] = { "+QUEUE", -EINVAL },
	[RESUME] = { "RESUME", -EINVAL },
	[ABORT] = { "ABORT", -EINVAL },
};

/* A process whose access is checked, and what callers need to know of it. */
struct target {
	pid_t pid;
	int fd;			/* its file of /dev/kfd */
	__u32 gpu_id;
	__u64 handle;		/* of a BO in GTT */
	int pauses[2];		/* made by root, for operations that take one */
	__u64 image_size;
	bool is_ready;
};

static int errno_of(int r)
{
	return r ? -errno : 0;
}

static void call_v1(const struct target *target, int result[OPS])
{
	struct kfd_v1_image image;

	result[V1_PROCESS_INFO] = kfd_v1_image_prepare(target->fd, &image);
	result[V1_CHECKPOINT] = kfd_v1_image_checkpoint(target->fd, &image);
	result[V1_UNPAUSE] = kfd_v1_op(target->fd, KFD_CRIU_OP_UNPAUSE);
	/* Without args, so that nothing is restored. */
	result[V1_RESTORE] = kfd_v1_op(target->fd, KFD_CRIU_OP_RESTORE);
	result[V1_RESUME] = kfd_v1_resume(target->fd, target->pid);
	if (!result[V1_CHECKPOINT])
		kfd_v1_image_close_files(&image);
	kfd_v1_image_free(&image);
}

/* An image of no objects but, if that is wanted, a queue; it is valid at first sight. */
static int restore(const struct target *target, bool with_queue)
{
	struct {
		struct kfd_criu_record_image image;
		struct kfd_criu_record_queue queue;
	} records = {
		.image = {
			.record = {
				.type = KFD_CRIU_RECORD_IMAGE,
				.version = 1,
				.flags = KFD_CRIU_RECORD_REQUIRED,
				.fixed_size = sizeof(records.image),
				.size = sizeof(records.image),
			},
			.magic = KFD_CRIU_IMAGE_MAGIC,
			.num_records = with_queue ? 2 : 1,
		},
		.queue.record = {
			.type = KFD_CRIU_RECORD_QUEUE,
			.version = 1,
			.flags = KFD_CRIU_RECORD_REQUIRED,
			.fixed_size = sizeof(records.queue),
			.size = sizeof(records.queue),
		},
	};
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_RESTORE,
		.data = (unsigned long)&records,
		.data_size = with_queue ? sizeof(records) :
					  sizeof(records.image),
	};

	records.image.size = args.data_size;
	return kfd_v2(target->fd, &args);
}

static int pause_target(const struct target *target, int *pause_fd)
{
	struct kfd_criu_args args = { .op = KFD_CRIU_CMD_PAUSE };
	int r = kfd_v2(target->fd, &args);

	if (!r)
		*pause_fd = args.fd;
	return r;
}

static int call_with_pause(const struct target *target, __u32 op, int pause_fd)
{
	struct kfd_criu_args args = { .op = op, .pause_fd = pause_fd };
	void *data = NULL;
	int r;

	if (op == KFD_CRIU_CMD_CHECKPOINT) {
		data = malloc(target->image_size);
		args.data = (unsigned long)data;
		args.data_size = target->image_size;
	} else if (op != KFD_CRIU_CMD_UNPAUSE) {
		args.gpu_id = target->gpu_id;
		args.handle = target->handle;
	}
	r = kfd_v2(target->fd, &args);
	if (op == KFD_CRIU_CMD_EXPORT_BO && !r)
		close(args.fd);
	free(data);
	return r;
}

static int probe(const struct target *target)
{
	struct kfd_criu_probe buffer;
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_PROBE,
		.data = (unsigned long)&buffer,
		.data_size = sizeof(buffer),
	};

	return kfd_v2(target->fd, &args);
}

/* Operations on a process that is not paused. */
static void call_on_running(const struct target *target, int result[OPS])
{
	int pause_fd;

	call_v1(target, result);
	result[PROBE] = probe(target);
	result[STATE] = kfd_v2_op(target->fd, KFD_CRIU_CMD_STATE);
	result[RESTORE] = restore(target, false);
	result[RESTORE_QUEUE] = restore(target, true);
	result[RESUME] = kfd_v2_op(target->fd, KFD_CRIU_CMD_RESUME);
	result[ABORT] = kfd_v2_op(target->fd, KFD_CRIU_CMD_ABORT);
	result[PAUSE] = pause_target(target, &pause_fd);
	if (!result[PAUSE])
		close(pause_fd);
}

/* Operations on a process that root has paused twice. */
static void call_on_paused(const struct target *target, int result[OPS])
{
	result[CHECKPOINT] = call_with_pause(target, KFD_CRIU_CMD_CHECKPOINT,
					     target->pauses[0]);
	result[EXPORT_BO] = call_with_pause(target, KFD_CRIU_CMD_EXPORT_BO,
					    target->pauses[0]);
	result[BO_OFFSET] = call_with_pause(target, KFD_CRIU_CMD_BO_OFFSET,
					    target->pauses[0]);
	result[UNPAUSE] = call_with_pause(target, KFD_CRIU_CMD_UNPAUSE,
					  target->pauses[1]);
}

static int make_pauses(struct target *target)
{
	struct kfd_criu_args args = { .op = KFD_CRIU_CMD_PAUSE };
	int r = kfd_v2(target->fd, &args);

	if (r)
		return r;
	target->pauses[0] = args.fd;
	target->image_size = args.data_size;
	r = pause_target(target, &target->pauses[1]);
	if (r)
		close(target->pauses[0]);
	return r;
}

static void close_pauses(const struct target *target)
{
	close(target->pauses[0]);
	close(target->pauses[1]);
}

/* ---- who a process is ---- */

/* Capabilities of the process from now on; 0 (CAP_CHOWN) stands for none. */
static int keep_capabilities(int first, int second)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2] = {};
	const int caps[] = { first, second };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		if (!caps[i])
			continue;
		data[CAP_TO_INDEX(caps[i])].permitted |= CAP_TO_MASK(caps[i]);
		data[CAP_TO_INDEX(caps[i])].effective |= CAP_TO_MASK(caps[i]);
	}
	return errno_of(syscall(SYS_capset, &header, data));
}

/* Changes the user, but keeps the capabilities. */
static int become_user(uid_t uid)
{
	if (uid == 0)
		return 0;
	if (prctl(PR_SET_KEEPCAPS, 1) || setgroups(0, NULL) ||
	    setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		return -errno;
	return 0;
}

static int enter_namespace_of(pid_t pid)
{
	char path[64];
	int fd, r;

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return -errno;
	r = errno_of(setns(fd, CLONE_NEWUSER));
	close(fd);
	return r;
}

/* A new or an existing user namespace that a process is in. */
enum namespace {
	INITIAL,
	OWN,		/* a new one */
	OWN_LATER,	/* a new one, which a tracer enters when it traces */
	TARGETS,	/* that of the target */
};

struct who {
	const char *name;
	uid_t uid;
	enum namespace namespace;
	int cap;	/* a capability it has in any case; 0: none */
	bool is_tracer;
	bool is_target;	/* it calls operations on itself */
	bool is_child;	/* it is a child of the target and has inherited the file */
};

static int become(const struct who *who, pid_t target, int extra_cap)
{
	int r = become_user(who->uid);

	if (!r && who->namespace == OWN)
		r = errno_of(unshare(CLONE_NEWUSER));
	if (!r && who->namespace == TARGETS)
		r = enter_namespace_of(target);
	if (!r && who->is_tracer)
		r = errno_of(ptrace(PTRACE_SEIZE, target, 0, 0));
	if (!r && who->namespace == OWN_LATER)
		r = errno_of(unshare(CLONE_NEWUSER));
	if (!r)
		r = keep_capabilities(who->cap, extra_cap);
	/* The change of the user has cleared this. */
	return r ? r : errno_of(prctl(PR_SET_DUMPABLE, 1));
}

/* ---- processes ---- */

/* What a caller returns to the test, in shared memory. */
struct report {
	int error;
	int result[OPS];
};

typedef void (*call_fn)(const struct target *target, int result[OPS]);

/* Runs in a child process. */
static void call_as(const struct who *who, const struct target *target,
		    int extra_cap, call_fn call, struct report *report)
{
	alarm(CHILD_LIMIT_S);
	report->error = become(who, target->pid, extra_cap);
	if (!report->error)
		call(target, report->result);
	_exit(0);
}

static void wait_for(pid_t pid, struct report *report)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		report->error = -ECHILD;
}

/* Opens the GPUs and creates a BO, as the caller of this function. */
static int open_target(struct target *target)
{
	struct kfd kfd;
	struct kfd_bo bo;
	int r = kfd_open(&kfd);

	if (!r)
		r = kfd_acquire_vms(&kfd);
	if (!r)
		r = kfd_bo_create(&kfd, 0, KFD_BO_GTT, KFD_PAGE, &bo);
	target->pid = getpid();
	target->fd = kfd.fd;
	target->gpu_id = kfd.gpus[0].id;
	target->handle = bo.handle;
	return r;
}

/*
 * Starts a process that opens the GPUs, becomes `who` without capabilities, and waits to
 * be killed. The test gets its file.
 */
static int start_target(const struct who *who, bool is_dumpable,
			struct target *target)
{
	struct target *shared = shared_memory(sizeof(*shared));
	int pidfd, r = -ECHILD;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (open_target(shared) || become(who, 0, 0) ||
		    prctl(PR_SET_DUMPABLE, is_dumpable))
			_exit(1);
		/* Credentials that change clear this. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		__atomic_store_n(&shared->is_ready, true, __ATOMIC_RELEASE);
		for (;;)
			pause();
	}
	while (!__atomic_load_n(&shared->is_ready, __ATOMIC_ACQUIRE)) {
		if (pid < 0 || waitpid(pid, NULL, WNOHANG))
			goto out;
		usleep(100);
	}
	*target = *shared;
	pidfd = syscall(SYS_pidfd_open, pid, 0);
	target->fd = syscall(SYS_pidfd_getfd, pidfd, shared->fd, 0);
	r = target->fd < 0 ? -errno : 0;
	close(pidfd);
out:
	munmap(shared, sizeof(*shared));
	return r;
}

static void stop_target(const struct target *target)
{
	kill(target->pid, SIGKILL);
	waitpid(target->pid, NULL, 0);
	close(target->fd);
}

static void call_from_outside(const struct who *who, struct target *target,
			      int extra_cap, struct report *report)
{
	pid_t pid = fork();

	if (pid == 0)
		call_as(who, target, extra_cap, call_on_running, report);
	wait_for(pid, report);
	if (report->error)
		return;
	report->error = make_pauses(target);
	if (report->error)
		return;
	pid = fork();
	if (pid == 0)
		call_as(who, target, extra_cap, call_on_paused, report);
	wait_for(pid, report);
	close_pauses(target);
}

/* The target calls, or a child of it. While it is root, it can make the pauses. */
static void call_from_inside(const struct who *who, int extra_cap, call_fn call,
			     struct report *report)
{
	struct target target;
	pid_t child, pid = fork();

	if (pid == 0) {
		alarm(CHILD_LIMIT_S);
		report->error = open_target(&target);
		if (!report->error && call == call_on_paused)
			report->error = make_pauses(&target);
		if (!report->error)
			report->error = become(who, 0, extra_cap);
		if (report->error)
			_exit(0);
		child = who->is_child ? fork() : 0;
		if (child == 0) {
			call(&target, report->result);
			_exit(0);
		}
		wait_for(child, report);
		_exit(0);
	}
	wait_for(pid, report);
}

/* ---- the matrix ---- */

/*
 * What an operation returns instead of ops[].result; 0: nothing, the caller has access.
 * PROBE, STATE and UNPAUSE need no more than the file.
 */
struct access {
	int v1;
	int v1_restore;
	int other;
	int restore;
	int restore_queue;
};

struct row {
	struct who caller;
	struct access without;	/* the capability */
	struct access with;
};

#define NOBODY		{ -EBADF, -EBADF, -EPERM, -EPERM, -EPERM }
#define INCAPABLE	{ -EBADF, -EBADF, -EACCES, -EACCES, -EACCES }
/* Only the process itself can restore it. */
#define CAPABLE		{ -EBADF, -EBADF, 0, -EPERM, -EPERM }
/* The process itself, or its tracer */
#define INCAPABLE_V1	{ -EACCES, -EACCES, -EACCES, -EACCES, -EACCES }

#define TRACER_BELOW	{ -EPERM, -EPERM, -EPERM, -EPERM, -EPERM }

static const struct row rows_of_user[] = {
	{ { "root", 0, .cap = CAP_SYS_PTRACE }, INCAPABLE, CAPABLE },
	{ { "root, tracer", 0, .cap = CAP_SYS_PTRACE, .is_tracer = true },
	  INCAPABLE_V1, { 0, 0, 0, -EPERM, -EPERM } },
	{ { "user", USER }, INCAPABLE, CAPABLE },
	{ { "user, tracer", USER, .is_tracer = true },
	  INCAPABLE_V1, { 0, 0, 0, -EPERM, -EPERM } },
	{ { "root of a namespace", USER, OWN, CAP_SYS_PTRACE }, NOBODY, NOBODY },
	/* It has every capability, but in a namespace that the target is not in. */
	{ { "root of one, tracer", USER, OWN_LATER, CAP_SYS_PTRACE, true },
	  TRACER_BELOW, TRACER_BELOW },
	{ { "stranger", STRANGER }, NOBODY, NOBODY },
	{ { "itself", USER, .is_target = true },
	  INCAPABLE_V1, { 0, 0, 0, 0, 0 } },
	{ { "child, inherited", USER, .is_target = true, .is_child = true },
	  INCAPABLE, CAPABLE },
};

static const struct row rows_of_namespace[] = {
	{ { "root", 0, .cap = CAP_SYS_PTRACE }, INCAPABLE, CAPABLE },
	/* Who has created a user namespace has all capabilities in it. */
	{ { "user, its creator", USER }, CAPABLE, CAPABLE },
	{ { "root of it", USER, TARGETS, CAP_SYS_PTRACE }, INCAPABLE, CAPABLE },
	{ { "root of it, tracer", USER, TARGETS, CAP_SYS_PTRACE, true },
	  INCAPABLE_V1, { 0, -EACCES, 0, -EPERM, -EPERM } },
	{ { "stranger", STRANGER }, NOBODY, NOBODY },
	{ { "itself", USER, OWN, .is_target = true },
	  INCAPABLE_V1, { 0, -EACCES, 0, 0, -EACCES } },
	{ { "child, inherited", USER, OWN, .is_target = true, .is_child = true },
	  INCAPABLE, CAPABLE },
};

static const struct row rows_of_hidden[] = {
	{ { "root", 0, .cap = CAP_SYS_PTRACE }, INCAPABLE, CAPABLE },
	{ { "user", USER }, NOBODY, NOBODY },
	{ { "stranger", STRANGER }, NOBODY, NOBODY },
};

static int expected_of(const struct access *access, enum op op)
{
	int refusal;

	switch (op) {
	case PROBE:
	case STATE:
	case UNPAUSE:
		refusal = 0;
		break;
	case V1_RESTORE:
		refusal = access->v1_restore;
		break;
	case RESTORE:
		refusal = access->restore;
		break;
	case RESTORE_QUEUE:
		refusal = access->restore_queue;
		break;
	default:
		refusal = op < PROBE ? access->v1 : access->other;
	}
	return refusal ? refusal : ops[op].result;
}

static const char *errno_name(int r)
{
	static char number[16];

	switch (-r) {
	case 0:
		return "0";
	case EPERM:
		return "EPERM";
	case EBADF:
		return "EBADF";
	case EACCES:
		return "EACCES";
	case EBUSY:
		return "EBUSY";
	case EINVAL:
		return "EINVAL";
	default:
		snprintf(number, sizeof(number), "%d", r);
		return number;
	}
}

static const struct {
	const char *name;
	int cap;
} capabilities[] = {
	{ "none", 0 },
	{ "CHECKPOINT_RESTORE", CAP_CHECKPOINT_RESTORE },
	{ "SYS_ADMIN", CAP_SYS_ADMIN },
};

static void print_header(const char *target)
{
	char line[256];
	unsigned int op, n = 0;

	for (op = 0; op < OPS; op++)
		n += snprintf(line + n, sizeof(line) - n, " %-7s", ops[op].name);
	ksft_print_msg("process of: %s. Version 1 in small letters\n", target);
	ksft_print_msg("%-19s %-18s%s\n", "caller", "capability", line);
}

/* Prints a line of the matrix. Returns how many of its errnos are wrong. */
static unsigned int check_line(const char *caller, const char *cap,
			       const struct report *report,
			       const struct access *access)
{
	unsigned int op, n = 0, wrong = 0;
	char line[256];

	if (report->error) {
		ksft_print_msg("%-19s %-18s cannot be tried: %s\n", caller, cap,
			       strerror(-report->error));
		return 1;
	}
	for (op = 0; op < OPS; op++)
		n += snprintf(line + n, sizeof(line) - n, " %-7s",
			      errno_name(report->result[op]));
	ksft_print_msg("%-19s %-18s%s\n", caller, cap, line);
	for (op = 0; op < OPS; op++) {
		const int expected = expected_of(access, op);

		if (report->result[op] == expected)
			continue;
		wrong++;
		ksft_print_msg("  %s: %d, expected %d\n", ops[op].name,
			       report->result[op], expected);
	}
	return wrong;
}

static unsigned int check_row(const struct row *row, struct target *target,
			      struct report *report)
{
	unsigned int i, wrong = 0;

	for (i = 0; i < 3; i++) {
		const int cap = capabilities[i].cap;

		memset(report, 0, sizeof(*report));
		if (row->caller.is_target) {
			call_from_inside(&row->caller, cap, call_on_running,
					 report);
			if (!report->error)
				call_from_inside(&row->caller, cap,
						 call_on_paused, report);
		} else {
			call_from_outside(&row->caller, target, cap, report);
		}
		wrong += check_line(row->caller.name, capabilities[i].name,
				    report, cap ? &row->with : &row->without);
	}
	return wrong;
}

/* Returns how many errnos of the matrix are wrong, or a negative errno. */
static int check_matrix(const struct who *owner, bool is_dumpable,
			const struct row *rows, unsigned int num_rows)
{
	struct report *report = shared_memory(sizeof(*report));
	struct target target;
	unsigned int i, wrong = 0;
	int r;

	if (report == MAP_FAILED)
		return -errno;
	r = start_target(owner, is_dumpable, &target);
	if (r)
		return r;
	print_header(owner->name);
	for (i = 0; i < num_rows; i++)
		wrong += check_row(&rows[i], &target, report);
	stop_target(&target);
	munmap(report, sizeof(*report));
	return wrong;
}

#define CHECK_MATRIX(owner, is_dumpable, rows) \
	check_matrix(owner, is_dumpable, rows, sizeof(rows) / sizeof(*(rows)))

FIXTURE(access) {
	struct kfd kfd;
};

FIXTURE_SETUP(access)
{
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
}

FIXTURE_TEARDOWN(access)
{
	kfd_close(&self->kfd);
}

static bool namespaces_are_supported(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(unshare(CLONE_NEWUSER) ? 1 : 0);
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

TEST_F_TIMEOUT(access, who_may_use_the_process_of_a_user, 300)
{
	static const struct who user = { "user", USER };

	if (!namespaces_are_supported())
		SKIP(return, "no user namespaces");
	EXPECT_EQ(0, CHECK_MATRIX(&user, true, rows_of_user));
}

TEST_F_TIMEOUT(access, who_may_use_a_process_in_a_user_namespace, 300)
{
	static const struct who user = { "user of a namespace", USER, OWN };

	if (!namespaces_are_supported())
		SKIP(return, "no user namespaces");
	EXPECT_EQ(0, CHECK_MATRIX(&user, true, rows_of_namespace));
}

TEST_F_TIMEOUT(access, who_may_use_a_process_that_is_not_dumpable, 300)
{
	static const struct who user = { "user, not dumpable", USER };

	EXPECT_EQ(0, CHECK_MATRIX(&user, false, rows_of_hidden));
}

/* ---- registers ---- */

/* Checkpoints this process, and lets it run again. */
static int dump(int fd, struct kfd_v2_image *image)
{
	struct kfd_criu_args args = { .op = KFD_CRIU_CMD_PAUSE };
	int pause_fd, r = kfd_v2(fd, &args);

	if (r)
		return r;
	pause_fd = args.fd;
	image->size = args.data_size;
	image->data = calloc(1, image->size);
	args = (struct kfd_criu_args){
		.op = KFD_CRIU_CMD_CHECKPOINT,
		.pause_fd = pause_fd,
		.data = (unsigned long)image->data,
		.data_size = image->size,
	};
	r = kfd_v2(fd, &args);
	close(pause_fd);
	return r;
}

struct namespace_restore {
	const struct kfd_v2_image *image;
	int result;
	int state;	/* after RESTORE */
	int resumed;	/* what RESUME returned, if RESTORE has succeeded */
};

static int restore_in_namespace(struct kfd *kfd, void *data)
{
	struct namespace_restore *restore = data;

	if (unshare(CLONE_NEWUSER))
		return 1;
	restore->result = kfd_v2_image_restore(kfd, restore->image);
	restore->state = kfd_v2_state(kfd);
	if (!restore->result)
		restore->resumed = kfd_v2_resume(kfd);
	return 0;
}

/*
 * Any user can become root of a user namespace, and a queue's record has registers that
 * no other ioctl can set. The process is not aborted, because nothing was restored.
 */
TEST_F(access, root_of_a_user_namespace_cannot_restore_a_queue)
{
	struct namespace_restore *restore = shared_memory(sizeof(*restore));
	struct kfd_v2_image with = {}, without = {};
	struct kfd_queue queue;

	ASSERT_NE(MAP_FAILED, restore);
	if (!namespaces_are_supported())
		SKIP(return, "no user namespaces");
	ASSERT_EQ(0, kfd_acquire_vms(&self->kfd));
	ASSERT_EQ(0, kfd_queue_create(&self->kfd, 0, &queue));
	ASSERT_EQ(0, dump(self->kfd.fd, &with));
	/* Another process can have the queue's slot now. */
	ASSERT_EQ(0, kfd_queue_destroy(&self->kfd, &queue));
	ASSERT_EQ(0, dump(self->kfd.fd, &without));

	restore->image = &with;
	ASSERT_EQ(0, kfd_in_child(restore_in_namespace, restore));
	EXPECT_EQ(-EACCES, restore->result);
	EXPECT_EQ(KFD_CRIU_STATE_RUNNING, restore->state);

	restore->image = &without;
	ASSERT_EQ(0, kfd_in_child(restore_in_namespace, restore));
	EXPECT_EQ(0, restore->result);
	EXPECT_EQ(KFD_CRIU_STATE_RESTORED, restore->state);
	EXPECT_EQ(0, restore->resumed);
	free(with.data);
	free(without.data);
}

static int restore_v1_in_namespace(struct kfd *kfd, void *data)
{
	if (unshare(CLONE_NEWUSER))
		return 255;
	if (kfd_v2_state(kfd) != KFD_CRIU_STATE_RUNNING)
		return 254;
	return -kfd_v1_image_restore(kfd, data);
}

/* Released kernels require the capability in the initial namespace. */
TEST_F(access, root_of_a_user_namespace_cannot_restore_version_1)
{
	struct kfd_v1_image image;

	if (!namespaces_are_supported())
		SKIP(return, "no user namespaces");
	ASSERT_EQ(0, kfd_acquire_vms(&self->kfd));
	ASSERT_EQ(0, kfd_v1_image_dump(self->kfd.fd, &image));
	EXPECT_EQ(EACCES, kfd_in_child(restore_v1_in_namespace, &image));
	kfd_v1_image_free(&image);
}

/* ---- RESUME names another process ---- */

/*
 * Starts a child that is restored and then stops, to be resumed by its tracer. Returns its
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
	struct kfd_criu_args args = { .op = KFD_CRIU_CMD_RESUME };
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

	ASSERT_EQ(0, kfd_acquire_vms(&self->kfd));
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
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_RESUME,
		.pid = 0x3fffffff,
	};

	EXPECT_EQ(-ESRCH, kfd_v1_resume(self->kfd.fd, args.pid));
	EXPECT_EQ(-ESRCH, kfd_v2(self->kfd.fd, &args));
}

static int resume_stranger(struct kfd *kfd, void *data)
{
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_RESUME,
		.pid = *(pid_t *)data,
	};

	if (kfd_v1_resume(kfd->fd, args.pid) != -EBADF)
		return 1;
	if (become_user(STRANGER) ||
	    keep_capabilities(CAP_CHECKPOINT_RESTORE, 0))
		return 2;
	if (kfd_v2(kfd->fd, &args) != -EPERM)
		return 3;
	/* The state is that of the caller's own process. */
	return args.state == KFD_CRIU_STATE_RUNNING ? 0 : 4;
}

/* RESUME once accepted the id of any process. */
TEST_F(access, a_process_of_somebody_else_is_not_resumed)
{
	pid_t pid = getpid();

	EXPECT_EQ(0, kfd_in_child(resume_stranger, &pid));
}

KFD_TEST_MAIN
