// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * A process with an object of every kind is restored by both ABIs. It must continue, and its
 * next checkpoint must be equal to the first one.
 *
 * Runs: per-chip, small-bar
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "../../../kselftest_harness.h"
#include "lib/bo.h"
#include "lib/criu_op.h"
#include "lib/event.h"
#include "lib/fixture.h"
#include "lib/image_v1.h"
#include "lib/image_v2.h"
#include "lib/kfd.h"
#include "lib/queue.h"

#define LIMIT_S		600
#define WAIT_LIMIT_MS	10000
/* Offset in a queue's memory, behind its pointers. */
#define DONE		256
/* Old programs map an event page of 255 slots; this test needs a larger one. */
#define MANY_EVENTS	300

FIXTURE(objects) {
	struct kfd kfd;
	struct fixture fixture;
};

FIXTURE_SETUP(objects)
{
	int r = fixture_open_checkpointed(&self->kfd, &self->fixture,
					  FIXTURE_FULL);

	if (r == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, r);
}

FIXTURE_TEARDOWN(objects)
{
	fixture_free(&self->fixture);
	kfd_close(&self->kfd);
}

/* ---- checkpoint, restore, checkpoint ---- */

/* Prints the first byte that differs. */
static int print_difference(const char *what, const void *was, const void *is, size_t bytes)
{
	const unsigned char *a = was, *b = is;
	size_t i;

	for (i = 0; i < bytes && a[i] == b[i]; i++)
		;
	printf("# %s: byte %zu was %02x and is %02x\n", what, i, a[i], b[i]);
	return 1;
}

/* The offset of the queue in an image of version 1, or the size of the image. */
static __u64 find_queue(const struct kfd_v1_image *image, __u32 id)
{
	__u64 at;

	for (at = v1_objects(image); at < image->args.priv_data_size;
	     at += v1_object_size(image, at))
		if (v1_word(image, at) == V1_QUEUE &&
		    v1_word(image, at + V1_QUEUE_ID) == id)
			break;
	return at;
}

/* Queues may be in another order, and their MQDs differ because the queues ran. */
static int compare_v1(const struct kfd_v1_image *was, const struct kfd_v1_image *is)
{
	__u64 size, at = v1_objects(was);

	if (was->args.priv_data_size != is->args.priv_data_size ||
	    was->args.num_objects != is->args.num_objects)
		return 2;
	if (memcmp(was->priv, is->priv, at))
		return print_difference("BOs", was->priv, is->priv, at);
	for (; at < was->args.priv_data_size; at += v1_object_size(was, at)) {
		__u64 there = at;

		size = v1_object_size(was, at);
		if (v1_word(was, at) == V1_QUEUE) {
			there = find_queue(is, v1_word(was, at + V1_QUEUE_ID));
			size = V1_QUEUE_SIZE;
		}
		if (there >= is->args.priv_data_size)
			return 3;
		if (memcmp(was->priv + at, is->priv + there, size))
			return print_difference("an object", was->priv + at,
				    is->priv + there, size);
	}
	return 0;
}

static bool is_same_memory(const struct kfd_v2_image *image)
{
	const struct kfd_criu_record_bo *bo, *imported = NULL;
	unsigned int i;

	for (i = 0; !imported; i++) {
		bo = (void *)v2_nth(image, KFD_CRIU_RECORD_BO, i);
		if (!bo)
			return false;
		if (bo->flags & KFD_CRIU_BO_IMPORTED)
			imported = bo;
	}
	for (i = 0; (bo = (void *)v2_nth(image, KFD_CRIU_RECORD_BO, i)); i++)
		if (bo != imported && bo->inode == imported->inode)
			return true;
	return false;
}

/* The record of the second image for the n-th record of its type in the first image. */
static struct kfd_criu_record *counterpart(const struct kfd_v2_image *image,
					   const struct kfd_criu_record *record,
					 unsigned int n)
{
	const struct kfd_criu_record_queue *was = (void *)record, *is;
	unsigned int i;

	if (record->type != KFD_CRIU_RECORD_QUEUE)
		return v2_nth(image, record->type, n);
	for (i = 0; (is = (void *)v2_nth(image, KFD_CRIU_RECORD_QUEUE, i)); i++)
		if (is->queue_id == was->queue_id)
			break;
	return (void *)is;
}

static int compare_v2(const struct kfd_v2_image *was,
		      const struct kfd_v2_image *is)
{
	struct kfd_criu_record *a, *b;
	__u32 type = 0;
	unsigned int n = 0;
	__u64 at;

	if (was->size != is->size || !is_same_memory(is))
		return 2;
	for (at = 0; at < was->size; at += a->size) {
		a = v2_record(was, at);
		n = a->type == type ? n + 1 : 0;
		type = a->type;
		b = counterpart(is, a, n);
		if (!b)
			return 3;
		if (type == KFD_CRIU_RECORD_BO) {
			/* mmap offsets and inodes are new after each restore. */
			((struct kfd_criu_record_bo *)a)->mmap_offset =
				((struct kfd_criu_record_bo *)b)->mmap_offset;
			((struct kfd_criu_record_bo *)a)->inode =
				((struct kfd_criu_record_bo *)b)->inode;
		}
		if (memcmp(a, b, type == KFD_CRIU_RECORD_QUEUE ?
				 v2_fixed_size(type) : a->size)) {
			printf("# record of type %u\n", type);
			return print_difference("record", a, b, a->size);
		}
	}
	return 0;
}

static int check_objects(struct kfd *kfd, struct fixture *fixture)
{
	const char *wrong;

	wrong = fixture_check(kfd, fixture);
	if (wrong)
		printf("# %s\n", wrong);
	return wrong ? 21 : 0;
}

/*
 * Resumes while a child shares all pages with the process, as when CRIU restores a tree of
 * processes: the first write to a page makes a copy of it.
 */
static int resume_with_child(const struct kfd *kfd,
			     int (*resume)(const struct kfd *kfd))
{
	pid_t pid = fork();
	int r;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	if (pid < 0)
		return -errno;
	r = resume(kfd);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (r)
		printf("# resume: %s\n", strerror(-r));
	return r;
}

static int resume_v1(const struct kfd *kfd)
{
	return kfd_v1_resume(kfd->fd, getpid());
}

static int is_restored_by_v1(struct kfd *kfd, void *data)
{
	struct fixture *fixture = data;
	struct kfd_v1_image again;
	int r = kfd_v1_image_restore(kfd, &fixture->v1);

	if (r) {
		printf("# restore: %s\n", strerror(-r));
		return 10;
	}
	kfd_v1_image_close_files(&fixture->v1);
	if (fixture_remap(kfd, KFD_NO_PAUSE, fixture) || resume_with_child(kfd, resume_v1))
		return 11;
	if (kfd_v1_image_dump(kfd->fd, &again))
		return 12;
	kfd_v1_image_close_files(&again);
	r = compare_v1(&fixture->v1, &again);
	if (kfd_v1_op(kfd->fd, KFD_CRIU_OP_UNPAUSE))
		return 20;
	return r ? r : check_objects(kfd, fixture);
}

static int is_restored_by_v2(struct kfd *kfd, void *data)
{
	struct fixture *fixture = data;
	struct kfd_v2_image again;
	int r = kfd_v2_image_restore(kfd, &fixture->v2);

	if (r) {
		printf("# restore: %s\n", strerror(-r));
		return 10;
	}
	if (fixture_remap(kfd, KFD_NO_PAUSE, fixture) || resume_with_child(kfd, kfd_v2_resume))
		return 11;
	if (kfd_v2_image_dump(kfd->fd, &again))
		return 12;
	r = compare_v2(&fixture->v2, &again);
	if (kfd_v2_unpause(kfd->fd, again.pause_fd))
		return 20;
	return r ? r : check_objects(kfd, fixture);
}

TEST_F_TIMEOUT(objects, of_every_kind_are_restored_by_the_released_abi, LIMIT_S)
{
	EXPECT_EQ(0, kfd_in_child(is_restored_by_v1, &self->fixture));
}

TEST_F_TIMEOUT(objects, of_every_kind_are_restored_by_the_extensible_abi, LIMIT_S)
{
	EXPECT_EQ(0, kfd_in_child(is_restored_by_v2, &self->fixture));
}

TEST_F_TIMEOUT(objects, are_described_in_their_records, LIMIT_S)
{
	const struct kfd_v2_image *image = &self->fixture.v2;
	const struct kfd_criu_record_process *process =
		(void *)v2_nth(image, KFD_CRIU_RECORD_PROCESS, 0);
	const struct kfd_criu_record_device *device =
		(void *)v2_nth(image, KFD_CRIU_RECORD_DEVICE, 0);
	const struct kfd_criu_record_queue *queue;
	unsigned int i;

	EXPECT_EQ(KFD_CRIU_PROCESS_RUNTIME,
		  process->flags & KFD_CRIU_PROCESS_RUNTIME);
	EXPECT_NE(0, process->r_debug);
	EXPECT_EQ(KFD_CRIU_DEVICE_ACQUIRED | KFD_CRIU_DEVICE_POLICY,
		  device->flags);
	EXPECT_NE(0, device->tba);
	EXPECT_NE(0, device->scratch);
	for (i = 0; (queue = (void *)v2_nth(image, KFD_CRIU_RECORD_QUEUE, i)); i++) {
		const struct fixture *fixture = &self->fixture;
		__u32 flags = 0;

		if (queue->queue_id == fixture->pm4.id)
			flags = KFD_CRIU_QUEUE_CU_MASKED;
		if (queue->queue_id == fixture->aql.id && fixture->gws)
			flags = KFD_CRIU_QUEUE_GWS;
		EXPECT_EQ(flags, queue->flags)
			TH_LOG("queue %u", queue->queue_id);
		EXPECT_EQ(queue->queue_id == fixture->stopped.id ? 0 : 100,
			  queue->percentage);
		/* The new queue's exception stays pending until a debugger reads it. */
		EXPECT_NE(0, queue->exception_status);
	}
	EXPECT_EQ(fixture_queue(&self->fixture, FIXTURE_QUEUES - 1)->ring.size ? 5 : 4, i);
}

/* ---- a queue whose ring AMDKFD_IOC_UPDATE_QUEUE removed ---- */

struct stopped {
	__u32 type;
	struct kfd_bo area;
	struct kfd_queue queue;
	struct kfd_v1_image v1;
	struct kfd_v2_image v2;
	void *ring, *memory;	/* contents of the queue's BOs */
};

FIXTURE(stopped_queue) {
	struct kfd kfd;
	struct stopped stopped;
};

FIXTURE_VARIANT(stopped_queue) {
	__u32 type;
	__u32 percentage;
	__u32 ring_size;
};

FIXTURE_VARIANT_ADD(stopped_queue, sdma) {
	.type = KFD_IOC_QUEUE_TYPE_SDMA,
};

FIXTURE_VARIANT_ADD(stopped_queue, sdma_with_a_size) {
	.type = KFD_IOC_QUEUE_TYPE_SDMA,
	.percentage = KFD_MAX_QUEUE_PERCENTAGE,
	.ring_size = KFD_PAGE,
};

FIXTURE_VARIANT_ADD(stopped_queue, compute) {
	.type = KFD_IOC_QUEUE_TYPE_COMPUTE,
};

FIXTURE_VARIANT_ADD(stopped_queue, compute_with_a_size) {
	.type = KFD_IOC_QUEUE_TYPE_COMPUTE,
	.percentage = KFD_MAX_QUEUE_PERCENTAGE,
	.ring_size = KFD_PAGE,
};

static int make_queue(struct kfd *kfd, struct stopped *stopped)
{
	const struct kfd_compute_queue_options wish = {
		.type = stopped->type,
		.percentage = KFD_MAX_QUEUE_PERCENTAGE,
		.area = &stopped->area,
	};
	int r;

	if (stopped->type == KFD_IOC_QUEUE_TYPE_SDMA)
		return kfd_queue_create(kfd, 0, &stopped->queue);
	r = kfd_cwsr_area_create(kfd, 0, &stopped->area);
	return r ? r : kfd_compute_queue_create(kfd, 0, &wish, &stopped->queue);
}

static bool runs(const struct kfd *kfd, struct stopped *stopped)
{
	struct kfd_queue *queue = &stopped->queue;
	__u32 *done = queue->memory.cpu + DONE;

	if (stopped->type == KFD_IOC_QUEUE_TYPE_SDMA)
		return kfd_queue_runs(kfd, queue);
	__atomic_store_n(done, 0, __ATOMIC_RELEASE);
	kfd_pm4_write(queue, queue->memory.va + DONE, 1);
	return wait_for_word(done, 1);
}

static int update(const struct kfd *kfd, const struct stopped *stopped,
		  __u64 ring, __u32 size, __u32 percentage)
{
	struct kfd_ioctl_update_queue_args args = {
		.ring_base_address = ring,
		.ring_size = size,
		.queue_id = stopped->queue.id,
		.queue_percentage = percentage,
	};

	return kfd_call(kfd->fd, AMDKFD_IOC_UPDATE_QUEUE, &args);
}

static void *copy(const struct kfd_bo *bo)
{
	void *bytes = malloc(bo->size);

	return bytes ? memcpy(bytes, bo->cpu, bo->size) : NULL;
}

FIXTURE_SETUP(stopped_queue)
{
	struct stopped *stopped = &self->stopped;

	memset(stopped, 0, sizeof(*stopped));
	stopped->type = variant->type;
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, kfd_acquire_vms(&self->kfd));
	ASSERT_EQ(0, make_queue(&self->kfd, stopped));
	ASSERT_TRUE(runs(&self->kfd, stopped));
	ASSERT_EQ(0, update(&self->kfd, stopped, 0, variant->ring_size,
			    variant->percentage));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &stopped->v2));
	ASSERT_EQ(0, kfd_v1_image_dump(self->kfd.fd, &stopped->v1));
	kfd_v1_image_close_files(&stopped->v1);
	stopped->ring = copy(&stopped->queue.ring);
	stopped->memory = copy(&stopped->queue.memory);
	ASSERT_NE(NULL, stopped->ring);
	ASSERT_NE(NULL, stopped->memory);
	/* The slot is then free for the restored queue. */
	ASSERT_EQ(0, kfd_queue_destroy(&self->kfd, &stopped->queue));
}

FIXTURE_TEARDOWN(stopped_queue)
{
	free(self->stopped.ring);
	free(self->stopped.memory);
	free(self->stopped.v2.data);
	kfd_v1_image_free(&self->stopped.v1);
	kfd_close(&self->kfd);
}

/* In a process that was restored. */
static int start_queue(struct kfd *kfd, struct stopped *stopped)
{
	struct kfd_queue *queue = &stopped->queue;

	if (kfd_queue_remap(kfd, queue))
		return 101;
	memcpy(queue->ring.cpu, stopped->ring, queue->ring.size);
	memcpy(queue->memory.cpu, stopped->memory, queue->memory.size);
	if (kfd_v2_resume(kfd))
		return 102;
	if (update(kfd, stopped, queue->ring.va, queue->ring.size,
		   KFD_MAX_QUEUE_PERCENTAGE))
		return 103;
	return runs(kfd, stopped) ? 0 : 104;
}

static int starts_by_v1(struct kfd *kfd, void *data)
{
	struct stopped *stopped = data;
	const int r = kfd_v1_image_restore(kfd, &stopped->v1);

	kfd_v1_image_close_files(&stopped->v1);
	return r ? -r : start_queue(kfd, stopped);
}

static int starts_by_v2(struct kfd *kfd, void *data)
{
	struct stopped *stopped = data;
	const int r = kfd_v2_image_restore(kfd, &stopped->v2);

	return r ? -r : start_queue(kfd, stopped);
}

TEST_F(stopped_queue, is_restored_and_started_by_the_released_abi)
{
	EXPECT_EQ(0, kfd_in_child(starts_by_v1, &self->stopped));
}

TEST_F(stopped_queue, is_restored_and_started_by_the_extensible_abi)
{
	EXPECT_EQ(0, kfd_in_child(starts_by_v2, &self->stopped));
}

/* ---- more events than fit into the event page of an old process ---- */

struct many_events {
	struct kfd_v1_image v1;
	struct kfd_v2_image v2;
	__u32 last;
};

static int add_event(const struct kfd *kfd, __u64 *page, __u32 *id)
{
	struct kfd_ioctl_create_event_args args = {
		.event_type = KFD_IOC_EVENT_SIGNAL,
	};
	int r = kfd_call(kfd->fd, AMDKFD_IOC_CREATE_EVENT, &args);

	*page = args.event_page_offset;
	*id = args.event_id;
	return r;
}

/* The driver's own event page has as many slots as the process has mapped. */
static int create_many(const struct kfd *kfd, struct many_events *events)
{
	unsigned int i;
	__u64 page;
	int r;

	r = add_event(kfd, &page, &events->last);
	if (r)
		return r;
	if (mmap(NULL, KFD_SIGNAL_EVENT_LIMIT * 8, PROT_READ | PROT_WRITE,
		 MAP_SHARED, kfd->fd, page) == MAP_FAILED)
		return -errno;
	for (i = 1; !r && i < MANY_EVENTS; i++)
		r = add_event(kfd, &page, &events->last);
	return r;
}

/* Checks that all events exist and that the last one can be set. */
static int check_many(const struct kfd *kfd, const struct many_events *events)
{
	struct kfd_ioctl_set_event_args set = { .event_id = events->last };
	struct kfd_v2_image again;

	if (kfd_v2_resume(kfd))
		return 101;
	if (kfd_v2_image_dump(kfd->fd, &again))
		return 102;
	if (!v2_nth(&again, KFD_CRIU_RECORD_EVENT, MANY_EVENTS - 1) ||
	    v2_nth(&again, KFD_CRIU_RECORD_EVENT, MANY_EVENTS))
		return 103;
	if (kfd_call(kfd->fd, AMDKFD_IOC_SET_EVENT, &set))
		return 104;
	return kfd_event_wait(kfd, events->last, WAIT_LIMIT_MS) ==
	       KFD_IOC_WAIT_RESULT_COMPLETE ? 0 : 105;
}

static int check_many_by_v1(struct kfd *kfd, void *data)
{
	struct many_events *events = data;
	const int r = kfd_v1_image_restore(kfd, &events->v1);

	return r ? -r : check_many(kfd, events);
}

static int check_many_by_v2(struct kfd *kfd, void *data)
{
	struct many_events *events = data;
	const int r = kfd_v2_image_restore(kfd, &events->v2);

	return r ? -r : check_many(kfd, events);
}

TEST(all_events_of_an_enlarged_event_page_are_restored)
{
	struct many_events events;
	struct kfd kfd;

	if (kfd_open(&kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, kfd_acquire_vms(&kfd));
	ASSERT_EQ(0, create_many(&kfd, &events));
	ASSERT_LE(MANY_EVENTS, events.last);
	ASSERT_EQ(0, kfd_v2_image_dump(kfd.fd, &events.v2));
	ASSERT_EQ(0, kfd_v1_image_dump(kfd.fd, &events.v1));
	EXPECT_EQ(0, kfd_in_child(check_many_by_v1, &events));
	EXPECT_EQ(0, kfd_in_child(check_many_by_v2, &events));
	kfd_v1_image_free(&events.v1);
	free(events.v2.data);
	kfd_close(&kfd);
}

KFD_TEST_MAIN
