// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Calls ioctls of render nodes, without libdrm.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <drm/amdgpu_drm.h>
#include <drm/drm.h>
#include "gem.h"

int gem_open_render_node(const struct kfd_gpu *gpu)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/dev/dri/renderD%u", gpu->render_minor);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int gem_create(int drm, __u64 size, __u32 *handle)
{
	union drm_amdgpu_gem_create args = {
		.in = {
			.bo_size = size,
			.alignment = KFD_PAGE,
			.domains = AMDGPU_GEM_DOMAIN_GTT,
		},
	};
	int r = kfd_call(drm, DRM_IOCTL_AMDGPU_GEM_CREATE, &args);

	*handle = args.out.handle;
	return r;
}

int gem_close(int drm, __u32 handle)
{
	struct drm_gem_close args = { .handle = handle };

	return kfd_call(drm, DRM_IOCTL_GEM_CLOSE, &args);
}

int gem_export(int drm, __u32 handle, int *fd)
{
	struct drm_prime_handle args = {
		.handle = handle,
		.flags = DRM_CLOEXEC | DRM_RDWR,
	};
	int r = kfd_call(drm, DRM_IOCTL_PRIME_HANDLE_TO_FD, &args);

	*fd = args.fd;
	return r;
}

int gem_import(int drm, int fd, __u32 *handle)
{
	struct drm_prime_handle args = { .fd = fd };
	int r = kfd_call(drm, DRM_IOCTL_PRIME_FD_TO_HANDLE, &args);

	*handle = args.handle;
	return r;
}

static int change_mapping(int drm, __u32 operation, __u32 flags, __u32 handle,
			  __u64 va, __u64 size)
{
	struct drm_amdgpu_gem_va args = {
		.handle = handle,
		.operation = operation,
		.flags = flags,
		.va_address = va,
		.map_size = size,
	};

	return kfd_call(drm, DRM_IOCTL_AMDGPU_GEM_VA, &args);
}

#define READ_WRITE (AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE)

int gem_map(int drm, __u32 handle, __u64 va, __u64 size)
{
	return change_mapping(drm, AMDGPU_VA_OP_MAP, READ_WRITE, handle, va,
			      size);
}

int gem_replace(int drm, __u32 handle, __u64 va, __u64 size)
{
	return change_mapping(drm, AMDGPU_VA_OP_REPLACE, READ_WRITE, handle, va,
			      size);
}

int gem_unmap(int drm, __u32 handle, __u64 va, __u64 size)
{
	return change_mapping(drm, AMDGPU_VA_OP_UNMAP, 0, handle, va, size);
}

int gem_clear(int drm, __u64 va, __u64 size)
{
	return change_mapping(drm, AMDGPU_VA_OP_CLEAR, 0, 0, va, size);
}

int gem_map_prt(int drm, __u64 va, __u64 size)
{
	return change_mapping(drm, AMDGPU_VA_OP_MAP, AMDGPU_VM_PAGE_PRT, 0, va,
			      size);
}

int gem_unmap_prt(int drm, __u64 va, __u64 size)
{
	return change_mapping(drm, AMDGPU_VA_OP_UNMAP, AMDGPU_VM_PAGE_PRT, 0,
			      va, size);
}

int gem_context_create(int drm, __u32 *context)
{
	union drm_amdgpu_ctx args = { .in.op = AMDGPU_CTX_OP_ALLOC_CTX };
	int r = kfd_call(drm, DRM_IOCTL_AMDGPU_CTX, &args);

	*context = args.out.alloc.ctx_id;
	return r;
}

int gem_context_destroy(int drm, __u32 context)
{
	union drm_amdgpu_ctx args = {
		.in.op = AMDGPU_CTX_OP_FREE_CTX,
		.in.ctx_id = context,
	};

	return kfd_call(drm, DRM_IOCTL_AMDGPU_CTX, &args);
}

int gem_bo_list_create(int drm, __u32 *list)
{
	union drm_amdgpu_bo_list args = {
		.in.operation = AMDGPU_BO_LIST_OP_CREATE,
		.in.bo_info_size = sizeof(struct drm_amdgpu_bo_list_entry),
	};
	int r = kfd_call(drm, DRM_IOCTL_AMDGPU_BO_LIST, &args);

	*list = args.out.list_handle;
	return r;
}

int gem_bo_list_destroy(int drm, __u32 list)
{
	union drm_amdgpu_bo_list args = {
		.in.operation = AMDGPU_BO_LIST_OP_DESTROY,
		.in.list_handle = list,
		.in.bo_info_size = sizeof(struct drm_amdgpu_bo_list_entry),
	};

	return kfd_call(drm, DRM_IOCTL_AMDGPU_BO_LIST, &args);
}

int gem_syncobj_create(int drm, __u32 *syncobj)
{
	struct drm_syncobj_create args = {};
	int r = kfd_call(drm, DRM_IOCTL_SYNCOBJ_CREATE, &args);

	*syncobj = args.handle;
	return r;
}

int gem_syncobj_destroy(int drm, __u32 syncobj)
{
	struct drm_syncobj_destroy args = { .handle = syncobj };

	return kfd_call(drm, DRM_IOCTL_SYNCOBJ_DESTROY, &args);
}

__u64 file_inode(int fd)
{
	struct stat status;

	return fstat(fd, &status) ? 0 : status.st_ino;
}
