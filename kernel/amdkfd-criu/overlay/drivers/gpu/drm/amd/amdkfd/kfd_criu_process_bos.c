// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * All BOs of a process: their number, the wait for their page tables, and how
 * they are freed after a restore that has failed. kfd_criu_bo.c has what
 * concerns one BO.
 *
 * Locks: the callers hold p->mutex.
 */
#include <linux/idr.h>
#include <linux/slab.h>
#include "kfd_criu.h"
#include "kfd_priv.h"
#include "amdgpu_amdkfd.h"

/*
 * Callback of idr_for_each(). idr_for_each_entry() would look up each of what
 * may be thousands of BOs from the root of the tree.
 */
static int kfd_criu_bo_count_one(int id, void *mem, void *data)
{
	u32 *n = data;

	++*n;
	return 0;
}

/**
 * kfd_criu_bo_count - count the BOs of a process
 * @p: the process
 *
 * Return: the number of BOs on all devices.
 */
u32 kfd_criu_bo_count(const struct kfd_process *p)
{
	unsigned int i;
	u32 n = 0;

	for (i = 0; i < p->n_pdds; i++)
		idr_for_each(&p->pdds[i]->alloc_idr, kfd_criu_bo_count_one, &n);
	return n;
}

/*
 * Waits on the BO's own sync object: copying that could fail for lack of
 * memory.
 */
static int kfd_criu_bo_sync_one(int id, void *data, void *unused)
{
	struct kgd_mem *mem = data;
	int r;

	mutex_lock(&mem->lock);
	r = amdgpu_sync_wait(&mem->sync, true);
	mutex_unlock(&mem->lock);
	return r;
}

/**
 * kfd_criu_bo_sync_all - wait until the page tables of all BOs are up to date
 * @p: process in the state RESUMING, so that its BOs stay; its mutex need not be
 *	held, and should not: an update may wait for whoever else uses memory that
 *	was passed to RESTORE
 *
 * Return: 0; -ERESTARTSYS if a signal is pending, which a thread of the driver
 * gets only when the process has ended.
 */
int kfd_criu_bo_sync_all(struct kfd_process *p)
{
	unsigned int i;
	int r;

	for (i = 0; i < p->n_pdds; i++) {
		r = idr_for_each(&p->pdds[i]->alloc_idr, kfd_criu_bo_sync_one,
				 NULL);
		if (r)
			return r;
	}
	return 0;
}

/* The interrupt worker reads the slots under RCU only. */
static void kfd_criu_free_signal_page(struct kfd_process *p)
{
	struct kfd_signal_page *page;

	/*
	 * Waits for an interrupt worker that still acknowledges the last event
	 * in this page.
	 */
	synchronize_rcu();
	mutex_lock(&p->event_mutex);
	page = p->signal_page;
	WRITE_ONCE(p->signal_page, NULL);
	p->signal_mapped_size = 0;
	mutex_unlock(&p->event_mutex);
	synchronize_rcu();
	kfree(page);
}

static void kfd_criu_release_signal_page(struct kfd_process *p)
{
	struct kfd_process_device *pdd;
	struct kgd_mem *mem;

	if (!p->signal_handle)
		return;
	kfd_criu_free_signal_page(p);
	pdd = kfd_process_device_data_by_id(p, GET_GPU_ID(p->signal_handle));
	if (!pdd)
		return;
	mem = kfd_process_device_translate_handle(pdd,
						  GET_IDR_HANDLE(p->signal_handle));
	if (mem)
		amdgpu_amdkfd_gpuvm_unmap_gtt_bo_from_kernel(mem);
	p->signal_handle = 0;
}

static void kfd_criu_bo_destroy(struct kfd_process_device *pdd,
				struct kgd_mem *mem, int id)
{
	struct kfd_process *p = pdd->process;
	const s64 vram_size = mem->alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM &&
			      !mem->is_imported ? amdgpu_bo_size(mem->bo) : 0;
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		if (p->pdds[i]->drm_priv)
			amdgpu_amdkfd_gpuvm_unmap_memory_from_gpu(p->pdds[i]->dev->adev,
								  mem,
								  p->pdds[i]->drm_priv);
	/*
	 * If an unmap failed, nothing was freed; process teardown tries again.
	 */
	if (amdgpu_amdkfd_gpuvm_free_memory_of_gpu(pdd->dev->adev, mem,
						   pdd->drm_priv,
						   NULL) == -EBUSY)
		return;
	atomic64_sub(vram_size, &pdd->vram_usage);
	kfd_process_device_remove_obj_handle(pdd, id);
}

/**
 * kfd_criu_bo_destroy_all - destroy all BOs of a process
 * @p: process whose restore has failed; it has no queues and no events
 *
 * Must be called from a worker: some locks are taken interruptibly, so a
 * pending signal would leak a BO.
 */
void kfd_criu_bo_destroy_all(struct kfd_process *p)
{
	struct amdkfd_process_info *info = p->kgd_process_info;
	unsigned int i;
	void *mem;
	int id;

	kfd_criu_release_signal_page(p);
	for (i = 0; i < p->n_pdds; i++) {
		struct kfd_process_device *pdd = p->pdds[i];

		idr_for_each_entry(&pdd->alloc_idr, mem, id)
			kfd_criu_bo_destroy(pdd, mem, id);
	}
	if (!info)
		return;
	/*
	 * Other users of the VM may have userptr BOs that rely on MMU
	 * notifications. A notification in progress reads the member under the
	 * lock.
	 */
	mutex_lock(&info->notifier_lock);
	info->block_mmu_notifications = false;
	mutex_unlock(&info->notifier_lock);
}
