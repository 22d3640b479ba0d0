/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Files of DRM devices and their objects, without libdrm. `drm` is such a file. Functions
 * return 0 or a negative errno unless their comment says otherwise. A function whose name
 * ends with _at takes the number that the object is to have.
 */
#ifndef DRM_HANDLE_AT_SELFTEST_DRM_H
#define DRM_HANDLE_AT_SELFTEST_DRM_H

#include <stdbool.h>
#include <stddef.h>
#include <drm/amdgpu_drm.h>
#include <drm/drm.h>

#define DRM_PAGE	4096UL
/* The largest handle: INT_MAX - 1. */
#define MAX_HANDLE	0x7ffffffeU
/* Most GEM handles that a test has at once. */
#define MAX_LISTED	512

enum drm_node {
	DRM_PRIMARY_NODE,	/* /dev/dri/card* */
	DRM_RENDER_NODE,
};

/*
 * The main() of every test program. Options that list the tests work anywhere; when tests
 * are to run, the caller must be root.
 */
#define DRM_TEST_MAIN \
	int main(int argc, char **argv) \
	{ \
		drm_check_caller(argc, argv); \
		return test_harness_run(argc, argv); \
	}

void drm_check_caller(int argc, char **argv);

/* Opens the first device of the driver. Returns a descriptor, or -ENODEV without one. */
int drm_open(const char *driver, enum drm_node node);
/* Calls ioctl() until no signal interrupts it. */
int drm_call(int drm, unsigned long request, void *args);
/* The value of a DRM_CAP_*, or a negative errno. */
long long drm_cap(int drm, unsigned long long capability);

/* GEM objects of any driver. */
int gem_close(int drm, __u32 handle);
int gem_export(int drm, __u32 handle, int *fd);
int gem_import(int drm, int fd, __u32 *handle);
int gem_import_at(int drm, int fd, __u32 handle);
/* The inode number of the object's DMA-buf: its identity. 0 if it cannot be exported. */
__u64 gem_inode(int drm, __u32 handle);
__u64 file_inode(int fd);

/* Objects of amdgpu. GEM objects are in GTT. */
int gem_create(int drm, __u64 size, __u32 *handle);
int gem_create_at(int drm, __u64 size, __u32 handle);
int userptr_create_at(int drm, void *memory, __u64 size, __u32 handle);
/* Maps the object for the GPU, without access, until it is closed. */
int gem_map(int drm, __u32 handle, __u64 size, __u64 va);
/* Maps the object for the CPU. Returns MAP_FAILED without. */
void *gem_mmap(int drm, __u32 handle, __u64 size);
/* Lists up to MAX_LISTED handles. Returns their number or a negative errno. */
int gem_list(int drm, struct drm_amdgpu_gem_list_handles_entry *entries);
/* The number of GEM handles, or a negative errno. */
int gem_count(int drm);
int context_create(int drm, __u32 *id);
int context_create_at(int drm, __u32 id);
int context_destroy(int drm, __u32 id);
/*
 * BO lists with one object. bo_list_create() passes on the value of *handle, as a program does
 * that has not cleared the member.
 */
int bo_list_create(int drm, __u32 object, __u32 *handle);
int bo_list_create_at(int drm, __u32 object, __u32 handle);
int bo_list_destroy(int drm, __u32 handle);

/*
 * Lists objects of one AMDGPU_LIST_* type in an array of `space` entries. Returns how many
 * there are or a negative errno.
 */
int list_objects(int drm, __u32 type, void *entries, __u32 space);

/* Sync objects of any driver that has them. */
int syncobj_create_at(int drm, __u32 flags, __u32 handle);
int syncobj_export(int drm, __u32 handle, int *fd);
int syncobj_import_at(int drm, int fd, __u32 handle);
int syncobj_destroy(int drm, __u32 handle);
/* 0 if it is signaled, -ETIME if it is not. */
int syncobj_poll(int drm, __u32 handle);
/* Lists up to `space` sync objects. Returns how many there are or a negative errno. */
int syncobj_list(int drm, struct drm_syncobj_list_entry *entries, __u32 space);

#endif /* DRM_HANDLE_AT_SELFTEST_DRM_H */
