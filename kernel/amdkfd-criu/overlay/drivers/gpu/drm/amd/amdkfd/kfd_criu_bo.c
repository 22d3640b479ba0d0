// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * BOs at checkpoint and restore: their properties and mappings. User space
 * reads and writes the contents through a DMA-buf, or has them in its own
 * memory anyway.
 *
 * Several BOs of one or several processes may share their memory. At checkpoint
 * they report the same inode number, that of the memory's DMA-buf. At restore
 * the BO that the memory was allocated for allocates it again, or the caller
 * supplies it, and the other BOs import it.
 *
 * kfd_criu_process_bos.c has what concerns all BOs of a process.
 *
 * Locks: the callers hold p->mutex.
 */
#include <linux/dma-buf.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/rhashtable.h>
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

/**
 * kfd_criu_bo_has_contents - whether user space must copy the contents through
 * a DMA-buf
 * @flags: KFD_IOC_ALLOC_MEM_FLAGS_* of the BO
 *
 * Return: true for VRAM and GTT.
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

/*
 * AMDKFD_IOC_ALLOC_MEMORY_OF_GPU ignores unknown flags, and if several kinds of
 * memory are requested it allocates the first of these.
 */
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

/*
 * Flags for allocating the memory again. An imported BO knows only the kind of
 * its memory; its caching is taken from the GEM object, because at restore the
 * importer may be the first of the BOs and then allocates the memory.
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
 * kfd_criu_bo_describe - describe a BO without its contents and inode number
 * @pdd: the process on the BO's device
 * @handle: handle of the BO
 * @mem: the BO
 * @cb: returns the description
 *
 * Return: 0, or the error of a userptr BO whose user address cannot be
 * determined.
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
 * kfd_criu_bo_export - export a BO as a DMA-buf
 * @mem: the BO; kfd_criu_bo_has_contents() is true for its flags
 * @file: returns the DMA-buf's file; the caller owns the reference
 *
 * Return: 0, or as amdgpu_amdkfd_gpuvm_export_dmabuf().
 */
int kfd_criu_bo_export(struct kgd_mem *mem, struct file **file)
{
	struct dma_buf *dmabuf;
	int r;

	r = amdgpu_amdkfd_gpuvm_export_dmabuf(mem, &dmabuf);
	if (r)
		return r;
	*file = dmabuf->file;
	return 0;
}

/**
 * kfd_criu_bo_get_inode - find out which memory a BO has
 * @mem: the BO
 * @inode: returns the inode number of the memory's DMA-buf; 0 if the memory
 *	cannot be shared
 *
 * DRM gives a GEM object one DMA-buf as long as the object has a handle, and the
 * BO has one. A BO that was imported, even from another device or another
 * driver, refers to the DMA-buf that it was imported from. So the number is equal
 * for all BOs, GEM handles and descriptors of the memory. The BO keeps the
 * DMA-buf, so exporting it later returns it.
 *
 * Return: 0, or as amdgpu_amdkfd_gpuvm_export_dmabuf().
 */
int kfd_criu_bo_get_inode(struct kgd_mem *mem, u64 *inode)
{
	struct file *file;
	int r;

	*inode = 0;
	if (!kfd_criu_bo_has_contents(mem->alloc_flags))
		return 0;
	r = kfd_criu_bo_export(mem, &file);
	if (r)
		return r;
	*inode = file_inode(file)->i_ino;
	fput(file);
	return 0;
}

/*
 * Makes the checks of AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, and refuses memory that is
 * shared although it is of a kind that cannot be.
 */
static int kfd_criu_bo_check(const struct kfd_process_device *pdd,
			     const struct kfd_criu_bo *cb)
{
	const u32 kind = cb->flags & BO_KINDS;

	if (cb->flags & ~BO_FLAGS || hweight32(kind) != 1 ||
	    cb->handle > INT_MAX || !cb->size || !PAGE_ALIGNED(cb->size) ||
	    cb->size > SIZE_MAX / 2)
		return -EINVAL;
	if ((cb->imported || cb->inode) && !kfd_criu_bo_has_contents(kind))
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

/*
 * The address for memory that the BO does not allocate itself; 0 for VRAM and
 * GTT.
 */
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

/*
 * Stores the BO under the handle that the program knows. If that fails, the BO
 * is freed.
 */
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
	/* The allocation halves the size of an AQL queue BO, to map it twice. */
	if (cb->flags & KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM)
		size *= 2;
	r = amdgpu_amdkfd_gpuvm_alloc_memory_of_gpu(pdd->dev->adev, cb->va,
						    size, pdd->drm_priv, mem,
						    &offset, cb->flags, true);
	if (r)
		return r;
	r = kfd_criu_bo_add_handle(pdd, cb, *mem);
	if (r)
		return r;
	if (cb->flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM)
		atomic64_add(cb->size, &pdd->vram_usage);
	return 0;
}

/**
 * struct kfd_criu_memory - memory that BOs of an image can share
 * @node: entry in struct kfd_criu_memories
 * @inode: inode number of that memory in the image
 * @mem: BO that allocated the memory; NULL: the caller supplied it as a DMA-buf
 * @dmabuf: DMA-buf of the memory; NULL until a second BO needs it
 * @is_used: a BO of the image has imported the memory
 */
struct kfd_criu_memory {
	struct rhash_head node;
	u64 inode;
	struct kgd_mem *mem;
	struct dma_buf *dmabuf;
	bool is_used;
};

static const struct rhashtable_params kfd_criu_memories_params = {
	.head_offset = offsetof(struct kfd_criu_memory, node),
	.key_offset = offsetof(struct kfd_criu_memory, inode),
	.key_len = sizeof_field(struct kfd_criu_memory, inode),
	.automatic_shrinking = false,
};

/**
 * struct kfd_criu_memories - memory that exists already
 * @table: struct kfd_criu_memory by the inode number in the image. A BO with
 *	that number imports the memory instead of allocating new memory.
 * @num_unused: entries that the caller supplied and no BO has imported
 * @missing: what to do with an imported BO whose memory is not in @table
 *
 * Not to be placed on the stack, because the hash table contains a work item.
 */
struct kfd_criu_memories {
	struct rhashtable table;
	u32 num_unused;
	enum kfd_criu_missing_memory missing;
};

/**
 * kfd_criu_memories_create - create an empty table for the restore of an image
 * @missing: what to do with an imported BO whose memory is not in the table
 *
 * Return: the table, for kfd_criu_memories_destroy(), or ERR_PTR(-ENOMEM).
 */
struct kfd_criu_memories *
kfd_criu_memories_create(enum kfd_criu_missing_memory missing)
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
	memories->missing = missing;
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
 * kfd_criu_memories_destroy - free the table; the memory stays with the BOs
 * that use it
 * @memories: table from kfd_criu_memories_create()
 */
void kfd_criu_memories_destroy(struct kfd_criu_memories *memories)
{
	rhashtable_free_and_destroy(&memories->table, kfd_criu_memory_free,
				    NULL);
	kfree(memories);
}

static int kfd_criu_memory_insert(struct kfd_criu_memories *memories,
				  u64 inode, struct kgd_mem *mem,
				  struct dma_buf *dmabuf)
{
	struct kfd_criu_memory *m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);
	int r;

	if (!m)
		return -ENOMEM;
	m->inode = inode;
	m->mem = mem;
	m->dmabuf = dmabuf;
	r = rhashtable_lookup_insert_fast(&memories->table, &m->node,
					  kfd_criu_memories_params);
	if (r)
		kfree(m);
	return r;
}

/**
 * kfd_criu_memories_add - add memory that exists before the restore
 * @memories: the table
 * @inode: inode number in the image of the BOs that are to use the memory
 * @dmabuf: DMA-buf of the memory; the table takes over the reference, even on
 *	failure
 *
 * Return: 0; -EEXIST if the number is in the table already; -ENOMEM.
 */
int kfd_criu_memories_add(struct kfd_criu_memories *memories, u64 inode,
			  struct dma_buf *dmabuf)
{
	const int r = kfd_criu_memory_insert(memories, inode, NULL, dmabuf);

	if (r)
		dma_buf_put(dmabuf);
	else
		memories->num_unused++;
	return r;
}

/**
 * kfd_criu_memories_check_used - check that the image has used all memory that
 * the caller supplied
 * @memories: the table, after all BOs of the image have been restored
 *
 * A wrong inode number must not go unnoticed: the BO that the caller meant has
 * memory of its own then, and no longer shares it.
 *
 * Return: 0; -EINVAL if no BO of the image has the inode number of a supplied
 * memory.
 */
int kfd_criu_memories_check_used(const struct kfd_criu_memories *memories)
{
	return memories->num_unused ? -EINVAL : 0;
}

static void kfd_criu_memory_set_used(struct kfd_criu_memories *memories,
				     struct kfd_criu_memory *m)
{
	if (!m->mem && !m->is_used)
		memories->num_unused--;
	m->is_used = true;
}

/*
 * The kind of memory is that of the exporter; all other flags are those that
 * the program requested for this BO. An AQL queue BO is mapped twice, no matter
 * who has allocated the memory.
 */
static int kfd_criu_bo_import(struct kfd_process_device *pdd,
			      const struct kfd_criu_bo *cb,
			      struct kfd_criu_memory *m, struct kgd_mem **mem)
{
	u64 size;
	int r;

	if (!m->dmabuf) {
		r = amdgpu_amdkfd_gpuvm_export_dmabuf(m->mem, &m->dmabuf);
		if (r)
			return r;
	}
	r = amdgpu_amdkfd_gpuvm_import_dmabuf(pdd->dev->adev, m->dmabuf, cb->va,
					      pdd->drm_priv, mem, &size, NULL);
	if (r)
		return r;
	if (size != cb->size) {
		amdgpu_amdkfd_gpuvm_free_memory_of_gpu(pdd->dev->adev, *mem,
						       pdd->drm_priv, NULL);
		return -EINVAL;
	}
	(*mem)->alloc_flags &= BO_KINDS;
	(*mem)->alloc_flags |= cb->flags & ~BO_KINDS;
	(*mem)->aql_queue = cb->flags & KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM;
	return kfd_criu_bo_add_handle(pdd, cb, *mem);
}

static struct kfd_criu_memory *
kfd_criu_memory_find(struct kfd_criu_memories *memories, u64 inode)
{
	if (!memories || !inode)
		return NULL;
	return rhashtable_lookup_fast(&memories->table, &inode,
				      kfd_criu_memories_params);
}

static int kfd_criu_bo_alloc_or_import(struct kfd_process_device *pdd,
				       const struct kfd_criu_bo *cb,
				       struct kfd_criu_memories *memories,
				       struct kgd_mem **mem)
{
	struct kfd_criu_memory *m = kfd_criu_memory_find(memories, cb->inode);
	int r;

	if (m) {
		kfd_criu_memory_set_used(memories, m);
		return kfd_criu_bo_import(pdd, cb, m, mem);
	}
	if (memories && cb->imported &&
	    memories->missing == KFD_CRIU_MISSING_REFUSE)
		return -EREMOTE;
	r = kfd_criu_bo_alloc(pdd, cb, mem);
	if (r || !memories || !cb->inode)
		return r;
	return kfd_criu_memory_insert(memories, cb->inode, *mem, NULL);
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
 * kfd_criu_bo_restore - create a BO from its description and map it
 * @p: process being restored; its devices are bound
 * @cb: description from an image; mmap_offset returns the new offset
 * @memories: memory that the BO can import; new memory is added. NULL: never
 *	share memory
 * @bo: returns the BO
 *
 * Return: 0; -EINVAL if AMDKFD_IOC_ALLOC_MEMORY_OF_GPU would refuse the BO, or
 * if shared memory has another size; -EREMOTE if the memory was allocated for a
 * BO that is not in the image, and is not in @memories; -ENOSPC if the handle is
 * in use; -ENOMEM; as AMDKFD_IOC_IMPORT_DMABUF. After a failure the BO may exist
 * without all of its mappings, see kfd_criu_bo_destroy_all().
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
	if (r)
		return r;
	r = kfd_criu_bo_alloc_or_import(pdd, cb, memories, &mem);
	if (r)
		return r;
	cb->mmap_offset = kfd_criu_bo_mmap_offset(pdd, mem);
	*bo = mem;
	return kfd_criu_bo_map(p, cb, mem);
}
