// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * What comes in the middle of a restore or a resume: an ioctl that is under way, pages
 * that go away, a signal that kills, a debugger.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "../../../kselftest_harness.h"
#include "lib/bo.h"
#include "lib/criu_op.h"
#include "lib/fixture.h"
#include "lib/image_v2.h"
#include "lib/kfd.h"
#include "lib/queue.h"
#include "lib/slow_image.h"

#define LIMIT_S		600
#define BLOCK_LIMIT_MS	10000
/* How long a thread waits for the same thing until it is believed that it does. */
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

static void tell(__u32 *word)
{
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
}

/* A child's status, as of waitpid(), once it ends; -ETIME: it did not. */
static int ends_within(pid_t pid, unsigned int limit_s)
{
	unsigned int i;
	int status;

	for (i = 0; i < limit_s * 100; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return status;
		usleep(10 * 1000);
	}
	return -ETIME;
}

/* ---- what another thread does ---- */

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
	tell(&call->begun);
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

/* It waits in the kernel, and no signal would wake it, as whoever waits for a mutex. */
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

/* ---- an ioctl under way ---- */

static int restores(struct kfd *kfd, void *data)
{
	return kfd_v2_image_restore(kfd, data);
}

static int acquires_vm(struct kfd *kfd, void *data)
{
	(void)data;
	return kfd_acquire_vm(kfd, 0);
}

/* One BO of user memory: of a process that has bound the GPU. */
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

struct meeting {
	const struct kfd_v2_image *image;
	int (*other)(struct kfd *kfd, void *data);
	int answer;	/* to the other one, if there was no restore */
	int (*then)(struct kfd *kfd, void *data);
	void *page;
};

/* Both are under way, the restore was first and has changed nothing yet. */
static int meet(const struct meeting *meeting, struct call *restore,
		struct call *other, struct blocking_image *late)
{
	if (blocking_image_create(late, meeting->image->size))
		return 1;
	restore->data = &late->image;
	if (!call_start(restore) || !blocking_image_is_read(late))
		return 2;
	if (!call_start(other) || !call_blocks(other))
		return 3;
	return blocking_image_fill(late, meeting->image) ? 4 : 0;
}

static int meets_a_restore(struct kfd *kfd, void *data)
{
	const struct meeting *meeting = data;
	struct call restore = { .body = restores, .kfd = kfd };
	struct call other = {
		.body = meeting->other,
		.kfd = kfd,
		.data = meeting->page,
	};
	struct blocking_image late;
	int r, answer;

	r = meet(meeting, &restore, &other, &late);
	if (r)
		return r;
	r = call_end(&restore);
	answer = call_end(&other);
	printf("# restore: %d, the other one: %d\n", r, answer);
	fflush(stdout);
	if (!r && !answer)
		return 5;
	if (r != -EBUSY)
		return 6;
	if (answer != meeting->answer)
		return 7;
	if (kfd_v2_state(kfd) != KFD_CRIU_STATE_RUNNING)
		return 8;
	return meeting->then(kfd, data) ? 9 : 0;
}

static int has_nothing(struct kfd *kfd, void *data)
{
	const struct meeting *meeting = data;

	return kfd_v2_image_restore(kfd, meeting->image);
}

static int works(struct kfd *kfd, void *data)
{
	struct kfd_bo bo;
	int r = kfd_acquire_vms(kfd);

	(void)data;
	return r ? r : kfd_bo_create(kfd, 0, KFD_BO_USERPTR, KFD_PAGE, &bo);
}

static void expect_no_restore(struct __test_metadata *_metadata,
			      struct kfd *kfd, struct kfd_v2_image *image,
			      struct meeting *meeting)
{
	struct fixture fixture;

	if (!blocking_images_are_supported())
		SKIP(return, "no userfaultfd");
	ASSERT_EQ(0, fixture_create(kfd, &fixture, FIXTURE_BOS));
	ASSERT_EQ(0, kfd_v2_image_dump(kfd->fd, image));
	meeting->image = image;
	meeting->page = shared_memory(KFD_PAGE);
	ASSERT_NE(MAP_FAILED, meeting->page);
	EXPECT_EQ(0, kfd_in_child(meets_a_restore, meeting));
	munmap(meeting->page, KFD_PAGE);
}

/* It has been let in, and waits for the process's mutex, which the restore holds. */
TEST_F(race, an_ioctl_under_way_does_not_slip_into_a_restore)
{
	struct meeting meeting = {
		.other = acquires_vm,
		.then = works,
	};

	expect_no_restore(_metadata, &self->kfd, &self->image, &meeting);
}

/* The restore would bind the GPU for it, and the BO never hear of its pages. */
TEST_F(race, a_bo_under_way_does_not_slip_into_a_restore)
{
	struct meeting meeting = {
		.other = allocates,
		.answer = -ENODEV,
		.then = has_nothing,
	};

	expect_no_restore(_metadata, &self->kfd, &self->image, &meeting);
}

/* ---- pages that go away ---- */

/* So many that it takes the kernel a while to take them away. */
#define PAGES_BYTES	(192UL << 20)
#define ZAP_ROUNDS	8
#define FRESH		0x5eed0003U

/* A BO of user memory that is the last of many pages. */
struct pages {
	unsigned char *memory;
	struct kfd_v2_image image;
	struct kfd_queue queue;
	struct kfd_bo user, done;
	unsigned int round;
};

static int drops_pages(struct kfd *kfd, void *data)
{
	const struct pages *pages = data;

	(void)kfd;
	return madvise(pages->memory, PAGES_BYTES, MADV_DONTNEED) ? -errno : 0;
}

static __u64 now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000ULL + now.tv_nsec / 1000;
}

/* How long it takes: nobody follows the pages yet. */
static __u64 measure_drop_us(struct pages *pages)
{
	__u64 begin;

	memset(pages->memory, 1, PAGES_BYTES);
	begin = now_us();
	drops_pages(NULL, pages);
	return now_us() - begin;
}

/* Rounds go from its beginning to its end; in the last one it is over. */
static int resume_while_pages_go(struct kfd *kfd, struct pages *pages)
{
	struct call drop = { .body = drops_pages, .data = pages };
	const __u64 whole_us = measure_drop_us(pages);
	__u64 begin;
	int r;

	memset(pages->memory, 1, PAGES_BYTES);
	if (pages->round == ZAP_ROUNDS)
		return drops_pages(kfd, pages) ?: kfd_v2_resume(kfd);
	if (!call_start(&drop))
		return -EAGAIN;
	begin = now_us();
	while (now_us() - begin < whole_us * pages->round / ZAP_ROUNDS)
		sched_yield();
	r = kfd_v2_resume(kfd);
	return call_end(&drop) ?: r;
}

static int follows_its_pages(struct kfd *kfd, void *data)
{
	struct pages *pages = data;

	if (kfd_v2_image_restore(kfd, &pages->image))
		return 1;
	if (kfd_bo_remap(kfd, 0, &pages->done) ||
	    kfd_queue_remap(kfd, &pages->queue))
		return 2;
	if (resume_while_pages_go(kfd, pages))
		return 3;
	__atomic_store_n((__u32 *)pages->user.cpu, FRESH, __ATOMIC_RELEASE);
	/* The GPU only reads: the page may be somebody else's by now. */
	kfd_sdma_wait(&pages->queue, pages->user.va, FRESH);
	kfd_sdma_write(&pages->queue, pages->done.va, 1);
	return wait_for_word(pages->done.cpu, 1) ? 0 : 4;
}

static int make_pages(struct kfd *kfd, struct pages *pages)
{
	int r;

	memset(pages, 0, sizeof(*pages));
	pages->memory = mmap(NULL, PAGES_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (pages->memory == MAP_FAILED)
		return -errno;
	/* Huge ones are gone too soon; a kernel that has none does not know the word. */
	madvise(pages->memory, PAGES_BYTES, MADV_NOHUGEPAGE);
	r = kfd_bo_wrap(kfd, 0, pages->memory + PAGES_BYTES - KFD_PAGE,
			KFD_PAGE, &pages->user);
	r = r ? r : kfd_bo_create(kfd, 0, KFD_BO_GTT, KFD_PAGE, &pages->done);
	r = r ? r : kfd_queue_create(kfd, 0, &pages->queue);
	r = r ? r : kfd_v2_image_dump(kfd->fd, &pages->image);
	/* Its place of the GPU is for the children. */
	return r ? r : kfd_queue_destroy(kfd, &pages->queue);
}

TEST_F_TIMEOUT(race, pages_that_go_away_while_it_is_resumed_are_not_the_gpus, LIMIT_S)
{
	struct pages pages;

	ASSERT_EQ(0, make_pages(&self->kfd, &pages));
	self->image = pages.image;
	for (pages.round = 0; pages.round <= ZAP_ROUNDS; pages.round++) {
		ASSERT_EQ(0, kfd_in_child(follows_its_pages, &pages))
			TH_LOG("round %u", pages.round);
	}
}

/* ---- a debugger ---- */

/* A process and who traces it; both see it, and the test. */
struct scene {
	struct kfd_v2_image image;
	int result;
	__u32 restored;
	__u32 begun;
	pid_t target;
};

static int restores_and_waits(struct kfd *kfd, void *data)
{
	struct scene *scene = data;

	scene->result = kfd_v2_image_restore(kfd, &scene->image);
	tell(&scene->restored);
	return pause();
}

/* A process that is restored and traced by this one, or a negative errno. */
static int trace_restored(struct scene *scene)
{
	const pid_t pid = kfd_start_child(restores_and_waits, scene);

	if (pid < 0)
		return -errno;
	if (!wait_for_word(&scene->restored, 1))
		return -ETIME;
	if (scene->result)
		return scene->result;
	return ptrace(PTRACE_SEIZE, pid, 0, 0) ? -errno : pid;
}

/* A process may debug itself and whom it traces; events go into a pipe. */
static int debug(const struct kfd *kfd, pid_t pid, __u32 op, int events)
{
	struct kfd_runtime_info info;
	struct kfd_ioctl_dbg_trap_args args = {
		.pid = pid,
		.op = op,
	};

	if (op == KFD_IOC_DBG_TRAP_ENABLE) {
		args.enable.rinfo_ptr = (unsigned long)&info;
		args.enable.rinfo_size = sizeof(info);
		args.enable.dbg_fd = events;
	}
	return kfd_call(kfd->fd, AMDKFD_IOC_DBG_TRAP, &args);
}

TEST_F(race, nobody_debugs_what_is_being_restored)
{
	struct scene *scene = shared_memory(sizeof(*scene));
	const struct kfd *kfd = &self->kfd;
	struct fixture fixture;
	int ends[2];
	pid_t pid;

	ASSERT_NE(MAP_FAILED, scene);
	ASSERT_EQ(0, pipe(ends));
	if (debug(kfd, getpid(), KFD_IOC_DBG_TRAP_ENABLE, ends[1]))
		SKIP(return, "amdkfd does not debug programs on this GPU");
	ASSERT_EQ(0, debug(kfd, getpid(), KFD_IOC_DBG_TRAP_DISABLE, -1));
	ASSERT_EQ(0, fixture_create(&self->kfd, &fixture, FIXTURE_BOS));
	ASSERT_EQ(0, kfd_v2_image_dump(kfd->fd, &self->image));
	scene->image = self->image;
	pid = trace_restored(scene);
	ASSERT_LT(0, pid);
	EXPECT_EQ(-EBUSY, debug(kfd, pid, KFD_IOC_DBG_TRAP_ENABLE, ends[1]));
	EXPECT_EQ(0, kfd_v1_resume(kfd->fd, pid));
	EXPECT_EQ(0, debug(kfd, pid, KFD_IOC_DBG_TRAP_ENABLE, ends[1]));
	EXPECT_EQ(0, debug(kfd, pid, KFD_IOC_DBG_TRAP_DISABLE, -1));
	kill(pid, SIGKILL);
	EXPECT_NE(-ETIME, ends_within(pid, 10));
}

/* ---- an image without an end ---- */

#define KILL_LIMIT_S	20

static int restores_without_end(struct kfd *kfd, void *data)
{
	struct scene *scene = data;

	if (endless_image_create(&scene->image))
		return 1;
	tell(&scene->begun);
	return kfd_v2_image_restore(kfd, &scene->image) ? 2 : 3;
}

TEST_F_TIMEOUT(race, a_restore_of_an_endless_image_can_be_killed, LIMIT_S)
{
	struct scene *scene = shared_memory(sizeof(*scene));
	int status;
	pid_t pid;

	ASSERT_NE(MAP_FAILED, scene);
	pid = kfd_start_child(restores_without_end, scene);
	ASSERT_LT(0, pid);
	ASSERT_TRUE(wait_for_word(&scene->begun, 1));
	/* So that it is deep in it: nothing tells how far. */
	sleep(1);
	kill(pid, SIGKILL);
	status = ends_within(pid, KILL_LIMIT_S);
	ASSERT_NE(-ETIME, status);
	/* It was still at it. */
	EXPECT_TRUE(WIFSIGNALED(status))
		TH_LOG("status %x", status);
}

/* ---- a process that is killed ---- */

#define SVM_RANGES	500
#define SVM_RANGE_SIZE	(16 * KFD_PAGE)
#define END_LIMIT_S	60

/* Ranges in a row, which GPU 0 has access to, behind what is in an image. */
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

/* What it is answered is not said: it came too late or not. */
static int resumes_who_is_killed(struct kfd *kfd, void *data)
{
	struct scene *scene = data;
	const int pid = trace_restored(scene);
	int status;

	if (pid < 0)
		return 1;
	scene->target = pid;
	tell(&scene->begun);
	scene->result = kfd_v1_resume(kfd->fd, pid);
	status = ends_within(pid, END_LIMIT_S);
	if (status == -ETIME)
		return 2;
	return WIFSIGNALED(status) ? 0 : 3;
}

/* Last of all: nothing ends a tracer that waits for itself. */
TEST_F_TIMEOUT(race, it_goes_when_it_is_killed_while_it_is_resumed, LIMIT_S)
{
	static const unsigned int delays_us[] = { 0, 500, 2000, 10000, 50000 };
	struct scene *scene = shared_memory(sizeof(*scene));
	unsigned int i;
	void *memory;

	if (self->kfd.gpus[0].gfx_version < GFX9)
		SKIP(return, "no SVM");
	memory = mmap(NULL, SVM_RANGES * SVM_RANGE_SIZE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, memory);
	ASSERT_NE(MAP_FAILED, scene);
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &self->image));
	ASSERT_EQ(0, append_ranges(&self->image, (unsigned long)memory,
				   self->kfd.gpus[0].id));
	for (i = 0; i < sizeof(delays_us) / sizeof(*delays_us); i++) {
		pid_t tracer;

		memset(scene, 0, sizeof(*scene));
		scene->image = self->image;
		tracer = kfd_start_child(resumes_who_is_killed, scene);
		ASSERT_LT(0, tracer);
		ASSERT_TRUE(wait_for_word(&scene->begun, 1));
		usleep(delays_us[i]);
		kill(scene->target, SIGKILL);
		ASSERT_EQ(0, ends_within(tracer, END_LIMIT_S))
			TH_LOG("%u us", delays_us[i]);
		TH_LOG("%u us: %d", delays_us[i], scene->result);
	}
}

KFD_TEST_MAIN
