// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Lists the objects of a DRM file that a checkpointer has to create again: contexts, BO
 * lists and GEM objects of user memory. A list is made by walking the file's table
 * twice, first to count the entries, then to describe them.
 */
#include <linux/hash.h>
#include <linux/nospec.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <drm/amdgpu_drm.h>
#include <drm/drm_file.h>
#include <drm/drm_gem.h>
#include "amdgpu.h"
#include "amdgpu_list_objects.h"

/**
 * struct amdgpu_object_list - entries for user space
 * @entries: zeroed array of one of the structures drm_amdgpu_list_*
 * @space: size of the array; 0: entries are only counted
 * @count: number of entries, also of those for which there is no space
 */
struct amdgpu_object_list {
	void *entries;
	u64 space;
	u64 count;
};

/* Returns the index of the next entry, or -1 if it is only counted. */
static s64 amdgpu_object_list_next(struct amdgpu_object_list *list)
{
	const u64 index = list->count++;

	return index < list->space ? index : -1;
}

/* Whether the scheduler has jobs of the entity that have not finished. */
static bool amdgpu_list_entity_is_busy(struct drm_sched_entity *entity)
{
	struct dma_fence *fence;
	bool busy;

	if (spsc_queue_count(&entity->job_queue))
		return true;

	/* Pairs with drm_sched_entity_pop_job(), which sets last_scheduled before it pops. */
	smp_rmb();
	rcu_read_lock();
	fence = rcu_dereference(entity->last_scheduled);
	busy = fence && !test_bit(DMA_FENCE_FLAG_SIGNALED_BIT, &fence->flags);
	rcu_read_unlock();
	return busy;
}

static bool amdgpu_list_context_is_busy(struct amdgpu_ctx *ctx)
{
	struct amdgpu_ctx_entity *centity;
	unsigned int i, j;

	for (i = 0; i < AMDGPU_HW_IP_NUM; i++) {
		for (j = 0; j < AMDGPU_MAX_ENTITY_NUM; j++) {
			centity = READ_ONCE(ctx->entities[i][j]);
			if (centity && amdgpu_list_entity_is_busy(&centity->entity))
				return true;
		}
	}
	return false;
}

/* Returns the highest of the numbers that the next fences of the engines have. */
static u64 amdgpu_list_context_sequence(struct amdgpu_ctx *ctx)
{
	u64 sequence = READ_ONCE(ctx->first_sequence);
	struct amdgpu_ctx_entity *centity;
	unsigned int i, j;

	spin_lock(&ctx->ring_lock);
	for (i = 0; i < AMDGPU_HW_IP_NUM; i++) {
		for (j = 0; j < AMDGPU_MAX_ENTITY_NUM; j++) {
			centity = READ_ONCE(ctx->entities[i][j]);
			if (centity)
				sequence = max(sequence, centity->sequence);
		}
	}
	spin_unlock(&ctx->ring_lock);
	return sequence;
}

static void amdgpu_list_context(struct amdgpu_fpriv *fpriv, u32 id,
				struct amdgpu_ctx *ctx,
				struct drm_amdgpu_list_context *entry)
{
	struct amdgpu_device *adev = ctx->mgr->adev;

	entry->id = id;
	entry->priority = ctx->init_priority;
	if (atomic_read(&ctx->guilty))
		entry->flags |= AMDGPU_LIST_CONTEXT_GUILTY;
	if (ctx->reset_counter != atomic_read(&adev->gpu_reset_counter) ||
	    ctx->generation != amdgpu_vm_generation(adev, &fpriv->vm))
		entry->flags |= AMDGPU_LIST_CONTEXT_RESET;
	if (amdgpu_list_context_is_busy(ctx))
		entry->flags |= AMDGPU_LIST_CONTEXT_BUSY;
	if (READ_ONCE(ctx->override_priority) != AMDGPU_CTX_PRIORITY_UNSET)
		entry->flags |= AMDGPU_LIST_CONTEXT_OVERRIDDEN;
	entry->stable_pstate = amdgpu_ctx_own_stable_pstate(ctx);
	entry->sequence = amdgpu_list_context_sequence(ctx);
}

static int amdgpu_list_contexts(struct drm_file *filp,
				struct amdgpu_object_list *list)
{
	struct amdgpu_fpriv *fpriv = filp->driver_priv;
	struct drm_amdgpu_list_context *entries = list->entries;
	struct amdgpu_ctx *ctx;
	s64 index;
	u32 id;

	mutex_lock(&fpriv->ctx_mgr.lock);
	idr_for_each_entry(&fpriv->ctx_mgr.ctx_handles, ctx, id) {
		index = amdgpu_object_list_next(list);
		if (index >= 0)
			amdgpu_list_context(fpriv, id, ctx, &entries[index]);
	}
	mutex_unlock(&fpriv->ctx_mgr.lock);
	return 0;
}

struct amdgpu_list_handle {
	const struct drm_gem_object *gobj;
	u32 handle;
};

/**
 * struct amdgpu_list_handles - hash table from GEM objects to their lowest handles
 * @slots: 1 << @bits slots, of which at least half are empty; an object whose slot
 *	is taken is in one of the next ones
 * @bits: logarithm of the size
 */
struct amdgpu_list_handles {
	struct amdgpu_list_handle *slots;
	unsigned int bits;
};

/* Returns the slot of the object, or the empty one where it would be. */
static struct amdgpu_list_handle *
amdgpu_list_handles_find(const struct amdgpu_list_handles *table,
			 const struct drm_gem_object *gobj)
{
	const size_t mask = (1UL << table->bits) - 1;
	size_t i = hash_ptr(gobj, table->bits);

	while (table->slots[i].gobj && table->slots[i].gobj != gobj)
		i = (i + 1) & mask;
	return &table->slots[i];
}

static int amdgpu_list_handles_init(struct amdgpu_list_handles *table,
				    struct drm_file *filp)
{
	struct amdgpu_list_handle *slot;
	struct drm_gem_object *gobj;
	unsigned long space = 0;
	int handle, r = 0;

	spin_lock(&filp->table_lock);
	idr_for_each_entry(&filp->object_idr, gobj, handle)
		space++;
	spin_unlock(&filp->table_lock);

	table->bits = order_base_2(space + 1) + 1;
	table->slots = kvcalloc(1UL << table->bits, sizeof(*table->slots),
				GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!table->slots)
		return -ENOMEM;

	spin_lock(&filp->table_lock);
	idr_for_each_entry(&filp->object_idr, gobj, handle) {
		if (!space--) {
			r = -EAGAIN;
			break;
		}
		slot = amdgpu_list_handles_find(table, gobj);
		if (!slot->gobj) {
			slot->gobj = gobj;
			slot->handle = handle;
		}
	}
	spin_unlock(&filp->table_lock);
	if (r)
		kvfree(table->slots);
	return r;
}

static void amdgpu_list_bo_list(const struct amdgpu_list_handles *handles,
				u32 id, struct amdgpu_bo_list *bo_list,
				struct amdgpu_object_list *list)
{
	struct drm_amdgpu_list_bo_list_entry *entries = list->entries;
	struct amdgpu_bo_list_entry *e;
	s64 index;

	if (!bo_list->num_entries) {
		index = amdgpu_object_list_next(list);
		if (index >= 0) {
			entries[index].list = id;
			entries[index].flags = AMDGPU_LIST_BO_LIST_EMPTY;
		}
	}
	amdgpu_bo_list_for_each_entry(e, bo_list) {
		index = amdgpu_object_list_next(list);
		if (index < 0)
			continue;
		entries[index].list = id;
		entries[index].handle =
			amdgpu_list_handles_find(handles, &e->bo->tbo.base)->handle;
		entries[index].priority = e->priority;
	}
}

/*
 * All lists have referenced their objects before bo_list_lock is taken, so an object in
 * the table of handles cannot be another one that got its memory later.
 */
static int amdgpu_list_bo_lists(struct drm_file *filp,
				struct amdgpu_object_list *list)
{
	struct amdgpu_fpriv *fpriv = filp->driver_priv;
	struct amdgpu_list_handles handles = {};
	struct amdgpu_bo_list *bo_list;
	int r = 0;
	u32 id;

	mutex_lock(&fpriv->bo_list_lock);
	if (list->space)
		r = amdgpu_list_handles_init(&handles, filp);
	if (r)
		goto unlock;

	idr_for_each_entry(&fpriv->bo_list_handles, bo_list, id) {
		amdgpu_list_bo_list(&handles, id, bo_list, list);
		cond_resched();
	}
	kvfree(handles.slots);
unlock:
	mutex_unlock(&fpriv->bo_list_lock);
	return r;
}

/* The driver replaces the memory of an object only while the object is reserved. */
static int amdgpu_list_userptr(u32 handle, struct drm_gem_object *gobj,
			       struct amdgpu_object_list *list)
{
	struct drm_amdgpu_list_userptr *entries = list->entries;
	struct amdgpu_bo *bo = gem_to_amdgpu_bo(gobj);
	s64 index;
	int r;

	r = amdgpu_bo_reserve(bo, false);
	if (r)
		return r;

	if (amdgpu_ttm_tt_is_userptr(bo->tbo.ttm)) {
		index = amdgpu_object_list_next(list);
		if (index >= 0) {
			entries[index].handle = handle;
			entries[index].flags = amdgpu_ttm_tt_get_userflags(bo->tbo.ttm);
			entries[index].pid = amdgpu_ttm_tt_get_userpid(&bo->tbo);
			amdgpu_ttm_tt_get_userptr(&bo->tbo, &entries[index].addr);
		}
	}
	amdgpu_bo_unreserve(bo);
	return 0;
}

static int amdgpu_list_userptrs(struct drm_file *filp,
				struct amdgpu_object_list *list)
{
	struct drm_gem_object *gobj;
	int handle, r;

	for (handle = 0;; handle++) {
		spin_lock(&filp->table_lock);
		gobj = idr_get_next(&filp->object_idr, &handle);
		if (gobj)
			drm_gem_object_get(gobj);
		spin_unlock(&filp->table_lock);
		if (!gobj)
			return 0;

		r = amdgpu_list_userptr(handle, gobj, list);
		drm_gem_object_put(gobj);
		if (r)
			return r;
		cond_resched();
	}
}

static const struct amdgpu_list_type {
	size_t entry_size;
	int (*walk)(struct drm_file *filp, struct amdgpu_object_list *list);
} amdgpu_list_types[] = {
	[AMDGPU_LIST_CONTEXTS] = {
		sizeof(struct drm_amdgpu_list_context), amdgpu_list_contexts
	},
	[AMDGPU_LIST_BO_LISTS] = {
		sizeof(struct drm_amdgpu_list_bo_list_entry), amdgpu_list_bo_lists
	},
	[AMDGPU_LIST_USERPTRS] = {
		sizeof(struct drm_amdgpu_list_userptr), amdgpu_list_userptrs
	},
};

/* Returns the type, or NULL if the driver does not know it with entries of this size. */
static const struct amdgpu_list_type *
amdgpu_list_type_find(const struct drm_amdgpu_list_objects *args)
{
	const struct amdgpu_list_type *type;

	if (args->type >= ARRAY_SIZE(amdgpu_list_types))
		return NULL;

	type = &amdgpu_list_types[array_index_nospec(args->type,
						     ARRAY_SIZE(amdgpu_list_types))];
	return type->walk && type->entry_size == args->entry_size ? type : NULL;
}

/**
 * amdgpu_list_objects_ioctl - list objects of a file
 * @dev: drm device pointer
 * @data: struct drm_amdgpu_list_objects
 * @filp: drm file pointer
 *
 * Stores the number of entries in count, and describes the objects if user space has
 * room for all of them.
 *
 * Returns:
 * 0 on success, -EAGAIN if other threads created objects meanwhile, or another
 * negative error code.
 */
int amdgpu_list_objects_ioctl(struct drm_device *dev, void *data,
			      struct drm_file *filp)
{
	struct drm_amdgpu_list_objects *args = data;
	const struct amdgpu_list_type *type = amdgpu_list_type_find(args);
	struct amdgpu_object_list list = {};
	int r;

	if (!type || args->flags)
		return -EINVAL;

	r = type->walk(filp, &list);
	if (r)
		return r;
	if (list.count > U32_MAX)
		return -EOVERFLOW;
	if (!list.count || list.count > args->count) {
		args->count = list.count;
		return 0;
	}

	/* The caller decides how many objects there are: no warning if it is too many. */
	list.space = list.count;
	list.count = 0;
	list.entries = kvcalloc(list.space, type->entry_size,
				GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!list.entries)
		return -ENOMEM;

	r = type->walk(filp, &list);
	if (!r && list.count > list.space)
		r = -EAGAIN;
	if (!r) {
		args->count = list.count;
		if (copy_to_user(u64_to_user_ptr(args->entries), list.entries,
				 list.count * type->entry_size))
			r = -EFAULT;
	}

	kvfree(list.entries);
	return r;
}
