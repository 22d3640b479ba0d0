// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Images that kernels without these patches wrote, see recordings/README, or write: the
 * program in them goes on here.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../../../kselftest_harness.h"
#include "lib/fixture.h"
#include "lib/image_file.h"
#include "lib/image_v1.h"
#include "lib/kfd.h"
#include "lib/queue.h"
#include "lib/svm.h"

/* So long nothing happens behind a closed gate. */
#define GATE_HOLDS_MS	50

static __u32 word_at(const unsigned char *record, unsigned int offset)
{
	__u32 word;

	memcpy(&word, record + offset, sizeof(word));
	return word;
}

/* The queue's record: V1_TYPE_COMPUTE or V1_TYPE_SDMA; NULL: there is none. */
static unsigned char *queue_record(const struct kfd_v1_image *image, __u32 type)
{
	unsigned char *record = image->priv + V1_PROCESS_SIZE +
				image->args.num_devices * V1_DEVICE_SIZE +
				image->args.num_bos * V1_BO_SIZE;
	unsigned int i;

	/* Queues come first, and the program has two. */
	for (i = 0; i < 2; i++) {
		if (word_at(record, V1_TYPE) == type)
			return record;
		record += V1_QUEUE_SIZE + word_at(record, V1_MQD_SIZE) +
			  word_at(record, V1_CTL_STACK_SIZE);
	}
	return NULL;
}

static __u64 bo_size(const struct kfd_v1_image *image, __u64 va)
{
	unsigned int i;

	for (i = 0; i < image->args.num_bos; i++)
		if (image->bos[i].addr == va)
			return image->bos[i].size;
	return 0;
}

/* Waves of all compute units and XCCs have to fit, not more and not fewer. */
static bool saves_as_many_waves(const struct kfd_v1_image *image,
				const struct kfd_gpu *gpu)
{
	const unsigned char *record = queue_record(image, V1_TYPE_COMPUTE);
	__u64 area, stack;

	memcpy(&area, record + V1_SAVE_AREA, sizeof(area));
	/* Not of every generation it is in an image. */
	stack = word_at(record, V1_CTL_STACK_SIZE);
	return word_at(record, V1_SAVE_AREA_SIZE) ==
		       kfd_gpu_property(gpu, "cwsr_size") &&
	       (!stack || stack == kfd_gpu_property(gpu, "ctl_stack_size")) &&
	       bo_size(image, area) == kfd_cwsr_area_size(gpu);
}

FIXTURE(old_images) {
	struct image_file file;
	unsigned int num_xcc;
};

FIXTURE_SETUP(old_images)
{
	struct kfd_v1_image *image = &self->file.image;
	char chip[16], path[64];
	struct kfd kfd;
	int r;

	memset(&self->file, 0, sizeof(self->file));
	if (kfd_open(&kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	image_file_chip(kfd.gpus[0].gfx_version, chip, sizeof(chip));
	self->num_xcc = kfd_gpu_property(&kfd.gpus[0], "num_xcc") ?: 1;
	kfd_close(&kfd);
	if (!kfd.gpus[0].visible)
		SKIP(return, "recorded where programs map VRAM");
	if (!svm_is_supported(&kfd))
		SKIP(return, "recorded with SVM, which the driver does not offer");
	snprintf(path, sizeof(path), "image_files/%s.txt", chip);
	r = image_file_read(path, &self->file);
	if (r == -ENOENT)
		SKIP(return, "no image of this chip was recorded");
	ASSERT_EQ(0, r);
	ASSERT_EQ(1, image->args.num_devices);
	ASSERT_NE(NULL, queue_record(image, V1_TYPE_COMPUTE));
	if (!saves_as_many_waves(image, &kfd.gpus[0]))
		SKIP(return, "recorded on a GPU with other compute units or XCCs");
	image->devices[0].actual_gpu_id = kfd.gpus[0].id;
}

FIXTURE_TEARDOWN(old_images)
{
	image_file_free(&self->file);
}

static int restores(struct kfd *kfd, struct image_file *file,
		    struct fixture *fixture)
{
	const char *wrong;
	int r;

	r = image_file_restore(kfd, file, fixture);
	if (r) {
		printf("# restore: %s\n", strerror(-r));
		return 1;
	}
	usleep(GATE_HOLDS_MS * 1000);
	wrong = fixture_check(kfd, fixture);
	if (!wrong && !kfd_queue_runs(kfd, &fixture->sdma))
		wrong = "the SDMA queue ends";
	if (wrong)
		printf("# %s\n", wrong);
	return wrong ? 2 : 0;
}

static int goes_on(struct kfd *kfd, void *data)
{
	struct fixture fixture;

	return restores(kfd, data, &fixture);
}

TEST_F(old_images, its_program_goes_on)
{
	EXPECT_EQ(0, kfd_in_child(goes_on, &self->file));
}

/* Checkpointed again, and what it used of the GPU given back. */
static int take_again(const struct kfd *kfd, struct fixture *fixture,
		      struct image_file *again)
{
	if (fixture_start_work(kfd, fixture) || image_file_dump(kfd, fixture, again))
		return 3;
	return fixture_destroy_queues(kfd, fixture) ? 4 : 0;
}

/* Bytes of MQDs and control stacks of the compute queue; 0: there is none. */
static __u32 compute_bytes(const struct kfd_v1_image *image)
{
	const unsigned char *record = queue_record(image, V1_TYPE_COMPUTE);

	return record ? word_at(record, V1_MQD_SIZE) +
				word_at(record, V1_CTL_STACK_SIZE) :
			0;
}

struct turn {
	struct image_file *first;
	unsigned int num_xcc;
};

static int goes_on_twice(struct kfd *kfd, void *data)
{
	const struct turn *turn = data;
	struct image_file again;
	struct fixture fixture;
	int r;

	r = restores(kfd, turn->first, &fixture);
	r = r ? r : take_again(kfd, &fixture, &again);
	if (r)
		return r;
	/* Of each XCC, where the kernel of the recording wrote the first one's. */
	if (compute_bytes(&again.image) !=
	    turn->num_xcc * compute_bytes(&turn->first->image))
		return 5;
	return kfd_in_child(goes_on, &again) ? 6 : 0;
}

TEST_F(old_images, its_program_goes_on_from_an_image_with_all_xccs)
{
	struct turn turn = { &self->file, self->num_xcc };

	EXPECT_EQ(0, kfd_in_child(goes_on_twice, &turn));
}

/* ---- as other kernels would write it ---- */

#define GARBAGE	0xa5

FIXTURE(rewritten) {
	struct kfd kfd;
	struct fixture fixture;
	struct image_file file;
};

FIXTURE_SETUP(rewritten)
{
	int r;

	memset(&self->file, 0, sizeof(self->file));
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	r = fixture_create(&self->kfd, &self->fixture, FIXTURE_PORTABLE);
	if (r == -EOPNOTSUPP)
		SKIP(return, "the driver offers no SVM on this GPU");
	ASSERT_EQ(0, r);
	ASSERT_EQ(0, take_again(&self->kfd, &self->fixture, &self->file));
}

FIXTURE_TEARDOWN(rewritten)
{
	image_file_free(&self->file);
	kfd_close(&self->kfd);
}

/* An SDMA queue has one MQD on any GPU: behind it there is only room. */
static int give_room_for_every_xcc(struct kfd_v1_image *image, __u32 num_xcc)
{
	const __u64 size = image->args.priv_data_size;
	const __u32 mqd = word_at(queue_record(image, V1_TYPE_SDMA),
				  V1_MQD_SIZE);
	const __u32 mqds = num_xcc * mqd;
	unsigned char *record, *room;

	image->priv = realloc(image->priv, size + mqds - mqd);
	if (!image->priv)
		return -ENOMEM;
	record = queue_record(image, V1_TYPE_SDMA);
	room = record + V1_QUEUE_SIZE + mqd;
	memmove(room + mqds - mqd, room, image->priv + size - room);
	memset(room, GARBAGE, mqds - mqd);
	memcpy(record + V1_MQD_SIZE, &mqds, sizeof(mqds));
	image->args.priv_data = (unsigned long)image->priv;
	image->args.priv_data_size = size + mqds - mqd;
	return 0;
}

/* As Linux does from 6.17 on; with one XCC that is the image as it was. */
TEST_F(rewritten, a_program_goes_on_from_an_image_with_an_sdma_mqd_for_every_xcc)
{
	struct kfd_v1_image *image = &self->file.image;
	const __u32 num_xcc = kfd_gpu_property(&self->kfd.gpus[0], "num_xcc") ?: 1;

	ASSERT_NE(NULL, queue_record(image, V1_TYPE_SDMA));
	ASSERT_EQ(0, give_room_for_every_xcc(image, num_xcc));
	EXPECT_EQ(0, kfd_in_child(goes_on, &self->file));
}

KFD_TEST_MAIN
