// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * RESUME of a process with memory whose pages never arrive: a mapping of a file whose
 * server does not answer. Neither RESUME nor its caller nor the process may hang. That
 * is also so if such a page only keeps the lock of the memory of the process.
 *
 * Runs: once
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include "../../../kselftest_harness.h"
#include "lib/bo.h"
#include "lib/criu_op.h"
#include "lib/dead_file.h"
#include "lib/fixture.h"
#include "lib/image_v2.h"
#include "lib/kfd.h"
#include "lib/queue.h"
#include "lib/svm.h"

#define TEST_LIMIT_S	120
/* RESUME gives up after five seconds. */
#define RESUME_LIMIT_MS	6000
/*
 * A few milliseconds suffice, but a virtual machine on a busy host does not run all the
 * time, and an instrumented kernel is slow. A caller that cannot be killed ends only when
 * the server answers, after HANG_MS.
 */
#define KILL_LIMIT_MS	1000
/* The median of several callers on a kernel that is not instrumented. */
#define MEDIAN_LIMIT_MS	100
#define CALLERS		5
/* For so many milliseconds a thread sleeps if it waits, and not for a page or a lock. */
#define ASLEEP_MS	20
#define EXIT_LIMIT_MS	10000
/* How long a hanging RESUME is watched before the server is made to answer. */
#define HANG_MS		10000
#define PROCESSES	"/sys/class/kfd/kfd/proc"
#define THREAD		"kfd_criu_resume"
/* Flag of a task in the kernel: it runs while the system is suspended. */
#define PF_NOFREEZE	0x8000

/* What the processes of a test tell each other, in memory that they share. */
struct shared {
	__u32 restored;	/* the program waits for its RESUME */
	__u32 calls;	/* a caller is about to call RESUME */
	__u32 check;	/* the program shall check its queue */
	__u32 maps;	/* the program shall map a page */
	pid_t mapper;	/* thread of the program that does; 0: it has not begun */
	__u32 returned;	/* RESUME has returned */
	int result;	/* of RESUME */
	__u32 state;	/* that RESUME reports; version 1 reports none */
	__u64 us;	/* that RESUME took */
};

FIXTURE(resume_dead_memory) {
	struct kfd kfd;
	struct fixture objects;
	struct dead_file file;
	struct shared *shared;
	pid_t program, caller;
};

FIXTURE_VARIANT(resume_dead_memory) {
	bool svm;	/* the memory is an SVM range, else a BO of user memory */
	bool v1;	/* RESUME is that of version 1 */
	int result;	/* of RESUME */
	__u32 state;	/* that RESUME reports */
};

FIXTURE_VARIANT_ADD(resume_dead_memory, userptr) {
	.result = -ETIME,
	.state = KFD_CRIU_STATE_RUNNING,
};

FIXTURE_VARIANT_ADD(resume_dead_memory, svm_range) {
	.svm = true,
	.result = -ETIME,
	.state = KFD_CRIU_STATE_RESUMING,
};

/* Version 1 cannot report that the queues do not run yet. */
FIXTURE_VARIANT_ADD(resume_dead_memory, svm_range_v1) {
	.svm = true,
	.v1 = true,
};

/* What the child processes need; they inherit it. */
static struct {
	struct fixture *objects;
	struct dead_file *file;
	struct shared *shared;
	void *memory;
	pid_t program;
	bool v1;
} test;

static bool returns_within(const struct shared *shared, unsigned int limit_ms)
{
	const __u64 begin = now_us();

	do {
		if (__atomic_load_n(&shared->returned, __ATOMIC_ACQUIRE))
			return true;
		usleep(1000);
	} while (now_us() - begin < limit_ms * 1000ULL);
	return false;
}

static char state_of(pid_t pid)
{
	char text[512], *end;
	ssize_t length;
	int fd;

	snprintf(text, sizeof(text), "/proc/%d/stat", pid);
	fd = open(text, O_RDONLY);
	if (fd < 0)
		return '?';
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return '?';
	text[length] = 0;
	/* "PID (NAME) STATE ...": a name may have parentheses, too. */
	end = strrchr(text, ')');
	return end && end[1] == ' ' ? end[2] : '?';
}

/* Whether a thread waits in the kernel, in one of the states. */
static bool falls_asleep(pid_t thread, const char *states)
{
	const __u64 begin = now_us();
	unsigned int asleep = 0;

	while (asleep < ASLEEP_MS && now_us() - begin < EXIT_LIMIT_MS * 1000ULL) {
		asleep = strchr(states, state_of(thread)) ? asleep + 1 : 0;
		usleep(1000);
	}
	return asleep == ASLEEP_MS;
}

/* Its tracer keeps a program that has ended from being waited for. */
static bool becomes_zombie(pid_t pid, unsigned int limit_ms)
{
	const __u64 begin = now_us();

	while (state_of(pid) != 'Z' && now_us() - begin < limit_ms * 1000ULL)
		usleep(1000);
	return state_of(pid) == 'Z';
}

/* Whether amdkfd has freed everything of the process. */
static bool is_freed(pid_t pid)
{
	char path[64];
	unsigned int i;

	snprintf(path, sizeof(path), PROCESSES "/%d", pid);
	for (i = 0; i < EXIT_LIMIT_MS / 10 && !access(path, F_OK); i++)
		usleep(10 * 1000);
	return access(path, F_OK);
}

/* ---- the processes ---- */

/* As CRIU does, maps the memory after RESTORE, which needs only its address. */
static int restores_and_runs(struct kfd *kfd, void *data)
{
	(void)data;
	if (kfd_v1_image_restore(kfd, &test.objects->v1))
		return 1;
	if (fixture_remap(kfd, KFD_NO_PAUSE, test.objects))
		return 2;
	if (mmap(test.memory, KFD_PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_FIXED, test.file->fd, 0) == MAP_FAILED)
		return 3;
	set_word(&test.shared->restored);
	while (!__atomic_load_n(&test.shared->check, __ATOMIC_ACQUIRE))
		usleep(1000);
	return kfd_queue_runs(kfd, &test.objects->sdma) ? 0 : 4;
}

static int resumes(struct kfd *kfd, void *data)
{
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_RESUME,
		.pid = test.program,
	};
	struct shared *shared = test.shared;
	__u64 begin;

	(void)data;
	if (ptrace(PTRACE_SEIZE, test.program, 0, 0))
		return 1;
	set_word(&shared->calls);
	begin = now_us();
	shared->result = test.v1 ? kfd_v1_resume(kfd->fd, test.program) :
				   kfd_v2(kfd->fd, &args);
	shared->us = now_us() - begin;
	shared->state = args.state;
	set_word(&shared->returned);
	return 0;
}

FIXTURE_SETUP(resume_dead_memory)
{
	int r = kfd_open(&self->kfd);

	if (r == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, r);
	ASSERT_EQ(0, fixture_create(&self->kfd, &self->objects,
				    FIXTURE_IDLE_QUEUE));
	if (variant->svm && !self->objects.svm)
		SKIP(return, "the driver offers no SVM on this GPU");
	ASSERT_EQ(0, fixture_checkpoint(&self->kfd, &self->objects));
	r = dead_file_create(&self->file, KFD_PAGE);
	if (r == -ENODEV)
		SKIP(return, "no FUSE");
	ASSERT_EQ(0, r);
	self->shared = shared_memory(sizeof(*self->shared));
	ASSERT_NE(MAP_FAILED, self->shared);
	test.objects = &self->objects;
	test.file = &self->file;
	test.shared = self->shared;
	test.v1 = variant->v1;
	test.memory = variant->svm ? self->objects.svm : self->objects.user.cpu;
	self->program = kfd_start_child(restores_and_runs, NULL);
	ASSERT_GT(self->program, 0);
	ASSERT_TRUE(wait_for_word(&self->shared->restored, 1));
	test.program = self->program;
	self->caller = kfd_start_child(resumes, NULL);
	ASSERT_GT(self->caller, 0);
	ASSERT_TRUE(dead_file_is_asked(&self->file))
		TH_LOG("RESUME did not fault the page in: %d", self->shared->result);
}

FIXTURE_TEARDOWN(resume_dead_memory)
{
	dead_file_destroy(&self->file);
	fixture_free(&self->objects);
	kfd_close(&self->kfd);
}

/* Ends a RESUME that hangs, so that the machine can be used by the next test. */
static void end_hang(pid_t caller)
{
	printf("# RESUME hangs; its caller is in state %c\n", state_of(caller));
	fflush(stdout);
	dead_file_answer(test.file);
	set_word(&test.shared->check);
}

static bool is_number(const char *name)
{
	return name[strspn(name, "0123456789")] == '\0';
}

/* Returns the process id of a thread of the kernel; 0 if there is none of that name. */
static pid_t find_thread(const char *name)
{
	char path[300], comm[80];
	struct dirent *entry;
	pid_t found = 0;
	DIR *dir = opendir("/proc");
	FILE *file;

	while (dir && !found && (entry = readdir(dir))) {
		if (!is_number(entry->d_name))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fgets(comm, sizeof(comm), file)) {
			comm[strcspn(comm, "\n")] = '\0';
			if (!strcmp(comm, name))
				found = atoi(entry->d_name);
		}
		fclose(file);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Whether the thread of RESUME has ended, although the server does not answer. */
static bool thread_ends(void)
{
	const __u64 begin = now_us();

	while (find_thread(THREAD) && now_us() - begin < EXIT_LIMIT_MS * 1000ULL)
		usleep(10 * 1000);
	return !find_thread(THREAD);
}

/* Whether the system stops the thread before it suspends the GPU. */
static bool can_be_frozen(pid_t thread)
{
	unsigned int flags = PF_NOFREEZE;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", thread);
	file = fopen(path, "r");
	if (!file)
		return false;
	/* ID (NAME) STATE PARENT GROUP SESSION TERMINAL ITS_GROUP FLAGS; no name has spaces. */
	if (fscanf(file, "%*d %*s %*c %*d %*d %*d %*d %*d %u", &flags) != 1)
		flags = PF_NOFREEZE;
	fclose(file);
	return !(flags & PF_NOFREEZE);
}

TEST_F_TIMEOUT(resume_dead_memory, returns_in_time_and_the_queues_run_later, TEST_LIMIT_S)
{
	/* A worker would keep others from being resumed, if there are many. */
	if (variant->svm) {
		EXPECT_NE(0, find_thread(THREAD));
		EXPECT_TRUE(can_be_frozen(find_thread(THREAD)));
	}
	EXPECT_TRUE(returns_within(self->shared, HANG_MS))
		end_hang(self->caller);
	EXPECT_EQ(variant->result, self->shared->result);
	EXPECT_EQ(variant->state, self->shared->state);
	EXPECT_GT(RESUME_LIMIT_MS * 1000ULL, self->shared->us);
	EXPECT_EQ(0, ends_within(self->caller, EXIT_LIMIT_MS));
	dead_file_answer(&self->file);
	set_word(&self->shared->check);
	EXPECT_EQ(0, ends_within(self->program, 2 * EXIT_LIMIT_MS));
	EXPECT_TRUE(is_freed(self->program));
}

static int compare_times(const void *a, const void *b)
{
	return *(const __u64 *)a > *(const __u64 *)b ? 1 : -1;
}

/*
 * Kills the caller while it waits in the kernel; before that SIGKILL would end it anyway.
 * Returns the time until it has ended; 0: it has not waited or not ended.
 */
static __u64 kill_caller(pid_t caller)
{
	__u64 us;

	if (!wait_for_word(&test.shared->calls, 1) || !falls_asleep(caller, "DS"))
		return 0;
	us = now_us();
	kill(caller, SIGKILL);
	if (ends_within(caller, HANG_MS) != SIGKILL)
		return 0;
	return now_us() - us;
}

static int is_idle(struct kfd *kfd, void *data)
{
	(void)kfd;
	(void)data;
	set_word(&test.shared->calls);
	pause();
	return 0;
}

static __u64 median_of(__u64 *values, unsigned int n)
{
	qsort(values, n, sizeof(*values), compare_times);
	return values[n / 2];
}

/*
 * Compared with processes that do not call RESUME, whose end takes time as well. In
 * KFD_CRIU_STATE_RESUMING a further RESUME joins the one before it.
 */
TEST_F_TIMEOUT(resume_dead_memory, its_callers_can_be_killed, TEST_LIMIT_S)
{
	const unsigned int callers = variant->svm ? CALLERS : 1;
	unsigned int i, limit_ms = MEDIAN_LIMIT_MS;
	__u64 us[CALLERS], idle_us[CALLERS];

	if (callers == 1 || kernel_is_instrumented())
		limit_ms = KILL_LIMIT_MS;
	for (i = 0; i < callers; i++) {
		if (i) {
			self->shared->calls = 0;
			self->caller = kfd_start_child(resumes, NULL);
		}
		us[i] = kill_caller(self->caller);
		EXPECT_NE(0, us[i])
			end_hang(self->caller);
	}
	for (i = 0; i < callers; i++) {
		self->shared->calls = 0;
		idle_us[i] = kill_caller(kfd_start_child(is_idle, NULL));
		EXPECT_NE(0, idle_us[i]);
	}
	us[0] = median_of(us, callers);
	idle_us[0] = median_of(idle_us, callers);
	TH_LOG("callers ended after %llu us (median), idle processes after %llu us",
	       (unsigned long long)us[0], (unsigned long long)idle_us[0]);
	EXPECT_GT(idle_us[0] + limit_ms * 1000ULL, us[0]);
	dead_file_answer(&self->file);
	set_word(&self->shared->check);
	EXPECT_EQ(0, ends_within(self->program, 2 * EXIT_LIMIT_MS));
	EXPECT_TRUE(is_freed(self->program));
}

/*
 * The program ends at once. If nothing but RESUME waits for the page, what the program
 * owned is freed then; else when the server has ended too.
 */
TEST_F_TIMEOUT(resume_dead_memory, the_program_can_be_killed, TEST_LIMIT_S)
{
	kill(self->program, SIGKILL);
	EXPECT_TRUE(becomes_zombie(self->program, KILL_LIMIT_MS))
		TH_LOG("the program is in state %c", state_of(self->program));
	EXPECT_TRUE(returns_within(self->shared, HANG_MS))
		end_hang(self->caller);
	if (variant->svm) {
		EXPECT_TRUE(thread_ends());
		EXPECT_TRUE(is_freed(self->program));
	}
	dead_file_kill_server(&self->file);
	EXPECT_EQ(0, ends_within(self->caller, EXIT_LIMIT_MS));
	EXPECT_NE(-ETIME, ends_within(self->program, EXIT_LIMIT_MS));
	EXPECT_TRUE(is_freed(self->program));
}

/* The page cannot be read any more. The process can always be ended without a leak. */
TEST_F_TIMEOUT(resume_dead_memory, the_server_ends_before_the_program, TEST_LIMIT_S)
{
	EXPECT_TRUE(returns_within(self->shared, HANG_MS))
		end_hang(self->caller);
	EXPECT_EQ(variant->result, self->shared->result);
	dead_file_kill_server(&self->file);
	EXPECT_EQ(0, ends_within(self->caller, EXIT_LIMIT_MS));
	kill(self->program, SIGKILL);
	EXPECT_NE(-ETIME, ends_within(self->program, EXIT_LIMIT_MS));
	EXPECT_TRUE(is_freed(self->program));
}

/* ---- a program that keeps the lock of its memory ---- */

/*
 * A read of /proc/self/mem holds the lock while the server supplies the page. A call that
 * changes the memory waits for the lock then, and everybody else waits for that call.
 */
static void *read_dead_page(void *data)
{
	const int fd = open("/proc/self/mem", O_RDONLY);
	char byte;

	(void)data;
	if (pread(fd, &byte, 1, (unsigned long)test.memory) != 1)
		perror("# /proc/self/mem");
	close(fd);
	return NULL;
}

static void *map_page(void *data)
{
	(void)data;
	__atomic_store_n(&test.shared->mapper, gettid(), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&test.shared->maps, __ATOMIC_ACQUIRE))
		usleep(1000);
	mmap(NULL, KFD_PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return NULL;
}

static int restores_and_keeps_its_lock(struct kfd *kfd, void *data)
{
	pthread_t reader, mapper;

	if (kfd_v2_image_restore(kfd, data))
		return 1;
	test.memory = mmap(NULL, KFD_PAGE, PROT_READ, MAP_PRIVATE, test.file->fd, 0);
	if (test.memory == MAP_FAILED)
		return 2;
	/* The stack of a new thread is mapped, so the thread that maps begins first. */
	if (pthread_create(&mapper, NULL, map_page, NULL) ||
	    pthread_create(&reader, NULL, read_dead_page, NULL))
		return 3;
	pthread_join(reader, NULL);
	pthread_join(mapper, NULL);
	return 0;
}

/*
 * Returns when the program keeps the lock. The program cannot find that out: once a thread
 * of it waits for the lock, the others wait for each page that they need for the first time,
 * be it code or the clock, and which these are depends on who runs when.
 */
static bool keeps_its_lock(void)
{
	const __u64 begin = now_us();
	pid_t mapper;

	if (!dead_file_is_asked(test.file))
		return false;
	do {
		usleep(1000);
		mapper = __atomic_load_n(&test.shared->mapper, __ATOMIC_ACQUIRE);
	} while (!mapper && now_us() - begin < EXIT_LIMIT_MS * 1000ULL);
	set_word(&test.shared->maps);
	return mapper && falls_asleep(mapper, "D");
}

FIXTURE(resume_locked_memory) {
	struct kfd kfd;
	struct kfd_bo bo;
	struct kfd_v2_image image;
	struct dead_file file;
};

FIXTURE_SETUP(resume_locked_memory)
{
	int r = kfd_open(&self->kfd);

	if (r == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, r);
	memset(&test, 0, sizeof(test));
	ASSERT_EQ(0, kfd_acquire_vms(&self->kfd));
	ASSERT_EQ(0, kfd_bo_create(&self->kfd, 0, KFD_BO_GTT, KFD_PAGE, &self->bo));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &self->image));
	r = dead_file_create(&self->file, KFD_PAGE);
	if (r == -ENODEV)
		SKIP(return, "no FUSE");
	ASSERT_EQ(0, r);
	test.file = &self->file;
	test.shared = shared_memory(sizeof(*test.shared));
	ASSERT_NE(MAP_FAILED, test.shared);
}

FIXTURE_TEARDOWN(resume_locked_memory)
{
	dead_file_destroy(&self->file);
	free(self->image.data);
	kfd_close(&self->kfd);
}

/* No queue and no SVM range of the program needs its memory. */
TEST_F_TIMEOUT(resume_locked_memory, is_not_waited_for_without_need, TEST_LIMIT_S)
{
	pid_t caller;

	test.program = kfd_start_child(restores_and_keeps_its_lock, &self->image);
	ASSERT_LT(0, test.program);
	ASSERT_TRUE(keeps_its_lock());
	caller = kfd_start_child(resumes, NULL);
	ASSERT_LT(0, caller);
	EXPECT_TRUE(returns_within(test.shared, RESUME_LIMIT_MS))
		printf("# the caller is in state %c\n", state_of(caller));
	EXPECT_EQ(0, test.shared->result);
	EXPECT_EQ(KFD_CRIU_STATE_RUNNING, test.shared->state);
	dead_file_answer(&self->file);
	EXPECT_EQ(0, ends_within(caller, EXIT_LIMIT_MS));
	EXPECT_EQ(0, ends_within(test.program, EXIT_LIMIT_MS));
}

/* ---- processes that end and leave the thread of their RESUME behind ---- */

/* So many threads may a user have, whatever the file system does. */
#define LEFT_THREADS	64

struct left {
	const struct kfd_v2_image *image;
	void *range;
	unsigned int page;	/* of the file; each process needs another one */
};

/* Whether n reads have arrived at the server. */
static bool is_asked(const struct dead_file *file, unsigned int n)
{
	const __u64 begin = now_us();

	while (__atomic_load_n(&file->words->asked, __ATOMIC_ACQUIRE) < n &&
	       now_us() - begin < EXIT_LIMIT_MS * 1000ULL)
		usleep(1000);
	return __atomic_load_n(&file->words->asked, __ATOMIC_ACQUIRE) == n;
}

/* A process that ends before its page is asked for leaves no thread. */
static int resumes_and_exits(struct kfd *kfd, void *data)
{
	const struct left *left = data;
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_RESUME,
		.flags = KFD_CRIU_RESUME_FD,
	};

	if (kfd_v2_image_restore(kfd, left->image))
		return 1;
	if (mmap(left->range, KFD_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
		 test.file->fd, left->page * KFD_PAGE) == MAP_FAILED)
		return 2;
	test.shared->result = kfd_v2(kfd->fd, &args);
	return test.shared->result || is_asked(test.file, left->page + 1) ? 0 : 3;
}

/* Stays in KFD_CRIU_STATE_RESUMING, and calls RESUME again when there are too many threads. */
static int resumes_twice(struct kfd *kfd, void *data)
{
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_RESUME,
		.flags = KFD_CRIU_RESUME_FD,
	};
	const int r = resumes_and_exits(kfd, data);

	if (r || test.shared->result)
		return r ? r : 4;
	set_word(&test.shared->restored);
	while (!__atomic_load_n(&test.shared->check, __ATOMIC_ACQUIRE))
		usleep(1000);
	test.shared->result = kfd_v2(kfd->fd, &args);
	return 0;
}

FIXTURE(resume_left) {
	struct kfd kfd;
	struct kfd_v2_image image;
	struct dead_file file;
	struct left left;
};

FIXTURE_SETUP(resume_left)
{
	struct kfd_ioctl_svm_attribute attributes[] = {
		{ KFD_IOCTL_SVM_ATTR_SET_FLAGS, KFD_IOCTL_SVM_FLAG_GPU_ALWAYS_MAPPED },
		{ KFD_IOCTL_SVM_ATTR_ACCESS, 0 },
	};
	int r = kfd_open(&self->kfd);

	if (r == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, r);
	if (!svm_is_supported(&self->kfd))
		SKIP(return, "the driver offers no SVM on this GPU");
	memset(&test, 0, sizeof(test));
	ASSERT_EQ(0, kfd_acquire_vms(&self->kfd));
	self->left.range = svm_memory(KFD_PAGE);
	ASSERT_NE(NULL, self->left.range);
	attributes[1].value = self->kfd.gpus[0].id;
	ASSERT_EQ(0, svm_set(&self->kfd, self->left.range, KFD_PAGE, attributes, 2));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &self->image));
	self->left.image = &self->image;
	r = dead_file_create_uninterruptible(&self->file, (LEFT_THREADS + 2) * KFD_PAGE);
	if (r == -ENODEV)
		SKIP(return, "no FUSE");
	ASSERT_EQ(0, r);
	test.file = &self->file;
	test.shared = shared_memory(sizeof(*test.shared));
	ASSERT_NE(MAP_FAILED, test.shared);
}

FIXTURE_TEARDOWN(resume_left)
{
	dead_file_destroy(&self->file);
	free(self->image.data);
	kfd_close(&self->kfd);
}

/* The driver does not release the process before its thread ends. */
static int run_and_exit(struct left *left)
{
	return ends_within(kfd_start_child(resumes_and_exits, left), EXIT_LIMIT_MS);
}

/* RLIMIT_NPROC does not count these threads. The limit is for a RESUME that begins. */
TEST_F_TIMEOUT(resume_left, threads_are_limited, 2 * TEST_LIMIT_S)
{
	struct left *left = &self->left;
	pid_t resuming = kfd_start_child(resumes_twice, left);

	ASSERT_LT(0, resuming);
	ASSERT_TRUE(wait_for_word(&test.shared->restored, 1));
	for (left->page = 1; left->page <= LEFT_THREADS; left->page++) {
		ASSERT_EQ(0, run_and_exit(left));
		ASSERT_EQ(0, test.shared->result)
			TH_LOG("page %u", left->page);
	}
	EXPECT_EQ(0, run_and_exit(left));
	EXPECT_EQ(-EAGAIN, test.shared->result);
	set_word(&test.shared->check);
	EXPECT_EQ(0, ends_within(resuming, EXIT_LIMIT_MS));
	EXPECT_EQ(0, test.shared->result);
	dead_file_answer(&self->file);
	EXPECT_TRUE(thread_ends());
	EXPECT_EQ(0, run_and_exit(left));
	EXPECT_EQ(0, test.shared->result);
}

KFD_TEST_MAIN
