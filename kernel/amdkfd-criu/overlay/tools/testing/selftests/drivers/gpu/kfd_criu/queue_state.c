// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * MQDs of queues: an image contains no address of the driver, and decides no state of
 * hardware that the queue does not own. The MQDs are those that amdkfd shows in debugfs.
 *
 * Runs: per-chip
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>
#include "../../../kselftest_harness.h"
#include "lib/fixture.h"
#include "lib/image_v1.h"
#include "lib/image_v2.h"
#include "lib/kfd.h"

#define DEBUGFS		"/sys/kernel/debug"
#define LIMIT_S		300	/* of tests that restore a process several times */
#define MAX_MQDS	64
#define MQD_WORDS	512
#define ROW_WORDS	8	/* words in a line of the file */

/*
 * Indices of words in MQDs of compute queues. gfx7 has another layout than the others, and
 * no GDS state.
 */
#define BASE_GFX7	51	/* cp_mqd_base_addr */
#define BASE		128
#define GDS_STATE	178	/* cp_hqd_gds_resource_state, gfx8 to gfx11 */
#define GWS_VALUE	448	/* gws_0_val, gfx11 and gfx12 */

/* All units of the global wave sync, and an ordered append unit. */
#define GDS_ALL		0x3f3f3
#define GWS_SIZE	(0x3f << 4)
#define GWS_UNLIKELY	0x77777777

struct mqds {
	unsigned int num;
	__u32 words[MAX_MQDS][MQD_WORDS];
};

/* Reads a line "    00000020: 01234567 ..." into the MQD. Returns the offset, or -1. */
static long read_row(const char *line, __u32 *words)
{
	unsigned long offset;
	unsigned int i;
	int used;

	if (sscanf(line, " %lx:%n", &offset, &used) != 1 ||
	    offset / sizeof(*words) + ROW_WORDS > MQD_WORDS)
		return -1;
	for (i = 0; i < ROW_WORDS; i++) {
		int n;

		if (sscanf(line + used, " %x%n",
			   &words[offset / sizeof(*words) + i], &n) != 1)
			break;
		used += n;
	}
	return offset;
}

/* Reads the MQDs of the compute queues of a process. */
static int read_mqds(pid_t pid, struct mqds *mqds)
{
	bool ours = false, compute = false;
	__u32 row[MQD_WORDS];
	char line[256];
	FILE *file;

	mount("none", DEBUGFS, "debugfs", 0, NULL);
	file = fopen(DEBUGFS "/kfd/mqds", "r");
	if (!file)
		return -errno;
	memset(mqds, 0, sizeof(*mqds));
	while (fgets(line, sizeof(line), file)) {
		long offset;
		int owner;

		if (sscanf(line, "Process %d", &owner) == 1) {
			ours = owner == pid;
			continue;
		}
		if (strstr(line, " on device ")) {
			compute = strstr(line, "Compute");
			continue;
		}
		if (!ours || !compute)
			continue;
		offset = read_row(line, row);
		if (offset < 0)
			continue;
		/* Each XCC of a queue has an MQD. */
		if (offset == 0 && mqds->num < MAX_MQDS)
			mqds->num++;
		if (mqds->num)
			memcpy(&mqds->words[mqds->num - 1][offset / sizeof(*row)],
			       &row[offset / sizeof(*row)], ROW_WORDS * sizeof(*row));
	}
	fclose(file);
	return 0;
}

static unsigned int generation_of(const struct kfd *kfd)
{
	return kfd->gpus[0].gfx_version / 10000;
}

FIXTURE(queue_state) {
	struct kfd kfd;
	struct fixture fixture;
	struct mqds *mqds;
};

FIXTURE_SETUP(queue_state)
{
	memset(&self->fixture, 0, sizeof(self->fixture));
	self->mqds = calloc(1, sizeof(*self->mqds));
	ASSERT_NE(NULL, self->mqds);
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, fixture_create(&self->kfd, &self->fixture, FIXTURE_FULL));
	ASSERT_EQ(0, read_mqds(getpid(), self->mqds));
	ASSERT_LT(0, self->mqds->num);
	ASSERT_EQ(0, fixture_checkpoint(&self->kfd, &self->fixture));
}

FIXTURE_TEARDOWN(queue_state)
{
	fixture_free(&self->fixture);
	free(self->mqds);
	kfd_close(&self->kfd);
}

/* The address of an MQD in the GART, in one of the units in which registers have it. */
static bool has_address(const void *image, __u64 size, __u64 address)
{
	return memmem(image, size, &address, sizeof(address));
}

/* MQDs of other queues, and more objects of the driver, are near an MQD in the GART. */
#define NEAR		(64UL << 10)
/* All of them begin at a multiple of this. */
#define ALIGNMENT	256

/* Counts the numbers of 8 bytes that can be the address of an object near this one. */
static unsigned int count_near(const unsigned char *image, __u64 size, __u64 address)
{
	unsigned int n = 0;
	__u64 at, number;

	for (at = 0; at + sizeof(number) <= size; at += sizeof(__u32)) {
		memcpy(&number, image + at, sizeof(number));
		if (number + NEAR >= address && number < address + NEAR &&
		    !(number % ALIGNMENT))
			n++;
	}
	return n;
}

TEST_F(queue_state, an_image_has_no_address_near_an_mqd)
{
	const unsigned int base = generation_of(&self->kfd) == 7 ? BASE_GFX7 : BASE;
	const struct kfd_v1_image *v1 = &self->fixture.v1;
	const struct kfd_v2_image *v2 = &self->fixture.v2;
	unsigned int i;

	for (i = 0; i < self->mqds->num; i++) {
		__u64 address;

		memcpy(&address, &self->mqds->words[i][base], sizeof(address));
		/* Images of version 1 contain the whole MQD, so the search finds it. */
		EXPECT_LT(0, count_near(v1->priv, v1->args.priv_data_size, address));
		EXPECT_EQ(0, count_near(v2->data, v2->size, address))
			TH_LOG("address %llx of MQD %u", (unsigned long long)address, i);
	}
}

TEST_F(queue_state, an_image_has_no_address_of_an_mqd)
{
	const unsigned int base = generation_of(&self->kfd) == 7 ? BASE_GFX7 : BASE;
	const struct kfd_v1_image *v1 = &self->fixture.v1;
	const struct kfd_v2_image *v2 = &self->fixture.v2;
	unsigned int i;

	for (i = 0; i < self->mqds->num; i++) {
		__u64 address;

		memcpy(&address, &self->mqds->words[i][base], sizeof(address));
		ASSERT_NE(0, address);
		/* Images of version 1 contain the whole MQD, so the search finds it. */
		EXPECT_TRUE(has_address(v1->priv, v1->args.priv_data_size, address));
		EXPECT_FALSE(has_address(v2->data, v2->size, address))
			TH_LOG("address %llx of MQD %u", (unsigned long long)address, i);
		EXPECT_FALSE(has_address(v2->data, v2->size, address >> 8));
	}
}

/* The first word of the first MQD of a compute queue without the global wave sync. */
static __u32 *v1_mqd(const struct kfd_v1_image *image)
{
	__u64 at;

	for (at = v1_objects(image); at < image->args.priv_data_size;
	     at += v1_object_size(image, at))
		if (v1_word(image, at) == V1_QUEUE &&
		    v1_word(image, at + V1_TYPE) == V1_TYPE_COMPUTE &&
		    !v1_word(image, at + V1_GWS))
			return (__u32 *)(image->priv + at + V1_QUEUE_SIZE);
	return NULL;
}

/* A compute queue without the global wave sync. */
static struct kfd_criu_record_queue *v2_queue(const struct kfd_v2_image *image)
{
	struct kfd_criu_record_queue *queue;
	unsigned int i;

	for (i = 0; (queue = (void *)v2_nth(image, KFD_CRIU_RECORD_QUEUE, i)); i++)
		if (queue->type == KFD_IOC_QUEUE_TYPE_COMPUTE &&
		    !(queue->flags & KFD_CRIU_QUEUE_GWS))
			return queue;
	return NULL;
}

/* The word of the MQD of the first XCC in a record, or NULL. */
static __u32 *v2_mqd_word(struct kfd_criu_record_queue *queue, unsigned int index)
{
	__u32 *words = (void *)((unsigned char *)queue + queue->record.fixed_size);
	unsigned int at = 0;

	while (at < queue->num_words) {
		const struct kfd_criu_mqd_words *run = (void *)&words[at++];

		if (index >= run->first && index - run->first < run->count)
			return &words[at + index - run->first];
		at += run->count;
	}
	return NULL;
}

struct foreign {
	struct kfd_v1_image *v1;
	struct kfd_v2_image *v2;
	unsigned int word;
	__u32 mask;
};

/* No queue of the restored process has the bits; the errno of RESTORE if it fails. */
static int does_not_reach_the_mqd(struct kfd *kfd, void *data)
{
	const struct foreign *foreign = data;
	struct mqds *mqds = calloc(1, sizeof(*mqds));
	unsigned int i;
	int r;

	r = foreign->v1 ? kfd_v1_image_restore(kfd, foreign->v1) :
			  kfd_v2_image_restore(kfd, foreign->v2);
	if (r)
		return -r;
	if (!mqds || read_mqds(getpid(), mqds) || !mqds->num)
		return 201;
	for (i = 0; i < mqds->num; i++)
		if (mqds->words[i][foreign->word] & foreign->mask)
			return 202;
	return 0;
}

/* Words of the global wave sync on this generation, and bits that no test sets at random. */
static const struct {
	unsigned int first_gfx;
	unsigned int last_gfx;
	unsigned int word;
	__u32 value;
	__u32 mask;
} gws_words[] = {
	{ 8, 11, GDS_STATE, GWS_SIZE, GDS_ALL },
	{ 11, 12, GWS_VALUE, GWS_UNLIKELY, ~0U },
};

#define NUM_GWS_WORDS	(sizeof(gws_words) / sizeof(*gws_words))

static bool has_gws_word(const struct kfd *kfd, unsigned int i)
{
	const unsigned int gfx = generation_of(kfd);

	return gfx >= gws_words[i].first_gfx && gfx <= gws_words[i].last_gfx;
}

/* Images of version 1 contain whatever the hardware wrote, so it is not refused. */
TEST_F_TIMEOUT(queue_state, version_1_decides_no_wave_sync_that_the_queue_does_not_own, LIMIT_S)
{
	__u32 *mqd = v1_mqd(&self->fixture.v1);
	unsigned int i;

	ASSERT_NE(NULL, mqd);
	for (i = 0; i < NUM_GWS_WORDS; i++) {
		struct foreign foreign = {
			.v1 = &self->fixture.v1,
			.word = gws_words[i].word,
			.mask = gws_words[i].mask,
		};
		__u32 was;

		if (!has_gws_word(&self->kfd, i))
			continue;
		was = mqd[foreign.word];
		mqd[foreign.word] = gws_words[i].value;
		EXPECT_EQ(0, kfd_in_child(does_not_reach_the_mqd, &foreign))
			TH_LOG("word %u", foreign.word);
		mqd[foreign.word] = was;
	}
}

TEST_F_TIMEOUT(queue_state, an_image_with_wave_sync_that_the_queue_does_not_own_is_refused, LIMIT_S)
{
	struct kfd_criu_record_queue *queue = v2_queue(&self->fixture.v2);
	unsigned int i;

	ASSERT_NE(NULL, queue);
	for (i = 0; i < NUM_GWS_WORDS; i++) {
		struct foreign foreign = {
			.v2 = &self->fixture.v2,
			.word = gws_words[i].word,
			.mask = gws_words[i].mask,
		};
		__u32 *word;

		if (!has_gws_word(&self->kfd, i))
			continue;
		word = v2_mqd_word(queue, foreign.word);
		ASSERT_NE(NULL, word);
		EXPECT_EQ(0, *word);
		EXPECT_EQ(0, kfd_in_child(does_not_reach_the_mqd, &foreign));
		*word = gws_words[i].value;
		EXPECT_EQ(EINVAL, kfd_in_child(does_not_reach_the_mqd, &foreign))
			TH_LOG("word %u", foreign.word);
		*word = 0;
	}
}

KFD_TEST_MAIN
