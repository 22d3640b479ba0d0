/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * DRM_AMDGPU_LIST_OBJECTS, for the table of ioctls.
 */
#ifndef __AMDGPU_LIST_OBJECTS_H__
#define __AMDGPU_LIST_OBJECTS_H__

struct drm_device;
struct drm_file;

int amdgpu_list_objects_ioctl(struct drm_device *dev, void *data,
			      struct drm_file *filp);

#endif
