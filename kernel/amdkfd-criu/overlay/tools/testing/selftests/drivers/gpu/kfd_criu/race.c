// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Events in the middle of RESTORE or RESUME: another ioctl that has begun before, pages
 * that are unmapped, SIGKILL, a debugger that attaches.
 *
 * Runs: once
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "../../../kselftest_harness.h"
#include "lib/bo.h"
#include "lib/criu_op.h"
#include "lib/debug_trap.h"
#include "lib/fixture.h"
#include "lib/image_v2.h"
#include "lib/kfd.h"
#include "lib/queue.h"
#include "lib/slow_image.h"

#define LIMIT_S		600
#define BLOCK_LIMIT_MS	10000
/* A thread that has waited for so long is taken for blocked. */
#define BLOCKED_MS	100

FIXTURE(race) {
	struct kfd kfd;
	struct kfd_v2_image image;
};

FIXTURE_SETUP(race)
{
	memset(&self->image, 0, sizeof(self->image));
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, kfd_acquire_vms(&self->kfd));
}

FIXTURE_TEARDOWN(race)
{
	free(self->image.data);
	kfd_close(&self->kfd);
}

/* ---- a call in another thread ---- */

struct call {
	int (*body)(struct kfd *kfd, void *data);
	struct kfd *kfd;
	void *data;
	pthread_t thread;
	pid_t id;
	__u32 begun;
	int result;
};

static void *run(void *data)
{
	struct call *call = data;

	call->id = syscall(SYS_gettid);
	set_word(&call->begun);
	call->result = call->body(call->kfd, call->data);
	return NULL;
}

static bool call_start(struct call *call)
{
	return !pthread_create(&call->thread, NULL, run, call) &&
	       wait_for_word(&call->begun, 1);
}

static int call_end(struct call *call)
{
	return pthread_join(call->thread, NULL) ? -ESRCH : call->result;
}

/* Whether the thread sleeps uninterruptibly in the kernel, as for a mutex. */
static bool is_blocked(const struct call *call)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", call->id);
	file = fopen(path, "r");
	if (!file)
		return false;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(file);
	return state == 'D';
}

static bool call_blocks(const struct call *call)
{
	int i, blocked = 0;

	for (i = 0; i < BLOCK_LIMIT_MS && blocked < BLOCKED_MS; i++) {
		blocked = is_blocked(call) ? blocked + 1 : 0;
		usleep(1000);
	}
	return blocked == BLOCKED_MS;
}

/* ---- an ioctl that has begun before ---- */

static int restores(struct kfd *kfd, void *data)
{
	return kfd_v2_image_restore(kfd, data);
}

static int acquires_vm(struct kfd *kfd, void *data)
{
	(void)data;
	return kfd_acquire_vm(kfd, 0);
}

/* Allocates a BO of user memory, which needs a process that has acquired the GPU's VM. */
static int allocates(struct kfd *kfd, void *data)
{
	struct kfd_ioctl_alloc_memory_of_gpu_args args = {
		.va_addr = 1ULL << 36,
		.size = KFD_PAGE,
		.mmap_offset = (unsigned long)data,
		.gpu_id = kfd->gpus[0].id,
		.flags = KFD_BO_USERPTR,
	};

	return kfd_call(kfd->fd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &args);
}

struct collision {
	const struct kfd_v2_image *image;
	int (*other)(struct kfd *kfd, void *data);
	int expected;	/* what the other call returns if RESTORE fails */
	int (*then)(struct kfd *kfd, void *data); /* must work afterwards */
	void *page;
};

/* Starts RESTORE, which reads its image and waits, then the other call; lets both continue. */
static int collide(const struct collision *collision, struct call *restore,
		   struct call *other, struct blocking_image *late)
{
	if (blocking_image_create(late, collision->image->size))
		return 1;
	late->image.gpus_of = collision->image;
	restore->data = &late->image;
	if (!call_start(restore) || !blocking_image_is_read(late))
		return 2;
	if (!call_start(other) || !call_blocks(other))
		return 3;
	return blocking_image_fill(late, collision->image) ? 4 : 0;
}

static int collides_with_restore(struct kfd *kfd, void *data)
{
	const struct collision *collision = data;
	struct call restore = { .body = restores, .kfd = kfd };
	struct call other = {
		.body = collision->other,
		.kfd = kfd,
		.data = collision->page,
	};
	struct blocking_image late;
	int r, result;

	r = collide(collision, &restore, &other, &late);
	if (r)
		return r;
	r = call_end(&restore);
	result = call_end(&other);
	printf("# restore: %d, the other call: %d\n", r, result);
	fflush(stdout);
	if (!r && !result)
		return 5;
	if (r != -EBUSY)
		return 6;
	if (result != collision->expected)
		return 7;
	if (kfd_v2_state(kfd) != KFD_CRIU_STATE_RUNNING)
		return 8;
	return collision->then(kfd, data) ? 9 : 0;
}

static int can_restore(struct kfd *kfd, void *data)
{
	const struct collision *collision = data;

	return kfd_v2_image_restore(kfd, collision->image);
}

static int can_allocate(struct kfd *kfd, void *data)
{
	struct kfd_bo bo;
	int r = kfd_acquire_vms(kfd);

	(void)data;
	return r ? r : kfd_bo_create(kfd, 0, KFD_BO_USERPTR, KFD_PAGE, &bo);
}

static void expect_no_restore(struct __test_metadata *_metadata,
			      struct kfd *kfd, struct kfd_v2_image *image,
			      struct collision *collision)
{
	struct fixture fixture;

	if (!blocking_images_are_supported())
		SKIP(return, "no userfaultfd");
	ASSERT_EQ(0, fixture_create(kfd, &fixture, FIXTURE_BOS));
	ASSERT_EQ(0, kfd_v2_image_dump(kfd->fd, image));
	collision->image = image;
	collision->page = shared_memory(KFD_PAGE);
	ASSERT_NE(MAP_FAILED, collision->page);
	EXPECT_EQ(0, kfd_in_child(collides_with_restore, collision));
	munmap(collision->page, KFD_PAGE);
}

/* The ioctl has passed the check of the state and waits for the process's mutex. */
TEST_F(race, an_ioctl_that_has_begun_does_not_run_inside_a_restore)
{
	struct collision collision = {
		.other = acquires_vm,
		.then = can_allocate,
	};

	expect_no_restore(_metadata, &self->kfd, &self->image, &collision);
}

/*
 * RESTORE would acquire the VM that the allocation needs, and the BO would get no MMU
 * notifier for its pages.
 */
TEST_F(race, an_allocation_that_has_begun_does_not_run_inside_a_restore)
{
	struct collision collision = {
		.other = allocates,
		.expected = -ENODEV,
		.then = can_restore,
	};

	expect_no_restore(_metadata, &self->kfd, &self->image, &collision);
}

/* ---- pages that are unmapped ---- */

/* Large enough that the kernel needs some time to unmap it. */
#define PAGES_BYTES	(192UL << 20)
#define UNMAP_ROUNDS	8
#define FRESH		0x5eed0003U

/* Many pages, the last of which is a BO of user memory. */
struct pages {
	unsigned char *memory;
	struct kfd_v2_image image;
	struct kfd_queue queue;
	struct kfd_bo user, done;
	unsigned int round;
};

static int unmap_pages(struct kfd *kfd, void *data)
{
	const struct pages *pages = data;

	(void)kfd;
	return madvise(pages->memory, PAGES_BYTES, MADV_DONTNEED) ? -errno : 0;
}

/* How long madvise() takes for all pages, before the driver has a notifier for them. */
static __u64 measure_unmap_us(struct pages *pages)
{
	__u64 begin;

	memset(pages->memory, 1, PAGES_BYTES);
	begin = now_us();
	unmap_pages(NULL, pages);
	return now_us() - begin;
}

/*
 * Resumes while madvise() unmaps the pages. The rounds spread over the time that madvise()
 * takes; in the last round it is over before.
 */
static int resume_while_unmapping(struct kfd *kfd, struct pages *pages)
{
	struct call unmap = { .body = unmap_pages, .data = pages };
	const __u64 whole_us = measure_unmap_us(pages);
	__u64 begin;
	int r;

	memset(pages->memory, 1, PAGES_BYTES);
	if (pages->round == UNMAP_ROUNDS)
		return unmap_pages(kfd, pages) ?: kfd_v2_resume(kfd);
	if (!call_start(&unmap))
		return -EAGAIN;
	begin = now_us();
	while (now_us() - begin < whole_us * pages->round / UNMAP_ROUNDS)
		sched_yield();
	r = kfd_v2_resume(kfd);
	return call_end(&unmap) ?: r;
}

static int uses_new_pages(struct kfd *kfd, void *data)
{
	struct pages *pages = data;

	if (kfd_v2_image_restore(kfd, &pages->image))
		return 1;
	if (kfd_bo_remap(kfd, KFD_NO_PAUSE, 0, &pages->done) ||
	    kfd_queue_remap(kfd, &pages->queue))
		return 2;
	if (resume_while_unmapping(kfd, pages))
		return 3;
	__atomic_store_n((__u32 *)pages->user.cpu, FRESH, __ATOMIC_RELEASE);
	/* The GPU only reads: if the test fails, the old page may belong to others. */
	kfd_sdma_wait(&pages->queue, pages->user.va, FRESH);
	kfd_sdma_write(&pages->queue, pages->done.va, 1);
	return wait_for_word(pages->done.cpu, 1) ? 0 : 4;
}

static int create_pages(struct kfd *kfd, struct pages *pages)
{
	int r;

	memset(pages, 0, sizeof(*pages));
	pages->memory = mmap(NULL, PAGES_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (pages->memory == MAP_FAILED)
		return -errno;
	/* Huge pages are unmapped too quickly. Fails if the kernel does not have them. */
	madvise(pages->memory, PAGES_BYTES, MADV_NOHUGEPAGE);
	r = kfd_bo_wrap(kfd, 0, pages->memory + PAGES_BYTES - KFD_PAGE,
			KFD_PAGE, &pages->user);
	r = r ? r : kfd_bo_create(kfd, 0, KFD_BO_GTT, KFD_PAGE, &pages->done);
	r = r ? r : kfd_queue_create(kfd, 0, &pages->queue);
	r = r ? r : kfd_v2_image_dump(kfd->fd, &pages->image);
	/* The children restore the queue in its slot. */
	return r ? r : kfd_queue_destroy(kfd, &pages->queue);
}

TEST_F_TIMEOUT(race, pages_that_are_unmapped_during_a_resume_are_not_used_by_the_gpu, LIMIT_S)
{
	struct pages pages;

	ASSERT_EQ(0, create_pages(&self->kfd, &pages));
	self->image = pages.image;
	for (pages.round = 0; pages.round <= UNMAP_ROUNDS; pages.round++) {
		ASSERT_EQ(0, kfd_in_child(uses_new_pages, &pages))
			TH_LOG("round %u", pages.round);
	}
}

/* ---- a debugger ---- */

/* What a process, its tracer and the test tell each other, in shared memory. */
struct shared {
	struct kfd_v2_image image;
	int result;
	__u32 restored;
	__u32 begun;
	pid_t target;
};

static int restores_and_waits(struct kfd *kfd, void *data)
{
	struct shared *shared = data;

	shared->result = kfd_v2_image_restore(kfd, &shared->image);
	set_word(&shared->restored);
	return pause();
}

/* Starts a process that is restored, and traces it. Returns its id, or a negative errno. */
static int trace_restored(struct shared *shared)
{
	const pid_t pid = kfd_start_child(restores_and_waits, shared);

	if (pid < 0)
		return -errno;
	if (!wait_for_word(&shared->restored, 1))
		return -ETIME;
	if (shared->result)
		return shared->result;
	return ptrace(PTRACE_SEIZE, pid, 0, 0) ? -errno : pid;
}

TEST_F(race, a_process_that_is_being_restored_cannot_be_debugged)
{
	struct shared *shared = shared_memory(sizeof(*shared));
	const struct kfd *kfd = &self->kfd;
	struct fixture fixture;
	int ends[2];
	pid_t pid;

	ASSERT_NE(MAP_FAILED, shared);
	ASSERT_EQ(0, pipe(ends));
	if (kfd_debug_trap(kfd, getpid(), KFD_IOC_DBG_TRAP_ENABLE, ends[1]))
		SKIP(return, "amdkfd does not debug programs on this GPU");
	ASSERT_EQ(0, kfd_debug_trap(kfd, getpid(), KFD_IOC_DBG_TRAP_DISABLE, -1));
	ASSERT_EQ(0, fixture_create(&self->kfd, &fixture, FIXTURE_BOS));
	ASSERT_EQ(0, kfd_v2_image_dump(kfd->fd, &self->image));
	shared->image = self->image;
	pid = trace_restored(shared);
	ASSERT_LT(0, pid);
	EXPECT_EQ(-EBUSY, kfd_debug_trap(kfd, pid, KFD_IOC_DBG_TRAP_ENABLE, ends[1]));
	EXPECT_EQ(0, kfd_v1_resume(kfd->fd, pid));
	EXPECT_EQ(0, kfd_debug_trap(kfd, pid, KFD_IOC_DBG_TRAP_ENABLE, ends[1]));
	EXPECT_EQ(0, kfd_debug_trap(kfd, pid, KFD_IOC_DBG_TRAP_DISABLE, -1));
	kill(pid, SIGKILL);
	EXPECT_NE(-ETIME, ends_within(pid, 10 * 1000));
}

/* ---- an image without an end ---- */

#define KILL_LIMIT_MS	20000
/* After so long RESTORE is in the middle of the records. */
#define ENDLESS_WORK_MS	300

/* Milliseconds of CPU time that the process has used; negative: it has gone. */
static long cpu_ms(pid_t pid)
{
	long user = 0, ticks = -1;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "r");
	if (!file)
		return -1;
	if (fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld",
		   &user, &ticks) != 2)
		ticks = -1;
	fclose(file);
	return ticks < 0 ? -1 : (user + ticks) * 1000 / sysconf(_SC_CLK_TCK);
}

/* Waits up to a minute until the process has used so much more CPU time. */
static bool uses_cpu(pid_t pid, long ms)
{
	const long end = cpu_ms(pid) + ms;
	int i;

	for (i = 0; i < 6000 && cpu_ms(pid) < end; i++)
		usleep(10 * 1000);
	return cpu_ms(pid) >= end;
}

static int restores_without_end(struct kfd *kfd, void *data)
{
	struct shared *shared = data;

	if (endless_image_create(&shared->image))
		return 1;
	set_word(&shared->begun);
	return kfd_v2_image_restore(kfd, &shared->image) ? 2 : 3;
}

TEST_F_TIMEOUT(race, a_restore_of_an_endless_image_can_be_killed, LIMIT_S)
{
	struct shared *shared = shared_memory(sizeof(*shared));
	int status;
	pid_t pid;

	ASSERT_NE(MAP_FAILED, shared);
	pid = kfd_start_child(restores_without_end, shared);
	ASSERT_LT(0, pid);
	ASSERT_TRUE(wait_for_word(&shared->begun, 1));
	ASSERT_TRUE(uses_cpu(pid, ENDLESS_WORK_MS));
	kill(pid, SIGKILL);
	status = ends_within(pid, KILL_LIMIT_MS);
	ASSERT_NE(-ETIME, status);
	/* The restore had not ended before the signal. */
	EXPECT_TRUE(WIFSIGNALED(status))
		TH_LOG("status %x", status);
}

/* ---- a process that is killed ---- */

#define SVM_RANGES	500
#define SVM_RANGE_SIZE	(16 * KFD_PAGE)
#define END_LIMIT_MS	60000

/* Appends adjacent ranges that GPU 0 has access to. */
static int append_ranges(struct kfd_v2_image *image, __u64 start, __u32 gpu_id)
{
	const size_t bytes = sizeof(struct kfd_criu_record_svm_range) +
			     sizeof(struct kfd_criu_svm_device);
	unsigned char *data = realloc(image->data,
				      image->size + SVM_RANGES * bytes);
	struct kfd_criu_record_image *first = (void *)data;
	unsigned int i;

	if (!data)
		return -ENOMEM;
	image->data = data;
	for (i = 0; i < SVM_RANGES; i++) {
		struct kfd_criu_record_svm_range *range =
			(void *)(data + image->size);

		*range = (struct kfd_criu_record_svm_range){
			.record = {
				.type = KFD_CRIU_RECORD_SVM_RANGE,
				.version = 1,
				.flags = KFD_CRIU_RECORD_REQUIRED,
				.fixed_size = sizeof(*range),
				.size = bytes,
			},
			.start = start + i * SVM_RANGE_SIZE,
			.size = SVM_RANGE_SIZE,
			.preferred_location = KFD_IOCTL_SVM_LOCATION_UNDEFINED,
			.prefetch_location = KFD_IOCTL_SVM_LOCATION_UNDEFINED,
			.num_access = 1,
		};
		*(struct kfd_criu_svm_device *)(range + 1) =
			(struct kfd_criu_svm_device){
				.gpu_id = gpu_id,
				.access = KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE,
			};
		image->size += bytes;
	}
	first->size = image->size;
	first->num_records += SVM_RANGES;
	return 0;
}

/* RESUME may return anything, because the signal may come before or after it. */
static int resumes_killed_process(struct kfd *kfd, void *data)
{
	struct shared *shared = data;
	const int pid = trace_restored(shared);
	int status;

	if (pid < 0)
		return 1;
	shared->target = pid;
	set_word(&shared->begun);
	shared->result = kfd_v1_resume(kfd->fd, pid);
	status = ends_within(pid, END_LIMIT_MS);
	if (status == -ETIME)
		return 2;
	return WIFSIGNALED(status) ? 0 : 3;
}

TEST_F_TIMEOUT(race, a_process_can_be_killed_while_it_is_resumed, LIMIT_S)
{
	static const unsigned int delays_us[] = { 0, 500, 2000, 10000, 50000 };
	struct shared *shared = shared_memory(sizeof(*shared));
	unsigned int i;
	void *memory;

	if (self->kfd.gpus[0].gfx_version < GFX9)
		SKIP(return, "no SVM");
	memory = mmap(NULL, SVM_RANGES * SVM_RANGE_SIZE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, memory);
	ASSERT_NE(MAP_FAILED, shared);
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &self->image));
	ASSERT_EQ(0, append_ranges(&self->image, (unsigned long)memory,
				   self->kfd.gpus[0].id));
	for (i = 0; i < sizeof(delays_us) / sizeof(*delays_us); i++) {
		pid_t tracer;
		int status;

		memset(shared, 0, sizeof(*shared));
		shared->image = self->image;
		tracer = kfd_start_child(resumes_killed_process, shared);
		ASSERT_LT(0, tracer);
		ASSERT_TRUE(wait_for_word(&shared->begun, 1));
		usleep(delays_us[i]);
		kill(shared->target, SIGKILL);
		status = ends_within(tracer, END_LIMIT_MS);
		/* The tests behind this one need the GPU. */
		if (status == -ETIME)
			kill(tracer, SIGKILL);
		ASSERT_EQ(0, status)
			TH_LOG("%u us", delays_us[i]);
		TH_LOG("%u us: %d", delays_us[i], shared->result);
	}
}

KFD_TEST_MAIN
