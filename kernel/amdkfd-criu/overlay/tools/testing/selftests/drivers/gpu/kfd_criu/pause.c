// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * A pause of the released ABI belongs to the process that asked for it and ends when that
 * process exits. A pause of the extensible ABI is a file and ends when the file is closed.
 *
 * Runs: per-scheduler
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "../../../kselftest_harness.h"
#include "lib/bo.h"
#include "lib/criu_op.h"
#include "lib/image_v1.h"
#include "lib/image_v2.h"
#include "lib/kfd.h"
#include "lib/queue.h"

#define LIMIT_MS	10000
/* Queues must not execute anything for so long while the process is paused. */
#define PAUSE_HOLDS_MS	50

/* How long queues may take to continue after the owner of a pause was killed. */
#define END_LIMIT_US	5000
#define TRIES		21

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

/*
 * Opens the GPUs and creates a BO, and two queues that wait at a closed gate in it, each
 * with a packet behind it.
 */
static int open_with_queues(struct kfd *kfd, struct kfd_bo *bo,
			    struct kfd_bo *area, struct kfd_queue *sdma,
			    struct kfd_queue *pm4)
{
	const struct kfd_compute_queue_options wish = {
		.type = KFD_IOC_QUEUE_TYPE_COMPUTE,
		.percentage = KFD_MAX_QUEUE_PERCENTAGE,
		.area = area,
	};
	int r = kfd_open(kfd);

	r = r ? r : kfd_acquire_vms(kfd);
	r = r ? r : kfd_bo_create(kfd, 0, KFD_BO_GTT, KFD_PAGE, bo);
	r = r ? r : kfd_queue_create(kfd, 0, sdma);
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
	int i, r;

	self->tracer = 0;
	r = open_with_queues(&self->kfd, &self->bo, &self->area, &self->sdma,
			     &self->pm4);
	if (r == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, r);
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

/* The queues must continue although no process rings their doorbells after the pause. */
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

/* ---- the file of a pause ---- */

FIXTURE(pause_file) {
	struct kfd kfd;
	pid_t child;	/* ends with the test; 0: none */
	struct kfd_bo bo, area;
	struct kfd_queue sdma, pm4;
};

FIXTURE_SETUP(pause_file)
{
	int r;

	self->child = 0;
	r = open_with_queues(&self->kfd, &self->bo, &self->area, &self->sdma,
			     &self->pm4);
	if (r == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, r);
}

FIXTURE_TEARDOWN(pause_file)
{
	if (self->child > 0)
		kill_owner(&self->child);
	kfd_close(&self->kfd);
}

/* poll() of one file, without waiting unless said. Returns the events, or -errno. */
static int events_of(int fd, int limit_ms)
{
	struct pollfd file = { .fd = fd, .events = POLLIN };
	const int r = poll(&file, 1, limit_ms);

	return r < 0 ? -errno : file.revents;
}

static int checkpoint_with(const struct kfd *kfd, int pause_fd)
{
	static char buffer[1 << 20];
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_CHECKPOINT,
		.pause_fd = pause_fd,
		.data = (unsigned long)buffer,
		.data_size = sizeof(buffer),
	};

	return kfd_v2(kfd->fd, &args);
}

TEST_F(pause_file, keeps_the_process_paused_until_it_is_closed)
{
	__u32 *words = self->bo.cpu;
	int fd;

	ASSERT_EQ(0, kfd_v2_pause(self->kfd.fd, &fd));
	__atomic_store_n(&words[GATE], 1, __ATOMIC_RELEASE);
	usleep(PAUSE_HOLDS_MS * 1000);
	EXPECT_EQ(0, __atomic_load_n(&words[SDMA_BEHIND], __ATOMIC_ACQUIRE));
	EXPECT_EQ(0, events_of(fd, 0));
	close(fd);
	EXPECT_EQ(KFD_CRIU_STATE_RUNNING, kfd_v2_state(&self->kfd));
	EXPECT_TRUE(wait_for_word(&words[SDMA_BEHIND], 1));
	EXPECT_TRUE(wait_for_word(&words[PM4_BEHIND], 1));
}

TEST_F(pause_file, is_one_of_several_pauses)
{
	int first, second;

	ASSERT_EQ(0, kfd_v2_pause(self->kfd.fd, &first));
	ASSERT_EQ(0, kfd_v2_pause(self->kfd.fd, &second));
	ASSERT_EQ(0, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_PROCESS_INFO));
	close(first);
	EXPECT_EQ(KFD_CRIU_STATE_PAUSED, kfd_v2_state(&self->kfd));
	EXPECT_EQ(0, checkpoint_with(&self->kfd, second));
	EXPECT_EQ(0, kfd_v2_unpause(self->kfd.fd, second));
	EXPECT_EQ(KFD_CRIU_STATE_PAUSED, kfd_v2_state(&self->kfd));
	EXPECT_EQ(0, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_UNPAUSE));
	EXPECT_EQ(KFD_CRIU_STATE_RUNNING, kfd_v2_state(&self->kfd));
}

/* The released ABI finds no pause of its own. */
TEST_F(pause_file, is_no_pause_of_the_released_abi)
{
	int fd;

	ASSERT_EQ(0, kfd_v2_pause(self->kfd.fd, &fd));
	EXPECT_EQ(-EINVAL, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_UNPAUSE));
	EXPECT_EQ(KFD_CRIU_STATE_PAUSED, kfd_v2_state(&self->kfd));
	close(fd);
}

TEST_F(pause_file, tells_by_poll_when_the_queues_run)
{
	struct kfd_criu_args args = { .op = KFD_CRIU_CMD_UNPAUSE };
	int other;

	ASSERT_EQ(0, kfd_v2_pause(self->kfd.fd, &args.pause_fd));
	ASSERT_EQ(0, kfd_v2_pause(self->kfd.fd, &other));
	ASSERT_EQ(0, kfd_v2(self->kfd.fd, &args));
	/* The pause has ended, but the process has another one. */
	EXPECT_EQ(POLLHUP, events_of(args.pause_fd, 0));
	close(other);
	while (events_of(args.pause_fd, LIMIT_MS) == POLLHUP)
		usleep(1000);
	EXPECT_EQ(POLLHUP | POLLIN, events_of(args.pause_fd, 0));
	args.state = 0;
	EXPECT_EQ(-EINVAL, kfd_v2(self->kfd.fd, &args));
	EXPECT_EQ(-EINVAL, checkpoint_with(&self->kfd, args.pause_fd));
	close(args.pause_fd);
}

/* Files that are none of a pause of this process. */
TEST_F(pause_file, must_be_one_of_the_same_process)
{
	int ends[2], fd;

	ASSERT_EQ(0, pipe(ends));
	ASSERT_EQ(0, kfd_v2_pause(self->kfd.fd, &fd));
	EXPECT_EQ(-EBADF, checkpoint_with(&self->kfd, -1));
	EXPECT_EQ(-EBADF, checkpoint_with(&self->kfd, ends[0]));
	EXPECT_EQ(-EBADF, checkpoint_with(&self->kfd, self->kfd.fd));
	EXPECT_EQ(-EBADF, checkpoint_with(&self->kfd, self->kfd.gpus[0].drm));
	EXPECT_EQ(0, checkpoint_with(&self->kfd, fd));
	close(fd);
}

static int use_pause_of_parent(struct kfd *kfd, void *data)
{
	const int *pause_fd = data;
	int own;

	if (kfd_acquire_vms(kfd) || kfd_v2_pause(kfd->fd, &own))
		return 1;
	if (checkpoint_with(kfd, *pause_fd) != -EXDEV)
		return 2;
	return checkpoint_with(kfd, own) ? 3 : 0;
}

TEST_F(pause_file, of_another_process_is_refused)
{
	int fd;

	ASSERT_EQ(0, kfd_v2_pause(self->kfd.fd, &fd));
	EXPECT_EQ(0, kfd_in_child(use_pause_of_parent, &fd));
	EXPECT_EQ(KFD_CRIU_STATE_PAUSED, kfd_v2_state(&self->kfd));
	close(fd);
}

struct checkpointer {
	const struct kfd *kfd;
	int pause_fd;
	unsigned int succeeded;
	int result;	/* of the first call that failed */
};

static void *checkpoint_until_failure(void *data)
{
	struct checkpointer *checkpointer = data;

	for (;;) {
		checkpointer->result = checkpoint_with(checkpointer->kfd,
						       checkpointer->pause_fd);
		if (checkpointer->result)
			return NULL;
		__atomic_add_fetch(&checkpointer->succeeded, 1, __ATOMIC_RELEASE);
	}
}

static bool succeeds_until(const struct checkpointer *checkpointer, unsigned int times)
{
	const __u64 end = now_us() + LIMIT_MS * 1000;

	while (__atomic_load_n(&checkpointer->succeeded, __ATOMIC_ACQUIRE) < times)
		if (now_us() > end)
			return false;
	return true;
}

/* CHECKPOINT holds the file until it returns, and the process is paused as long. */
TEST_F(pause_file, may_be_closed_in_the_middle_of_a_checkpoint)
{
	struct checkpointer checkpointer = { .kfd = &self->kfd };
	unsigned int i, checkpoints;
	pthread_t thread;

	for (i = 0; i < TRIES; i++) {
		ASSERT_EQ(0, kfd_v2_pause(self->kfd.fd, &checkpointer.pause_fd));
		ASSERT_EQ(0, pthread_create(&thread, NULL,
					    checkpoint_until_failure,
					    &checkpointer));
		checkpoints = __atomic_load_n(&checkpointer.succeeded, __ATOMIC_ACQUIRE);
		ASSERT_TRUE(succeeds_until(&checkpointer, checkpoints + 1 + i % 3));
		close(checkpointer.pause_fd);
		pthread_join(thread, NULL);
		EXPECT_EQ(-EBADF, checkpointer.result);
		EXPECT_EQ(KFD_CRIU_STATE_RUNNING, kfd_v2_state(&self->kfd));
	}
	EXPECT_LT(0, checkpointer.succeeded);
}

static int send_file(int socket, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {};
	char byte = 0;
	struct iovec data = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control.bytes),
	};

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	control.header.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return sendmsg(socket, &message, 0) == 1 ? 0 : -errno;
}

/* A pause that is on its way to another process lasts until that process has closed it. */
TEST_F(pause_file, lasts_while_it_is_sent_to_somebody_else)
{
	int ends[2], fd;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
	ASSERT_EQ(0, kfd_v2_pause(self->kfd.fd, &fd));
	ASSERT_EQ(0, send_file(ends[0], fd));
	close(fd);
	EXPECT_EQ(KFD_CRIU_STATE_PAUSED, kfd_v2_state(&self->kfd));
	close(ends[0]);
	close(ends[1]);
	EXPECT_EQ(KFD_CRIU_STATE_RUNNING, kfd_v2_state(&self->kfd));
}

/* The pause must not keep the queues and the memory of a process that was killed. */
TEST_F(pause_file, does_not_keep_a_process_that_was_killed)
{
	const long long before = kfd_available(&self->kfd, 0);
	int ends[2], pause_fd;
	struct kfd_bo vram;
	struct kfd kfd;

	ASSERT_EQ(0, pipe(ends));
	self->child = fork();
	ASSERT_LE(0, self->child);
	if (!self->child) {
		if (kfd_open(&kfd) || kfd_acquire_vms(&kfd) ||
		    kfd_bo_create(&kfd, 0, KFD_BO_VRAM, 1 << 20, &vram) ||
		    write(ends[1], &kfd.fd, sizeof(int)) != sizeof(int))
			_exit(1);
		for (;;)
			pause();
	}
	ASSERT_EQ(sizeof(int), read(ends[0], &kfd.fd, sizeof(int)));
	kfd.fd = kfd_take_file(self->child, kfd.fd);
	ASSERT_LE(0, kfd.fd);
	ASSERT_EQ(0, kfd_v2_pause(kfd.fd, &pause_fd));
	close(kfd.fd);
	ASSERT_EQ(0, kill_owner(&self->child));
	EXPECT_TRUE(kfd_available_becomes(&self->kfd, 0, before));
	EXPECT_EQ(POLLHUP | POLLERR, events_of(pause_fd, LIMIT_MS));
	close(pause_fd);
}

/* A checkpointer keeps the program's /dev/kfd open, and must learn that the program has gone. */
TEST_F(pause_file, tells_by_poll_that_the_process_was_killed)
{
	struct kfd_criu_args args = { .op = KFD_CRIU_CMD_CHECKPOINT };
	int ends[2], fd;

	ASSERT_EQ(0, pipe(ends));
	self->child = fork();
	ASSERT_LE(0, self->child);
	if (!self->child) {
		struct kfd kfd;

		if (kfd_open(&kfd) || kfd_acquire_vms(&kfd) ||
		    write(ends[1], &kfd.fd, sizeof(int)) != sizeof(int))
			_exit(1);
		for (;;)
			pause();
	}
	ASSERT_EQ(sizeof(int), read(ends[0], &fd, sizeof(int)));
	fd = kfd_take_file(self->child, fd);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, kfd_v2_pause(fd, &args.pause_fd));
	EXPECT_EQ(0, events_of(args.pause_fd, 0));
	ASSERT_EQ(0, kill_owner(&self->child));
	EXPECT_EQ(POLLHUP | POLLERR, events_of(args.pause_fd, LIMIT_MS));
	EXPECT_EQ(-EIO, kfd_v2(fd, &args));
	EXPECT_EQ(KFD_CRIU_STATE_ABORTED, args.state);
	close(fd);
	EXPECT_EQ(POLLHUP | POLLERR, events_of(args.pause_fd, 0));
	close(args.pause_fd);
}

/* A program that pauses itself must not keep its checkpointer out. */
TEST_F(pause_file, of_version_1_goes_over_from_the_process_to_its_tracer)
{
	const pid_t program = getpid();
	int *paused = shared_memory(KFD_PAGE);
	int i;

	ASSERT_NE(MAP_FAILED, paused);
	ASSERT_EQ(0, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_PROCESS_INFO));
	self->child = fork();
	ASSERT_LE(0, self->child);
	if (!self->child)
		pause_until_killed(&self->kfd, program, paused);
	for (i = 0; i < LIMIT_MS && !__atomic_load_n(paused, __ATOMIC_ACQUIRE); i++)
		usleep(1000);
	EXPECT_EQ(1, *paused);
	EXPECT_EQ(-EBUSY, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_UNPAUSE));
	EXPECT_EQ(-EBUSY, kfd_v1_op(self->kfd.fd, KFD_CRIU_OP_PROCESS_INFO));
	ASSERT_EQ(0, kill_owner(&self->child));
	for (i = 0; i < LIMIT_MS && kfd_v2_state(&self->kfd) != KFD_CRIU_STATE_RUNNING; i++)
		usleep(1000);
	EXPECT_EQ(KFD_CRIU_STATE_RUNNING, kfd_v2_state(&self->kfd));
}

struct delay {
	long killed_us, exited_us;	/* since the owner was killed, and since it has exited */
};

/* Waits until the queues run and the owner has exited, and notes the time of each. */
static int watch_end(pid_t owner, const __u32 *word, __u64 *ran, __u64 *exited)
{
	const __u64 end = now_us() + LIMIT_MS * 1000;

	*ran = 0;
	*exited = 0;
	while ((!*ran || !*exited) && now_us() < end) {
		if (!*ran && __atomic_load_n(word, __ATOMIC_ACQUIRE))
			*ran = now_us();
		if (!*exited && waitpid(owner, NULL, WNOHANG) == owner)
			*exited = now_us();
		usleep(100);
	}
	return *ran && *exited ? 0 : -ETIME;
}

/*
 * A process that pauses another one on demand. It is forked before that opens its GPUs: when a
 * process closes an inherited render node, for example because it exits, amdgpu waits for the
 * VM's fences, and so makes amdkfd evict the queues for 100 ms.
 */
struct pauser {
	pid_t pid;
	int go, done;	/* pipes: the number of the /dev/kfd file; a byte when it is paused */
};

static void pause_on_demand(pid_t program, int go, int done)
{
	int number, fd;

	if (read(go, &number, sizeof(number)) != sizeof(number) ||
	    kfd_v2_pause(kfd_take_file(program, number), &fd) ||
	    write(done, &fd, 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static int pauser_start(struct pauser *pauser)
{
	const pid_t program = getpid();
	int go[2], done[2];

	if (pipe(go) || pipe(done))
		return -errno;
	pauser->pid = fork();
	if (pauser->pid < 0)
		return -errno;
	if (!pauser->pid) {
		close(go[1]);
		pause_on_demand(program, go[0], done[1]);
	}
	close(go[0]);
	close(done[1]);
	pauser->go = go[1];
	pauser->done = done[0];
	return 0;
}

/* Lets it pause this process, kills it, and measures when the queues continue. */
static int kill_pauser(const struct pauser *pauser, const struct kfd *kfd,
		       __u32 *words, struct delay *delay)
{
	__u64 killed, exited, ran;
	char byte;
	int r;

	words[GATE] = 0;
	words[SDMA_BEHIND] = 0;
	if (write(pauser->go, &kfd->fd, sizeof(kfd->fd)) != sizeof(kfd->fd) ||
	    read(pauser->done, &byte, 1) != 1)
		return -ECHILD;
	__atomic_store_n(&words[GATE], 1, __ATOMIC_RELEASE);
	usleep(PAUSE_HOLDS_MS * 1000);
	/* The pause has not stopped the queue, so its end would show nothing. */
	if (__atomic_load_n(&words[SDMA_BEHIND], __ATOMIC_ACQUIRE))
		return -EALREADY;
	killed = now_us();
	kill(pauser->pid, SIGKILL);
	r = watch_end(pauser->pid, &words[SDMA_BEHIND], &ran, &exited);
	if (r)
		return r;
	delay->killed_us = ran - killed;
	delay->exited_us = ran > exited ? ran - exited : 0;
	return 0;
}

static int compare_longs(const void *a, const void *b)
{
	return *(const long *)a > *(const long *)b ? 1 : -1;
}

static long median_of(long *values, const char *name)
{
	qsort(values, TRIES, sizeof(*values), compare_longs);
	printf("# since the owner %s: median %ld us, longest %ld us\n", name,
	       values[TRIES / 2], values[TRIES - 1]);
	return values[TRIES / 2];
}

static int make_gated_queue(struct kfd *kfd, struct kfd_bo *bo, struct kfd_queue *sdma)
{
	int r = kfd_open(kfd);

	r = r ? r : kfd_acquire_vms(kfd);
	r = r ? r : kfd_bo_create(kfd, 0, KFD_BO_GTT, KFD_PAGE, bo);
	return r ? r : kfd_queue_create(kfd, 0, sdma);
}

/* A debug kernel takes long to end the owner, which has nothing to do with the pause. */
TEST(a_pause_of_a_killed_process_ends_within_5_ms)
{
	long killed[TRIES], exited[TRIES];
	struct pauser pausers[TRIES];
	struct kfd_queue sdma;
	struct delay delay = {};
	struct kfd_bo bo;
	struct kfd kfd;
	unsigned int i;
	int r;

	for (i = 0; i < TRIES; i++)
		ASSERT_EQ(0, pauser_start(&pausers[i]));
	r = make_gated_queue(&kfd, &bo, &sdma);
	for (i = 0; !r && i < TRIES; i++) {
		((__u32 *)bo.cpu)[GATE] = 0;
		kfd_sdma_wait(&sdma, word_va(&bo, GATE), 1);
		kfd_sdma_write(&sdma, word_va(&bo, SDMA_BEHIND), 1);
		r = kill_pauser(&pausers[i], &kfd, bo.cpu, &delay);
		killed[i] = delay.killed_us;
		exited[i] = delay.exited_us;
	}
	for (i = 0; i < TRIES; i++)
		kill(pausers[i].pid, SIGKILL);
	while (wait(NULL) > 0)
		;
	if (r == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, r);
	median_of(killed, "was killed");
	EXPECT_GE(END_LIMIT_US, median_of(exited, "has exited"));
	kfd_close(&kfd);
}

KFD_TEST_MAIN
