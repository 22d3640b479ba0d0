// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Which device an mmap offset means. Not how it is mapped.
 *
 * CREATE_QUEUE and ALLOC_MEMORY_OF_GPU tell a program its own ids in offsets,
 * CHECKPOINT and RESTORE the driver's. After a restore on other devices one number
 * can be both, of two devices.
 */
#include <linux/mm.h>
#include "kfd_criu.h"
#include "kfd_priv.h"

/* Until it is resumed a process maps what its image says, with the driver's ids that
 * RESTORE has told. Then the program does, with those that it was told.
 */
static bool kfd_criu_mmap_prefers_user_ids(const struct kfd_process *p)
{
	const enum kfd_criu_state state = READ_ONCE(p->criu.state);

	return state == KFD_CRIU_RUNNING || state == KFD_CRIU_PAUSED;
}

/**
 * kfd_criu_mmap_device - the device that a mapping is for
 * @p: process that maps; its devices do not come and go. No lock is needed
 * @vma: the mapping; its offset gets the driver's id, as CHECKPOINT tells it for the
 *	BO, whatever the program calls the device
 *
 * Return: the device, NULL if the offset has no id, or nobody's.
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
