// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Images that nobody ever wrote, of both ABIs. Each is restored in a process that has
 * nothing: it may be refused, or be another valid one; nothing else may happen, and the
 * kernel's log says so. KFD_CRIU_MUTATIONS=N tries N of each ABI, KFD_CRIU_SEED=N begins
 * elsewhere.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include "../../../kselftest_harness.h"
#include "chance.h"
#include "kfd.h"

#define LIMIT_S			36000
#define CHANGES			3
/* In one process, while it stays as it was. */
#define MOST_IN_ONE		500

/* A checkpoint, by both ABIs. */
struct sample {
	struct kfd_image v1;
	struct kfd_v2_image v2;
};

static void change_v1(struct sample *sample)
{
	struct kfd_image *image = &sample->v1;

	switch (chance_number() % 8) {
	case 0:
		image->args.num_bos = chance_word(image->args.num_bos);
		break;
	case 1:
		image->args.num_objects = chance_word(image->args.num_objects);
		break;
	case 2:
		image->args.priv_data_size =
			chance_number() % (image->args.priv_data_size + 2);
		break;
	case 3:
		chance_change(image->devices, image->args.num_devices *
					      sizeof(*image->devices));
		break;
	case 4:
		chance_change(image->bos, sizeof(*image->bos) * KFD_OBJECTS_BOS);
		break;
	default:
		chance_change(image->priv, image->args.priv_data_size);
	}
}

static void change_v2(struct sample *sample)
{
	struct kfd_v2_image *image = &sample->v2;

	if (chance_number() % 16)
		chance_change(image->data, image->size);
	else
		image->size = chance_number() % (image->size + 9);
}

static int restore_v1(struct kfd *kfd, struct sample *sample)
{
	return kfd_image_restore(kfd, &sample->v1);
}

static int restore_v2(struct kfd *kfd, struct sample *sample)
{
	return kfd_v2_image_restore(kfd, &sample->v2);
}

static const struct abi {
	void (*change)(struct sample *sample);
	int (*restore)(struct kfd *kfd, struct sample *sample);
} v1 = { change_v1, restore_v1 }, v2 = { change_v2, restore_v2 };

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
}

FIXTURE(image) {
	struct kfd kfd;
	struct kfd_objects has;
	struct sample taken;
};

FIXTURE_SETUP(image)
{
	struct kfd_queue queue;

	memset(&self->taken, 0, sizeof(self->taken));
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, kfd_acquire_vms(&self->kfd));
	ASSERT_EQ(0, kfd_objects_create(&self->kfd, &self->has));
	ASSERT_LT(0, kfd_event_create(&self->kfd));
	ASSERT_EQ(0, kfd_queue_create(&self->kfd, 0, &queue));
	ASSERT_EQ(0, kfd_image_take(self->kfd.fd, &self->taken.v1));
	ASSERT_EQ(0, kfd_v2_image_take(self->kfd.fd, &self->taken.v2));
	ASSERT_EQ(0, kfd_queue_destroy(&self->kfd, &queue));
}

FIXTURE_TEARDOWN(image)
{
	kfd_image_close_files(&self->taken.v1);
	kfd_image_free(&self->taken.v1);
	free(self->taken.v2.data);
	kfd_close(&self->kfd);
}

/* Whether what came back is an answer. */
static bool is_answer(int r)
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
		return true;
	default:
		return false;
	}
}

static int restore_and_resume(struct kfd *kfd, void *data)
{
	int r = kfd_image_restore(kfd, data);

	if (!r)
		r = kfd_criu_resume(kfd->fd, getpid());
	return is_answer(r) ? -r : 254;
}

TEST_F_TIMEOUT(image, every_length_but_the_right_one_is_refused, LIMIT_S)
{
	struct kfd_image *image = &self->taken.v1;
	const __u64 size = image->args.priv_data_size;
	__u64 at;

	/* Borders of records and what is around them. */
	for (at = 0; at < size; at = at < 64 ? at + 4 : at + 68) {
		image->args.priv_data_size = at;
		EXPECT_EQ(EINVAL, kfd_in_child(restore_and_resume, image))
			TH_LOG("%llu of %llu bytes", (unsigned long long)at,
			       (unsigned long long)size);
	}
	image->args.priv_data_size = size;
	EXPECT_EQ(0, kfd_in_child(restore_and_resume, image));
}

/* The caller's word is no reason to make room. */
TEST_F(image, counts_that_no_memory_holds_are_refused)
{
	struct kfd_ioctl_criu_args *args = &self->taken.v1.args;
	const struct kfd_ioctl_criu_args right = *args;

	args->num_bos = ~0U;
	args->priv_data_size = 1ULL << 40;
	EXPECT_LT(0, kfd_in_child(restore_and_resume, &self->taken.v1));
	*args = right;
	EXPECT_EQ(0, kfd_in_child(restore_and_resume, &self->taken.v1));
}

/* What children go on with, and what they tell. */
struct trials {
	const struct abi *abi;
	const struct sample *taken;
	struct sample changed;
	unsigned long seed;
	/* In memory that is shared. */
	struct {
		unsigned long done, accepted;
	} *count;
	unsigned long n;
};

static int try_one(struct kfd *kfd, struct trials *trials)
{
	unsigned int i;
	int r;

	copy_sample(&trials->changed, trials->taken);
	chance_begin(trials->seed + trials->count->done);
	for (i = 0; i < CHANGES; i++)
		trials->abi->change(&trials->changed);
	r = trials->abi->restore(kfd, &trials->changed);
	if (r)
		return r;
	r = kfd_criu_resume(kfd->fd, getpid());
	/* A queue whose pointers are nonsense need not run in time. */
	if (r == -ETIME)
		r = 0;
	trials->count->accepted += !r;
	return r;
}

/* Some in one process; a new one is needed once a restore has come half way. */
static int try_some(struct kfd *kfd, void *data)
{
	struct trials *trials = data;
	unsigned int i;
	int r;

	for (i = 0; i < MOST_IN_ONE && trials->count->done < trials->n; i++) {
		r = try_one(kfd, trials);
		if (!is_answer(r))
			return 1;
		trials->count->done++;
		if (!r || kfd_v2_state(kfd) != KFD_CRIU_STATE_RUNNING)
			return 0;
	}
	return 0;
}

static void try_all(struct __test_metadata *_metadata, struct kfd *kfd,
		    const struct sample *taken, const struct abi *abi)
{
	struct trials trials = {
		.abi = abi,
		.taken = taken,
		.seed = chance_first_seed(),
		.n = chance_mutations(),
		.count = mmap(NULL, sizeof(*trials.count),
			      PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0),
		.changed.v1.devices = calloc(taken->v1.args.num_devices + 1,
					     sizeof(*taken->v1.devices)),
		.changed.v1.bos = calloc(taken->v1.args.num_bos + 1,
					 sizeof(*taken->v1.bos)),
		.changed.v1.priv = calloc(taken->v1.args.priv_data_size + 8, 1),
		.changed.v2.data = calloc(taken->v2.size + 16, 1),
	};
	int r = 0;

	ASSERT_NE(MAP_FAILED, trials.count);
	while (!r && trials.count->done < trials.n)
		r = kfd_in_child(try_some, &trials);
	ASSERT_EQ(0, r)
		TH_LOG("KFD_CRIU_SEED=%lu", trials.seed + trials.count->done);
	TH_LOG("%lu of %lu images accepted", trials.count->accepted, trials.n);
	EXPECT_LT(trials.count->accepted, trials.n);
	kfd_image_free(&trials.changed.v1);
	free(trials.changed.v2.data);
	munmap(trials.count, sizeof(*trials.count));
	/* The one that was checkpointed goes on. */
	EXPECT_EQ(0, kfd_criu_op(kfd->fd, KFD_CRIU_OP_UNPAUSE));
}

TEST_F_TIMEOUT(image, changed_at_random_it_is_refused_or_another_one, LIMIT_S)
{
	try_all(_metadata, &self->kfd, &self->taken, &v1);
}

TEST_F_TIMEOUT(image, changed_at_random_records_are_refused_or_others, LIMIT_S)
{
	try_all(_metadata, &self->kfd, &self->taken, &v2);
}

TEST_HARNESS_MAIN
