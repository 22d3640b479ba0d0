/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Objects of a render node, which amdkfd has not created: GEM handles, mappings, contexts,
 * BO lists and sync objects. `drm` is a file of a render node. Functions return 0 or a
 * negative errno unless their comment says otherwise.
 */
#ifndef KFD_CRIU_SELFTEST_GEM_H
#define KFD_CRIU_SELFTEST_GEM_H

#include "kfd.h"

/* Opens the GPU's render node once more. Returns a descriptor, or a negative errno. */
int gem_open_render_node(const struct kfd_gpu *gpu);

/* Creates a GEM object in system memory. */
int gem_create(int drm, __u64 size, __u32 *handle);
int gem_close(int drm, __u32 handle);
/* DRM_IOCTL_PRIME_HANDLE_TO_FD and DRM_IOCTL_PRIME_FD_TO_HANDLE. */
int gem_export(int drm, __u32 handle, int *fd);
int gem_import(int drm, int fd, __u32 *handle);

/* Operations of DRM_IOCTL_AMDGPU_GEM_VA. `handle` is 0 for gem_clear(). */
int gem_map(int drm, __u32 handle, __u64 va, __u64 size);
int gem_replace(int drm, __u32 handle, __u64 va, __u64 size);
int gem_unmap(int drm, __u32 handle, __u64 va, __u64 size);
int gem_clear(int drm, __u64 va, __u64 size);
/* Maps and unmaps a partially resident texture without memory. */
int gem_map_prt(int drm, __u64 va, __u64 size);
int gem_unmap_prt(int drm, __u64 va, __u64 size);

int gem_context_create(int drm, __u32 *context);
int gem_context_destroy(int drm, __u32 context);
/* Creates a BO list without BOs. */
int gem_bo_list_create(int drm, __u32 *list);
int gem_bo_list_destroy(int drm, __u32 list);
int gem_syncobj_create(int drm, __u32 *syncobj);
int gem_syncobj_destroy(int drm, __u32 syncobj);

/* The inode number that fstat() reports; 0 if that fails. */
__u64 file_inode(int fd);

#endif /* KFD_CRIU_SELFTEST_GEM_H */
