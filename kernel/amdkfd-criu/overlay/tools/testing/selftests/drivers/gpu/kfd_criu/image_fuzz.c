// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Fuzzes the images of both ABIs: images of a process with an object of every kind, of
 * every length and changed at random. Each is restored in a process that has no object. The
 * driver must refuse it and leave nothing, or accept it because it is another valid image;
 * the kernel's log must stay empty.
 *
 * KFD_CRIU_MUTATIONS=N tries N images of each ABI; KFD_CRIU_SEED=N begins with another seed.
 *
 * Runs: once
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include "../../../kselftest_harness.h"
#include "lib/criu_op.h"
#include "lib/fixture.h"
#include "lib/image_v1.h"
#include "lib/image_v2.h"
#include "lib/kfd.h"
#include "lib/leak_check.h"
#include "lib/rand.h"

#define LIMIT_S			36000
#define CHANGES			3
/* Restores that one process tries as long as all of them are refused without a change. */
#define RESTORES_IN_A_PROCESS	500
#define LENGTHS_FOR_AN_IMAGE	2
/* Every length is tried that differs so little from the end of a record. */
#define NEAR			3

/* A checkpoint, as an image of each ABI. */
struct sample {
	struct kfd_v1_image v1;
	struct kfd_v2_image v2;
};

/* ---- changes ---- */

/* The offset of a random queue, event or range. */
static __u64 random_object(const struct kfd_v1_image *image)
{
	unsigned int n = rand_next() % image->args.num_objects;
	__u64 at = v1_objects(image);

	while (n--)
		at += v1_object_size(image, at);
	return at;
}

static void change_v1_data(struct kfd_v1_image *image, const struct kfd_v1_image *was)
{
	__u64 at;

	switch (rand_next() % 8) {
	case 0:
		rand_change_one_word(image->priv, v1_bos(was));
		break;
	case 1:
		rand_change_one_word(image->priv + v1_bos(was),
				     v1_objects(was) - v1_bos(was));
		break;
	case 2:
		rand_change_one_word(image->priv, image->args.priv_data_size);
		break;
	default:
		at = random_object(was);
		/* MQDs are most of the image, so changes there are left out. */
		rand_change_one_word(image->priv + at,
				     v1_word(was, at) == V1_QUEUE ? V1_QUEUE_SIZE :
			      v1_object_size(was, at));
	}
}

static void change_v1(struct sample *sample, const struct sample *taken)
{
	struct kfd_v1_image *image = &sample->v1;
	const struct kfd_ioctl_criu_args *was = &taken->v1.args;

	switch (rand_next() % 12) {
	case 0:
		image->args.num_bos = rand_change(image->args.num_bos);
		break;
	case 1:
		image->args.num_objects = rand_change(image->args.num_objects);
		break;
	case 2:
		image->args.priv_data_size =
			rand_next() % (image->args.priv_data_size + 2);
		break;
	case 3:
		rand_change_one_word(image->devices,
				     was->num_devices * sizeof(*image->devices));
		break;
	case 4:
	case 5:
		rand_change_one_word(image->bos, was->num_bos * sizeof(*image->bos));
		break;
	default:
		change_v1_data(image, &taken->v1);
	}
}

/* The offset of a random record. */
static __u64 random_record(const struct kfd_v2_image *image)
{
	const struct kfd_criu_record_image *first = (void *)image->data;
	unsigned int n = rand_next() % first->num_records;
	__u64 at = 0;

	while (n--)
		at += v2_record(image, at)->size;
	return at;
}

static void change_record(struct kfd_v2_image *image,
			  const struct kfd_v2_image *was)
{
	const __u64 at = random_record(was);
	const struct kfd_criu_record *record = v2_record(was, at);

	/* MQDs are most of the image, so changes there are rare. */
	rand_change_one_word(image->data + at, rand_next() % 4 ?
					v2_fixed_size(record->type) : record->size);
}

static void drop_record(struct kfd_v2_image *image,
			const struct kfd_v2_image *was)
{
	struct kfd_criu_record_image *first = (void *)image->data;
	const __u64 at = random_record(was);
	const __u64 size = v2_record(was, at)->size;

	if (!at || image->size != was->size)
		return;
	image->size -= size;
	memmove(image->data + at, image->data + at + size, image->size - at);
	first->size = image->size;
	first->num_records--;
}

static void change_v2(struct sample *sample, const struct sample *taken)
{
	struct kfd_v2_image *image = &sample->v2;

	switch (rand_next() % 16) {
	case 0:
		image->size = rand_next() % (image->size + 9);
		break;
	case 1:
	case 2:
		drop_record(image, &taken->v2);
		break;
	default:
		change_record(image, &taken->v2);
	}
}

/* ---- the ABIs ---- */

static int restore_v1(struct kfd *kfd, struct sample *sample)
{
	const int r = kfd_v1_image_restore(kfd, &sample->v1);

	if (!r)
		kfd_v1_image_close_files(&sample->v1);
	return r;
}

static int restore_v2(struct kfd *kfd, struct sample *sample)
{
	return kfd_v2_image_restore(kfd, &sample->v2);
}

static int cut_v1(struct kfd *kfd, struct sample *sample, __u64 length)
{
	sample->v1.args.priv_data_size = length;
	return restore_v1(kfd, sample);
}

/* Tries the shorter image with its old size in the first record, then with its new size. */
static int cut_v2(struct kfd *kfd, struct sample *sample, __u64 length)
{
	struct kfd_criu_record_image *first = (void *)sample->v2.data;
	const __u64 size = first->size;
	int r;

	sample->v2.size = length;
	r = restore_v2(kfd, sample);
	if (r != -EINVAL)
		return r;
	first->size = length;
	r = restore_v2(kfd, sample);
	first->size = size;
	return r;
}

static __u64 next_end_v1(const struct sample *sample, __u64 at)
{
	const struct kfd_v1_image *image = &sample->v1;

	if (at < V1_PROCESS_SIZE)
		return V1_PROCESS_SIZE;
	if (at < v1_bos(image))
		return at + V1_DEVICE_SIZE;
	if (at < v1_objects(image))
		return at + V1_BO_SIZE;
	return at + v1_object_size(image, at);
}

static __u64 next_end_v2(const struct sample *sample, __u64 at)
{
	return at + v2_record(&sample->v2, at)->size;
}

static const struct abi {
	void (*change)(struct sample *sample, const struct sample *taken);
	int (*restore)(struct kfd *kfd, struct sample *sample);
	int (*cut)(struct kfd *kfd, struct sample *sample, __u64 length);
	__u64 (*next_end)(const struct sample *sample, __u64 at);
} v1 = { change_v1, restore_v1, cut_v1, next_end_v1 };

static const struct abi v2 = { change_v2, restore_v2, cut_v2, next_end_v2 };

static void copy_sample(struct sample *to, const struct sample *from)
{
	memcpy(to->v1.devices, from->v1.devices,
	       from->v1.args.num_devices * sizeof(*to->v1.devices));
	memcpy(to->v1.bos, from->v1.bos,
	       from->v1.args.num_bos * sizeof(*to->v1.bos));
	memcpy(to->v1.priv, from->v1.priv, from->v1.args.priv_data_size);
	to->v1.args = from->v1.args;
	to->v1.args.devices = (unsigned long)to->v1.devices;
	to->v1.args.bos = (unsigned long)to->v1.bos;
	to->v1.args.priv_data = (unsigned long)to->v1.priv;
	memcpy(to->v2.data, from->v2.data, from->v2.size);
	to->v2.size = from->v2.size;
	/* The changed image may say anything about its GPUs. */
	to->v2.gpus_of = &from->v2;
}

FIXTURE(image_fuzz) {
	struct kfd kfd;
	struct fixture fixture;
	struct sample taken;
};

FIXTURE_SETUP(image_fuzz)
{
	int r = fixture_open_checkpointed(&self->kfd, &self->fixture,
					  FIXTURE_FULL);

	if (r == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, r);
	self->taken.v1 = self->fixture.v1;
	self->taken.v2 = self->fixture.v2;
}

FIXTURE_TEARDOWN(image_fuzz)
{
	fixture_free(&self->fixture);
	kfd_close(&self->kfd);
}

/* ---- what the test and its children share ---- */

struct trials {
	const struct abi *abi;
	struct fixture *fixture;
	const struct sample *taken;
	struct sample changed;
	struct leak_baseline before;	/* taken before the first restore */
	unsigned long seed;
	/* In memory that the children share with the test. */
	struct {
		unsigned long done, accepted, tried;
		int result;
	} *count;
	unsigned long n;
	unsigned char *wanted;	/* for each length: whether it is tried */
};

static void trials_begin(struct trials *trials, const struct kfd *kfd,
			 const struct abi *abi, struct fixture *fixture,
			 const struct sample *taken)
{
	struct sample *changed = &trials->changed;

	memset(trials, 0, sizeof(*trials));
	trials->abi = abi;
	trials->fixture = fixture;
	trials->taken = taken;
	trials->seed = rand_first_seed();
	trials->count = shared_memory(sizeof(*trials->count));
	changed->v1.devices = calloc(taken->v1.args.num_devices + 1,
				     sizeof(*taken->v1.devices));
	changed->v1.bos = calloc(taken->v1.args.num_bos + 1,
				 sizeof(*taken->v1.bos));
	changed->v1.priv = calloc(taken->v1.args.priv_data_size + 8, 1);
	changed->v2.data = calloc(taken->v2.size + 16, 1);
	leak_baseline_take(kfd, &trials->before);
}

static void trials_end(struct trials *trials)
{
	kfd_v1_image_free(&trials->changed.v1);
	free(trials->changed.v2.data);
	free(trials->wanted);
	munmap(trials->count, sizeof(*trials->count));
}

/* Whether RESTORE or RESUME may return this errno. */
static bool is_expected_errno(int r)
{
	switch (-r) {
	case 0:
	case EINVAL:
	case EFAULT:
	case EPERM:
	case ENOMEM:
	case ENOSPC:
	case ENXIO:
	case EBUSY:
	case EMFILE:
	case ENODEV:
	case EOPNOTSUPP:
	case EPROTONOSUPPORT:
	case EREMOTE:
		return true;
	default:
		return false;
	}
}

/* ---- lengths ---- */

static int cut_one(struct kfd *kfd, struct trials *trials)
{
	const unsigned long length = trials->count->done;

	copy_sample(&trials->changed, trials->taken);
	trials->count->tried++;
	trials->count->result = trials->abi->cut(kfd, &trials->changed, length);
	return trials->count->result;
}

/* Tries some lengths, until a restore got so far that the process is aborted. */
static int cut_some(struct kfd *kfd, void *data)
{
	struct trials *trials = data;
	struct leak_baseline before = trials->before;
	int i, state = KFD_CRIU_STATE_RUNNING;

	before.files = count_files();
	for (i = 0; i < RESTORES_IN_A_PROCESS && state == KFD_CRIU_STATE_RUNNING; i++) {
		while (!trials->wanted[trials->count->done])
			trials->count->done++;
		if (trials->count->done >= trials->n)
			break;
		if (cut_one(kfd, trials) != -EINVAL)
			return 1;
		trials->count->done++;
		state = kfd_v2_state(kfd);
	}
	return leak_check(kfd, &before);
}

/* Selects every length near the end of a record, and one every `step` bytes. */
static void want_lengths(struct trials *trials, unsigned long size,
			 unsigned long step)
{
	unsigned long at, i;

	trials->n = size;
	trials->wanted = calloc(size + 1, 1);
	for (at = trials->seed * 4 % step; at < size; at += step)
		trials->wanted[at] = 1;
	for (at = 0; at < size; at = trials->abi->next_end(trials->taken, at))
		for (i = at > NEAR ? at - NEAR : 0; i <= at + NEAR && i < size; i++)
			trials->wanted[i] = 1;
	for (i = size - NEAR; i <= size; i++)
		trials->wanted[i] = 1;
}

static void cut_all(struct __test_metadata *_metadata, struct trials *trials,
		    unsigned long size, unsigned long step)
{
	int r = 0;

	ASSERT_NE(MAP_FAILED, trials->count);
	want_lengths(trials, size, step);
	while (!r && trials->count->done < trials->n)
		r = kfd_in_child(cut_some, trials);
	EXPECT_EQ(0, r)
		TH_LOG("before %lu of %lu bytes: %d", trials->count->done + 1,
		       size, trials->count->result);
	TH_LOG("%lu lengths", trials->count->tried);
}

/* Restores and resumes the unchanged image, in a child. */
static int restore_and_resume(struct kfd *kfd, void *data)
{
	struct trials *trials = data;
	int r;

	copy_sample(&trials->changed, trials->taken);
	r = trials->abi->restore(kfd, &trials->changed);
	if (!r)
		r = fixture_remap(kfd, KFD_NO_PAUSE, trials->fixture);
	return -(r ? r : kfd_v1_resume(kfd->fd, getpid()));
}

/*
 * Each length needs a process that restores all objects before it, and most lengths are
 * within an MQD. So all lengths are tried only with enough mutations, else those that
 * belong to the seed.
 */
TEST_F_TIMEOUT(image_fuzz, an_image_of_another_length_is_refused, LIMIT_S)
{
	const __u64 size = self->taken.v1.args.priv_data_size;
	struct trials trials;

	trials_begin(&trials, &self->kfd, &v1, &self->fixture, &self->taken);
	cut_all(_metadata, &trials, size,
		4 * (1 + size / 4 / (LENGTHS_FOR_AN_IMAGE * rand_mutations() + 1)));
	EXPECT_EQ(0, kfd_in_child(restore_and_resume, &trials));
	trials_end(&trials);
}

TEST_F_TIMEOUT(image_fuzz, an_extensible_image_of_another_length_is_refused, LIMIT_S)
{
	struct trials trials;

	trials_begin(&trials, &self->kfd, &v2, &self->fixture, &self->taken);
	cut_all(_metadata, &trials, self->taken.v2.size, 4);
	EXPECT_EQ(0, kfd_in_child(restore_and_resume, &trials));
	trials_end(&trials);
}

/* The first records alone are valid, unless an object is missing that they refer to. */
static int restores_first_records(struct kfd *kfd, void *data)
{
	struct trials *trials = data;
	struct kfd_v2_image *image = &trials->changed.v2;
	struct kfd_criu_record_image *first = (void *)image->data;
	struct leak_baseline before = trials->before;
	unsigned long i;
	int r;

	before.files = count_files();
	copy_sample(&trials->changed, trials->taken);
	for (i = 0, image->size = 0; i < trials->n; i++)
		image->size = next_end_v2(trials->taken, image->size);
	first->size = image->size;
	first->num_records = trials->n;
	r = restore_v2(kfd, &trials->changed);
	if (!is_expected_errno(r))
		return 1;
	trials->count->accepted += !r;
	return r ? leak_check(kfd, &before) : 0;
}

TEST_F_TIMEOUT(image_fuzz, the_first_records_alone_are_refused_or_restored, LIMIT_S)
{
	const struct kfd_criu_record_image *first = (void *)self->taken.v2.data;
	struct trials trials;

	trials_begin(&trials, &self->kfd, &v2, &self->fixture, &self->taken);
	ASSERT_NE(MAP_FAILED, trials.count);
	for (trials.n = 1; trials.n <= first->num_records; trials.n++) {
		EXPECT_EQ(0, kfd_in_child(restores_first_records, &trials))
			TH_LOG("%lu records", trials.n);
	}
	TH_LOG("%lu of %u accepted", trials.count->accepted, first->num_records);
	EXPECT_LT(0, trials.count->accepted);
	trials_end(&trials);
}

/* Counts in the arguments must not make the driver allocate memory for them. */
static int restores_too_many(struct kfd *kfd, void *data)
{
	struct trials *trials = data;
	struct kfd_ioctl_criu_args *args = &trials->changed.v1.args;
	struct leak_baseline before = trials->before;
	int r;

	before.files = count_files();
	copy_sample(&trials->changed, trials->taken);
	args->num_bos = ~0U;
	args->priv_data_size = 1ULL << 40;
	r = restore_v1(kfd, &trials->changed);
	return r ? leak_check(kfd, &before) : 1;
}

TEST_F(image_fuzz, counts_larger_than_memory_are_refused)
{
	struct trials trials;

	trials_begin(&trials, &self->kfd, &v1, &self->fixture, &self->taken);
	EXPECT_EQ(0, kfd_in_child(restores_too_many, &trials));
	EXPECT_EQ(0, kfd_in_child(restore_and_resume, &trials));
	trials_end(&trials);
}

/* ---- at random ---- */

static int try_one(struct kfd *kfd, struct trials *trials)
{
	unsigned int i;
	int r;

	copy_sample(&trials->changed, trials->taken);
	rand_seed(trials->seed + trials->count->done);
	for (i = 0; i < CHANGES; i++)
		trials->abi->change(&trials->changed, trials->taken);
	r = trials->abi->restore(kfd, &trials->changed);
	if (r)
		return r;
	/* Queues continue with the contents of their rings; other BOs stay zero. */
	fixture_remap(kfd, KFD_NO_PAUSE, trials->fixture);
	r = kfd_v1_resume(kfd->fd, getpid());
	/* A queue whose pointers were changed may not get off the hardware in time. */
	if (r == -ETIME)
		r = 0;
	trials->count->accepted += !r;
	if (r)
		fixture_unmap(trials->fixture);
	return r;
}

/* Tries some images, until a restore got so far that the process cannot try another. */
static int try_some(struct kfd *kfd, void *data)
{
	struct trials *trials = data;
	struct leak_baseline before = trials->before;
	unsigned int i;
	int r, left;

	before.files = count_files();
	for (i = 0; i < RESTORES_IN_A_PROCESS && trials->count->done < trials->n; i++) {
		r = try_one(kfd, trials);
		trials->count->result = r;
		if (!is_expected_errno(r))
			return 1;
		left = r ? leak_check(kfd, &before) : 0;
		if (left)
			return left;
		trials->count->done++;
		if (!r || kfd_v2_state(kfd) != KFD_CRIU_STATE_RUNNING)
			return 0;
	}
	return 0;
}

static void try_all(struct __test_metadata *_metadata, struct kfd *kfd,
		    struct trials *trials)
{
	int r = 0;

	ASSERT_NE(MAP_FAILED, trials->count);
	trials->n = rand_mutations();
	while (!r && trials->count->done < trials->n)
		r = kfd_in_child(try_some, trials);
	ASSERT_EQ(0, r)
		TH_LOG("KFD_CRIU_SEED=%lu: %d",
		       trials->seed + trials->count->done, trials->count->result);
	TH_LOG("%lu of %lu images accepted", trials->count->accepted, trials->n);
	EXPECT_LT(trials->count->accepted, trials->n);
	/* The process that was checkpointed continues. */
	EXPECT_EQ(0, kfd_v2_unpause(kfd->fd, trials->fixture->v2.pause_fd));
}

TEST_F_TIMEOUT(image_fuzz, an_image_changed_at_random_is_refused_or_restored, LIMIT_S)
{
	struct trials trials;

	trials_begin(&trials, &self->kfd, &v1, &self->fixture, &self->taken);
	try_all(_metadata, &self->kfd, &trials);
	trials_end(&trials);
}

TEST_F_TIMEOUT(image_fuzz, an_extensible_image_changed_at_random_is_refused_or_restored, LIMIT_S)
{
	struct trials trials;

	trials_begin(&trials, &self->kfd, &v2, &self->fixture, &self->taken);
	try_all(_metadata, &self->kfd, &trials);
	trials_end(&trials);
}

KFD_TEST_MAIN
