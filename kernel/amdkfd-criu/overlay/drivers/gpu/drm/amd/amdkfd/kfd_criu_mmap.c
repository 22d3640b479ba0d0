// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Finds the device that an mmap offset of /dev/kfd means; mapping it is up to
 * the caller.
 *
 * CREATE_QUEUE and ALLOC_MEMORY_OF_GPU return offsets with the ids that the
 * program knows; CHECKPOINT and RESTORE return offsets with the driver's ids.
 * After a restore on other devices the same number may be the program's id of
 * one device and the driver's id of another one.
 */
#include <linux/mm.h>
#include "kfd_criu.h"
#include "kfd_priv.h"

/*
 * Before RESUME the process maps what RESTORE returned, with the driver's ids.
 * Afterwards the program maps what its own ioctls returned.
 */
static bool kfd_criu_mmap_prefers_user_ids(const struct kfd_process *p)
{
	const enum kfd_criu_state state = READ_ONCE(p->criu.state);

	return state == KFD_CRIU_RUNNING || state == KFD_CRIU_PAUSED;
}

/**
 * kfd_criu_mmap_device - find the device that a mapping is for
 * @p: process that maps; its list of devices does not change, so no lock is
 *	needed
 * @vma: the mapping; its offset gets the driver's id of the device, as in
 *	CHECKPOINT, so that /proc/PID/maps shows that offset
 *
 * Return: the device; NULL if the offset has no id, or no device has that id.
 */
struct kfd_node *kfd_criu_mmap_device(struct kfd_process *p,
				      struct vm_area_struct *vma)
{
	const u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	const u32 gpu_id = KFD_MMAP_GET_GPU_ID(offset);
	struct kfd_node *by_user_id, *by_id, *node;
	struct kfd_process_device *pdd;

	if (!gpu_id)
		return NULL;
	pdd = kfd_process_device_data_by_id(p, gpu_id);
	by_user_id = pdd ? pdd->dev : NULL;
	by_id = kfd_device_by_id(gpu_id);
	if (kfd_criu_mmap_prefers_user_ids(p))
		node = by_user_id ? by_user_id : by_id;
	else
		node = by_id ? by_id : by_user_id;
	if (node && node->id != gpu_id)
		vma->vm_pgoff = ((offset & ~KFD_MMAP_GPU_ID_MASK) |
				 KFD_MMAP_GPU_ID(node->id)) >> PAGE_SHIFT;
	return node;
}
