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
#include "lib/gem.h"
#include "lib/image_v2.h"
#include "lib/kfd.h"

#define SIZE	(2 * KFD_PAGE)
#define MANY	64

struct sharing {
	struct kfd_v2_image image;
	struct kfd_bo first, second;	/* before the checkpoint */
	struct kfd_criu_shared_memory memory;
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
	one = kfd_v2_map_bo(kfd, SIZE, sharing->first.handle);
	two = kfd_v2_map_bo(kfd, SIZE, sharing->second.handle);
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
	one = v2_bo(&sharing->image, sharing->first.handle);
	two = v2_bo(&sharing->image, sharing->second.handle);
	ASSERT_NE(NULL, one);
	ASSERT_NE(NULL, two);
	EXPECT_EQ(0, one->flags);
	EXPECT_EQ(KFD_CRIU_BO_IMPORTED, two->flags);
	EXPECT_EQ(one->inode, two->inode);
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
	ASSERT_NE(NULL, v2_bo(&sharing->image, sharing->first.handle));
	EXPECT_EQ(v2_bo(&sharing->image, sharing->first.handle)->inode,
		  v2_bo(&sharing->image, sharing->second.handle)->inode);
	EXPECT_EQ(1, kfd_in_child(restore_and_compare, sharing));
}

TEST_F(shared_bo, bos_without_an_inode_do_not_share_memory)
{
	struct sharing *sharing = &self->sharing;
	struct kfd_criu_record_bo *one, *two;

	ASSERT_EQ(0, kfd_bo_import(&self->kfd, 0, self->fd, SIZE,
				   &sharing->second));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &sharing->image));
	one = v2_bo(&sharing->image, sharing->first.handle);
	two = v2_bo(&sharing->image, sharing->second.handle);
	ASSERT_NE(NULL, one);
	ASSERT_NE(NULL, two);
	two->inode = 0;
	two->flags = 0;
	EXPECT_EQ(0, kfd_in_child(restore_and_compare, sharing));
	/* Inode 0 means that the memory is not shared, even if both BOs have it. */
	one->inode = 0;
	EXPECT_EQ(0, kfd_in_child(restore_and_compare, sharing));
}

/* CRIU restores two processes like this: the first one has created the memory already. */
TEST_F(shared_bo, memory_of_another_process_is_shared)
{
	struct sharing *sharing = &self->sharing;

	ASSERT_EQ(0, kfd_bo_import(&self->kfd, 0, self->fd, SIZE,
				   &sharing->second));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &sharing->image));
	ASSERT_NE(NULL, v2_bo(&sharing->image, sharing->first.handle));
	memcpy(sharing->first.cpu, "given", sizeof("given"));
	sharing->memory.inode =
		v2_bo(&sharing->image, sharing->first.handle)->inode;
	sharing->memory.dmabuf_fd = self->fd;
	sharing->num_memories = 1;
	EXPECT_EQ(3, kfd_in_child(restore_and_compare, sharing));
	EXPECT_STREQ("here", sharing->first.cpu);
}

/* The inodes of two BOs of a child: an import of the test's first BO, and its own. */
struct other {
	int fd;
	__u64 *inodes;	/* in memory that the child shares with the test */
};

static int store_inodes(struct kfd *kfd, void *data)
{
	const struct other *other = data;
	struct kfd_bo import, own;
	struct kfd_v2_image image;

	if (kfd_acquire_vms(kfd) ||
	    kfd_bo_create(kfd, 0, KFD_BO_GTT, SIZE, &own) ||
	    kfd_bo_import(kfd, 0, other->fd, SIZE, &import) ||
	    kfd_v2_image_dump(kfd->fd, &image))
		return 1;
	if (!v2_bo(&image, import.handle) || !v2_bo(&image, own.handle))
		return 2;
	if (v2_bo(&image, import.handle)->flags != KFD_CRIU_BO_IMPORTED)
		return 3;
	other->inodes[0] = v2_bo(&image, import.handle)->inode;
	other->inodes[1] = v2_bo(&image, own.handle)->inode;
	return kfd_v2_unpause(kfd->fd, image.pause_fd) ? 4 : 0;
}

/* CRIU compares inodes to find out which memory two processes share. */
TEST_F(shared_bo, memory_of_two_processes_has_one_inode)
{
	struct sharing *sharing = &self->sharing;
	struct other other = { .fd = self->fd };
	__u64 mine;

	other.inodes = shared_memory(KFD_PAGE);
	ASSERT_NE(MAP_FAILED, other.inodes);
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &sharing->image));
	ASSERT_NE(NULL, v2_bo(&sharing->image, sharing->first.handle));
	mine = v2_bo(&sharing->image, sharing->first.handle)->inode;
	/* The test is still paused, so its inodes are still valid. */
	ASSERT_EQ(0, kfd_in_child(store_inodes, &other));
	EXPECT_NE(0, mine);
	EXPECT_EQ(file_inode(self->fd), mine);
	EXPECT_EQ(mine, other.inodes[0]);
	EXPECT_NE(mine, other.inodes[1]);
	EXPECT_EQ(KFD_CRIU_STATE_PAUSED, kfd_v2_state(&self->kfd));
	munmap(other.inodes, KFD_PAGE);
}

/* The inode of the DMA-buf that a descriptor was imported from, on a render node. */
static __u64 inode_of_gem_handle(int drm, int fd)
{
	__u32 handle;
	__u64 inode;
	int prime;

	if (gem_import(drm, fd, &handle) || gem_export(drm, handle, &prime))
		return 0;
	inode = file_inode(prime);
	close(prime);
	gem_close(drm, handle);
	return inode;
}

/* The inode in an image of the process now. */
static __u64 inode_in_image(const struct kfd *kfd, __u64 handle)
{
	const struct kfd_criu_record_bo *bo;
	struct kfd_v2_image image;
	__u64 inode = 0;

	if (kfd_v2_image_dump(kfd->fd, &image))
		return 0;
	bo = v2_bo(&image, handle);
	if (bo)
		inode = bo->inode;
	free(image.data);
	return kfd_v2_unpause(kfd->fd, image.pause_fd) ? 0 : inode;
}

/* User space can compare memory of /dev/kfd, of render nodes and of other drivers. */
TEST_F(shared_bo, inode_is_that_of_all_descriptors)
{
	struct kfd *kfd = &self->kfd;
	unsigned int i;
	struct kfd_bo bo;
	__u64 inode;
	int fd, drm, pause_fd;

	/* Nobody has exported this BO before the checkpoint. */
	ASSERT_EQ(0, kfd_bo_create(kfd, 0, KFD_BO_VRAM, SIZE, &bo));
	inode = inode_in_image(kfd, bo.handle);
	EXPECT_NE(0, inode);
	EXPECT_NE(file_inode(self->fd), inode);
	EXPECT_EQ(file_inode(self->fd),
		  inode_in_image(kfd, self->sharing.first.handle));
	/* A second checkpoint, and exports with each interface. */
	EXPECT_EQ(inode, inode_in_image(kfd, bo.handle));
	ASSERT_EQ(0, kfd_v2_pause(kfd->fd, &pause_fd));
	ASSERT_EQ(0, kfd_v2_export(kfd, pause_fd, bo.handle, &fd));
	EXPECT_EQ(inode, file_inode(fd));
	close(fd);
	ASSERT_EQ(0, kfd_v2_unpause(kfd->fd, pause_fd));
	ASSERT_EQ(0, kfd_bo_export(kfd, bo.handle, &fd));
	EXPECT_EQ(inode, file_inode(fd));
	for (i = 0; i < kfd->num_gpus; i++) {
		drm = gem_open_render_node(&kfd->gpus[i]);
		ASSERT_LE(0, drm);
		EXPECT_EQ(inode, inode_of_gem_handle(drm, fd)) TH_LOG("GPU %u", i);
		close(drm);
	}
	close(fd);
	EXPECT_EQ(inode, inode_in_image(kfd, bo.handle));
}

TEST_F(shared_bo, inode_is_equal_for_imports_of_every_gpu)
{
	struct kfd *kfd = &self->kfd;
	struct kfd_bo imports[KFD_MAX_GPUS];
	__u64 inode = file_inode(self->fd);
	unsigned int i;

	for (i = 0; i < kfd->num_gpus; i++)
		ASSERT_EQ(0, kfd_bo_import(kfd, i, self->fd, SIZE, &imports[i]));
	for (i = 0; i < kfd->num_gpus; i++)
		EXPECT_EQ(inode, inode_in_image(kfd, imports[i].handle));
	/* The memory stays the same when the BO that it was allocated for is freed. */
	ASSERT_EQ(0, kfd_bo_free(kfd, 0, &self->sharing.first));
	for (i = 0; i < kfd->num_gpus; i++)
		EXPECT_EQ(inode, inode_in_image(kfd, imports[i].handle));
}

TEST_F(shared_bo, inode_is_that_of_a_gem_object)
{
	struct kfd *kfd = &self->kfd;
	int drm = gem_open_render_node(&kfd->gpus[0]);
	struct kfd_bo bo;
	__u32 handle;
	__u64 inode;
	int fd;

	ASSERT_LE(0, drm);
	ASSERT_EQ(0, gem_create(drm, SIZE, &handle));
	ASSERT_EQ(0, gem_export(drm, handle, &fd));
	inode = file_inode(fd);
	ASSERT_EQ(0, kfd_bo_import(kfd, 0, fd, SIZE, &bo));
	close(fd);
	EXPECT_EQ(inode, inode_in_image(kfd, bo.handle));
	/* The program closes its handle, and exports the BO of amdkfd. */
	ASSERT_EQ(0, gem_close(drm, handle));
	EXPECT_EQ(inode, inode_in_image(kfd, bo.handle));
	ASSERT_EQ(0, kfd_bo_export(kfd, bo.handle, &fd));
	EXPECT_EQ(inode, file_inode(fd));
	EXPECT_EQ(inode, inode_of_gem_handle(drm, fd));
	close(fd);
	close(drm);
}

TEST_F(shared_bo, user_memory_has_no_inode)
{
	struct kfd_v2_image image;
	struct kfd_bo bo;

	ASSERT_EQ(0, kfd_bo_create(&self->kfd, 0, KFD_BO_USERPTR, SIZE, &bo));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &image));
	ASSERT_NE(NULL, v2_bo(&image, bo.handle));
	EXPECT_EQ(0, v2_bo(&image, bo.handle)->inode);
	free(image.data);
	EXPECT_EQ(0, kfd_v2_unpause(self->kfd.fd, image.pause_fd));
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
	bo = v2_bo(&sharing->image, sharing->first.handle);
	ASSERT_NE(NULL, bo);
	sharing->num_memories = 1;
	sharing->memory.dmabuf_fd = self->fd;
	EXPECT_EQ(EINVAL, kfd_in_child(try_restore, sharing));
	sharing->memory.inode = bo->inode;
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
	const struct kfd_criu_shared_memory twice[] = { sharing->memory, sharing->memory };

	return -kfd_v2_image_restore_with(kfd, &sharing->image, twice, 2);
}

TEST_F(shared_bo, one_memory_given_twice_is_refused)
{
	struct sharing *sharing = &self->sharing;

	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &sharing->image));
	ASSERT_NE(NULL, v2_bo(&sharing->image, sharing->first.handle));
	sharing->memory.inode =
		v2_bo(&sharing->image, sharing->first.handle)->inode;
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
