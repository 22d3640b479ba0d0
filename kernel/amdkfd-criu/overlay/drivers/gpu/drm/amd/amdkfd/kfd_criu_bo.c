// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * BOs at checkpoint and restore: what they are and where they are mapped. What is in
 * them goes through a DMA-buf, or is memory of the process anyway.
 *
 * Several BOs may be the same memory, of one process or of several. At checkpoint they
 * have the same identity then; at restore the first one makes the memory, and the others
 * import it.
 *
 * Locks: the callers hold p->mutex.
 */
#include <linux/dma-buf.h>
#include <linux/idr.h>
#include <linux/once.h>
#include <linux/random.h>
#include <linux/rhashtable.h>
#include <linux/siphash.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "kfd_criu.h"
#include "kfd_priv.h"
#include "amdgpu_amdkfd.h"
#include "amdgpu_dma_buf.h"
#include "amdgpu_ttm.h"

#define BO_KINDS \
	(KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_GTT | \
	 KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL | \
	 KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP)
#define BO_FLAGS \
	(BO_KINDS | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | \
	 KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC | \
	 KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE | \
	 KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM | \
	 KFD_IOC_ALLOC_MEM_FLAGS_COHERENT | KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED | \
	 KFD_IOC_ALLOC_MEM_FLAGS_EXT_COHERENT | \
	 KFD_IOC_ALLOC_MEM_FLAGS_CONTIGUOUS)

/* For idr_for_each(): idr_for_each_entry() looks for each one from the root on, and there
 * may be thousands.
 */
static int kfd_criu_bo_count_one(int id, void *mem, void *data)
{
	u32 *n = data;

	++*n;
	return 0;
}

/**
 * kfd_criu_bo_count - how many BOs a process has
 * @p: the process
 */
u32 kfd_criu_bo_count(const struct kfd_process *p)
{
	unsigned int i;
	u32 n = 0;

	for (i = 0; i < p->n_pdds; i++)
		idr_for_each(&p->pdds[i]->alloc_idr, kfd_criu_bo_count_one, &n);
	return n;
}

/**
 * kfd_criu_bo_has_contents - whether a BO's contents go through a DMA-buf
 * @flags: KFD_IOC_ALLOC_MEM_FLAGS_* of it
 */
bool kfd_criu_bo_has_contents(u32 flags)
{
	return flags & (KFD_IOC_ALLOC_MEM_FLAGS_VRAM |
			KFD_IOC_ALLOC_MEM_FLAGS_GTT);
}

static u64 kfd_criu_bo_mmap_offset(const struct kfd_process_device *pdd,
				   const struct kgd_mem *mem)
{
	if (mem->alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL)
		return KFD_MMAP_TYPE_DOORBELL | KFD_MMAP_GPU_ID(pdd->dev->id);
	if (mem->alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP)
		return KFD_MMAP_TYPE_MMIO | KFD_MMAP_GPU_ID(pdd->dev->id);
	return amdgpu_bo_mmap_offset(mem->bo);
}

/**
 * kfd_criu_bo_identity - which memory a BO is
 * @mem: the BO
 *
 * What a device has imported from another one is a BO of its own there.
 *
 * Return: the same for every handle of the memory, until it is freed; no address.
 */
u64 kfd_criu_bo_identity(const struct kgd_mem *mem)
{
	const struct drm_gem_object *obj = &mem->bo->tbo.base;
	const void *memory = obj->import_attach ?
				     obj->import_attach->dmabuf->priv : obj;
	static siphash_key_t key;

	get_random_once(&key, sizeof(key));
	return siphash_1u64((uintptr_t)memory, &key);
}

/* AMDKFD_IOC_ALLOC_MEMORY_OF_GPU takes any bits, and of several kinds the first of these. */
static u32 kfd_criu_bo_effective_flags(u32 flags)
{
	static const u32 kinds[] = {
		KFD_IOC_ALLOC_MEM_FLAGS_VRAM,
		KFD_IOC_ALLOC_MEM_FLAGS_GTT,
		KFD_IOC_ALLOC_MEM_FLAGS_USERPTR,
		KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL,
		KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (flags & kinds[i])
			return (flags & BO_FLAGS & ~BO_KINDS) | kinds[i];
	return flags & BO_FLAGS;
}

/* What was asked for the memory, as far as GPUs see it. An import knows only where it is;
 * but the importer may be restored first, and makes it then.
 */
static u32 kfd_criu_bo_flags(const struct kgd_mem *mem)
{
	const u64 gem_flags = mem->bo->flags;
	u32 flags = kfd_criu_bo_effective_flags(mem->alloc_flags);

	if (!mem->is_imported)
		return flags;
	if (gem_flags & AMDGPU_GEM_CREATE_COHERENT)
		flags |= KFD_IOC_ALLOC_MEM_FLAGS_COHERENT;
	if (gem_flags & AMDGPU_GEM_CREATE_EXT_COHERENT)
		flags |= KFD_IOC_ALLOC_MEM_FLAGS_EXT_COHERENT;
	if (gem_flags & AMDGPU_GEM_CREATE_UNCACHED)
		flags |= KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED;
	return flags;
}

/**
 * kfd_criu_bo_describe - everything of a BO but its contents and its identity
 * @pdd: the process on the BO's device
 * @handle: of the BO
 * @mem: the BO
 * @cb: is filled in
 *
 * Return: 0, or why it has no user address though it should.
 */
int kfd_criu_bo_describe(const struct kfd_process_device *pdd, u32 handle,
			 struct kgd_mem *mem, struct kfd_criu_bo *cb)
{
	const struct kfd_process *p = pdd->process;
	unsigned int i;

	memset(cb, 0, sizeof(*cb));
	cb->gpu_id = pdd->user_gpu_id;
	cb->handle = handle;
	cb->flags = kfd_criu_bo_flags(mem);
	cb->va = mem->va;
	cb->size = amdgpu_bo_size(mem->bo);
	cb->mmap_offset = kfd_criu_bo_mmap_offset(pdd, mem);
	cb->imported = mem->is_imported;
	for (i = 0; i < p->n_pdds; i++)
		if (p->pdds[i]->drm_priv &&
		    amdgpu_amdkfd_bo_mapped_to_dev(p->pdds[i]->drm_priv, mem))
			__set_bit(i, cb->mapped);
	if (!(cb->flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR))
		return 0;
	return amdgpu_ttm_tt_get_userptr(&mem->bo->tbo, &cb->user_addr);
}

/**
 * kfd_criu_bo_export - a DMA-buf of a BO
 * @mem: the BO; kfd_criu_bo_has_contents()
 * @file: gets its file, which is the caller's
 *
 * Return: 0, or as amdgpu_amdkfd_gpuvm_export_dmabuf().
 */
int kfd_criu_bo_export(struct kgd_mem *mem, struct file **file)
{
	struct dma_buf *dmabuf;
	int r;

	r = amdgpu_amdkfd_gpuvm_export_dmabuf(mem, &dmabuf);
	if (!r)
		*file = dmabuf->file;
	return r;
}

/* As for AMDKFD_IOC_ALLOC_MEMORY_OF_GPU. */
static int kfd_criu_bo_check(const struct kfd_process_device *pdd,
			     const struct kfd_criu_bo *cb)
{
	const u32 kind = cb->flags & BO_KINDS;

	if (cb->flags & ~BO_FLAGS || hweight32(kind) != 1 ||
	    cb->handle > INT_MAX || !cb->size || !PAGE_ALIGNED(cb->size) ||
	    cb->size > SIZE_MAX / 2)
		return -EINVAL;
	switch (kind) {
	case KFD_IOC_ALLOC_MEM_FLAGS_VRAM:
		return cb->flags & KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC &&
		       !kfd_dev_is_large_bar(pdd->dev) ? -EINVAL : 0;
	case KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL:
		return cb->size == kfd_doorbell_process_slice(pdd->dev->kfd) ?
			       0 : -EINVAL;
	case KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP:
		return cb->size == PAGE_SIZE && cb->size == SZ_4K ? 0 : -EINVAL;
	case KFD_IOC_ALLOC_MEM_FLAGS_USERPTR:
		return cb->user_addr &&
		       access_ok((void __user *)(uintptr_t)cb->user_addr,
				 cb->size) ? 0 : -EINVAL;
	default:
		return 0;
	}
}

/* Where it is, of what is not memory of the BO itself. */
static int kfd_criu_bo_alloc_offset(struct kfd_process_device *pdd,
				    const struct kfd_criu_bo *cb, u64 *offset)
{
	*offset = 0;
	if (cb->flags & KFD_IOC_ALLOC_MEM_FLAGS_USERPTR)
		*offset = cb->user_addr;
	else if (cb->flags & KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL)
		*offset = kfd_get_process_doorbells(pdd);
	else if (cb->flags & KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP)
		*offset = pdd->dev->adev->rmmio_remap.bus_addr;
	else
		return 0;
	return *offset ? 0 : -ENOMEM;
}

/* Under the program's handle. What cannot have it is freed. */
static int kfd_criu_bo_add_handle(struct kfd_process_device *pdd,
				  const struct kfd_criu_bo *cb,
				  struct kgd_mem *mem)
{
	const int r = idr_alloc(&pdd->alloc_idr, mem, cb->handle,
				cb->handle + 1, GFP_KERNEL_ACCOUNT);

	if (r >= 0)
		return 0;
	amdgpu_amdkfd_gpuvm_free_memory_of_gpu(pdd->dev->adev, mem,
					       pdd->drm_priv, NULL);
	return r;
}

static int kfd_criu_bo_alloc(struct kfd_process_device *pdd,
			     const struct kfd_criu_bo *cb, struct kgd_mem **mem)
{
	u64 size = cb->size;
	u64 offset;
	int r;

	r = kfd_criu_bo_alloc_offset(pdd, cb, &offset);
	if (r)
		return r;
	/* What is mapped twice in a row has half the size that was asked for. */
	if (cb->flags & KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM)
		size *= 2;
	r = amdgpu_amdkfd_gpuvm_alloc_memory_of_gpu(pdd->dev->adev, cb->va,
						    size, pdd->drm_priv, mem,
						    &offset, cb->flags, true);
	if (!r)
		r = kfd_criu_bo_add_handle(pdd, cb, *mem);
	if (!r && cb->flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM)
		atomic64_add(cb->size, &pdd->vram_usage);
	return r;
}

/**
 * struct memory - that BOs may be
 * @node: of struct kfd_criu_memories
 * @identity: that they have in the image
 * @mem: BO that made it; NULL: the caller gave it
 * @dmabuf: of it; NULL: nobody has asked for one yet
 */
struct kfd_criu_memory {
	struct rhash_head node;
	u64 identity;
	struct kgd_mem *mem;
	struct dma_buf *dmabuf;
};

static const struct rhashtable_params kfd_criu_memories_params = {
	.head_offset = offsetof(struct kfd_criu_memory, node),
	.key_offset = offsetof(struct kfd_criu_memory, identity),
	.key_len = sizeof_field(struct kfd_criu_memory, identity),
	.automatic_shrinking = false,
};

/*
 * What BOs of an image may be, instead of new memory; by the identity that it has in the
 * image. Not for the stack: the table has a work item.
 */
struct kfd_criu_memories {
	struct rhashtable table;
};

/**
 * kfd_criu_memories_create - of an image that is going to be restored
 *
 * Return: none yet, for kfd_criu_memories_destroy(); or ERR_PTR(-ENOMEM).
 */
struct kfd_criu_memories *kfd_criu_memories_create(void)
{
	struct kfd_criu_memories *memories;
	int r;

	memories = kzalloc(sizeof(*memories), GFP_KERNEL_ACCOUNT);
	if (!memories)
		return ERR_PTR(-ENOMEM);
	r = rhashtable_init(&memories->table, &kfd_criu_memories_params);
	if (r) {
		kfree(memories);
		return ERR_PTR(r);
	}
	return memories;
}

static void kfd_criu_memory_free(void *memory, void *unused)
{
	struct kfd_criu_memory *m = memory;

	if (m->dmabuf)
		dma_buf_put(m->dmabuf);
	kfree(m);
}

/**
 * kfd_criu_memories_destroy - its BOs have been made, or could not be
 * @memories: kfd_criu_memories_create()
 */
void kfd_criu_memories_destroy(struct kfd_criu_memories *memories)
{
	rhashtable_free_and_destroy(&memories->table, kfd_criu_memory_free,
				    NULL);
	kfree(memories);
}

static int kfd_criu_memory_insert(struct kfd_criu_memories *memories,
				  u64 identity, struct kgd_mem *mem,
				  struct dma_buf *dmabuf)
{
	struct kfd_criu_memory *m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);
	int r;

	if (!m)
		return -ENOMEM;
	m->identity = identity;
	m->mem = mem;
	m->dmabuf = dmabuf;
	r = rhashtable_lookup_insert_fast(&memories->table, &m->node,
					  kfd_criu_memories_params);
	if (r)
		kfree(m);
	return r;
}

/**
 * kfd_criu_memories_add - memory that is there already
 * @memories: of the image
 * @identity: of the BOs of the image that are this memory
 * @dmabuf: of it; the caller's reference goes along
 *
 * Return: 0; -EEXIST if it has been said already; -ENOMEM.
 */
int kfd_criu_memories_add(struct kfd_criu_memories *memories, u64 identity,
			  struct dma_buf *dmabuf)
{
	const int r = kfd_criu_memory_insert(memories, identity, NULL, dmabuf);

	if (r)
		dma_buf_put(dmabuf);
	return r;
}

/* The domain is that of the memory, everything else was the program's wish. */
static int kfd_criu_bo_import(struct kfd_process_device *pdd,
			      const struct kfd_criu_bo *cb,
			      struct kfd_criu_memory *m, struct kgd_mem **mem)
{
	u64 size;
	int r = 0;

	if (!m->dmabuf)
		r = amdgpu_amdkfd_gpuvm_export_dmabuf(m->mem, &m->dmabuf);
	if (!r)
		r = amdgpu_amdkfd_gpuvm_import_dmabuf(pdd->dev->adev, m->dmabuf,
						      cb->va, pdd->drm_priv,
						      mem, &size, NULL);
	if (r)
		return r;
	if (size != cb->size) {
		amdgpu_amdkfd_gpuvm_free_memory_of_gpu(pdd->dev->adev, *mem,
						       pdd->drm_priv, NULL);
		return -EINVAL;
	}
	(*mem)->alloc_flags &= BO_KINDS;
	(*mem)->alloc_flags |= cb->flags & ~BO_KINDS;
	return kfd_criu_bo_add_handle(pdd, cb, *mem);
}

/* What is mapped twice in a row cannot be imported. */
static bool kfd_criu_bo_can_share(const struct kfd_criu_bo *cb)
{
	return cb->identity && kfd_criu_bo_has_contents(cb->flags) &&
	       !(cb->flags & KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM);
}

static int kfd_criu_bo_alloc_or_import(struct kfd_process_device *pdd,
				       const struct kfd_criu_bo *cb,
				       struct kfd_criu_memories *memories,
				       struct kgd_mem **mem)
{
	struct kfd_criu_memory *m;
	int r;

	if (!memories || !kfd_criu_bo_can_share(cb))
		return kfd_criu_bo_alloc(pdd, cb, mem);
	m = rhashtable_lookup_fast(&memories->table, &cb->identity,
				   kfd_criu_memories_params);
	if (m)
		return kfd_criu_bo_import(pdd, cb, m, mem);
	r = kfd_criu_bo_alloc(pdd, cb, mem);
	return r ? r :
		   kfd_criu_memory_insert(memories, cb->identity, *mem, NULL);
}

static int kfd_criu_bo_map(struct kfd_process *p, const struct kfd_criu_bo *cb,
			   struct kgd_mem *mem)
{
	unsigned int i;

	for_each_set_bit(i, cb->mapped, p->n_pdds) {
		struct kfd_process_device *peer = p->pdds[i];
		int r;

		if (!peer->drm_priv)
			return -EINVAL;
		r = amdgpu_amdkfd_gpuvm_map_memory_to_gpu(peer->dev->adev, mem,
							  peer->drm_priv);
		if (r)
			return r;
	}
	return 0;
}

/**
 * kfd_criu_bo_restore - make a BO again, and map it
 * @p: process being restored; its devices are
 * @cb: from an image; mmap_offset gets the one it has now
 * @memories: what it may be, and what it is remembered in; NULL: it is new memory
 * @bo: gets the BO
 *
 * Return: 0; -EINVAL for what AMDKFD_IOC_ALLOC_MEMORY_OF_GPU would refuse, or if the
 * memory has another size; -ENOSPC if the handle is taken; -ENOMEM; as
 * AMDKFD_IOC_IMPORT_DMABUF. On failure there may be a BO that is not mapped everywhere:
 * kfd_criu_bo_destroy_all().
 */
int kfd_criu_bo_restore(struct kfd_process *p, struct kfd_criu_bo *cb,
			struct kfd_criu_memories *memories,
			struct kgd_mem **bo)
{
	struct kfd_process_device *pdd;
	struct kgd_mem *mem;
	int r;

	pdd = kfd_process_device_data_by_id(p, cb->gpu_id);
	if (!pdd || !pdd->drm_priv)
		return -EINVAL;
	r = kfd_criu_bo_check(pdd, cb);
	if (!r)
		r = kfd_criu_bo_alloc_or_import(pdd, cb, memories, &mem);
	if (r)
		return r;
	cb->mmap_offset = kfd_criu_bo_mmap_offset(pdd, mem);
	*bo = mem;
	return kfd_criu_bo_map(p, cb, mem);
}

/* Of the BO itself: a copy needs memory, and for want of it nobody would wait. */
static int kfd_criu_bo_sync_one(int id, void *data, void *unused)
{
	struct kgd_mem *mem = data;

	mutex_lock(&mem->lock);
	amdgpu_sync_wait(&mem->sync, false);
	mutex_unlock(&mem->lock);
	return 0;
}

/**
 * kfd_criu_bo_sync_all - wait until all BOs are in the GPUs' page tables
 * @p: process being resumed
 *
 * Whatever signal the caller has: there is no second RESUME.
 */
void kfd_criu_bo_sync_all(struct kfd_process *p)
{
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		idr_for_each(&p->pdds[i]->alloc_idr, kfd_criu_bo_sync_one,
			     NULL);
}

/* Interrupts look at its slots without a lock. */
static void kfd_criu_free_signal_page(struct kfd_process *p)
{
	struct kfd_signal_page *page;

	/* That of the last event that there was acknowledges it in the page. */
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
	/* Of one that could not be unmapped nothing was freed: the end of the process will
	 * try again.
	 */
	if (amdgpu_amdkfd_gpuvm_free_memory_of_gpu(pdd->dev->adev, mem,
						   pdd->drm_priv,
						   NULL) == -EBUSY)
		return;
	atomic64_sub(vram_size, &pdd->vram_usage);
	kfd_process_device_remove_obj_handle(pdd, id);
}

/**
 * kfd_criu_bo_destroy_all - give back what was made
 * @p: process whose restore has failed; it has no queues and no events
 *
 * For a worker: locks are waited for interruptibly, so a signal would leave a BO.
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
	/* Or BOs of other users of the VM would never hear of their pages again. */
	if (info)
		WRITE_ONCE(info->block_mmu_notifications, false);
}
