// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * BOs that are the same memory: of one process, of two devices, of two processes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "../../../kselftest_harness.h"
#include "lib/bo.h"
#include "lib/criu_op.h"
#include "lib/image_v2.h"
#include "lib/kfd.h"

#define SIZE	(2 * KFD_PAGE)
#define MANY	64

struct turn {
	struct kfd_v2_image image;
	struct kfd_bo first, second;	/* as they were */
	struct kfd_criu_v2_memory memory;
	unsigned int num_memories;
};

FIXTURE(shared_bo) {
	struct kfd kfd;
	struct turn turn;
	int fd;		/* DMA-buf of the first one */
};

FIXTURE_SETUP(shared_bo)
{
	memset(&self->turn, 0, sizeof(self->turn));
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, kfd_acquire_vms(&self->kfd));
	ASSERT_EQ(0, kfd_bo_create(&self->kfd, 0, KFD_BO_GTT, SIZE,
				   &self->turn.first));
	ASSERT_EQ(0, kfd_bo_export(&self->kfd, self->turn.first.handle,
				   &self->fd));
}

FIXTURE_TEARDOWN(shared_bo)
{
	close(self->fd);
	free(self->turn.image.data);
	kfd_close(&self->kfd);
}

static struct kfd_criu_record_bo *bo_of(const struct kfd_v2_image *image,
					__u64 handle)
{
	const struct kfd_criu_record *record;
	struct kfd_criu_record_bo *bo;
	__u64 at;

	for (at = 0; at < image->size; at += record->size) {
		record = (void *)(image->data + at);
		bo = (void *)(image->data + at);
		if (record->type == KFD_CRIU_RECORD_BO &&
		    bo->gpu_id == handle >> 32 && bo->handle == (__u32)handle)
			return bo;
	}
	return NULL;
}

/* What is in a BO of a restored process, or NULL. */
static char *contents(const struct kfd *kfd, __u64 handle)
{
	void *bytes;
	int fd;

	if (kfd_v2_export(kfd, handle, &fd))
		return NULL;
	bytes = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return bytes == MAP_FAILED ? NULL : bytes;
}

static int restore(const struct kfd *kfd, const struct turn *turn)
{
	return kfd_v2_image_restore_with(kfd, &turn->image, &turn->memory,
					 turn->num_memories);
}

/* Bit 0: the two are the same memory; bit 1: the first one has what was given. */
static int looks(struct kfd *kfd, void *data)
{
	const struct turn *turn = data;
	char *one, *two;
	int seen;

	if (restore(kfd, turn))
		return 100;
	one = contents(kfd, turn->first.handle);
	two = contents(kfd, turn->second.handle);
	if (!one || !two)
		return 101;
	seen = strcmp(one, "given") ? 0 : 2;
	memcpy(one, "here", sizeof("here"));
	memcpy(two + KFD_PAGE, "there", sizeof("there"));
	if (!strcmp(two, "here") && !strcmp(one + KFD_PAGE, "there"))
		seen |= 1;
	return kfd_v2_resume(kfd) ? 102 : seen;
}

TEST_F(shared_bo, two_handles_are_one_memory_again)
{
	struct turn *turn = &self->turn;
	const struct kfd_criu_record_bo *one, *two;

	ASSERT_EQ(0, kfd_bo_import(&self->kfd, 0, self->fd, SIZE,
				   &turn->second));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &turn->image));
	one = bo_of(&turn->image, turn->first.handle);
	two = bo_of(&turn->image, turn->second.handle);
	ASSERT_NE(NULL, one);
	ASSERT_NE(NULL, two);
	EXPECT_EQ(0, one->flags);
	EXPECT_EQ(KFD_CRIU_BO_IMPORTED, two->flags);
	EXPECT_EQ(one->identity, two->identity);
	/* Whichever is restored first makes what the program asked for. */
	EXPECT_EQ(one->alloc_flags, two->alloc_flags);
	EXPECT_EQ(1, kfd_in_child(looks, turn));
}

TEST_F(shared_bo, another_device_has_the_same_memory_again)
{
	struct turn *turn = &self->turn;

	if (self->kfd.num_gpus < 2)
		SKIP(return, "one GPU");
	ASSERT_EQ(0, kfd_bo_import(&self->kfd, 1, self->fd, SIZE,
				   &turn->second));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &turn->image));
	ASSERT_NE(NULL, bo_of(&turn->image, turn->first.handle));
	EXPECT_EQ(bo_of(&turn->image, turn->first.handle)->identity,
		  bo_of(&turn->image, turn->second.handle)->identity);
	EXPECT_EQ(1, kfd_in_child(looks, turn));
}

TEST_F(shared_bo, without_an_identity_each_has_its_own)
{
	struct turn *turn = &self->turn;

	ASSERT_EQ(0, kfd_bo_import(&self->kfd, 0, self->fd, SIZE,
				   &turn->second));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &turn->image));
	ASSERT_NE(NULL, bo_of(&turn->image, turn->first.handle));
	ASSERT_NE(NULL, bo_of(&turn->image, turn->second.handle));
	bo_of(&turn->image, turn->second.handle)->identity = 0;
	EXPECT_EQ(0, kfd_in_child(looks, turn));
	/* Nor is none one that they have in common. */
	bo_of(&turn->image, turn->first.handle)->identity = 0;
	EXPECT_EQ(0, kfd_in_child(looks, turn));
}

/* As a checkpointer restores two processes: one of them has the memory already. */
TEST_F(shared_bo, memory_of_another_process_is_used)
{
	struct turn *turn = &self->turn;

	ASSERT_EQ(0, kfd_bo_import(&self->kfd, 0, self->fd, SIZE,
				   &turn->second));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &turn->image));
	ASSERT_NE(NULL, bo_of(&turn->image, turn->first.handle));
	memcpy(turn->first.cpu, "given", sizeof("given"));
	turn->memory.identity =
		bo_of(&turn->image, turn->first.handle)->identity;
	turn->memory.dmabuf_fd = self->fd;
	turn->num_memories = 1;
	EXPECT_EQ(3, kfd_in_child(looks, turn));
	EXPECT_STREQ("here", turn->first.cpu);
}

/* Two BOs of another process: the memory of this one's first one, and its own. */
struct other {
	int fd;
	/* In memory that is shared. */
	__u64 *identities;
};

static int tells_identities(struct kfd *kfd, void *data)
{
	const struct other *other = data;
	struct kfd_bo import, own;
	struct kfd_v2_image image;

	if (kfd_acquire_vms(kfd) ||
	    kfd_bo_create(kfd, 0, KFD_BO_GTT, SIZE, &own) ||
	    kfd_bo_import(kfd, 0, other->fd, SIZE, &import) ||
	    kfd_v2_image_dump(kfd->fd, &image))
		return 1;
	if (!bo_of(&image, import.handle) || !bo_of(&image, own.handle))
		return 2;
	if (bo_of(&image, import.handle)->flags != KFD_CRIU_BO_IMPORTED)
		return 3;
	other->identities[0] = bo_of(&image, import.handle)->identity;
	other->identities[1] = bo_of(&image, own.handle)->identity;
	return kfd_v2_op(kfd->fd, KFD_CRIU_V2_UNPAUSE) ? 4 : 0;
}

/* So a checkpointer finds out which memory two processes share. */
TEST_F(shared_bo, memory_of_two_paused_processes_has_one_identity)
{
	struct turn *turn = &self->turn;
	struct other other = { .fd = self->fd };
	__u64 mine;

	other.identities = mmap(NULL, KFD_PAGE, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, other.identities);
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &turn->image));
	ASSERT_NE(NULL, bo_of(&turn->image, turn->first.handle));
	mine = bo_of(&turn->image, turn->first.handle)->identity;
	/* This one is still paused. */
	ASSERT_EQ(0, kfd_in_child(tells_identities, &other));
	EXPECT_NE(0, mine);
	EXPECT_EQ(mine, other.identities[0]);
	EXPECT_NE(mine, other.identities[1]);
	EXPECT_EQ(KFD_CRIU_STATE_PAUSED, kfd_v2_state(&self->kfd));
	munmap(other.identities, KFD_PAGE);
}

static int refusal(struct kfd *kfd, void *data)
{
	return -restore(kfd, data);
}

TEST_F(shared_bo, what_is_given_must_fit)
{
	struct turn *turn = &self->turn;
	struct kfd_criu_record_bo *bo;

	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &turn->image));
	bo = bo_of(&turn->image, turn->first.handle);
	ASSERT_NE(NULL, bo);
	turn->num_memories = 1;
	turn->memory.dmabuf_fd = self->fd;
	EXPECT_EQ(EINVAL, kfd_in_child(refusal, turn));
	turn->memory.identity = bo->identity;
	turn->memory.reserved = 1;
	EXPECT_EQ(EINVAL, kfd_in_child(refusal, turn));
	turn->memory.reserved = 0;
	turn->memory.dmabuf_fd = -1;
	EXPECT_EQ(EBADF, kfd_in_child(refusal, turn));
	turn->memory.dmabuf_fd = self->kfd.fd;
	EXPECT_EQ(EINVAL, kfd_in_child(refusal, turn));
	turn->memory.dmabuf_fd = self->fd;
	bo->size += KFD_PAGE;
	EXPECT_EQ(EINVAL, kfd_in_child(refusal, turn));
	bo->size -= KFD_PAGE;
	bo->flags = 2;
	EXPECT_EQ(EINVAL, kfd_in_child(refusal, turn));
	bo->flags = 0;
	EXPECT_EQ(0, kfd_in_child(refusal, turn));
}

static int refusal_of_two(struct kfd *kfd, void *data)
{
	const struct turn *turn = data;
	const struct kfd_criu_v2_memory twice[] = { turn->memory, turn->memory };

	return -kfd_v2_image_restore_with(kfd, &turn->image, twice, 2);
}

TEST_F(shared_bo, nothing_is_given_twice)
{
	struct turn *turn = &self->turn;

	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &turn->image));
	ASSERT_NE(NULL, bo_of(&turn->image, turn->first.handle));
	turn->memory.identity =
		bo_of(&turn->image, turn->first.handle)->identity;
	turn->memory.dmabuf_fd = self->fd;
	EXPECT_EQ(EEXIST, kfd_in_child(refusal_of_two, turn));
}

/* An import used to take the handle of whoever came next with it when it went. */
TEST_F(shared_bo, an_import_that_goes_leaves_the_others_their_handles)
{
	struct kfd_bo others[MANY];
	unsigned int i;
	int fd;

	ASSERT_EQ(0, kfd_bo_import(&self->kfd, 0, self->fd, SIZE,
				   &self->turn.second));
	ASSERT_EQ(0, kfd_bo_free(&self->kfd, 0, &self->turn.second));
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(0, kfd_bo_create(&self->kfd, 0, KFD_BO_VRAM, KFD_PAGE,
					   &others[i]));
	ASSERT_EQ(0, kfd_bo_free(&self->kfd, 0, &self->turn.first));
	for (i = 0; i < MANY; i++) {
		EXPECT_EQ(0, kfd_bo_export(&self->kfd, others[i].handle, &fd))
			TH_LOG("BO %u", i);
		close(fd);
	}
}

KFD_TEST_MAIN
