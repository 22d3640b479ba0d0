// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Objects of an amdgpu render node are created and imported at the numbers that the caller
 * chooses, and each number that cannot be had is refused and leaves nothing.
 *
 * Runs: per-chip
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include "../../../kselftest_harness.h"
#include "lib/drm.h"

#define SIZE		(2 * DRM_PAGE)
#define HANDLE		77
#define OTHER		78
/* AMDGPU_VM_MAX_NUM_CTX - 1 */
#define MAX_CONTEXT	4095
#define PATTERN		0x5a
/* The array of its pages would exceed 2 GiB, which the kernel allocates for nobody. */
#define HUGE_SIZE	(1ULL << 39)
/* struct drm_amdgpu_gem_create_in before it had a handle. */
#define OLD_CREATE_SIZE	32

/* Handles that no object can have. */
static const __u32 no_handles[] = { MAX_HANDLE + 1U, 0x80000000, 0xfffffffe, 0xffffffff };

FIXTURE(handle_amdgpu) {
	int drm, peer;	/* two files of the same GPU */
};

FIXTURE_SETUP(handle_amdgpu)
{
	self->drm = drm_open("amdgpu", DRM_RENDER_NODE);
	self->peer = drm_open("amdgpu", DRM_RENDER_NODE);
	if (self->drm == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_LE(0, self->drm);
	ASSERT_LE(0, self->peer);
}

FIXTURE_TEARDOWN(handle_amdgpu)
{
	close(self->drm);
	close(self->peer);
}

/* User space finds the flags and operations of amdgpu by trying. */
TEST_F(handle_amdgpu, the_capability_names_imports_only)
{
	EXPECT_EQ(DRM_GEM_HANDLE_AT_CAP_IMPORT, drm_cap(self->drm, DRM_CAP_GEM_HANDLE_AT));
}

TEST_F(handle_amdgpu, an_object_is_created_at_its_handle)
{
	__u64 first;
	__u32 any;

	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, HANDLE));
	first = gem_inode(self->drm, HANDLE);
	EXPECT_NE(0, first);
	EXPECT_EQ(0, gem_create_at(self->drm, SIZE, 1));
	EXPECT_EQ(0, gem_create_at(self->drm, SIZE, MAX_HANDLE));
	/* Without a handle the kernel takes the lowest that is free. */
	EXPECT_EQ(0, gem_create(self->drm, SIZE, &any));
	EXPECT_EQ(2, any);
	EXPECT_EQ(4, gem_count(self->drm));
	EXPECT_EQ(first, gem_inode(self->drm, HANDLE));
	ASSERT_EQ(0, gem_close(self->drm, HANDLE));
	EXPECT_EQ(0, gem_create_at(self->drm, SIZE, HANDLE));
	EXPECT_NE(first, gem_inode(self->drm, HANDLE));
	EXPECT_EQ(0, gem_close(self->drm, MAX_HANDLE));
	EXPECT_EQ(-EINVAL, gem_close(self->drm, MAX_HANDLE));
}

TEST_F(handle_amdgpu, an_object_is_not_created_at_a_taken_handle)
{
	__u64 inode;

	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, HANDLE));
	inode = gem_inode(self->drm, HANDLE);
	EXPECT_EQ(-EEXIST, gem_create_at(self->drm, SIZE, HANDLE));
	EXPECT_EQ(inode, gem_inode(self->drm, HANDLE));
	EXPECT_EQ(1, gem_count(self->drm));
}

TEST_F(handle_amdgpu, an_object_is_not_created_where_no_handle_can_be)
{
	unsigned int i;

	for (i = 0; i < sizeof(no_handles) / sizeof(*no_handles); i++)
		EXPECT_EQ(-EINVAL, gem_create_at(self->drm, SIZE, no_handles[i]));
	EXPECT_EQ(-EINVAL, gem_create_at(self->drm, SIZE, 0));
	EXPECT_EQ(0, gem_count(self->drm));
}

TEST_F(handle_amdgpu, files_have_handles_of_their_own)
{
	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, HANDLE));
	EXPECT_EQ(-EINVAL, gem_close(self->peer, HANDLE));
	ASSERT_EQ(0, gem_create_at(self->peer, SIZE, HANDLE));
	EXPECT_NE(gem_inode(self->drm, HANDLE), gem_inode(self->peer, HANDLE));
	ASSERT_EQ(0, gem_close(self->peer, HANDLE));
	EXPECT_NE(0, gem_inode(self->drm, HANDLE));
}

TEST_F(handle_amdgpu, padding_of_gem_create_is_refused)
{
	union drm_amdgpu_gem_create args = {
		.in = {
			.bo_size = SIZE,
			.domains = AMDGPU_GEM_DOMAIN_GTT,
			.domain_flags = AMDGPU_GEM_CREATE_AT_HANDLE,
			.handle = HANDLE,
			.pad = 1,
		},
	};

	EXPECT_EQ(-EINVAL, drm_call(self->drm, DRM_IOCTL_AMDGPU_GEM_CREATE, &args));
	/* The flag next to it is as unknown as ever. */
	args.in.pad = 0;
	args.in.domain_flags = AMDGPU_GEM_CREATE_AT_HANDLE >> 1;
	EXPECT_EQ(-EINVAL, drm_call(self->drm, DRM_IOCTL_AMDGPU_GEM_CREATE, &args));
	EXPECT_EQ(0, gem_count(self->drm));
}

/* Was compiled with the new header and does not clear the argument. */
TEST_F(handle_amdgpu, without_the_flag_gem_create_ignores_the_handle)
{
	const union drm_amdgpu_gem_create garbage = {
		.in = {
			.bo_size = SIZE,
			.domains = AMDGPU_GEM_DOMAIN_GTT,
			.pad = 0xdeadbeef,
		},
	};
	union drm_amdgpu_gem_create args;
	unsigned int i;

	/* 1 is taken from the second call on. */
	for (i = 1; i <= 2; i++) {
		args = garbage;
		args.in.handle = 1;
		ASSERT_EQ(0, drm_call(self->drm, DRM_IOCTL_AMDGPU_GEM_CREATE, &args));
		EXPECT_EQ(i, args.out.handle);
	}
	for (i = 0; i < sizeof(no_handles) / sizeof(*no_handles); i++) {
		args = garbage;
		args.in.handle = no_handles[i];
		ASSERT_EQ(0, drm_call(self->drm, DRM_IOCTL_AMDGPU_GEM_CREATE, &args));
		EXPECT_EQ(3 + i, args.out.handle);
	}
}

/* It does not know the handle, and has something else behind its argument. */
TEST_F(handle_amdgpu, an_old_program_gets_any_handle)
{
	union drm_amdgpu_gem_create args = {
		.in = {
			.bo_size = SIZE,
			.domains = AMDGPU_GEM_DOMAIN_GTT,
			.handle = HANDLE,
			.pad = 0xdeadbeef,
		},
	};

	ASSERT_EQ(OLD_CREATE_SIZE, offsetof(struct drm_amdgpu_gem_create_in, handle));
	ASSERT_EQ(0, drm_call(self->drm, _IOC(_IOC_READ | _IOC_WRITE, DRM_IOCTL_BASE,
					      DRM_COMMAND_BASE + DRM_AMDGPU_GEM_CREATE,
					      OLD_CREATE_SIZE), &args));
	EXPECT_EQ(1, args.out.handle);
	EXPECT_EQ(0xdeadbeef, args.in.pad);

	/* With the flag its argument lacks the handle. */
	memset(&args, 0, sizeof(args));
	args.in.bo_size = SIZE;
	args.in.domains = AMDGPU_GEM_DOMAIN_GTT;
	args.in.domain_flags = AMDGPU_GEM_CREATE_AT_HANDLE;
	args.in.handle = HANDLE;
	EXPECT_EQ(-EINVAL, drm_call(self->drm, _IOC(_IOC_READ | _IOC_WRITE, DRM_IOCTL_BASE,
						    DRM_COMMAND_BASE + DRM_AMDGPU_GEM_CREATE,
						    OLD_CREATE_SIZE), &args));
}

/* The buffer of an old program has no member for the handle. */
TEST_F(handle_amdgpu, create_info_ends_before_the_handle)
{
	unsigned char info[2 * OLD_CREATE_SIZE];
	struct drm_amdgpu_gem_op args = {
		.handle = HANDLE,
		.op = AMDGPU_GEM_OP_GET_GEM_CREATE_INFO,
		.value = (unsigned long)info,
	};
	unsigned int i;
	__u64 size, flags;

	memset(info, PATTERN, sizeof(info));
	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, HANDLE));
	ASSERT_EQ(0, drm_call(self->drm, DRM_IOCTL_AMDGPU_GEM_OP, &args));
	memcpy(&size, info, sizeof(size));
	EXPECT_EQ(SIZE, size);
	/* No object has the flag with which it was created at a handle. */
	memcpy(&flags, info + offsetof(struct drm_amdgpu_gem_create_in, domain_flags),
	       sizeof(flags));
	EXPECT_EQ(0, flags & AMDGPU_GEM_CREATE_AT_HANDLE);
	for (i = OLD_CREATE_SIZE; i < sizeof(info); i++)
		EXPECT_EQ(PATTERN, info[i]);
}

TEST_F(handle_amdgpu, an_object_of_user_memory_is_created_at_its_handle)
{
	struct drm_amdgpu_gem_userptr args = { .size = SIZE };
	void *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int i;

	ASSERT_NE(MAP_FAILED, memory);
	EXPECT_EQ(-EINVAL, userptr_create_at(self->drm, memory, SIZE, 0));
	for (i = 0; i < sizeof(no_handles) / sizeof(*no_handles); i++)
		EXPECT_EQ(-EINVAL, userptr_create_at(self->drm, memory, SIZE, no_handles[i]));
	EXPECT_EQ(0, gem_count(self->drm));
	ASSERT_EQ(0, userptr_create_at(self->drm, memory, SIZE, HANDLE));
	EXPECT_EQ(-EEXIST, userptr_create_at(self->drm, memory, SIZE, HANDLE));
	EXPECT_EQ(-EEXIST, gem_create_at(self->drm, SIZE, HANDLE));
	EXPECT_EQ(1, gem_count(self->drm));

	/* Without the flag the member is what the kernel returns. */
	args.addr = (unsigned long)memory;
	args.flags = AMDGPU_GEM_USERPTR_ANONONLY | AMDGPU_GEM_USERPTR_REGISTER;
	args.handle = HANDLE;
	EXPECT_EQ(0, drm_call(self->drm, DRM_IOCTL_AMDGPU_GEM_USERPTR, &args));
	EXPECT_EQ(1, args.handle);
	args.flags |= AMDGPU_GEM_USERPTR_AT_HANDLE << 1;
	EXPECT_EQ(-EINVAL, drm_call(self->drm, DRM_IOCTL_AMDGPU_GEM_USERPTR, &args));
	EXPECT_EQ(0, gem_close(self->drm, 1));
	EXPECT_EQ(0, gem_close(self->drm, HANDLE));
	munmap(memory, SIZE);
}

/* No kernel warning may appear. */
TEST_F(handle_amdgpu, an_object_that_is_too_large_is_refused)
{
	union drm_amdgpu_gem_create create = {
		.in = {
			.bo_size = HUGE_SIZE,
			.alignment = DRM_PAGE,
			.domains = AMDGPU_GEM_DOMAIN_CPU,
		},
	};
	struct drm_amdgpu_gem_userptr userptr = {
		.addr = DRM_PAGE,
		.size = HUGE_SIZE,
		.flags = AMDGPU_GEM_USERPTR_ANONONLY | AMDGPU_GEM_USERPTR_REGISTER,
	};

	EXPECT_EQ(-ENOMEM, drm_call(self->drm, DRM_IOCTL_AMDGPU_GEM_USERPTR, &userptr));
	EXPECT_EQ(-ENOMEM, drm_call(self->drm, DRM_IOCTL_AMDGPU_GEM_CREATE, &create));
	EXPECT_EQ(0, gem_count(self->drm));
}

TEST_F(handle_amdgpu, an_import_has_its_handle)
{
	unsigned char *here, *there;
	__u32 again;
	int fd;

	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, HANDLE));
	ASSERT_EQ(0, gem_export(self->drm, HANDLE, &fd));
	ASSERT_EQ(0, gem_import_at(self->peer, fd, OTHER));
	EXPECT_EQ(1, gem_count(self->peer));
	EXPECT_EQ(file_inode(fd), gem_inode(self->drm, HANDLE));
	EXPECT_EQ(file_inode(fd), gem_inode(self->peer, OTHER));

	here = gem_mmap(self->drm, HANDLE, SIZE);
	there = gem_mmap(self->peer, OTHER, SIZE);
	ASSERT_NE(MAP_FAILED, (void *)here);
	ASSERT_NE(MAP_FAILED, (void *)there);
	here[DRM_PAGE] = PATTERN;
	EXPECT_EQ(PATTERN, there[DRM_PAGE]);
	munmap(here, SIZE);
	munmap(there, SIZE);

	/* The ordinary import knows it. */
	EXPECT_EQ(0, gem_import(self->peer, fd, &again));
	EXPECT_EQ(OTHER, again);

	/* The object survives the file that has created it, at another handle too. */
	ASSERT_EQ(0, gem_close(self->drm, HANDLE));
	EXPECT_EQ(0, gem_close(self->peer, OTHER));
	ASSERT_EQ(0, gem_import_at(self->peer, fd, MAX_HANDLE));
	EXPECT_EQ(file_inode(fd), gem_inode(self->peer, MAX_HANDLE));
	ASSERT_EQ(0, gem_import_at(self->drm, fd, 1));
	EXPECT_EQ(file_inode(fd), gem_inode(self->drm, 1));
	close(fd);
}

TEST_F(handle_amdgpu, an_object_has_one_handle_in_a_file)
{
	int fd;

	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, HANDLE));
	ASSERT_EQ(0, gem_export(self->drm, HANDLE, &fd));
	EXPECT_EQ(-EBUSY, gem_import_at(self->drm, fd, OTHER));
	EXPECT_EQ(-EEXIST, gem_import_at(self->drm, fd, HANDLE));
	EXPECT_EQ(1, gem_count(self->drm));

	ASSERT_EQ(0, gem_import_at(self->peer, fd, HANDLE));
	EXPECT_EQ(-EBUSY, gem_import_at(self->peer, fd, OTHER));
	EXPECT_EQ(-EEXIST, gem_import_at(self->peer, fd, HANDLE));
	EXPECT_EQ(1, gem_count(self->peer));
	ASSERT_EQ(0, gem_close(self->peer, HANDLE));
	EXPECT_EQ(0, gem_import_at(self->peer, fd, OTHER));
	EXPECT_EQ(1, gem_count(self->peer));
	close(fd);
}

TEST_F(handle_amdgpu, an_import_at_a_handle_that_cannot_be_is_refused)
{
	struct drm_prime_handle_at args = { .handle = OTHER };
	int null = open("/dev/null", O_RDWR);
	unsigned int i;
	int fd;

	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, HANDLE));
	ASSERT_EQ(0, gem_export(self->drm, HANDLE, &fd));
	ASSERT_EQ(0, gem_create_at(self->peer, SIZE, HANDLE));
	EXPECT_EQ(-EEXIST, gem_import_at(self->peer, fd, HANDLE));
	EXPECT_EQ(-EINVAL, gem_import_at(self->peer, fd, 0));
	for (i = 0; i < sizeof(no_handles) / sizeof(*no_handles); i++)
		EXPECT_EQ(-EINVAL, gem_import_at(self->peer, fd, no_handles[i]));
	EXPECT_EQ(-EBADF, gem_import_at(self->peer, -1, OTHER));
	EXPECT_EQ(-EINVAL, gem_import_at(self->peer, null, OTHER));
	EXPECT_EQ(-EINVAL, gem_import_at(self->peer, self->drm, OTHER));

	args.fd = fd;
	args.flags = 1;
	EXPECT_EQ(-EINVAL, drm_call(self->peer, DRM_IOCTL_PRIME_FD_TO_HANDLE_AT, &args));
	args.flags = 0;
	args.pad = 1;
	EXPECT_EQ(-EINVAL, drm_call(self->peer, DRM_IOCTL_PRIME_FD_TO_HANDLE_AT, &args));
	args.pad = 0;
	EXPECT_EQ(1, gem_count(self->peer));
	EXPECT_EQ(0, drm_call(self->peer, DRM_IOCTL_PRIME_FD_TO_HANDLE_AT, &args));
	EXPECT_EQ(2, gem_count(self->peer));
	close(null);
	close(fd);
}

/* Otherwise such a call would import the object and return EFAULT. */
TEST_F(handle_amdgpu, an_import_at_a_handle_writes_no_argument)
{
	struct drm_prime_handle_at *args = mmap(NULL, DRM_PAGE, PROT_READ | PROT_WRITE,
						MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd;

	ASSERT_NE(MAP_FAILED, (void *)args);
	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, HANDLE));
	ASSERT_EQ(0, gem_export(self->drm, HANDLE, &fd));
	args->handle = OTHER;
	args->fd = fd;
	ASSERT_EQ(0, mprotect(args, DRM_PAGE, PROT_READ));
	EXPECT_EQ(0, drm_call(self->peer, DRM_IOCTL_PRIME_FD_TO_HANDLE_AT, args));
	EXPECT_EQ(1, gem_count(self->peer));
	EXPECT_EQ(0, gem_close(self->peer, OTHER));
	/* The kernel does not write even if the caller's request says that it may. */
	EXPECT_EQ(0, drm_call(self->peer, _IOC(_IOC_READ | _IOC_WRITE, DRM_IOCTL_BASE,
					       _IOC_NR(DRM_IOCTL_PRIME_FD_TO_HANDLE_AT),
					       sizeof(*args)), args));
	EXPECT_EQ(1, gem_count(self->peer));
	EXPECT_EQ(file_inode(fd), gem_inode(self->peer, OTHER));
	munmap(args, DRM_PAGE);
	close(fd);
}

TEST_F(handle_amdgpu, a_context_has_its_id)
{
	union drm_amdgpu_ctx args = { .in.ctx_id = OTHER };
	__u32 any;

	ASSERT_EQ(0, context_create_at(self->drm, HANDLE));
	EXPECT_EQ(-EEXIST, context_create_at(self->drm, HANDLE));
	EXPECT_EQ(0, context_create_at(self->peer, HANDLE));
	EXPECT_EQ(0, context_create_at(self->drm, MAX_CONTEXT));
	EXPECT_EQ(-EINVAL, context_create_at(self->drm, 0));
	EXPECT_EQ(-EINVAL, context_create_at(self->drm, MAX_CONTEXT + 1));
	EXPECT_EQ(-EINVAL, context_create_at(self->drm, 0xffffffff));

	args.in.op = AMDGPU_CTX_OP_ALLOC_AT;
	args.in.flags = 1;
	EXPECT_EQ(-EINVAL, drm_call(self->drm, DRM_IOCTL_AMDGPU_CTX, &args));
	args.in.flags = 0;
	args.in.priority = 1;
	EXPECT_EQ(-EINVAL, drm_call(self->drm, DRM_IOCTL_AMDGPU_CTX, &args));
	args.in.priority = AMDGPU_CTX_PRIORITY_UNSET;
	EXPECT_EQ(-EINVAL, drm_call(self->drm, DRM_IOCTL_AMDGPU_CTX, &args));
	args.in.priority = AMDGPU_CTX_PRIORITY_LOW;
	EXPECT_EQ(0, drm_call(self->drm, DRM_IOCTL_AMDGPU_CTX, &args));
	EXPECT_EQ(OTHER, args.out.alloc.ctx_id);
	EXPECT_EQ(0, args.out.alloc._pad);

	EXPECT_EQ(0, context_create(self->drm, &any));
	EXPECT_EQ(1, any);
	EXPECT_EQ(0, context_destroy(self->drm, HANDLE));
	EXPECT_EQ(0, context_create_at(self->drm, HANDLE));
	EXPECT_EQ(0, context_destroy(self->drm, HANDLE));
	EXPECT_EQ(-EINVAL, context_destroy(self->drm, HANDLE));
}

TEST_F(handle_amdgpu, a_bo_list_has_its_handle)
{
	unsigned int i;

	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, HANDLE));
	ASSERT_EQ(0, bo_list_create_at(self->drm, HANDLE, OTHER));
	EXPECT_EQ(-EEXIST, bo_list_create_at(self->drm, HANDLE, OTHER));
	EXPECT_EQ(0, bo_list_create_at(self->drm, HANDLE, MAX_HANDLE));
	for (i = 0; i < sizeof(no_handles) / sizeof(*no_handles); i++)
		EXPECT_EQ(-EINVAL, bo_list_create_at(self->drm, HANDLE, no_handles[i]));
	EXPECT_EQ(-EINVAL, bo_list_create_at(self->drm, HANDLE, 0));
	EXPECT_EQ(-ENOENT, bo_list_create_at(self->drm, HANDLE + 1, HANDLE));
	EXPECT_EQ(0, bo_list_destroy(self->drm, OTHER));
	EXPECT_EQ(0, bo_list_create_at(self->drm, HANDLE, OTHER));
}

/* The kernel has never looked at the member when it creates a list in the ordinary way. */
TEST_F(handle_amdgpu, a_bo_list_ignores_what_a_program_left_in_its_handle)
{
	const __u32 left[] = { 0, 1, HANDLE, MAX_HANDLE, 0x80000000, 0xffffffff };
	unsigned int i;
	__u32 handle;

	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, HANDLE));
	for (i = 0; i < sizeof(left) / sizeof(*left); i++) {
		handle = left[i];
		EXPECT_EQ(0, bo_list_create(self->drm, HANDLE, &handle));
		EXPECT_EQ(1 + i, handle);
	}
}

TEST_F(handle_amdgpu, a_sync_object_has_its_handle)
{
	struct drm_syncobj_create args = { .handle = OTHER };
	unsigned int i;

	ASSERT_EQ(0, syncobj_create_at(self->drm, 0, HANDLE));
	EXPECT_EQ(-ETIME, syncobj_poll(self->drm, HANDLE));
	EXPECT_EQ(-EEXIST, syncobj_create_at(self->drm, 0, HANDLE));
	EXPECT_EQ(0, syncobj_create_at(self->drm, DRM_SYNCOBJ_CREATE_SIGNALED, MAX_HANDLE));
	EXPECT_EQ(0, syncobj_poll(self->drm, MAX_HANDLE));
	EXPECT_EQ(-EINVAL, syncobj_create_at(self->drm, 0, 0));
	for (i = 0; i < sizeof(no_handles) / sizeof(*no_handles); i++)
		EXPECT_EQ(-EINVAL, syncobj_create_at(self->drm, 0, no_handles[i]));
	/* Without the flag the member is what the kernel returns. */
	EXPECT_EQ(0, drm_call(self->drm, DRM_IOCTL_SYNCOBJ_CREATE, &args));
	EXPECT_EQ(1, args.handle);
	args.flags = 1 << 2;
	EXPECT_EQ(-EINVAL, drm_call(self->drm, DRM_IOCTL_SYNCOBJ_CREATE, &args));
	EXPECT_EQ(0, syncobj_destroy(self->drm, HANDLE));
	EXPECT_EQ(-EINVAL, syncobj_destroy(self->drm, HANDLE));
	EXPECT_EQ(0, syncobj_create_at(self->drm, 0, HANDLE));
}

TEST_F(handle_amdgpu, a_sync_object_is_imported_at_its_handle)
{
	struct drm_syncobj_handle args = { .handle = OTHER };
	unsigned int i;
	int fd;

	ASSERT_EQ(0, syncobj_create_at(self->drm, DRM_SYNCOBJ_CREATE_SIGNALED, HANDLE));
	ASSERT_EQ(0, syncobj_export(self->drm, HANDLE, &fd));
	EXPECT_EQ(0, syncobj_import_at(self->peer, fd, HANDLE));
	EXPECT_EQ(0, syncobj_poll(self->peer, HANDLE));
	EXPECT_EQ(-EEXIST, syncobj_import_at(self->peer, fd, HANDLE));
	/* Sync objects can have several handles. */
	EXPECT_EQ(0, syncobj_import_at(self->drm, fd, MAX_HANDLE));
	EXPECT_EQ(-EINVAL, syncobj_import_at(self->peer, fd, 0));
	for (i = 0; i < sizeof(no_handles) / sizeof(*no_handles); i++)
		EXPECT_EQ(-EINVAL, syncobj_import_at(self->peer, fd, no_handles[i]));
	EXPECT_EQ(-EINVAL, syncobj_import_at(self->peer, self->drm, OTHER));

	args.fd = fd;
	args.flags = DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_AT_HANDLE |
		     DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_IMPORT_SYNC_FILE;
	EXPECT_EQ(-EINVAL, drm_call(self->peer, DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, &args));
	args.flags = 1 << 1;
	EXPECT_EQ(-EINVAL, drm_call(self->peer, DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, &args));
	args.flags = DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_AT_HANDLE;
	args.pad = 1;
	EXPECT_EQ(-EINVAL, drm_call(self->peer, DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, &args));
	args.pad = 0;
	EXPECT_EQ(0, drm_call(self->peer, DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, &args));
	close(fd);
}

/* The inode is the identity of an object for a checkpointer. */
TEST_F(handle_amdgpu, the_inode_is_stable_while_a_handle_is_open)
{
	__u64 inode;
	int fd, i;

	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, HANDLE));
	inode = gem_inode(self->drm, HANDLE);
	ASSERT_NE(0, inode);
	for (i = 0; i < 100; i++)
		EXPECT_EQ(inode, gem_inode(self->drm, HANDLE));
	ASSERT_EQ(0, gem_export(self->drm, HANDLE, &fd));
	ASSERT_EQ(0, gem_import_at(self->peer, fd, OTHER));
	close(fd);
	ASSERT_EQ(0, gem_close(self->drm, HANDLE));
	for (i = 0; i < 100; i++)
		EXPECT_EQ(inode, gem_inode(self->peer, OTHER));
}

DRM_TEST_MAIN
