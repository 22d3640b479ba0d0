// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * A BO whose memory was allocated for an object outside the image: RESTORE refuses it unless
 * the caller supplies the memory, or permits a private copy.
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
#include "lib/image_v1.h"
#include "lib/image_v2.h"
#include "lib/kfd.h"
#include "lib/queue.h"

#define SIZE	(2 * KFD_PAGE)
#define MAX_MEMORIES 2

/* What is restored, and how. */
struct imports {
	struct kfd_v1_image v1;
	struct kfd_v2_image v2;
	struct kfd_bo bo;
	struct kfd_bo second;	/* handle 0: there is only one */
	__u64 flags;
	struct kfd_criu_shared_memory memories[MAX_MEMORIES];
	unsigned int num_memories;
};

FIXTURE(imported_bo) {
	struct kfd kfd;
	struct imports imports;
	int drm;	/* a render node that amdkfd does not know */
	__u32 gem;	/* handle of a GEM object of it */
	int fd;		/* DMA-buf of the GEM object */
};

FIXTURE_SETUP(imported_bo)
{
	memset(&self->imports, 0, sizeof(self->imports));
	if (kfd_open(&self->kfd) == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_EQ(0, kfd_acquire_vms(&self->kfd));
	self->drm = gem_open_render_node(&self->kfd.gpus[0]);
	ASSERT_LE(0, self->drm);
	ASSERT_EQ(0, gem_create(self->drm, SIZE, &self->gem));
	ASSERT_EQ(0, gem_export(self->drm, self->gem, &self->fd));
	ASSERT_EQ(0, kfd_bo_import(&self->kfd, 0, self->fd, SIZE,
				   &self->imports.bo));
}

FIXTURE_TEARDOWN(imported_bo)
{
	free(self->imports.v2.data);
	close(self->fd);
	close(self->drm);
	kfd_close(&self->kfd);
}

static char *map_dmabuf(int fd)
{
	void *bytes = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return bytes == MAP_FAILED ? NULL : bytes;
}

static int restore(struct kfd *kfd, const struct imports *imports)
{
	struct kfd_criu_gpu gpus[KFD_MAX_GPUS] = {};
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_RESTORE,
		.flags = imports->flags,
		.data = (unsigned long)imports->v2.data,
		.data_size = imports->v2.size,
		.gpus = (unsigned long)gpus,
		.num_gpus = kfd->num_gpus,
		.memories = (unsigned long)imports->memories,
		.num_memories = imports->num_memories,
	};
	unsigned int i;

	for (i = 0; i < kfd->num_gpus; i++) {
		gpus[i].user_gpu_id = kfd->gpus[i].id;
		gpus[i].gpu_id = kfd->gpus[i].id;
		gpus[i].drm_fd = kfd->gpus[i].drm;
	}
	return kfd_v2(kfd->fd, &args);
}

/* Returns the errno of RESTORE, or an error above 200 if the state is not the right one. */
static int try_restore(struct kfd *kfd, void *data)
{
	const int r = restore(kfd, data);
	const int state = kfd_v2_state(kfd);

	if (state != (r ? KFD_CRIU_STATE_ABORTED : KFD_CRIU_STATE_RESTORED))
		return 201;
	return -r;
}

/* Returns the errno of RESTORE that fails before it changes anything. */
static int try_invalid_restore(struct kfd *kfd, void *data)
{
	const int r = restore(kfd, data);

	return kfd_v2_state(kfd) == KFD_CRIU_STATE_RUNNING ? -r : 201;
}

/*
 * Returns bit 0 if the BO has the contents that the test wrote into the GEM object, and bit
 * 1 if both BOs share their memory.
 */
static int restore_and_compare(struct kfd *kfd, void *data)
{
	const struct imports *imports = data;
	char *bytes, *second;
	int seen;

	if (restore(kfd, imports))
		return 100;
	bytes = kfd_v2_map_bo(kfd, SIZE, imports->bo.handle);
	if (!bytes)
		return 101;
	seen = !strcmp(bytes, "given");
	strcpy(bytes, "restored");
	if (imports->second.handle) {
		second = kfd_v2_map_bo(kfd, SIZE, imports->second.handle);
		if (!second)
			return 102;
		seen |= strcmp(second, "restored") ? 0 : 2;
	}
	return kfd_v2_resume(kfd) ? 103 : seen;
}

TEST_F(imported_bo, memory_of_a_gem_object_is_refused_without_it)
{
	struct imports *imports = &self->imports;
	char *bytes = map_dmabuf(self->fd);

	ASSERT_NE(NULL, bytes);
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &imports->v2));
	ASSERT_NE(NULL, v2_bo(&imports->v2, imports->bo.handle));
	EXPECT_EQ(KFD_CRIU_BO_IMPORTED,
		  v2_bo(&imports->v2, imports->bo.handle)->flags);
	EXPECT_EQ(EREMOTE, kfd_in_child(try_restore, imports));
	strcpy(bytes, "given");
	imports->flags = KFD_CRIU_PRIVATE_COPY;
	EXPECT_EQ(0, kfd_in_child(restore_and_compare, imports));
	EXPECT_STREQ("given", bytes);
	munmap(bytes, SIZE);
}

TEST_F(imported_bo, memory_that_is_supplied_is_shared)
{
	struct imports *imports = &self->imports;
	char *bytes = map_dmabuf(self->fd);

	ASSERT_NE(NULL, bytes);
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &imports->v2));
	ASSERT_NE(NULL, v2_bo(&imports->v2, imports->bo.handle));
	imports->memories[0].inode =
		v2_bo(&imports->v2, imports->bo.handle)->inode;
	imports->memories[0].dmabuf_fd = self->fd;
	imports->num_memories = 1;
	strcpy(bytes, "given");
	EXPECT_EQ(1, kfd_in_child(restore_and_compare, imports));
	EXPECT_STREQ("restored", bytes);
	/* The permission to copy does not cause a copy. */
	strcpy(bytes, "given");
	imports->flags = KFD_CRIU_PRIVATE_COPY;
	EXPECT_EQ(1, kfd_in_child(restore_and_compare, imports));
	EXPECT_STREQ("restored", bytes);
	munmap(bytes, SIZE);
}

/* The kernel does not know whether another process still has memory that a BO has imported. */
TEST_F(imported_bo, memory_of_a_bo_that_was_freed_is_refused)
{
	struct imports *imports = &self->imports;
	struct kfd_bo freed;
	int fd;

	ASSERT_EQ(0, kfd_bo_free(&self->kfd, 0, &imports->bo));
	ASSERT_EQ(0, kfd_bo_create(&self->kfd, 0, KFD_BO_GTT, SIZE, &freed));
	ASSERT_EQ(0, kfd_bo_export(&self->kfd, freed.handle, &fd));
	ASSERT_EQ(0, kfd_bo_import(&self->kfd, 0, fd, SIZE, &imports->bo));
	ASSERT_EQ(0, kfd_bo_free(&self->kfd, 0, &freed));
	close(fd);
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &imports->v2));
	EXPECT_EQ(EREMOTE, kfd_in_child(try_restore, imports));
	imports->flags = KFD_CRIU_PRIVATE_COPY;
	EXPECT_EQ(0, kfd_in_child(try_restore, imports));
}

TEST_F(imported_bo, two_imports_share_their_private_copy)
{
	struct imports *imports = &self->imports;

	ASSERT_EQ(0, kfd_bo_import(&self->kfd, 0, self->fd, SIZE,
				   &imports->second));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &imports->v2));
	EXPECT_EQ(EREMOTE, kfd_in_child(try_restore, imports));
	imports->flags = KFD_CRIU_PRIVATE_COPY;
	EXPECT_EQ(2, kfd_in_child(restore_and_compare, imports));
}

TEST_F(imported_bo, import_without_an_inode_is_refused)
{
	struct imports *imports = &self->imports;

	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &imports->v2));
	ASSERT_NE(NULL, v2_bo(&imports->v2, imports->bo.handle));
	v2_bo(&imports->v2, imports->bo.handle)->inode = 0;
	EXPECT_EQ(EREMOTE, kfd_in_child(try_restore, imports));
	imports->flags = KFD_CRIU_PRIVATE_COPY;
	EXPECT_EQ(0, kfd_in_child(try_restore, imports));
}

static int restore_v1(struct kfd *kfd, void *data)
{
	struct imports *imports = data;
	const int r = kfd_v1_image_restore(kfd, &imports->v1);

	if (r)
		return -r;
	return -kfd_v1_resume(kfd->fd, getpid());
}

/* The released interface has no way to share memory, and its callers rely on copies. */
TEST_F(imported_bo, version_1_makes_a_private_copy)
{
	struct imports *imports = &self->imports;

	ASSERT_EQ(0, kfd_v1_image_dump(self->kfd.fd, &imports->v1));
	EXPECT_EQ(0, kfd_in_child(restore_v1, imports));
	kfd_v1_image_close_files(&imports->v1);
	kfd_v1_image_free(&imports->v1);
}

/* A wrong inode number would leave the BO that the caller meant with memory of its own. */
TEST_F(imported_bo, memory_that_no_bo_uses_is_refused)
{
	struct imports *imports = &self->imports;
	__u64 inode;

	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &imports->v2));
	ASSERT_NE(NULL, v2_bo(&imports->v2, imports->bo.handle));
	inode = v2_bo(&imports->v2, imports->bo.handle)->inode;
	imports->flags = KFD_CRIU_PRIVATE_COPY;
	imports->memories[0].inode = inode;
	imports->memories[0].dmabuf_fd = self->fd;
	imports->memories[1].inode = inode + 1;
	imports->memories[1].dmabuf_fd = self->fd;
	imports->num_memories = 2;
	EXPECT_EQ(EINVAL, kfd_in_child(try_restore, imports));
	imports->num_memories = 1;
	EXPECT_EQ(0, kfd_in_child(try_restore, imports));
	imports->memories[0].inode = inode + 1;
	EXPECT_EQ(EINVAL, kfd_in_child(try_restore, imports));
}

TEST_F(imported_bo, flags_are_those_of_restore)
{
	struct kfd_criu_args args = {
		.op = KFD_CRIU_CMD_STATE,
		.flags = KFD_CRIU_PRIVATE_COPY,
	};
	struct imports *imports = &self->imports;

	EXPECT_EQ(-EINVAL, kfd_v2(self->kfd.fd, &args));
	args.op = KFD_CRIU_CMD_PAUSE;
	args.flags = KFD_CRIU_PAUSE_DRM_OBJECTS << 1;
	EXPECT_EQ(-EINVAL, kfd_v2(self->kfd.fd, &args));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &imports->v2));
	imports->flags = KFD_CRIU_PRIVATE_COPY | 2;
	EXPECT_EQ(EINVAL, kfd_in_child(try_invalid_restore, imports));
	imports->flags = 1ULL << 32;
	EXPECT_EQ(EINVAL, kfd_in_child(try_invalid_restore, imports));
}

/* Lets an SDMA queue write through both mappings of the BO and compares the memory. */
static int restore_and_write_twice(struct kfd *kfd, void *data)
{
	const struct imports *imports = data;
	struct kfd_queue queue;
	__u32 *words;

	/* Addresses that BOs of the image do not have. */
	kfd->next_va = 16ULL << 30;
	if (restore(kfd, imports))
		return 1;
	words = (__u32 *)kfd_v2_map_bo(kfd, SIZE, imports->bo.handle);
	if (!words || kfd_v2_resume(kfd) || kfd_queue_create(kfd, 0, &queue))
		return 2;
	kfd_sdma_write(&queue, imports->bo.va, 5);
	kfd_sdma_write(&queue, imports->bo.va + SIZE + 4, 6);
	if (!kfd_queue_runs(kfd, &queue))
		return 3;
	return words[0] == 5 && words[1] == 6 ? 0 : 4;
}

/* The GPU sees the memory of the ring of an AQL queue twice in a row. */
TEST_F(imported_bo, ring_of_an_aql_queue_is_shared_and_mapped_twice)
{
	struct imports *imports = &self->imports;
	__u64 inode;
	int fd;

	ASSERT_EQ(0, kfd_bo_free(&self->kfd, 0, &imports->bo));
	ASSERT_EQ(0, kfd_bo_create(&self->kfd, 0, KFD_BO_GTT |
				   KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM,
				   2 * SIZE, &imports->bo));
	ASSERT_EQ(0, kfd_bo_export(&self->kfd, imports->bo.handle, &fd));
	ASSERT_EQ(0, kfd_bo_import(&self->kfd, 0, fd, SIZE, &imports->second));
	ASSERT_EQ(0, kfd_v2_image_dump(self->kfd.fd, &imports->v2));
	ASSERT_NE(NULL, v2_bo(&imports->v2, imports->bo.handle));
	inode = v2_bo(&imports->v2, imports->bo.handle)->inode;
	EXPECT_EQ(file_inode(fd), inode);
	EXPECT_EQ(2, kfd_in_child(restore_and_compare, imports));
	EXPECT_EQ(0, kfd_in_child(restore_and_write_twice, imports));
	imports->memories[0].inode = inode;
	imports->memories[0].dmabuf_fd = fd;
	imports->num_memories = 1;
	strcpy(imports->bo.cpu, "given");
	EXPECT_EQ(3, kfd_in_child(restore_and_compare, imports));
	EXPECT_STREQ("restored", imports->bo.cpu);
	EXPECT_EQ(0, kfd_in_child(restore_and_write_twice, imports));
	EXPECT_EQ(5, *(__u32 *)imports->bo.cpu);
	close(fd);
}

KFD_TEST_MAIN
