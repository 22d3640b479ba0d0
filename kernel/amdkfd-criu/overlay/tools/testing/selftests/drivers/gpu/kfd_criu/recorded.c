// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Images that kernels without these patches wrote, see recordings/README: the program
 * in them goes on here.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "../../../kselftest_harness.h"
#include "program.h"

/* In a queue's record of version 1 (amdkfd, struct kfd_criu_queue_priv_data). */
#define QUEUE_TYPE		68
#define QUEUE_TYPE_COMPUTE	0
#define QUEUE_CTL_STACK_SIZE	108
#define QUEUE_MQD_SIZE		112

FIXTURE(recorded) {
	struct recording recording;
	unsigned int num_xcc;
};

FIXTURE_SETUP(recorded)
{
	char chip[16], path[64];
	struct kfd kfd;
	int r;

	memset(&self->recording, 0, sizeof(self->recording));
	if (kfd_open(&kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	recording_chip(kfd.gpus[0].gfx_version, chip, sizeof(chip));
	self->num_xcc = kfd_gpu_property(&kfd.gpus[0], "num_xcc") ?: 1;
	kfd_close(&kfd);
	if (!kfd.gpus[0].visible)
		SKIP(return, "recorded where programs map VRAM");
	snprintf(path, sizeof(path), "recordings/%s.txt", chip);
	r = recording_read(path, &self->recording);
	if (r == -ENOENT)
		SKIP(return, "no image of this chip was recorded");
	ASSERT_EQ(0, r);
	ASSERT_EQ(1, self->recording.image.args.num_devices);
}

FIXTURE_TEARDOWN(recorded)
{
	recording_free(&self->recording);
}

static int restores(struct kfd *kfd, struct recording *recording,
		    struct program *program)
{
	const char *wrong;
	int r;

	r = program_restore(kfd, recording, program);
	if (r) {
		printf("# restore: %s\n", strerror(-r));
		return 1;
	}
	wrong = program_goes_on(kfd, program);
	if (wrong)
		printf("# %s\n", wrong);
	return wrong ? 2 : 0;
}

static int goes_on(struct kfd *kfd, void *data)
{
	struct program program;

	return restores(kfd, data, &program);
}

TEST_F(recorded, its_program_goes_on)
{
	EXPECT_EQ(0, kfd_in_child(goes_on, &self->recording));
}

/* Checkpointed again, and what it used of the GPU given back. */
static int take_again(const struct kfd *kfd, struct program *program,
		      struct recording *again)
{
	if (program_wait_at_gate(program) || program_take(kfd, program, again))
		return 3;
	return kfd_queue_destroy(kfd, &program->sdma) ||
	       kfd_queue_destroy(kfd, &program->compute) ? 4 : 0;
}

static __u32 word_at(const unsigned char *record, unsigned int offset)
{
	__u32 word;

	memcpy(&word, record + offset, sizeof(word));
	return word;
}

/* Bytes of MQDs and control stacks of the compute queue; 0: there is none. */
static __u32 compute_bytes(const struct kfd_image *image)
{
	const unsigned char *record = image->priv + KFD_V1_PROCESS +
				      image->args.num_devices * KFD_V1_DEVICE +
				      image->args.num_bos * KFD_V1_BO;
	unsigned int i;

	/* Queues come first, and the program has two. */
	for (i = 0; i < 2; i++) {
		const __u32 bytes = word_at(record, QUEUE_MQD_SIZE) +
				    word_at(record, QUEUE_CTL_STACK_SIZE);

		if (word_at(record, QUEUE_TYPE) == QUEUE_TYPE_COMPUTE)
			return bytes;
		record += KFD_V1_QUEUE + bytes;
	}
	return 0;
}

struct turn {
	struct recording *first;
	unsigned int num_xcc;
};

static int goes_on_twice(struct kfd *kfd, void *data)
{
	const struct turn *turn = data;
	struct recording again;
	struct program program;
	int r;

	r = restores(kfd, turn->first, &program);
	r = r ? r : take_again(kfd, &program, &again);
	if (r)
		return r;
	/* Of each XCC, where the kernel of the recording wrote the first one's. */
	if (compute_bytes(&again.image) !=
	    turn->num_xcc * compute_bytes(&turn->first->image))
		return 5;
	return kfd_in_child(goes_on, &again) ? 6 : 0;
}

TEST_F(recorded, its_program_goes_on_from_an_image_with_all_xccs)
{
	struct turn turn = { &self->recording, self->num_xcc };

	EXPECT_EQ(0, kfd_in_child(goes_on_twice, &turn));
}

TEST_HARNESS_MAIN
