// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * SVM ranges that are much larger than the memory in them: RESUME allocates no page that the
 * program did not have, in system memory or VRAM. And how long RESUME needs for many ranges.
 *
 * Runs: per-chip
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "../../../kselftest_harness.h"
#include "lib/criu_op.h"
#include "lib/image_v1.h"
#include "lib/kfd.h"
#include "lib/queue.h"
#include "lib/svm.h"

#define TEST_LIMIT_S	600
/* How often ten seconds are waited for a RESUME whose own limit is over. */
#define MORE_WAITS	12
#define RANGE		0x1100000000UL
#define RANGE_SIZE	(64UL << 30)
#define SMALL_SIZE	(64UL << 20)
/* What RESUME may add, mostly for the driver's own description of the ranges. */
#define MAY_ADD_KB	(64L << 10)
/* A program that has got so much is ended before the machine runs out of memory. */
#define STOP_KB		(256L << 10)
#define RANGES		1000
#define WORD		0x5eed0028U

/* Attributes of a range in an image of version 1, in this order; then the devices' access. */
enum {
	PREFERRED,
	PREFETCH,
	FLAGS,
	GRANULARITY,
	ACCESS,
};

struct usage {
	long rss_kb;		/* of the process */
	long available_kb;	/* of the machine */
	long vram_kb;		/* free VRAM of GPU 0 */
};

/* What the test and the program that it restores tell each other. */
struct shared {
	struct usage before, after;
	__u32 restored;
	bool gpu_writes;	/* the program shall let the GPU write to the range */
	int result;		/* of RESUME */
	__u64 us;		/* that RESUME took */
};

FIXTURE(sparse_svm) {
	struct kfd kfd;
	struct kfd_v1_image image;
	struct shared *shared;
	__u32 *memory;
};

/* ---- images ---- */

static struct kfd_ioctl_svm_attribute *attributes(const struct kfd_v1_image *image,
						  __u64 at)
{
	return (void *)(image->priv + at + V1_SVM_ATTRIBUTES);
}

/* Offset of the first SVM range at or behind an offset; the size of the image without. */
static __u64 next_range(const struct kfd_v1_image *image, __u64 at)
{
	while (at < image->args.priv_data_size && v1_word(image, at) != V1_SVM)
		at += v1_object_size(image, at);
	return at;
}

#define for_each_range(image, at) \
	for (at = next_range(image, v1_objects(image)); \
	     at < (image)->args.priv_data_size; \
	     at = next_range(image, at + v1_object_size(image, at)))

static unsigned int count_ranges(const struct kfd_v1_image *image)
{
	unsigned int n = 0;
	__u64 at;

	for_each_range(image, at)
		n++;
	return n;
}

static void set_attribute(const struct kfd_v1_image *image, unsigned int i,
			  __u32 value)
{
	__u64 at;

	for_each_range(image, at)
		attributes(image, at)[i].value = value;
}

/* Whether all ranges of both images have the same number, size and attributes. */
static bool has_same_ranges(const struct kfd_v1_image *a,
			    const struct kfd_v1_image *b)
{
	const __u64 first = next_range(a, v1_objects(a));
	const __u64 size = v1_object_size(a, first) - V1_SVM_ATTRIBUTES;
	__u64 at;

	for_each_range(b, at)
		if (memcmp(attributes(a, first), attributes(b, at), size))
			return false;
	return count_ranges(a) == count_ranges(b);
}

/* ---- memory in use ---- */

static long read_kb(const char *path, const char *name)
{
	char line[128];
	long value = -1;
	FILE *file = fopen(path, "r");

	while (file && value < 0 && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			value = atol(line + strlen(name));
	if (file)
		fclose(file);
	return value;
}

static void measure(const struct kfd *kfd, struct usage *usage)
{
	usage->rss_kb = read_kb("/proc/self/status", "VmRSS:");
	usage->available_kb = read_kb("/proc/meminfo", "MemAvailable:");
	usage->vram_kb = kfd_available(kfd, 0) / 1024;
}

/* ---- the program ---- */

static struct kfd_v1_image *image_of_program;
static struct shared *shared_with_program;

static int measured_resume(struct kfd *kfd)
{
	struct shared *shared = shared_with_program;
	unsigned int i;
	__u64 begin;

	if (kfd_v1_image_restore(kfd, image_of_program))
		return 1;
	measure(kfd, &shared->before);
	__atomic_store_n(&shared->restored, 1, __ATOMIC_RELEASE);
	begin = now_us();
	shared->result = kfd_v1_resume(kfd->fd, getpid());
	/* With version 1 it is 0 too if the driver needs longer, as debug kernels do. */
	for (i = 0; i < MORE_WAITS && kfd_v2_settled_state(kfd) == KFD_CRIU_STATE_RESUMING; i++)
		;
	shared->us = now_us() - begin;
	measure(kfd, &shared->after);
	return shared->result || kfd_v2_state(kfd) != KFD_CRIU_STATE_RUNNING ? 2 : 0;
}

/* The GPU writes the page that was shared, and a page that was never touched. */
static bool gpu_writes(struct kfd *kfd, __u32 *memory)
{
	__u32 *last = memory + (SMALL_SIZE - KFD_PAGE) / sizeof(*memory);
	struct kfd_queue queue;

	if (kfd_queue_create(kfd, 0, &queue))
		return false;
	kfd_sdma_write(&queue, (unsigned long)memory, 1);
	kfd_sdma_write(&queue, (unsigned long)last, 2);
	return wait_for_word(memory, 1) && wait_for_word(last, 2);
}

/* The attributes are those of the image, and the GPU reaches the range. */
static int resumes(struct kfd *kfd, void *data)
{
	const struct kfd_v1_image *expected = image_of_program;
	struct kfd_v1_image image;
	__u32 *memory = data;
	int r = measured_resume(kfd);

	if (r)
		return r;
	if (kfd_v1_image_dump(kfd->fd, &image))
		return 3;
	if (!has_same_ranges(expected, &image))
		return 4;
	if (kfd_v1_op(kfd->fd, KFD_CRIU_OP_UNPAUSE))
		return 5;
	if (memory[0] != WORD)
		return 6;
	if (shared_with_program->gpu_writes && !gpu_writes(kfd, memory))
		return 7;
	return 0;
}

/* As kfd_in_child(); ends a program to which RESUME gives more and more memory. */
static int watch_program(int (*body)(struct kfd *kfd, void *data), void *data)
{
	char path[64];
	pid_t pid = kfd_start_child(body, data);
	int status;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	while (!waitpid(pid, &status, WNOHANG)) {
		if (__atomic_load_n(&shared_with_program->restored, __ATOMIC_ACQUIRE) &&
		    read_kb(path, "VmRSS:") - shared_with_program->before.rss_kb > STOP_KB) {
			printf("# RESUME has added more than %ld MiB and is stopped\n",
			       STOP_KB >> 10);
			fflush(stdout);
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return -ENOMEM;
		}
		usleep(1000);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static long added_kb(const struct shared *shared)
{
	const struct usage *before = &shared->before, *after = &shared->after;
	const long system = before->available_kb - after->available_kb;
	const long process = after->rss_kb - before->rss_kb;
	const long vram = before->vram_kb - after->vram_kb;

	printf("# RESUME took %llu us\n", (unsigned long long)shared->us);
	printf("# it added to the process %ld, of the machine %ld, of VRAM %ld KiB\n",
	       process, system, vram);
	fflush(stdout);
	return (system > process ? system : process) + vram;
}

/* ---- the checkpointed process ---- */

FIXTURE_SETUP(sparse_svm)
{
	memset(self, 0, sizeof(*self));
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, kfd_acquire_vms(&self->kfd));
	if (!svm_is_supported(&self->kfd))
		SKIP(return, "the driver offers no SVM on this GPU");
	self->shared = shared_memory(sizeof(*self->shared));
	ASSERT_NE(MAP_FAILED, self->shared);
	image_of_program = &self->image;
	shared_with_program = self->shared;
}

FIXTURE_TEARDOWN(sparse_svm)
{
	kfd_v1_image_close_files(&self->image);
	kfd_v1_image_free(&self->image);
	kfd_close(&self->kfd);
}

/*
 * Lets the GPUs fault pages in. If that is not the default, the driver can be told to do it,
 * but the GPUs do not retry, and cannot use the range.
 */
static int enable_xnack(const struct kfd *kfd, struct shared *shared)
{
	struct kfd_ioctl_set_xnack_mode_args args = { .xnack_enabled = -1 };
	int r = kfd_call(kfd->fd, AMDKFD_IOC_SET_XNACK_MODE, &args);

	shared->gpu_writes = args.xnack_enabled == 1;
	args.xnack_enabled = 1;
	return r ? r : kfd_call(kfd->fd, AMDKFD_IOC_SET_XNACK_MODE, &args);
}

/* Maps memory without pages; the first page is written, and a child will share it. */
static __u32 *map_range(__u64 size)
{
	__u32 *memory = mmap((void *)RANGE, size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
			     -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	madvise(memory, size, MADV_NOHUGEPAGE);
	memory[0] = WORD;
	return memory;
}

static void expect_little_memory(struct __test_metadata *_metadata,
				 struct shared *shared, __u32 *memory)
{
	EXPECT_EQ(0, watch_program(resumes, memory))
		TH_LOG("RESUME: %d", shared->result);
	if (!shared->after.rss_kb)
		return;
	EXPECT_GE(MAY_ADD_KB, added_kb(shared));
}

TEST_F_TIMEOUT(sparse_svm, pages_that_a_gpu_may_fault_in_are_not_allocated, TEST_LIMIT_S)
{
	if (enable_xnack(&self->kfd, self->shared))
		SKIP(return, "the GPUs cannot switch XNACK");
	self->memory = map_range(RANGE_SIZE);
	ASSERT_NE(NULL, self->memory);
	ASSERT_EQ(0, svm_set_access(&self->kfd, self->memory, RANGE_SIZE, 0,
				    KFD_IOCTL_SVM_ATTR_ACCESS));
	ASSERT_EQ(0, kfd_v1_image_dump(self->kfd.fd, &self->image));
	expect_little_memory(_metadata, self->shared, self->memory);
}

TEST_F_TIMEOUT(sparse_svm, pages_that_a_gpu_uses_in_place_are_not_allocated, TEST_LIMIT_S)
{
	if (enable_xnack(&self->kfd, self->shared))
		SKIP(return, "the GPUs cannot switch XNACK");
	self->memory = map_range(RANGE_SIZE);
	ASSERT_NE(NULL, self->memory);
	ASSERT_EQ(0, svm_set_access(&self->kfd, self->memory, RANGE_SIZE, 0,
				    KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE));
	ASSERT_EQ(0, kfd_v1_image_dump(self->kfd.fd, &self->image));
	expect_little_memory(_metadata, self->shared, self->memory);
}

TEST_F_TIMEOUT(sparse_svm, a_prefetch_location_allocates_no_vram, TEST_LIMIT_S)
{
	if (enable_xnack(&self->kfd, self->shared))
		SKIP(return, "the GPUs cannot switch XNACK");
	self->memory = map_range(RANGE_SIZE);
	ASSERT_NE(NULL, self->memory);
	ASSERT_EQ(0, svm_set_access(&self->kfd, self->memory, RANGE_SIZE, 0,
				    KFD_IOCTL_SVM_ATTR_ACCESS));
	ASSERT_EQ(0, kfd_v1_image_dump(self->kfd.fd, &self->image));
	set_attribute(&self->image, PREFETCH, self->kfd.gpus[0].id);
	expect_little_memory(_metadata, self->shared, self->memory);
}

/* The driver maps the range whenever queues run, so the program has all of its pages. */
TEST_F_TIMEOUT(sparse_svm, a_range_that_stays_mapped_is_whole, TEST_LIMIT_S)
{
	const struct kfd_ioctl_svm_attribute mapped = {
		.type = KFD_IOCTL_SVM_ATTR_SET_FLAGS,
		.value = KFD_IOCTL_SVM_FLAG_GPU_ALWAYS_MAPPED,
	};

	if (enable_xnack(&self->kfd, self->shared))
		SKIP(return, "the GPUs cannot switch XNACK");
	self->memory = map_range(SMALL_SIZE);
	ASSERT_NE(NULL, self->memory);
	ASSERT_EQ(0, svm_set_access(&self->kfd, self->memory, SMALL_SIZE, 0,
				    KFD_IOCTL_SVM_ATTR_ACCESS));
	ASSERT_EQ(0, svm_set(&self->kfd, self->memory, SMALL_SIZE, &mapped, 1));
	ASSERT_EQ(0, kfd_v1_image_dump(self->kfd.fd, &self->image));
	self->shared->gpu_writes = true;
	EXPECT_EQ(0, kfd_in_child(resumes, self->memory));
	added_kb(self->shared);
}

TEST_F(sparse_svm, ranges_that_overlap_are_refused)
{
	__u64 at, start;

	self->memory = map_range(SMALL_SIZE);
	ASSERT_NE(NULL, self->memory);
	for (start = 0; start < 2; start++) {
		ASSERT_EQ(0, svm_set_access(&self->kfd, (void *)self->memory + start * KFD_PAGE,
					    KFD_PAGE, 0, KFD_IOCTL_SVM_ATTR_ACCESS));
	}
	ASSERT_EQ(0, kfd_v1_image_dump(self->kfd.fd, &self->image));
	ASSERT_EQ(2, count_ranges(&self->image));
	start = RANGE / KFD_PAGE;
	for_each_range(&self->image, at)
		memcpy(self->image.priv + at + V1_SVM_START, &start, sizeof(start));
	EXPECT_EQ(2, kfd_in_child(resumes, self->memory));
	EXPECT_EQ(-EINVAL, self->shared->result);
}

static int registers_all(struct kfd *kfd, void *data)
{
	(void)data;
	return measured_resume(kfd);
}

TEST_F_TIMEOUT(sparse_svm, a_thousand_ranges_are_registered, TEST_LIMIT_S)
{
	unsigned int i;

	self->memory = map_range(RANGES * KFD_PAGE);
	ASSERT_NE(NULL, self->memory);
	for (i = 0; i < RANGES; i++) {
		ASSERT_EQ(0, svm_set_access(&self->kfd, (void *)self->memory + i * KFD_PAGE,
					    KFD_PAGE, 0, KFD_IOCTL_SVM_ATTR_ACCESS));
	}
	ASSERT_EQ(0, kfd_v1_image_dump(self->kfd.fd, &self->image));
	ASSERT_EQ(RANGES, count_ranges(&self->image));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, kfd_in_child(registers_all, NULL));
		added_kb(self->shared);
	}
}

KFD_TEST_MAIN
