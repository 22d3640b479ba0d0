// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Injects a fault into the first allocation or user copy of each ioctl that takes a number or
 * lists objects, then into the second, and so on to the last. An ioctl that fails leaves the
 * number free and no object; one that succeeds in spite of the fault leaves a usable one, or a
 * complete list. Leaks of kernel memory show in kmemleak afterwards. Needs
 * CONFIG_FAULT_INJECTION_DEBUG_FS and CONFIG_FAILSLAB.
 *
 * DRM_HANDLE_AT_FAIL_NTH=N begins with the N-th fault, and the kernel logs where each one is
 * injected.
 *
 * Runs: once
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <dirent.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include "../../../kselftest_harness.h"
#include "lib/drm.h"

#define DEBUGFS		"/sys/kernel/debug"
#define SIZE		(2 * DRM_PAGE)
#define HANDLE		77
#define OBJECT		5	/* of the BO list */
/* Where the GPU maps GEM objects. */
#define VA		(1ULL << 30)
/* No ioctl has so many places to fail, unless it repeats something for ever. */
#define MAX_FAULTS	10000
#define LIMIT_S		3600

struct target {
	int drm, peer;
	void *memory;
	int dmabuf, syncobj;	/* descriptors to import */
};

FIXTURE(handle_fail_nth) {
	struct target target;
};

/* An ioctl that creates something with the number HANDLE, and one that destroys it. */
FIXTURE_VARIANT(handle_fail_nth) {
	int (*create)(const struct target *target);
	int (*destroy)(const struct target *target);
	/* Whether the object is complete; NULL: nothing of it could be missing. */
	int (*use)(const struct target *target);
};

static int create_gem(const struct target *target)
{
	return gem_create_at(target->drm, SIZE, HANDLE);
}

static int create_userptr(const struct target *target)
{
	return userptr_create_at(target->drm, target->memory, SIZE, HANDLE);
}

static int import_gem(const struct target *target)
{
	return gem_import_at(target->drm, target->dmabuf, HANDLE);
}

static int import_gem_anywhere(const struct target *target)
{
	__u32 handle;
	const int r = gem_import(target->drm, target->dmabuf, &handle);

	/* 1 is the lowest handle. */
	return !r && handle != 1 ? -EBADMSG : r;
}

static int map_gem(const struct target *target)
{
	return gem_map(target->drm, HANDLE, SIZE, VA);
}

static int map_first_gem(const struct target *target)
{
	return gem_map(target->drm, 1, SIZE, VA);
}

static int close_gem(const struct target *target)
{
	return gem_close(target->drm, HANDLE);
}

static int close_first_gem(const struct target *target)
{
	return gem_close(target->drm, 1);
}

static int create_context(const struct target *target)
{
	return context_create_at(target->drm, HANDLE);
}

static int destroy_context(const struct target *target)
{
	return context_destroy(target->drm, HANDLE);
}

static int create_bo_list(const struct target *target)
{
	return bo_list_create_at(target->drm, OBJECT, HANDLE);
}

static int destroy_bo_list(const struct target *target)
{
	return bo_list_destroy(target->drm, HANDLE);
}

static int create_syncobj(const struct target *target)
{
	return syncobj_create_at(target->drm, DRM_SYNCOBJ_CREATE_SIGNALED, HANDLE);
}

static int import_syncobj(const struct target *target)
{
	return syncobj_import_at(target->drm, target->syncobj, HANDLE);
}

static int destroy_syncobj(const struct target *target)
{
	return syncobj_destroy(target->drm, HANDLE);
}

/* What the lists have to list: so many objects of each kind. */
#define LISTED		3
#define FIRST_LISTED	200

/* The objects stay until the file is closed. */
static int create_listed(const struct target *target)
{
	__u32 handle;
	int r = 0;

	for (handle = FIRST_LISTED; !r && handle < FIRST_LISTED + LISTED; handle++) {
		r = userptr_create_at(target->drm, target->memory, SIZE, handle);
		if (!r)
			r = context_create_at(target->drm, handle);
		if (!r)
			r = bo_list_create_at(target->drm, handle, handle);
		if (!r)
			r = syncobj_create_at(target->drm, 0, handle);
	}
	return r;
}

static int list_type(const struct target *target, __u32 type)
{
	/* Contexts have the largest entries. All entries begin with a number. */
	struct drm_amdgpu_list_context entries[LISTED] = {};
	const int r = list_objects(target->drm, type, entries, LISTED);

	if (r < 0)
		return r;
	return r == LISTED && entries[0].id == FIRST_LISTED ? 0 : -EBADMSG;
}

static int list_contexts(const struct target *target)
{
	return list_type(target, AMDGPU_LIST_CONTEXTS);
}

static int list_bo_lists(const struct target *target)
{
	return list_type(target, AMDGPU_LIST_BO_LISTS);
}

static int list_userptrs(const struct target *target)
{
	return list_type(target, AMDGPU_LIST_USERPTRS);
}

static int list_syncobjs(const struct target *target)
{
	struct drm_syncobj_list_entry entries[LISTED] = {};
	const int r = syncobj_list(target->drm, entries, LISTED);

	if (r < 0)
		return r;
	return r == LISTED && entries[LISTED - 1].handle == FIRST_LISTED + LISTED - 1 ?
		       0 : -EBADMSG;
}

static int destroy_nothing(const struct target *target)
{
	return 0;
}

FIXTURE_VARIANT_ADD(handle_fail_nth, list_contexts) {
	.create = list_contexts,
	.destroy = destroy_nothing,
};

FIXTURE_VARIANT_ADD(handle_fail_nth, list_bo_lists) {
	.create = list_bo_lists,
	.destroy = destroy_nothing,
};

FIXTURE_VARIANT_ADD(handle_fail_nth, list_userptrs) {
	.create = list_userptrs,
	.destroy = destroy_nothing,
};

FIXTURE_VARIANT_ADD(handle_fail_nth, list_syncobjs) {
	.create = list_syncobjs,
	.destroy = destroy_nothing,
};

FIXTURE_VARIANT_ADD(handle_fail_nth, gem_create) {
	.create = create_gem,
	.destroy = close_gem,
	.use = map_gem,
};

FIXTURE_VARIANT_ADD(handle_fail_nth, gem_userptr) {
	.create = create_userptr,
	.destroy = close_gem,
	.use = map_gem,
};

FIXTURE_VARIANT_ADD(handle_fail_nth, import_at) {
	.create = import_gem,
	.destroy = close_gem,
	.use = map_gem,
};

FIXTURE_VARIANT_ADD(handle_fail_nth, import) {
	.create = import_gem_anywhere,
	.destroy = close_first_gem,
	.use = map_first_gem,
};

FIXTURE_VARIANT_ADD(handle_fail_nth, context) {
	.create = create_context,
	.destroy = destroy_context,
};

FIXTURE_VARIANT_ADD(handle_fail_nth, bo_list) {
	.create = create_bo_list,
	.destroy = destroy_bo_list,
};

FIXTURE_VARIANT_ADD(handle_fail_nth, syncobj_create) {
	.create = create_syncobj,
	.destroy = destroy_syncobj,
};

FIXTURE_VARIANT_ADD(handle_fail_nth, syncobj_import) {
	.create = import_syncobj,
	.destroy = destroy_syncobj,
};

static int put(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY);
	int r = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		r = -errno;
	close(fd);
	return r;
}

static unsigned int first_fault(void)
{
	const char *text = getenv("DRM_HANDLE_AT_FAIL_NTH");
	const unsigned long n = text ? strtoul(text, NULL, 0) : 1;

	return n && n < MAX_FAULTS ? n : 1;
}

/* Lets allocations fail that may sleep, and those of pages for user memory. */
static int prepare_kernel(void)
{
	const char *verbose = getenv("DRM_HANDLE_AT_FAIL_NTH") ? "2" : "0";
	const char *const settings[][2] = {
		{ DEBUGFS "/failslab/ignore-gfp-wait", "N" },
		{ DEBUGFS "/failslab/verbose", verbose },
		{ DEBUGFS "/fail_page_alloc/ignore-gfp-wait", "N" },
		{ DEBUGFS "/fail_page_alloc/ignore-gfp-highmem", "N" },
		{ DEBUGFS "/fail_page_alloc/min-order", "0" },
		{ DEBUGFS "/fail_page_alloc/verbose", verbose },
		{ DEBUGFS "/fail_usercopy/verbose", verbose },
	};
	unsigned int i;
	int r = 0;

	if (access(DEBUGFS "/failslab", F_OK))
		mount("debugfs", DEBUGFS, "debugfs", 0, NULL);
	for (i = 0; !r && i < sizeof(settings) / sizeof(*settings); i++)
		r = put(settings[i][0], settings[i][1]);
	return r;
}

static int count_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int n = 0;

	if (!folder)
		return -errno;
	while (readdir(folder))
		n++;
	closedir(folder);
	return n;
}

/* Calls create() with the n-th fault, and stores whether it has so many places to fail. */
static int with_fault(unsigned int n, bool *reached, int (*create)(const struct target *),
		      const struct target *target)
{
	const int fd = open("/proc/thread-self/fail-nth", O_RDWR);
	char text[16];
	int length, r;

	*reached = false;
	if (fd < 0)
		return -errno;
	length = snprintf(text, sizeof(text), "%u", n);
	if (pwrite(fd, text, length, 0) != length) {
		close(fd);
		return -ENOTTY;
	}
	r = create(target);
	/* If this read is where the fault is injected, the ioctl did not reach it. */
	memset(text, 0, sizeof(text));
	*reached = pread(fd, text, sizeof(text) - 1, 0) > 0 && !atoi(text);
	if (pwrite(fd, "0", 1, 0) < 0)
		*reached = false;
	close(fd);
	return r;
}

FIXTURE_SETUP(handle_fail_nth)
{
	struct target *target = &self->target;
	__u32 handle;
	int r;

	memset(target, 0, sizeof(*target));
	target->drm = drm_open("amdgpu", DRM_RENDER_NODE);
	target->peer = drm_open("amdgpu", DRM_RENDER_NODE);
	if (target->drm == -ENODEV)
		SKIP(return, "no AMD GPU");
	ASSERT_LE(0, target->drm);
	ASSERT_LE(0, target->peer);
	r = prepare_kernel();
	if (r == -ENOENT)
		SKIP(return, "a kernel without fault injection");
	ASSERT_EQ(0, r);
	target->memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	ASSERT_NE(MAP_FAILED, target->memory);
	ASSERT_EQ(0, gem_create(target->peer, SIZE, &handle));
	ASSERT_EQ(0, gem_export(target->peer, handle, &target->dmabuf));
	ASSERT_EQ(0, syncobj_create_at(target->peer, 0, HANDLE));
	ASSERT_EQ(0, syncobj_export(target->peer, HANDLE, &target->syncobj));
}

FIXTURE_TEARDOWN(handle_fail_nth)
{
	close(self->target.dmabuf);
	close(self->target.syncobj);
	close(self->target.drm);
	close(self->target.peer);
	munmap(self->target.memory, SIZE);
}

TEST_F_TIMEOUT(handle_fail_nth, a_failure_leaves_the_number_free, LIMIT_S)
{
	const struct target *target = &self->target;
	unsigned int n = first_fault(), failed = 0;
	const int files = count_files();
	bool reached = true;
	int r, objects;

	if (variant->create == create_bo_list)
		ASSERT_EQ(0, gem_create_at(target->drm, SIZE, OBJECT));
	if (variant->destroy == destroy_nothing)
		ASSERT_EQ(0, create_listed(target));
	objects = gem_count(target->drm);
	/* The first call allocates what stays, for example page tables. */
	ASSERT_EQ(0, variant->create(target));
	ASSERT_EQ(0, variant->destroy(target));
	while (reached && n < MAX_FAULTS) {
		r = with_fault(n, &reached, variant->create, target);
		ASSERT_NE(-ENOTTY, r);
		ASSERT_NE(-EBADMSG, r);
		/*
		 * If the copy of the result failed, the object was created or not: the
		 * argument is copied before, too.
		 */
		if (r == -EFAULT) {
			variant->destroy(target);
		} else if (r) {
			failed++;
			ASSERT_EQ(objects, gem_count(target->drm))
				TH_LOG("fault %u: %d", n, r);
			ASSERT_EQ(0, variant->create(target))
				TH_LOG("fault %u: %d", n, r);
		}
		if (!r && variant->use)
			ASSERT_EQ(0, variant->use(target))
				TH_LOG("fault %u", n);
		if (r != -EFAULT)
			ASSERT_EQ(0, variant->destroy(target));
		ASSERT_EQ(objects, gem_count(target->drm));
		ASSERT_EQ(files, count_files());
		n++;
	}
	ASSERT_LT(n, MAX_FAULTS);
	TH_LOG("%u of %u faults failed the ioctl", failed, n - first_fault());
	/* An import of a sync object allocates nothing that it could not do without. */
	EXPECT_LT(variant->create == import_syncobj ? 1 : 0,
		  variant->create == import_syncobj ? n - first_fault() : failed);
}

DRM_TEST_MAIN
