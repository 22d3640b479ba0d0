// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * BOs that share memory: of one process, of two devices, of two processes. After a restore
 * they must share memory again.
 *
 * Runs: once
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

struct sharing {
	struct kfd_v2_image image;
	struct kfd_bo first, second;	/* before the checkpoint */
	struct kfd_criu_v2_memory memory;
	unsigned int num_memories;
};

FIXTURE(shared_bo) {
	struct kfd kfd;
	struct sharing sharing;
	int fd;		/* DMA-buf of the first BO */
};

FIXTURE_SETUP(shared_bo)
{
	memset(&self->sharing, 0, sizeof(self->sharing));
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, kfd_acquire_vms(&self->kfd));
	ASSERT_EQ(0, kfd_bo_create(&self->kfd, 0, KFD_BO_GTT, SIZE,
				   &self->sharing.first));
	ASSERT_EQ(0, kfd_bo_export(&self->kfd, self->sharing.first.handle,
				   &self->fd));
}

FIXTURE_TEARDOWN(shared_bo)
{
	close(self->fd);
	free(self->sharing.image.data);
	kfd_close(&self->kfd);
}

static struct kfd_criu_record_bo *find_bo(const struct kfd_v2_image *image,
					  __u64 handle)
{
	struct kfd_criu_record_bo *bo;
	unsigned int i;

	for (i = 0; (bo = (void *)v2_nth(image, KFD_CRIU_RECORD_BO, i)); i++)
		if (bo->gpu_id == handle >> 32 && bo->handle == (__u32)handle)
			break;
	return bo;
}

/* Maps a BO of a restored process. Returns NULL on failure. */
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

static int restore(const struct kfd *kfd, const struct sharing *sharing)
{
	return kfd_v2_image_restore_with(kfd, &sharing->image, &sharing->memory,
					 sharing->num_memories);
}

/*
 * Returns bit 0 if the two BOs share memory, and bit 1 if the first BO has the contents of
 * the memory that the caller gave to RESTORE.
 */
static int restore_and_compare(struct kfd *kfd, void *data)
{
	const struct sharing *sharing = data;
	char *one, *two;
	int seen;

	if (restore(kfd, sharing))
		return 100;
	one = contents(kfd, sharing->first.handle);
	two = contents(kfd, sharing->second.handle);
	if (!one || !two)
		return 101;
	seen = strcmp(one, "given") ? 0 : 2;
	memcpy(one, "here", sizeof("here"));
	memcpy(two + KFD_PAGE, "there", sizeof("there"));
	if (!strcmp(two, "here") && !strcmp(one + KFD_PAGE, "there"))
		seen |= 1;
	return kfd_v2_resume(kfd) ? 102 : seen;
}

TEST_F(shared_bo, two_handles_of_one_memory_share_it_again)
{
	struct sharing *sharing = &self->sharing;
	const struct kfd_criu_record_bo *one, *two;

	ASSERT_EQ(0, kfd_bo_import(&self->kfd, 0, self->fd, SIZE,
				   &sharing->second));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &sharing->image));
	one = find_bo(&sharing->image, sharing->first.handle);
	two = find_bo(&sharing->image, sharing->second.handle);
	ASSERT_NE(NULL, one);
	ASSERT_NE(NULL, two);
	EXPECT_EQ(0, one->flags);
	EXPECT_EQ(KFD_CRIU_BO_IMPORTED, two->flags);
	EXPECT_EQ(one->identity, two->identity);
	/* The BO that is restored first allocates the memory, with the flags of both. */
	EXPECT_EQ(one->alloc_flags, two->alloc_flags);
	EXPECT_EQ(1, kfd_in_child(restore_and_compare, sharing));
}

TEST_F(shared_bo, two_devices_share_memory_again)
{
	struct sharing *sharing = &self->sharing;

	if (self->kfd.num_gpus < 2)
		SKIP(return, "one GPU");
	ASSERT_EQ(0, kfd_bo_import(&self->kfd, 1, self->fd, SIZE,
				   &sharing->second));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &sharing->image));
	ASSERT_NE(NULL, find_bo(&sharing->image, sharing->first.handle));
	EXPECT_EQ(find_bo(&sharing->image, sharing->first.handle)->identity,
		  find_bo(&sharing->image, sharing->second.handle)->identity);
	EXPECT_EQ(1, kfd_in_child(restore_and_compare, sharing));
}

TEST_F(shared_bo, bos_without_an_identity_do_not_share_memory)
{
	struct sharing *sharing = &self->sharing;

	ASSERT_EQ(0, kfd_bo_import(&self->kfd, 0, self->fd, SIZE,
				   &sharing->second));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &sharing->image));
	ASSERT_NE(NULL, find_bo(&sharing->image, sharing->first.handle));
	ASSERT_NE(NULL, find_bo(&sharing->image, sharing->second.handle));
	find_bo(&sharing->image, sharing->second.handle)->identity = 0;
	EXPECT_EQ(0, kfd_in_child(restore_and_compare, sharing));
	/* Identity 0 means that the memory is not shared, even if both BOs have it. */
	find_bo(&sharing->image, sharing->first.handle)->identity = 0;
	EXPECT_EQ(0, kfd_in_child(restore_and_compare, sharing));
}

/* CRIU restores two processes like this: the first one has created the memory already. */
TEST_F(shared_bo, memory_of_another_process_is_shared)
{
	struct sharing *sharing = &self->sharing;

	ASSERT_EQ(0, kfd_bo_import(&self->kfd, 0, self->fd, SIZE,
				   &sharing->second));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &sharing->image));
	ASSERT_NE(NULL, find_bo(&sharing->image, sharing->first.handle));
	memcpy(sharing->first.cpu, "given", sizeof("given"));
	sharing->memory.identity =
		find_bo(&sharing->image, sharing->first.handle)->identity;
	sharing->memory.dmabuf_fd = self->fd;
	sharing->num_memories = 1;
	EXPECT_EQ(3, kfd_in_child(restore_and_compare, sharing));
	EXPECT_STREQ("here", sharing->first.cpu);
}

/* The identities of two BOs of a child: an import of the test's first BO, and its own. */
struct other {
	int fd;
	__u64 *identities;	/* in memory that the child shares with the test */
};

static int store_identities(struct kfd *kfd, void *data)
{
	const struct other *other = data;
	struct kfd_bo import, own;
	struct kfd_v2_image image;

	if (kfd_acquire_vms(kfd) ||
	    kfd_bo_create(kfd, 0, KFD_BO_GTT, SIZE, &own) ||
	    kfd_bo_import(kfd, 0, other->fd, SIZE, &import) ||
	    kfd_v2_image_dump(kfd->fd, &image))
		return 1;
	if (!find_bo(&image, import.handle) || !find_bo(&image, own.handle))
		return 2;
	if (find_bo(&image, import.handle)->flags != KFD_CRIU_BO_IMPORTED)
		return 3;
	other->identities[0] = find_bo(&image, import.handle)->identity;
	other->identities[1] = find_bo(&image, own.handle)->identity;
	return kfd_v2_op(kfd->fd, KFD_CRIU_V2_UNPAUSE) ? 4 : 0;
}

/* CRIU compares identities to find out which memory two processes share. */
TEST_F(shared_bo, memory_of_two_processes_has_one_identity)
{
	struct sharing *sharing = &self->sharing;
	struct other other = { .fd = self->fd };
	__u64 mine;

	other.identities = shared_memory(KFD_PAGE);
	ASSERT_NE(MAP_FAILED, other.identities);
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &sharing->image));
	ASSERT_NE(NULL, find_bo(&sharing->image, sharing->first.handle));
	mine = find_bo(&sharing->image, sharing->first.handle)->identity;
	/* The test is still paused, so its identities are still valid. */
	ASSERT_EQ(0, kfd_in_child(store_identities, &other));
	EXPECT_NE(0, mine);
	EXPECT_EQ(mine, other.identities[0]);
	EXPECT_NE(mine, other.identities[1]);
	EXPECT_EQ(KFD_CRIU_STATE_PAUSED, kfd_v2_state(&self->kfd));
	munmap(other.identities, KFD_PAGE);
}

static int try_restore(struct kfd *kfd, void *data)
{
	return -restore(kfd, data);
}

TEST_F(shared_bo, memory_that_does_not_fit_is_refused)
{
	struct sharing *sharing = &self->sharing;
	struct kfd_criu_record_bo *bo;

	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &sharing->image));
	bo = find_bo(&sharing->image, sharing->first.handle);
	ASSERT_NE(NULL, bo);
	sharing->num_memories = 1;
	sharing->memory.dmabuf_fd = self->fd;
	EXPECT_EQ(EINVAL, kfd_in_child(try_restore, sharing));
	sharing->memory.identity = bo->identity;
	sharing->memory.reserved = 1;
	EXPECT_EQ(EINVAL, kfd_in_child(try_restore, sharing));
	sharing->memory.reserved = 0;
	sharing->memory.dmabuf_fd = -1;
	EXPECT_EQ(EBADF, kfd_in_child(try_restore, sharing));
	sharing->memory.dmabuf_fd = self->kfd.fd;
	EXPECT_EQ(EINVAL, kfd_in_child(try_restore, sharing));
	sharing->memory.dmabuf_fd = self->fd;
	bo->size += KFD_PAGE;
	EXPECT_EQ(EINVAL, kfd_in_child(try_restore, sharing));
	bo->size -= KFD_PAGE;
	bo->flags = 2;
	EXPECT_EQ(EINVAL, kfd_in_child(try_restore, sharing));
	bo->flags = 0;
	EXPECT_EQ(0, kfd_in_child(try_restore, sharing));
}

static int restore_with_two_memories(struct kfd *kfd, void *data)
{
	const struct sharing *sharing = data;
	const struct kfd_criu_v2_memory twice[] = { sharing->memory, sharing->memory };

	return -kfd_v2_image_restore_with(kfd, &sharing->image, twice, 2);
}

TEST_F(shared_bo, one_memory_given_twice_is_refused)
{
	struct sharing *sharing = &self->sharing;

	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &sharing->image));
	ASSERT_NE(NULL, find_bo(&sharing->image, sharing->first.handle));
	sharing->memory.identity =
		find_bo(&sharing->image, sharing->first.handle)->identity;
	sharing->memory.dmabuf_fd = self->fd;
	EXPECT_EQ(EEXIST, kfd_in_child(restore_with_two_memories, sharing));
}

/* Each import has a GEM handle of its own, so the driver deletes no other BO's handle with it. */
TEST_F(shared_bo, freeing_an_import_frees_no_other_handle)
{
	struct kfd_bo others[MANY];
	unsigned int i;
	int fd;

	ASSERT_EQ(0, kfd_bo_import(&self->kfd, 0, self->fd, SIZE,
				   &self->sharing.second));
	ASSERT_EQ(0, kfd_bo_free(&self->kfd, 0, &self->sharing.second));
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(0, kfd_bo_create(&self->kfd, 0, KFD_BO_VRAM, KFD_PAGE,
					   &others[i]));
	ASSERT_EQ(0, kfd_bo_free(&self->kfd, 0, &self->sharing.first));
	for (i = 0; i < MANY; i++) {
		EXPECT_EQ(0, kfd_bo_export(&self->kfd, others[i].handle, &fd))
			TH_LOG("BO %u", i);
		close(fd);
	}
}

KFD_TEST_MAIN
