// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The process itself and its devices at checkpoint and restore.
 *
 * A device has two ids. gpu_id is the driver's, user_gpu_id what the program calls
 * it: the same until a process is restored on another device.
 *
 * Locks: the callers hold p->mutex.
 */
#include <drm/drm_file.h>
#include <linux/file.h>
#include "kfd_criu.h"
#include "kfd_priv.h"
#include "amdgpu.h"
#include "amdgpu_amdkfd.h"
#include "amdgpu_ttm.h"

/* mmap offsets have room for no more (KFD_MMAP_GPU_ID). */
#define GPU_ID_MASK	0xffff

/**
 * kfd_criu_xnack_restore - let the program's GPUs retry faults, or not
 * @p: process being restored; it has no queues and no SVM ranges yet
 * @enabled: whether they did
 *
 * Return: 0; -EPERM if a device of it cannot.
 */
int kfd_criu_xnack_restore(struct kfd_process *p, bool enabled)
{
	if (enabled && !kfd_process_xnack_mode(p, true))
		return -EPERM;
	p->xnack_enabled = enabled;
	return 0;
}

static bool is_named(struct kfd_process *p, u32 user_gpu_id)
{
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		if (p->pdds[i]->drm_file &&
		    p->pdds[i]->user_gpu_id == user_gpu_id)
			return true;
	return false;
}

/* The VM of another device's file would be walked by the wrong hardware. */
static int check_file(const struct kfd_node *node, struct file *drm_file)
{
	struct amdgpu_fpriv *fpriv;
	int r;

	r = amdgpu_file_to_fpriv(drm_file, &fpriv);
	if (r)
		return r;
	return amdgpu_ttm_adev(fpriv->vm.root.bo->tbo.bdev) == node->adev ?
		       0 : -EINVAL;
}

static int bind(struct kfd_process_device *pdd, struct file *drm_file)
{
	int r;

	r = check_file(pdd->dev, drm_file);
	if (!r)
		r = kfd_process_device_init_vm(pdd, drm_file);
	return r;
}

/* For the device's sleep, and doorbells: once it has a VM it keeps both. */
static int use(struct kfd_process *p, struct kfd_process_device *pdd)
{
	struct kfd_process_device *bound;

	bound = kfd_bind_process_to_device(pdd->dev, p);
	if (IS_ERR(bound))
		return PTR_ERR(bound);
	return kfd_alloc_process_doorbells(pdd->dev->kfd, pdd);
}

/**
 * kfd_criu_device_restore - make a device of this machine a device of an image
 * @p: process being restored
 * @cd: which device takes the place of which
 * @drm_fd: of a file of its render node, in the caller; the process keeps the file
 *
 * Return: 0; -EINVAL if there is no such device or file, it is that of another
 * device, or one of the ids or the file's VM is taken; -EBUSY; -ENOMEM.
 */
int kfd_criu_device_restore(struct kfd_process *p,
			    const struct kfd_criu_device *cd, int drm_fd)
{
	struct kfd_node *node = kfd_device_by_id(cd->gpu_id);
	struct kfd_process_device *pdd;
	struct file *drm_file;
	u32 was;
	int r;

	if (!node || !cd->user_gpu_id || cd->user_gpu_id > GPU_ID_MASK ||
	    is_named(p, cd->user_gpu_id))
		return -EINVAL;
	pdd = kfd_get_process_device_data(node, p);
	if (!pdd || pdd->drm_file)
		return -EINVAL;
	drm_file = fget(drm_fd);
	if (!drm_file)
		return -EINVAL;
	was = pdd->user_gpu_id;
	pdd->user_gpu_id = cd->user_gpu_id;
	r = bind(pdd, drm_file);
	if (r) {
		pdd->user_gpu_id = was;
		fput(drm_file);
		return r;
	}
	return use(p, pdd);
}

static bool is_taken(struct kfd_process *p, const struct kfd_process_device *by,
		     u32 user_gpu_id)
{
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		if (p->pdds[i] != by && p->pdds[i]->user_gpu_id == user_gpu_id)
			return true;
	return false;
}

/**
 * kfd_criu_device_settle - give the other devices ids that are theirs alone
 * @p: process being restored; all devices of the image are
 *
 * A machine may have more devices than the image. The program does not know of
 * them, and they must not answer when it calls one of its own.
 */
void kfd_criu_device_settle(struct kfd_process *p)
{
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++) {
		struct kfd_process_device *pdd = p->pdds[i];
		u32 id = pdd->user_gpu_id;

		if (pdd->drm_file)
			continue;
		while (!id || is_taken(p, pdd, id))
			id = (id + 1) & GPU_ID_MASK;
		pdd->user_gpu_id = id;
	}
}
