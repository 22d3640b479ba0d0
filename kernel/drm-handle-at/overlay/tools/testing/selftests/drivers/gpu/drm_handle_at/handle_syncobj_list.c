// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The list of sync objects has all handles of the file and no others, and tells which sync
 * objects a new one could not replace.
 *
 * Runs: once
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <sys/eventfd.h>
#include "../../../kselftest_harness.h"
#include "lib/drm.h"

#define HANDLE		77
#define OTHER		78
#define MANY		3000
#define PATTERN		0xa5
/* An address that cannot be written. */
#define BAD_POINTER	((void *)8)
#define NOBODY		65534

FIXTURE(handle_syncobj_list) {
	int drm, peer;
	struct drm_syncobj_list_entry entries[MANY + 1];
};

FIXTURE_SETUP(handle_syncobj_list)
{
	self->drm = drm_open("amdgpu", DRM_RENDER_NODE);
	self->peer = drm_open("amdgpu", DRM_RENDER_NODE);
	if (self->drm == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_LE(0, self->drm);
	ASSERT_LE(0, self->peer);
	memset(self->entries, PATTERN, sizeof(self->entries));
}

FIXTURE_TEARDOWN(handle_syncobj_list)
{
	close(self->drm);
	close(self->peer);
}

TEST_F(handle_syncobj_list, all_handles_of_the_file_are_listed_in_order)
{
	const __u32 handles[] = { 1, HANDLE, OTHER, MAX_HANDLE };
	struct drm_syncobj_list_entry *entries = self->entries;
	int i;

	EXPECT_EQ(0, syncobj_list(self->drm, entries, MANY));
	ASSERT_EQ(0, syncobj_create_at(self->drm, 0, MAX_HANDLE));
	ASSERT_EQ(0, syncobj_create_at(self->drm, DRM_SYNCOBJ_CREATE_SIGNALED, OTHER));
	ASSERT_EQ(0, syncobj_create_at(self->drm, 0, 1));
	ASSERT_EQ(0, syncobj_create_at(self->drm, 0, HANDLE));
	ASSERT_EQ(0, syncobj_create_at(self->peer, 0, 2));
	ASSERT_EQ(4, syncobj_list(self->drm, entries, MANY));
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(handles[i], entries[i].handle);
		EXPECT_EQ(0, entries[i].flags);
	}
	ASSERT_EQ(1, syncobj_list(self->peer, entries, MANY));
	EXPECT_EQ(2, entries[0].handle);

	/* Handles that were destroyed are not listed, and all can be created again. */
	ASSERT_EQ(0, syncobj_destroy(self->drm, HANDLE));
	ASSERT_EQ(3, syncobj_list(self->drm, entries, MANY));
	EXPECT_EQ(OTHER, entries[1].handle);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, syncobj_destroy(self->drm, entries[i].handle));
		EXPECT_EQ(0, syncobj_create_at(self->drm, 0, entries[i].handle));
	}
	EXPECT_EQ(3, syncobj_list(self->drm, NULL, 0));
}

TEST_F(handle_syncobj_list, nothing_is_written_if_the_array_is_too_small)
{
	const unsigned char *bytes = (const unsigned char *)self->entries;

	EXPECT_EQ(0, syncobj_list(self->drm, NULL, 0));
	EXPECT_EQ(0, syncobj_list(self->drm, BAD_POINTER, MANY));
	ASSERT_EQ(0, syncobj_create_at(self->drm, 0, HANDLE));
	ASSERT_EQ(0, syncobj_create_at(self->drm, 0, OTHER));
	EXPECT_EQ(2, syncobj_list(self->drm, BAD_POINTER, 0));
	EXPECT_EQ(2, syncobj_list(self->drm, BAD_POINTER, 1));
	EXPECT_EQ(2, syncobj_list(self->drm, self->entries, 1));
	EXPECT_EQ(PATTERN, bytes[0]);

	/* Nothing is written behind the last one, either. */
	EXPECT_EQ(2, syncobj_list(self->drm, self->entries, 0xffffffff));
	EXPECT_EQ(OTHER, self->entries[1].handle);
	EXPECT_EQ(PATTERN, bytes[2 * sizeof(self->entries[0])]);
}

TEST_F(handle_syncobj_list, a_list_that_has_grown_is_listed_with_a_larger_array)
{
	struct drm_syncobj_list_entry *entries = self->entries;
	const unsigned char *bytes = (const unsigned char *)entries;
	int i;

	for (i = 1; i < MANY; i++)
		ASSERT_EQ(0, syncobj_create_at(self->drm, 0, i));
	ASSERT_EQ(MANY - 1, syncobj_list(self->drm, NULL, 0));
	ASSERT_EQ(0, syncobj_create_at(self->drm, 0, MANY));
	ASSERT_EQ(MANY, syncobj_list(self->drm, entries, MANY - 1));
	EXPECT_EQ(PATTERN, bytes[0]);
	ASSERT_EQ(MANY, syncobj_list(self->drm, entries, MANY));
	for (i = 0; i < MANY; i++)
		ASSERT_EQ(i + 1, entries[i].handle);
	EXPECT_EQ(PATTERN, bytes[MANY * sizeof(*entries)]);
}

TEST_F(handle_syncobj_list, wrong_arguments_are_refused)
{
	struct drm_syncobj_list args = {
		.entries = (unsigned long)self->entries,
		.count = MANY,
		.pad = 1,
	};

	ASSERT_EQ(0, syncobj_create_at(self->drm, 0, HANDLE));
	EXPECT_EQ(-EINVAL, drm_call(self->drm, DRM_IOCTL_SYNCOBJ_LIST, &args));
	args.pad = 1U << 31;
	EXPECT_EQ(-EINVAL, drm_call(self->drm, DRM_IOCTL_SYNCOBJ_LIST, &args));
	EXPECT_EQ(-EFAULT, syncobj_list(self->drm, BAD_POINTER, 1));
	EXPECT_EQ(-EFAULT, syncobj_list(self->drm, (void *)-8L, 1));
	EXPECT_EQ(PATTERN, *(const unsigned char *)self->entries);

	/* The file is all the caller needs. */
	ASSERT_EQ(0, seteuid(NOBODY));
	EXPECT_EQ(1, syncobj_list(self->drm, self->entries, 1));
	ASSERT_EQ(0, seteuid(0));
	EXPECT_EQ(HANDLE, self->entries[0].handle);
}

/* The flags of a handle, or ~0 if the list does not have it. */
static __u32 flags_of(int drm, __u32 handle)
{
	struct drm_syncobj_list_entry entries[8];
	int count, i;

	count = syncobj_list(drm, entries, 8);
	for (i = 0; i < count && i < 8; i++)
		if (entries[i].handle == handle)
			return entries[i].flags;
	return ~0U;
}

TEST_F(handle_syncobj_list, a_sync_object_with_other_users_is_shared)
{
	int fd;

	ASSERT_EQ(0, syncobj_create_at(self->drm, 0, HANDLE));
	EXPECT_EQ(0, flags_of(self->drm, HANDLE));
	ASSERT_EQ(0, syncobj_export(self->drm, HANDLE, &fd));
	EXPECT_EQ(DRM_SYNCOBJ_LIST_SHARED, flags_of(self->drm, HANDLE));

	/* Another handle of the file, without the descriptor. */
	ASSERT_EQ(0, syncobj_import_at(self->drm, fd, OTHER));
	ASSERT_EQ(0, close(fd));
	EXPECT_EQ(DRM_SYNCOBJ_LIST_SHARED, flags_of(self->drm, HANDLE));
	EXPECT_EQ(DRM_SYNCOBJ_LIST_SHARED, flags_of(self->drm, OTHER));
	ASSERT_EQ(0, syncobj_destroy(self->drm, HANDLE));
	EXPECT_EQ(0, flags_of(self->drm, OTHER));

	/* A handle of another file. */
	ASSERT_EQ(0, syncobj_export(self->drm, OTHER, &fd));
	ASSERT_EQ(0, syncobj_import_at(self->peer, fd, HANDLE));
	ASSERT_EQ(0, close(fd));
	EXPECT_EQ(DRM_SYNCOBJ_LIST_SHARED, flags_of(self->drm, OTHER));
	EXPECT_EQ(DRM_SYNCOBJ_LIST_SHARED, flags_of(self->peer, HANDLE));
	ASSERT_EQ(0, close(self->peer));
	self->peer = -1;
	EXPECT_EQ(0, flags_of(self->drm, OTHER));
}

static int signal_syncobj(int drm, __u32 handle)
{
	struct drm_syncobj_array args = {
		.handles = (unsigned long)&handle,
		.count_handles = 1,
	};

	return drm_call(drm, DRM_IOCTL_SYNCOBJ_SIGNAL, &args);
}

TEST_F(handle_syncobj_list, an_eventfd_that_waits_is_reported)
{
	const int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct drm_syncobj_eventfd args = { .handle = HANDLE, .fd = event };
	eventfd_t value;

	ASSERT_LE(0, event);
	ASSERT_EQ(0, syncobj_create_at(self->drm, 0, HANDLE));
	ASSERT_EQ(0, syncobj_create_at(self->drm, 0, OTHER));
	ASSERT_EQ(0, drm_call(self->drm, DRM_IOCTL_SYNCOBJ_EVENTFD, &args));
	EXPECT_EQ(DRM_SYNCOBJ_LIST_EVENTFD, flags_of(self->drm, HANDLE));
	EXPECT_EQ(0, flags_of(self->drm, OTHER));
	ASSERT_EQ(0, signal_syncobj(self->drm, HANDLE));
	EXPECT_EQ(0, flags_of(self->drm, HANDLE));
	EXPECT_EQ(0, eventfd_read(event, &value));
	close(event);
}

DRM_TEST_MAIN
