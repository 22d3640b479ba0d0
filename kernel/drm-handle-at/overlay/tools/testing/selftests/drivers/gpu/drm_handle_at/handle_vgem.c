// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * vgem has no code for handles that the caller chooses, so what works here works with every
 * driver that uses the functions of the DRM core. Its objects are dumb buffers. Loads the
 * module vgem, and unloads it.
 *
 * Runs: once
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include "../../../kselftest_harness.h"
#include "lib/drm.h"

#define WIDTH	64
#define HEIGHT	64
#define SIZE	(WIDTH * HEIGHT * 4)
#define HANDLE	77
#define OTHER	78
#define PATTERN	0x5a

FIXTURE(handle_vgem) {
	int drm, peer;
	bool is_loaded;	/* by the test */
	__u32 object;	/* of drm */
	int fd;		/* its DMA-buf */
};

static int create_dumb(int drm, __u32 *handle)
{
	struct drm_mode_create_dumb args = { .width = WIDTH, .height = HEIGHT, .bpp = 32 };
	const int r = drm_call(drm, DRM_IOCTL_MODE_CREATE_DUMB, &args);

	*handle = args.handle;
	return r;
}

static unsigned char *map_dumb(int drm, __u32 handle)
{
	struct drm_mode_map_dumb args = { .handle = handle };

	if (drm_call(drm, DRM_IOCTL_MODE_MAP_DUMB, &args))
		return MAP_FAILED;
	return mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, drm, args.offset);
}

FIXTURE_SETUP(handle_vgem)
{
	self->fd = -1;
	self->drm = drm_open("vgem", DRM_PRIMARY_NODE);
	if (self->drm == -ENODEV) {
		if (system("modprobe vgem"))
			SKIP(return, "no module vgem");
		self->is_loaded = true;
		self->drm = drm_open("vgem", DRM_PRIMARY_NODE);
	}
	self->peer = drm_open("vgem", DRM_PRIMARY_NODE);
	ASSERT_LE(0, self->drm);
	ASSERT_LE(0, self->peer);
	ASSERT_EQ(0, create_dumb(self->drm, &self->object));
	ASSERT_EQ(0, gem_export(self->drm, self->object, &self->fd));
}

FIXTURE_TEARDOWN(handle_vgem)
{
	if (self->fd >= 0)
		close(self->fd);
	close(self->drm);
	close(self->peer);
	if (self->is_loaded)
		EXPECT_EQ(0, system("modprobe -r vgem"));
}

TEST_F(handle_vgem, the_capability_names_imports_only)
{
	EXPECT_EQ(DRM_GEM_HANDLE_AT_CAP_IMPORT, drm_cap(self->drm, DRM_CAP_GEM_HANDLE_AT));
}

/* It has none, and a list of none would be wrong if the kernel could not tell. */
TEST_F(handle_vgem, a_driver_without_sync_objects_lists_none)
{
	EXPECT_EQ(-EOPNOTSUPP, syncobj_list(self->drm, NULL, 0));
}

TEST_F(handle_vgem, an_import_has_its_handle)
{
	unsigned char *here, *there;
	__u32 again;

	ASSERT_EQ(0, gem_import_at(self->peer, self->fd, HANDLE));
	EXPECT_EQ(file_inode(self->fd), gem_inode(self->peer, HANDLE));
	here = map_dumb(self->drm, self->object);
	there = map_dumb(self->peer, HANDLE);
	ASSERT_NE(MAP_FAILED, (void *)here);
	ASSERT_NE(MAP_FAILED, (void *)there);
	here[SIZE - 1] = PATTERN;
	EXPECT_EQ(PATTERN, there[SIZE - 1]);
	munmap(here, SIZE);
	munmap(there, SIZE);
	EXPECT_EQ(0, gem_import(self->peer, self->fd, &again));
	EXPECT_EQ(HANDLE, again);
	EXPECT_EQ(0, gem_close(self->peer, HANDLE));
	EXPECT_EQ(0, gem_import_at(self->peer, self->fd, MAX_HANDLE));
}

TEST_F(handle_vgem, an_import_that_cannot_be_is_refused)
{
	struct drm_prime_handle_at args = { .handle = OTHER, .fd = self->fd, .flags = 1 };
	__u32 taken;

	EXPECT_EQ(-EBUSY, gem_import_at(self->drm, self->fd, HANDLE));
	EXPECT_EQ(-EEXIST, gem_import_at(self->drm, self->fd, self->object));
	EXPECT_EQ(-EINVAL, gem_import_at(self->peer, self->fd, 0));
	EXPECT_EQ(-EINVAL, gem_import_at(self->peer, self->fd, MAX_HANDLE + 1U));
	EXPECT_EQ(-EINVAL, drm_call(self->peer, DRM_IOCTL_PRIME_FD_TO_HANDLE_AT, &args));
	args.flags = 0;
	args.pad = 1;
	EXPECT_EQ(-EINVAL, drm_call(self->peer, DRM_IOCTL_PRIME_FD_TO_HANDLE_AT, &args));
	ASSERT_EQ(0, create_dumb(self->peer, &taken));
	EXPECT_EQ(-EEXIST, gem_import_at(self->peer, self->fd, taken));
	/* None of these has left a handle. */
	ASSERT_EQ(0, gem_import_at(self->peer, self->fd, HANDLE));
	EXPECT_EQ(-EBUSY, gem_import_at(self->peer, self->fd, OTHER));
	EXPECT_EQ(-EINVAL, gem_close(self->peer, OTHER));
}

TEST_F(handle_vgem, amdgpu_imports_its_object_at_a_handle)
{
	struct drm_amdgpu_gem_list_handles_entry handles[MAX_LISTED];
	const int amdgpu = drm_open("amdgpu", DRM_RENDER_NODE);

	if (amdgpu == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_LE(0, amdgpu);
	ASSERT_EQ(0, gem_import_at(amdgpu, self->fd, HANDLE));
	EXPECT_EQ(-EBUSY, gem_import_at(amdgpu, self->fd, OTHER));
	EXPECT_EQ(file_inode(self->fd), gem_inode(amdgpu, HANDLE));
	ASSERT_EQ(1, gem_list(amdgpu, handles));
	EXPECT_EQ(HANDLE, handles[0].gem_handle);
	EXPECT_EQ(AMDGPU_GEM_LIST_HANDLES_FLAG_IS_IMPORT, handles[0].flags);
	EXPECT_EQ(SIZE, handles[0].size);
	EXPECT_EQ(0, gem_close(amdgpu, HANDLE));
	EXPECT_EQ(0, gem_import_at(amdgpu, self->fd, OTHER));
	close(amdgpu);
}

TEST_F(handle_vgem, it_imports_an_object_of_amdgpu_at_a_handle)
{
	const int amdgpu = drm_open("amdgpu", DRM_RENDER_NODE);
	int fd;

	if (amdgpu == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_LE(0, amdgpu);
	ASSERT_EQ(0, gem_create_at(amdgpu, SIZE, HANDLE));
	ASSERT_EQ(0, gem_export(amdgpu, HANDLE, &fd));
	ASSERT_EQ(0, gem_import_at(self->peer, fd, OTHER));
	EXPECT_EQ(gem_inode(amdgpu, HANDLE), gem_inode(self->peer, OTHER));
	EXPECT_EQ(-EBUSY, gem_import_at(self->peer, fd, HANDLE));
	/* The object lives as long as one of the drivers has a handle. */
	ASSERT_EQ(0, gem_close(amdgpu, HANDLE));
	close(amdgpu);
	EXPECT_EQ(file_inode(fd), gem_inode(self->peer, OTHER));
	EXPECT_EQ(0, gem_close(self->peer, OTHER));
	close(fd);
}

DRM_TEST_MAIN
