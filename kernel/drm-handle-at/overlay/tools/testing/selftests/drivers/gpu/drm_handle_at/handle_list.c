// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The lists of GEM handles and of mappings have what is needed to create them again.
 *
 * Runs: per-chip
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "../../../kselftest_harness.h"
#include "lib/drm.h"

#define SIZE	(4 * DRM_PAGE)
#define HANDLE	77
#define VA	(32ULL << 30)
/* Where ranges without an object are mapped. */
#define PRT_VA	(VA + (1ULL << 30))
#define PRT_SIZE	(16 * SIZE)
#define PATTERN	0xa5

FIXTURE(handle_list) {
	int drm;
	struct drm_amdgpu_gem_list_handles_entry handles[MAX_LISTED];
	struct drm_amdgpu_gem_vm_entry mappings[8];
};

FIXTURE_SETUP(handle_list)
{
	self->drm = drm_open("amdgpu", DRM_RENDER_NODE);
	if (self->drm == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_LE(0, self->drm);
	memset(self->handles, PATTERN, sizeof(self->handles));
	memset(self->mappings, PATTERN, sizeof(self->mappings));
}

FIXTURE_TEARDOWN(handle_list)
{
	close(self->drm);
}

/* The layouts of Linux 7.3, from which programs are compiled. */
TEST(layouts_are_those_of_linux_7_3)
{
	EXPECT_EQ(0xc0106459, (__u32)DRM_IOCTL_AMDGPU_GEM_LIST_HANDLES);
	EXPECT_EQ(0xc0186450, (__u32)DRM_IOCTL_AMDGPU_GEM_OP);
	EXPECT_EQ(2, AMDGPU_GEM_OP_GET_MAPPING_INFO);
	EXPECT_EQ(40, sizeof(struct drm_amdgpu_gem_list_handles_entry));
	EXPECT_EQ(32, offsetof(struct drm_amdgpu_gem_list_handles_entry, alignment));
	EXPECT_EQ(32, sizeof(struct drm_amdgpu_gem_vm_entry));
	EXPECT_EQ(16, offsetof(struct drm_amdgpu_gem_op, num_entries));
}

static int create(int drm, __u32 handle, __u64 size, __u64 alignment, __u64 domains, __u64 flags)
{
	union drm_amdgpu_gem_create args = {
		.in = {
			.bo_size = size,
			.alignment = alignment,
			.domains = domains,
			.domain_flags = flags | AMDGPU_GEM_CREATE_AT_HANDLE,
			.handle = handle,
		},
	};

	return drm_call(drm, DRM_IOCTL_AMDGPU_GEM_CREATE, &args);
}

TEST_F(handle_list, handles_are_listed_with_what_creates_them)
{
	const struct drm_amdgpu_gem_list_handles_entry *entry = self->handles;

	ASSERT_EQ(0, gem_list(self->drm, self->handles));
	ASSERT_EQ(0, create(self->drm, HANDLE, SIZE, 2 * DRM_PAGE, AMDGPU_GEM_DOMAIN_GTT,
			    AMDGPU_GEM_CREATE_CPU_GTT_USWC));
	ASSERT_EQ(0, create(self->drm, 1, DRM_PAGE, DRM_PAGE, AMDGPU_GEM_DOMAIN_VRAM,
			    AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED));
	ASSERT_EQ(2, gem_list(self->drm, self->handles));
	EXPECT_EQ(1, entry->gem_handle);
	EXPECT_EQ(0, entry->flags);
	EXPECT_EQ(DRM_PAGE, entry->size);
	EXPECT_EQ(AMDGPU_GEM_DOMAIN_VRAM, entry->preferred_domains);
	/* The driver clears VRAM, and does not keep a flag that it could not obey. */
	EXPECT_EQ(AMDGPU_GEM_CREATE_VRAM_CLEARED,
		  entry->alloc_flags & ~(__u64)AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED);
	entry++;
	EXPECT_EQ(HANDLE, entry->gem_handle);
	EXPECT_EQ(SIZE, entry->size);
	EXPECT_EQ(2 * DRM_PAGE, entry->alignment);
	EXPECT_EQ(AMDGPU_GEM_DOMAIN_GTT, entry->preferred_domains);
	EXPECT_EQ(AMDGPU_GEM_CREATE_CPU_GTT_USWC,
		  entry->alloc_flags & AMDGPU_GEM_CREATE_CPU_GTT_USWC);

	/* Both can be created again. */
	for (entry = self->handles; entry < self->handles + 2; entry++) {
		ASSERT_EQ(0, gem_close(self->drm, entry->gem_handle));
		EXPECT_EQ(0, create(self->drm, entry->gem_handle, entry->size, entry->alignment,
				    entry->preferred_domains, entry->alloc_flags));
	}
	EXPECT_EQ(2, gem_count(self->drm));
}

TEST_F(handle_list, nothing_is_written_if_the_array_is_too_small)
{
	struct drm_amdgpu_gem_list_handles args = {
		.entries = (unsigned long)self->handles,
		.num_entries = 1,
	};
	const unsigned char *bytes = (const unsigned char *)self->handles;

	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, HANDLE));
	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, HANDLE + 1));
	ASSERT_EQ(0, drm_call(self->drm, DRM_IOCTL_AMDGPU_GEM_LIST_HANDLES, &args));
	EXPECT_EQ(2, args.num_entries);
	EXPECT_EQ(PATTERN, bytes[0]);

	args.entries = 8;
	EXPECT_EQ(-EFAULT, drm_call(self->drm, DRM_IOCTL_AMDGPU_GEM_LIST_HANDLES, &args));
}

static int change_mapping(int drm, __u32 operation, __u32 flags, __u64 va, __u64 offset,
			  __u64 size)
{
	struct drm_amdgpu_gem_va args = {
		.handle = operation == AMDGPU_VA_OP_CLEAR ? 0 : HANDLE,
		.operation = operation,
		.flags = flags,
		.va_address = va,
		.offset_in_bo = offset,
		.map_size = size,
	};

	return drm_call(drm, DRM_IOCTL_AMDGPU_GEM_VA, &args);
}

/* Returns the number of mappings or a negative errno. */
static int list_mappings(int drm, struct drm_amdgpu_gem_vm_entry *entries, __u32 space)
{
	struct drm_amdgpu_gem_op args = {
		.handle = HANDLE,
		.op = AMDGPU_GEM_OP_GET_MAPPING_INFO,
		.value = (unsigned long)entries,
		.num_entries = space,
	};
	const int r = drm_call(drm, DRM_IOCTL_AMDGPU_GEM_OP, &args);

	return r ? r : (int)args.num_entries;
}

/* Finds the mapping at an address; the list has no order. */
static const struct drm_amdgpu_gem_vm_entry *
mapping_at(const struct drm_amdgpu_gem_vm_entry *entries, int count, __u64 va)
{
	int i;

	for (i = 0; i < count; i++)
		if (entries[i].addr == va)
			return &entries[i];
	return NULL;
}

#define READ_WRITE	(AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE)
#define READ_EXECUTE	(AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_EXECUTABLE | AMDGPU_VM_MTYPE_UC)

TEST_F(handle_list, mappings_are_listed_with_what_creates_them)
{
	const struct drm_amdgpu_gem_vm_entry *entry;

	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, HANDLE));
	EXPECT_EQ(0, list_mappings(self->drm, self->mappings, 8));
	ASSERT_EQ(0, change_mapping(self->drm, AMDGPU_VA_OP_MAP, READ_WRITE, VA, 0, SIZE));
	ASSERT_EQ(0, change_mapping(self->drm, AMDGPU_VA_OP_MAP,
				    READ_EXECUTE | AMDGPU_VM_DELAY_UPDATE,
				    VA + SIZE, DRM_PAGE, 2 * DRM_PAGE));
	ASSERT_EQ(2, list_mappings(self->drm, self->mappings, 8));
	entry = mapping_at(self->mappings, 2, VA);
	ASSERT_NE(NULL, entry);
	EXPECT_EQ(SIZE, entry->size);
	EXPECT_EQ(0, entry->offset);
	EXPECT_EQ(READ_WRITE, entry->flags);
	entry = mapping_at(self->mappings, 2, VA + SIZE);
	ASSERT_NE(NULL, entry);
	EXPECT_EQ(2 * DRM_PAGE, entry->size);
	EXPECT_EQ(DRM_PAGE, entry->offset);
	EXPECT_EQ(READ_EXECUTE, entry->flags);
}

/* The first address of the upper half, or 0 if the GPU has none. */
static __u64 upper_half(int drm)
{
	struct drm_amdgpu_info_device info = {};
	struct drm_amdgpu_info args = {
		.return_pointer = (unsigned long)&info,
		.return_size = sizeof(info),
		.query = AMDGPU_INFO_DEV_INFO,
	};

	return drm_call(drm, DRM_IOCTL_AMDGPU_INFO, &args) ? 0 : info.high_va_offset;
}

TEST_F(handle_list, mappings_of_the_upper_half_can_be_created_again)
{
	const __u64 half = upper_half(self->drm);
	const __u64 va = (half ? half : 0xffff800000000000ULL) + VA;
	struct drm_amdgpu_gem_vm_entry again[2], *entry;

	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, HANDLE));
	if (!half) {
		EXPECT_EQ(-EINVAL, change_mapping(self->drm, AMDGPU_VA_OP_MAP, READ_WRITE, va, 0,
						  SIZE));
		TH_LOG("the GPU has no upper half");
		return;
	}
	ASSERT_EQ(0, change_mapping(self->drm, AMDGPU_VA_OP_MAP, READ_WRITE, va, 0, SIZE));
	ASSERT_EQ(0, change_mapping(self->drm, AMDGPU_VA_OP_MAP, READ_EXECUTE, VA, DRM_PAGE,
				    DRM_PAGE));
	ASSERT_EQ(2, list_mappings(self->drm, self->mappings, 8));
	EXPECT_NE(NULL, mapping_at(self->mappings, 2, va));
	EXPECT_NE(NULL, mapping_at(self->mappings, 2, VA));

	for (entry = self->mappings; entry < self->mappings + 2; entry++) {
		ASSERT_EQ(0, change_mapping(self->drm, AMDGPU_VA_OP_UNMAP, 0, entry->addr, 0,
					    entry->size));
	}
	ASSERT_EQ(0, list_mappings(self->drm, again, 2));
	for (entry = self->mappings; entry < self->mappings + 2; entry++) {
		ASSERT_EQ(0, change_mapping(self->drm, AMDGPU_VA_OP_MAP, entry->flags,
					    entry->addr, entry->offset, entry->size));
	}
	ASSERT_EQ(2, list_mappings(self->drm, again, 2));
	for (entry = again; entry < again + 2; entry++) {
		const struct drm_amdgpu_gem_vm_entry *first =
			mapping_at(self->mappings, 2, entry->addr);

		ASSERT_NE(NULL, first);
		EXPECT_EQ(0, memcmp(first, entry, sizeof(*entry)));
	}
}

TEST_F(handle_list, parts_of_a_mapping_keep_its_flags)
{
	const struct drm_amdgpu_gem_vm_entry *entry;

	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, HANDLE));
	ASSERT_EQ(0, change_mapping(self->drm, AMDGPU_VA_OP_MAP, READ_EXECUTE, VA, 0, SIZE));
	ASSERT_EQ(0, change_mapping(self->drm, AMDGPU_VA_OP_CLEAR, 0, VA + DRM_PAGE, 0, DRM_PAGE));
	ASSERT_EQ(2, list_mappings(self->drm, self->mappings, 8));
	entry = mapping_at(self->mappings, 2, VA);
	ASSERT_NE(NULL, entry);
	EXPECT_EQ(DRM_PAGE, entry->size);
	EXPECT_EQ(0, entry->offset);
	EXPECT_EQ(READ_EXECUTE, entry->flags);
	entry = mapping_at(self->mappings, 2, VA + 2 * DRM_PAGE);
	ASSERT_NE(NULL, entry);
	EXPECT_EQ(2 * DRM_PAGE, entry->size);
	EXPECT_EQ(2 * DRM_PAGE, entry->offset);
	EXPECT_EQ(READ_EXECUTE, entry->flags);

	ASSERT_EQ(0, change_mapping(self->drm, AMDGPU_VA_OP_REPLACE, READ_WRITE, VA, 0, SIZE));
	ASSERT_EQ(1, list_mappings(self->drm, self->mappings, 8));
	EXPECT_EQ(READ_WRITE, self->mappings[0].flags);
}

/* Maps a range without an object, or unmaps it. */
static int change_prt(int drm, __u32 operation, __u32 flags, __u64 va, __u64 size)
{
	struct drm_amdgpu_gem_va args = {
		.operation = operation,
		.flags = flags | AMDGPU_VM_PAGE_PRT,
		.va_address = va,
		.map_size = size,
	};

	return drm_call(drm, DRM_IOCTL_AMDGPU_GEM_VA, &args);
}

/* Like list_mappings(), of the mappings without an object. */
static int list_prt(int drm, struct drm_amdgpu_gem_vm_entry *entries, __u32 space)
{
	struct drm_amdgpu_gem_op args = {
		.op = AMDGPU_GEM_OP_GET_MAPPING_INFO,
		.value = (unsigned long)entries,
		.num_entries = space,
	};
	const int r = drm_call(drm, DRM_IOCTL_AMDGPU_GEM_OP, &args);

	return r ? r : (int)args.num_entries;
}

TEST_F(handle_list, mappings_without_an_object_are_those_of_handle_0)
{
	const unsigned char *bytes = (const unsigned char *)self->mappings;
	struct drm_amdgpu_gem_op args = { .op = AMDGPU_GEM_OP_GET_GEM_CREATE_INFO };
	const struct drm_amdgpu_gem_vm_entry *entry;
	struct drm_amdgpu_gem_vm_entry first;

	EXPECT_EQ(0, list_prt(self->drm, self->mappings, 8));
	EXPECT_EQ(0, list_prt(self->drm, NULL, 0));
	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, HANDLE));
	ASSERT_EQ(0, change_mapping(self->drm, AMDGPU_VA_OP_MAP, READ_WRITE, VA, 0, SIZE));
	EXPECT_EQ(0, list_prt(self->drm, self->mappings, 8));
	ASSERT_EQ(0, change_prt(self->drm, AMDGPU_VA_OP_MAP, 0, PRT_VA, PRT_SIZE));
	ASSERT_EQ(0, change_prt(self->drm, AMDGPU_VA_OP_MAP, AMDGPU_VM_DELAY_UPDATE,
				PRT_VA + PRT_SIZE, SIZE));
	EXPECT_EQ(1, list_mappings(self->drm, NULL, 0));
	EXPECT_EQ(2, list_prt(self->drm, self->mappings, 1));
	EXPECT_EQ(PATTERN, bytes[0]);
	EXPECT_EQ(-EFAULT, list_prt(self->drm, (void *)8, 2));
	ASSERT_EQ(2, list_prt(self->drm, self->mappings, 8));
	entry = mapping_at(self->mappings, 2, PRT_VA + PRT_SIZE);
	ASSERT_NE(NULL, entry);
	EXPECT_EQ(SIZE, entry->size);
	EXPECT_EQ(AMDGPU_VM_PAGE_PRT, entry->flags);
	entry = mapping_at(self->mappings, 2, PRT_VA);
	ASSERT_NE(NULL, entry);
	EXPECT_EQ(PRT_SIZE, entry->size);
	EXPECT_EQ(AMDGPU_VM_PAGE_PRT, entry->flags);

	/* It can be created again. */
	first = *entry;
	ASSERT_EQ(0, change_prt(self->drm, AMDGPU_VA_OP_UNMAP, 0, first.addr, first.size));
	EXPECT_EQ(1, list_prt(self->drm, NULL, 0));
	ASSERT_EQ(0, change_prt(self->drm, AMDGPU_VA_OP_MAP, first.flags, first.addr, first.size));
	ASSERT_EQ(2, list_prt(self->drm, self->mappings, 8));
	entry = mapping_at(self->mappings, 2, PRT_VA);
	ASSERT_NE(NULL, entry);
	EXPECT_EQ(0, memcmp(&first, entry, sizeof(first)));

	/* Other operations need an object. */
	EXPECT_EQ(-ENOENT, drm_call(self->drm, DRM_IOCTL_AMDGPU_GEM_OP, &args));
	args.op = AMDGPU_GEM_OP_GET_MAPPING_INFO;
	args.padding = 1;
	EXPECT_EQ(-EINVAL, drm_call(self->drm, DRM_IOCTL_AMDGPU_GEM_OP, &args));
}

TEST_F(handle_list, wrong_arguments_of_the_mapping_list_are_refused)
{
	const unsigned char *bytes = (const unsigned char *)self->mappings;
	struct drm_amdgpu_gem_op args = {
		.handle = HANDLE,
		.op = AMDGPU_GEM_OP_GET_MAPPING_INFO,
		.padding = 1,
	};

	ASSERT_EQ(0, gem_create_at(self->drm, SIZE, HANDLE));
	ASSERT_EQ(0, change_mapping(self->drm, AMDGPU_VA_OP_MAP, READ_WRITE, VA, 0, SIZE));
	ASSERT_EQ(0, change_mapping(self->drm, AMDGPU_VA_OP_MAP, READ_WRITE, VA + SIZE, 0, SIZE));
	EXPECT_EQ(2, list_mappings(self->drm, self->mappings, 1));
	EXPECT_EQ(PATTERN, bytes[0]);
	EXPECT_EQ(-EFAULT, list_mappings(self->drm, (void *)8, 2));
	EXPECT_EQ(2, list_mappings(self->drm, self->mappings, 0xffffffff));
	EXPECT_EQ(-EINVAL, drm_call(self->drm, DRM_IOCTL_AMDGPU_GEM_OP, &args));
	args.padding = 0;
	args.handle = HANDLE + 1;
	EXPECT_EQ(-ENOENT, drm_call(self->drm, DRM_IOCTL_AMDGPU_GEM_OP, &args));
}

DRM_TEST_MAIN
