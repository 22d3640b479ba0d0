// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Opens DRM devices and calls their ioctls.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "../../../../kselftest.h"
#include "drm.h"

/* Minors of each kind of node. */
#define MINORS	64

/* Whether the harness will only print something. */
static bool runs_no_test(int argc, char **argv)
{
	int option;
	bool prints = false;

	opterr = 0;
	while ((option = getopt(argc, argv, "hlF:f:V:v:t:T:r:")) != -1)
		prints |= option == 'h' || option == 'l' || option == '?';
	opterr = 1;
	optind = 1;
	return prints;
}

void drm_check_caller(int argc, char **argv)
{
	if (!runs_no_test(argc, argv) && geteuid())
		ksft_exit_skip("not root\n");
}

int drm_call(int drm, unsigned long request, void *args)
{
	int r;

	do
		r = ioctl(drm, request, args);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

static bool is_driver(int drm, const char *driver)
{
	char name[32] = "";
	struct drm_version version = {
		.name = name,
		.name_len = sizeof(name) - 1,
	};

	return !drm_call(drm, DRM_IOCTL_VERSION, &version) && !strcmp(name, driver);
}

int drm_open(const char *driver, enum drm_node node)
{
	const unsigned int first = node == DRM_RENDER_NODE ? 128 : 0;
	const char *name = node == DRM_RENDER_NODE ? "renderD" : "card";
	unsigned int minor;
	char path[64];
	int drm;

	for (minor = first; minor < first + MINORS; minor++) {
		snprintf(path, sizeof(path), "/dev/dri/%s%u", name, minor);
		drm = open(path, O_RDWR | O_CLOEXEC);
		if (drm < 0)
			continue;
		if (is_driver(drm, driver))
			return drm;
		close(drm);
	}
	return -ENODEV;
}

long long drm_cap(int drm, unsigned long long capability)
{
	struct drm_get_cap args = { .capability = capability };
	const int r = drm_call(drm, DRM_IOCTL_GET_CAP, &args);

	return r ? r : (long long)args.value;
}

int gem_close(int drm, __u32 handle)
{
	struct drm_gem_close args = { .handle = handle };

	return drm_call(drm, DRM_IOCTL_GEM_CLOSE, &args);
}

int gem_export(int drm, __u32 handle, int *fd)
{
	struct drm_prime_handle args = {
		.handle = handle,
		.flags = DRM_CLOEXEC | DRM_RDWR,
	};
	const int r = drm_call(drm, DRM_IOCTL_PRIME_HANDLE_TO_FD, &args);

	*fd = r ? -1 : args.fd;
	return r;
}

int gem_import(int drm, int fd, __u32 *handle)
{
	struct drm_prime_handle args = { .fd = fd };
	const int r = drm_call(drm, DRM_IOCTL_PRIME_FD_TO_HANDLE, &args);

	*handle = args.handle;
	return r;
}

int gem_import_at(int drm, int fd, __u32 handle)
{
	struct drm_prime_handle_at args = { .handle = handle, .fd = fd };

	return drm_call(drm, DRM_IOCTL_PRIME_FD_TO_HANDLE_AT, &args);
}

__u64 file_inode(int fd)
{
	struct stat status;

	return fstat(fd, &status) ? 0 : status.st_ino;
}

__u64 gem_inode(int drm, __u32 handle)
{
	__u64 inode;
	int fd;

	if (gem_export(drm, handle, &fd))
		return 0;
	inode = file_inode(fd);
	close(fd);
	return inode;
}

static int create(int drm, __u64 size, __u64 flags, __u32 *handle)
{
	union drm_amdgpu_gem_create args = {
		.in = {
			.bo_size = size,
			.alignment = DRM_PAGE,
			.domains = AMDGPU_GEM_DOMAIN_GTT,
			.domain_flags = flags,
			.handle = *handle,
		},
	};
	const int r = drm_call(drm, DRM_IOCTL_AMDGPU_GEM_CREATE, &args);

	if (!r)
		*handle = args.out.handle;
	return r;
}

int gem_create(int drm, __u64 size, __u32 *handle)
{
	*handle = 0;
	return create(drm, size, 0, handle);
}

int gem_create_at(int drm, __u64 size, __u32 handle)
{
	__u32 created = handle;
	const int r = create(drm, size, AMDGPU_GEM_CREATE_AT_HANDLE, &created);

	return !r && created != handle ? -EBADMSG : r;
}

int userptr_create_at(int drm, void *memory, __u64 size, __u32 handle)
{
	struct drm_amdgpu_gem_userptr args = {
		.addr = (unsigned long)memory,
		.size = size,
		.flags = AMDGPU_GEM_USERPTR_ANONONLY | AMDGPU_GEM_USERPTR_REGISTER |
			 AMDGPU_GEM_USERPTR_VALIDATE | AMDGPU_GEM_USERPTR_AT_HANDLE,
		.handle = handle,
	};
	const int r = drm_call(drm, DRM_IOCTL_AMDGPU_GEM_USERPTR, &args);

	return !r && args.handle != handle ? -EBADMSG : r;
}

int gem_map(int drm, __u32 handle, __u64 size, __u64 va)
{
	struct drm_amdgpu_gem_va args = {
		.handle = handle,
		.operation = AMDGPU_VA_OP_MAP,
		.flags = AMDGPU_VM_DELAY_UPDATE,
		.va_address = va,
		.map_size = size,
	};

	return drm_call(drm, DRM_IOCTL_AMDGPU_GEM_VA, &args);
}

void *gem_mmap(int drm, __u32 handle, __u64 size)
{
	union drm_amdgpu_gem_mmap args = { .in.handle = handle };

	if (drm_call(drm, DRM_IOCTL_AMDGPU_GEM_MMAP, &args))
		return MAP_FAILED;
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, drm, args.out.addr_ptr);
}

int gem_list(int drm, struct drm_amdgpu_gem_list_handles_entry *entries)
{
	struct drm_amdgpu_gem_list_handles args = {
		.entries = (unsigned long)entries,
		.num_entries = MAX_LISTED,
	};
	const int r = drm_call(drm, DRM_IOCTL_AMDGPU_GEM_LIST_HANDLES, &args);

	if (r)
		return r;
	return args.num_entries > MAX_LISTED ? -E2BIG : (int)args.num_entries;
}

int gem_count(int drm)
{
	struct drm_amdgpu_gem_list_handles args = {};
	const int r = drm_call(drm, DRM_IOCTL_AMDGPU_GEM_LIST_HANDLES, &args);

	return r ? r : (int)args.num_entries;
}

static int context(int drm, __u32 op, __u32 *id)
{
	union drm_amdgpu_ctx args = { .in.op = op, .in.ctx_id = *id };
	const int r = drm_call(drm, DRM_IOCTL_AMDGPU_CTX, &args);

	if (!r)
		*id = args.out.alloc.ctx_id;
	return r;
}

int context_create(int drm, __u32 *id)
{
	*id = 0;
	return context(drm, AMDGPU_CTX_OP_ALLOC_CTX, id);
}

int context_create_at(int drm, __u32 id)
{
	__u32 created = id;
	const int r = context(drm, AMDGPU_CTX_OP_ALLOC_AT, &created);

	return !r && created != id ? -EBADMSG : r;
}

int context_destroy(int drm, __u32 id)
{
	return context(drm, AMDGPU_CTX_OP_FREE_CTX, &id);
}

static int create_bo_list(int drm, __u32 operation, __u32 object, __u32 *handle)
{
	struct drm_amdgpu_bo_list_entry entry = { .bo_handle = object };
	union drm_amdgpu_bo_list args = {
		.in = {
			.operation = operation,
			.list_handle = *handle,
			.bo_number = 1,
			.bo_info_size = sizeof(entry),
			.bo_info_ptr = (unsigned long)&entry,
		},
	};
	const int r = drm_call(drm, DRM_IOCTL_AMDGPU_BO_LIST, &args);

	if (!r)
		*handle = args.out.list_handle;
	return r;
}

int bo_list_create(int drm, __u32 object, __u32 *handle)
{
	return create_bo_list(drm, AMDGPU_BO_LIST_OP_CREATE, object, handle);
}

int bo_list_create_at(int drm, __u32 object, __u32 handle)
{
	__u32 created = handle;
	const int r = create_bo_list(drm, AMDGPU_BO_LIST_OP_CREATE_AT, object, &created);

	return !r && created != handle ? -EBADMSG : r;
}

int bo_list_destroy(int drm, __u32 handle)
{
	union drm_amdgpu_bo_list args = {
		.in = {
			.operation = AMDGPU_BO_LIST_OP_DESTROY,
			.list_handle = handle,
			.bo_info_size = sizeof(struct drm_amdgpu_bo_list_entry),
		},
	};

	return drm_call(drm, DRM_IOCTL_AMDGPU_BO_LIST, &args);
}

static __u32 entry_size(__u32 type)
{
	switch (type) {
	case AMDGPU_LIST_CONTEXTS:
		return sizeof(struct drm_amdgpu_list_context);
	case AMDGPU_LIST_BO_LISTS:
		return sizeof(struct drm_amdgpu_list_bo_list_entry);
	default:
		return sizeof(struct drm_amdgpu_list_userptr);
	}
}

int list_objects(int drm, __u32 type, void *entries, __u32 space)
{
	struct drm_amdgpu_list_objects args = {
		.type = type,
		.entry_size = entry_size(type),
		.entries = (unsigned long)entries,
		.count = space,
	};
	const int r = drm_call(drm, DRM_IOCTL_AMDGPU_LIST_OBJECTS, &args);

	return r ? r : (int)args.count;
}

int syncobj_create_at(int drm, __u32 flags, __u32 handle)
{
	struct drm_syncobj_create args = {
		.handle = handle,
		.flags = flags | DRM_SYNCOBJ_CREATE_AT_HANDLE,
	};
	const int r = drm_call(drm, DRM_IOCTL_SYNCOBJ_CREATE, &args);

	return !r && args.handle != handle ? -EBADMSG : r;
}

int syncobj_export(int drm, __u32 handle, int *fd)
{
	struct drm_syncobj_handle args = { .handle = handle };
	const int r = drm_call(drm, DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD, &args);

	*fd = r ? -1 : args.fd;
	return r;
}

int syncobj_import_at(int drm, int fd, __u32 handle)
{
	struct drm_syncobj_handle args = {
		.handle = handle,
		.flags = DRM_SYNCOBJ_FD_TO_HANDLE_FLAGS_AT_HANDLE,
		.fd = fd,
	};
	const int r = drm_call(drm, DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE, &args);

	return !r && args.handle != handle ? -EBADMSG : r;
}

int syncobj_destroy(int drm, __u32 handle)
{
	struct drm_syncobj_destroy args = { .handle = handle };

	return drm_call(drm, DRM_IOCTL_SYNCOBJ_DESTROY, &args);
}

int syncobj_poll(int drm, __u32 handle)
{
	struct drm_syncobj_wait args = {
		.handles = (unsigned long)&handle,
		.count_handles = 1,
		.flags = DRM_SYNCOBJ_WAIT_FLAGS_WAIT_FOR_SUBMIT,
	};

	return drm_call(drm, DRM_IOCTL_SYNCOBJ_WAIT, &args);
}

int syncobj_list(int drm, struct drm_syncobj_list_entry *entries, __u32 space)
{
	struct drm_syncobj_list args = {
		.entries = (unsigned long)entries,
		.count = space,
	};
	const int r = drm_call(drm, DRM_IOCTL_SYNCOBJ_LIST, &args);

	return r ? r : (int)args.count;
}
