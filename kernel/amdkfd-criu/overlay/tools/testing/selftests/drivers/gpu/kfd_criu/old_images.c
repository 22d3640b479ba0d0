// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Images that kernels without these patches wrote (see image_files/README), and images as
 * later kernels write them: the process in them must be restored and continue.
 *
 * Runs: per-chip
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

/*
 * Emulated GPUs with eight XCCs and a debug kernel take ten seconds for each test, if nothing
 * else uses the processor.
 */
#define LIMIT_S		300
/* Queues must not pass a closed gate for so long. */
#define GATE_HOLDS_MS	50

static __u32 word_at(const unsigned char *record, unsigned int offset)
{
	__u32 word;

	memcpy(&word, record + offset, sizeof(word));
	return word;
}

/* The private data of the queue of type V1_TYPE_COMPUTE or V1_TYPE_SDMA, or NULL. */
static unsigned char *queue_record(const struct kfd_v1_image *image, __u32 type)
{
	unsigned char *record = image->priv + V1_PROCESS_SIZE +
				image->args.num_devices * V1_DEVICE_SIZE +
				image->args.num_bos * V1_BO_SIZE;
	unsigned int i;

	/* The driver writes queues first, and the fixture has two. */
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

/* The driver wants an area of exactly the size that the GPU's compute units and XCCs need. */
static bool saves_as_many_waves(const struct kfd_v1_image *image,
				const struct kfd_gpu *gpu)
{
	const unsigned char *record = queue_record(image, V1_TYPE_COMPUTE);
	__u64 area, stack;

	memcpy(&area, record + V1_SAVE_AREA, sizeof(area));
	/* Not every generation has a control stack in its images. */
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
		SKIP(return, "images are from a GPU whose VRAM processes can map");
	if (!svm_is_supported(&kfd))
		SKIP(return, "images have SVM ranges, which the driver does not offer");
	snprintf(path, sizeof(path), "image_files/%s.txt", chip);
	r = image_file_read(path, &self->file);
	if (r == -ENOENT)
		SKIP(return, "no image file of this chip");
	ASSERT_EQ(0, r);
	ASSERT_EQ(1, image->args.num_devices);
	ASSERT_NE(NULL, queue_record(image, V1_TYPE_COMPUTE));
	if (!saves_as_many_waves(image, &kfd.gpus[0]))
		SKIP(return, "the image is from a GPU with other compute units or XCCs");
	image->devices[0].actual_gpu_id = kfd.gpus[0].id;
}

FIXTURE_TEARDOWN(old_images)
{
	image_file_free(&self->file);
}

static int restore_and_check(struct kfd *kfd, struct image_file *file,
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
		wrong = "the SDMA queue does not run";
	if (wrong)
		printf("# %s\n", wrong);
	return wrong ? 2 : 0;
}

static int is_restored(struct kfd *kfd, void *data)
{
	struct fixture fixture;

	return restore_and_check(kfd, data, &fixture);
}

TEST_F_TIMEOUT(old_images, an_image_of_the_stock_kernel_is_restored, LIMIT_S)
{
	EXPECT_EQ(0, kfd_in_child(is_restored, &self->file));
}

/* Checkpoints the process again and destroys its queues. */
static int dump_again(const struct kfd *kfd, struct fixture *fixture,
		      struct image_file *again)
{
	if (fixture_start_work(kfd, fixture) || image_file_dump(kfd, fixture, again))
		return 3;
	return fixture_destroy_queues(kfd, fixture) ? 4 : 0;
}

/* Bytes of the MQDs and control stacks of the compute queue; 0: there is no such queue. */
static __u32 compute_bytes(const struct kfd_v1_image *image)
{
	const unsigned char *record = queue_record(image, V1_TYPE_COMPUTE);

	return record ? word_at(record, V1_MQD_SIZE) +
				word_at(record, V1_CTL_STACK_SIZE) :
			0;
}

struct source {
	struct image_file *first;
	unsigned int num_xcc;
};

static int is_restored_twice(struct kfd *kfd, void *data)
{
	const struct source *source = data;
	struct image_file again;
	struct fixture fixture;
	int r;

	r = restore_and_check(kfd, source->first, &fixture);
	r = r ? r : dump_again(kfd, &fixture, &again);
	if (r)
		return r;
	/* This kernel writes the MQD of each XCC, the old one wrote the first XCC's only. */
	if (compute_bytes(&again.image) !=
	    source->num_xcc * compute_bytes(&source->first->image))
		return 5;
	return kfd_in_child(is_restored, &again) ? 6 : 0;
}

TEST_F_TIMEOUT(old_images, its_process_is_restored_from_a_new_image_with_all_xccs, LIMIT_S)
{
	struct source source = { &self->file, self->num_xcc };

	EXPECT_EQ(0, kfd_in_child(is_restored_twice, &source));
}

/* ---- images as later kernels write them ---- */

#define GARBAGE	0xa5
/* The word cp_hqd_cntl_stack_offset of an MQD of gfx9. */
#define GFX9_CTL_STACK_OFFSET	174

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
	ASSERT_EQ(0, dump_again(&self->kfd, &self->fixture, &self->file));
}

FIXTURE_TEARDOWN(rewritten)
{
	image_file_free(&self->file);
	kfd_close(&self->kfd);
}

/*
 * Gives the SDMA queue the space of an MQD for each XCC. An SDMA queue has only one MQD on
 * any GPU; the rest of the space is not used.
 */
static int add_mqd_space(struct kfd_v1_image *image, __u32 num_xcc)
{
	const __u64 size = image->args.priv_data_size;
	const __u32 mqd = word_at(queue_record(image, V1_TYPE_SDMA),
				  V1_MQD_SIZE);
	const __u32 mqds = num_xcc * mqd;
	unsigned char *record, *space;

	image->priv = realloc(image->priv, size + mqds - mqd);
	if (!image->priv)
		return -ENOMEM;
	record = queue_record(image, V1_TYPE_SDMA);
	space = record + V1_QUEUE_SIZE + mqd;
	memmove(space + mqds - mqd, space, image->priv + size - space);
	memset(space, GARBAGE, mqds - mqd);
	memcpy(record + V1_MQD_SIZE, &mqds, sizeof(mqds));
	image->args.priv_data = (unsigned long)image->priv;
	image->args.priv_data_size = size + mqds - mqd;
	return 0;
}

/*
 * Fills the unused part of the control stacks of the compute queue. Only gfx9 has control
 * stacks in its images; they grow down, and the MQDs say from where on they are used.
 */
static void fill_unused_ctl_stacks(struct kfd_v1_image *image, __u32 num_xcc)
{
	unsigned char *record = queue_record(image, V1_TYPE_COMPUTE);
	const __u32 mqd = word_at(record, V1_MQD_SIZE) / num_xcc;
	const __u32 stack = word_at(record, V1_CTL_STACK_SIZE) / num_xcc;
	unsigned char *mqds = record + V1_QUEUE_SIZE;
	unsigned char *stacks = mqds + num_xcc * mqd;
	__u32 i;

	for (i = 0; stack && i < num_xcc; i++) {
		const __u32 used_from =
			word_at(mqds + i * mqd, GFX9_CTL_STACK_OFFSET * 4);

		memset(stacks + i * stack, GARBAGE,
		       used_from < stack ? used_from : stack);
	}
}

/*
 * Linux 6.17 to 7.3 write for a compute queue the MQDs of all XCCs and then their control
 * stacks, as these patches do, but with the unused part of the control stacks; for an SDMA
 * queue they write as many bytes as MQDs of all XCCs have. The image is made from that
 * description, because these kernels do not run here. With one XCC, and no control stacks,
 * there is no difference.
 */
TEST_F_TIMEOUT(rewritten, an_image_in_the_layout_of_linux_6_17_is_restored, LIMIT_S)
{
	struct kfd_v1_image *image = &self->file.image;
	const __u32 num_xcc = kfd_gpu_property(&self->kfd.gpus[0], "num_xcc") ?: 1;

	ASSERT_NE(NULL, queue_record(image, V1_TYPE_COMPUTE));
	ASSERT_NE(NULL, queue_record(image, V1_TYPE_SDMA));
	fill_unused_ctl_stacks(image, num_xcc);
	ASSERT_EQ(0, add_mqd_space(image, num_xcc));
	EXPECT_EQ(0, kfd_in_child(is_restored, &self->file));
}

KFD_TEST_MAIN
