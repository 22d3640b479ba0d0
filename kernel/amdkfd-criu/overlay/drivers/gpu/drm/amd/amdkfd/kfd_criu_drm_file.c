// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Objects that a program has created with ioctls of its render nodes and not of
 * /dev/kfd: GEM handles, mappings in the VM that the render node shares with
 * amdkfd, contexts, BO lists and sync objects. An image does not contain them, so
 * a process that has any is checkpointed only for a caller that saves them.
 *
 * Only the files of render nodes that the process has passed to
 * AMDKFD_IOC_ACQUIRE_VM are looked at, because amdkfd knows no others. Objects of
 * such a file count no matter which process has created them: a file that was
 * inherited or passed to another process has one set of objects.
 *
 * Locks: the callers hold p->mutex, which keeps the attachments of BOs and their
 * mappings by amdkfd as they are. Nothing stops ioctls of the render node but
 * stopping the threads that have its file, which is up to the caller.
 */
#include <drm/drm_exec.h>
#include <drm/drm_file.h>
#include <linux/idr.h>
#include <linux/rbtree.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/kfd_criu_ioctl.h>
#include "kfd_criu.h"
#include "kfd_priv.h"
#include "amdgpu.h"
#include "amdgpu_amdkfd.h"
#include "amdgpu_vm.h"

static bool kfd_criu_drm_file_has_handles(struct drm_file *file)
{
	bool found;

	spin_lock(&file->table_lock);
	found = !idr_is_empty(&file->object_idr);
	spin_unlock(&file->table_lock);
	return found;
}

static bool kfd_criu_drm_file_has_syncobjs(struct drm_file *file)
{
	bool found;

	spin_lock(&file->syncobj_table_lock);
	found = !idr_is_empty(&file->syncobj_idr);
	spin_unlock(&file->syncobj_table_lock);
	return found;
}

static bool kfd_criu_drm_file_has_contexts(struct drm_file *file)
{
	struct amdgpu_fpriv *fpriv = file->driver_priv;
	bool found;

	mutex_lock(&fpriv->ctx_mgr.lock);
	found = !idr_is_empty(&fpriv->ctx_mgr.ctx_handles);
	mutex_unlock(&fpriv->ctx_mgr.lock);
	return found;
}

static bool kfd_criu_drm_file_has_bo_lists(struct drm_file *file)
{
	struct amdgpu_fpriv *fpriv = file->driver_priv;
	bool found;

	mutex_lock(&fpriv->bo_list_lock);
	found = !idr_is_empty(&fpriv->bo_list_handles);
	mutex_unlock(&fpriv->bo_list_lock);
	return found;
}

/*
 * Mappings of the VM but those that the driver creates in every VM: the context
 * save area of the graphics engine, and the memory of 64-bit sequence numbers.
 */
static u64 kfd_criu_vm_count_mappings(struct amdgpu_vm *vm)
{
	const struct amdgpu_fpriv *fpriv =
		container_of(vm, struct amdgpu_fpriv, vm);
	const struct amdgpu_bo_va_mapping *mapping;
	struct rb_node *node;
	u64 n = 0;

	for (node = rb_first_cached(&vm->va); node; node = rb_next(node)) {
		mapping = rb_entry(node, struct amdgpu_bo_va_mapping, rb);
		if (mapping->bo_va != fpriv->csa_va &&
		    mapping->bo_va != fpriv->seq64_va)
			n++;
	}
	return n;
}

/*
 * Whether the VM still has the mapping that amdkfd has created for the
 * attachment. DRM_IOCTL_AMDGPU_GEM_VA can replace any mapping of the VM.
 */
static bool
kfd_criu_attachment_is_mapped(const struct kfd_mem_attachment *attachment)
{
	const struct amdgpu_bo_va *bo_va = attachment->bo_va;
	const u64 start = attachment->va >> AMDGPU_GPU_PAGE_SHIFT;
	const u64 pages = amdgpu_bo_size(bo_va->base.bo) >> AMDGPU_GPU_PAGE_SHIFT;
	const struct amdgpu_bo_va_mapping *mapping;

	if (!attachment->is_mapped)
		return false;
	mapping = amdgpu_vm_bo_lookup_mapping(bo_va->base.vm, start);
	return mapping && mapping->bo_va == bo_va && mapping->start == start &&
	       mapping->last == start + pages - 1;
}

static u64 kfd_criu_bos_count_mappings(const struct list_head *bos)
{
	const struct kfd_mem_attachment *attachment;
	const struct kgd_mem *mem;
	u64 n = 0;

	list_for_each_entry(mem, bos, validate_list)
		list_for_each_entry(attachment, &mem->attachments, list)
			n += kfd_criu_attachment_is_mapped(attachment);
	return n;
}

static int kfd_criu_lock_vms(struct amdkfd_process_info *info,
			     struct drm_exec *exec)
{
	struct amdgpu_vm *vm;
	int r = 0;

	drm_exec_init(exec, DRM_EXEC_INTERRUPTIBLE_WAIT, 0);
	drm_exec_until_all_locked(exec) {
		list_for_each_entry(vm, &info->vm_list_head, vm_list_node) {
			r = drm_exec_lock_obj(exec, &vm->root.bo->tbo.base);
			drm_exec_retry_on_contention(exec);
			if (r)
				return r;
		}
	}
	return r;
}

/*
 * Each mapping of amdkfd is one of the VM's, so there are others if the VMs have
 * more. Every object is looked at once, however many VMs there are.
 *
 * SVM ranges are no mappings in this sense: they are in the page tables only.
 */
static bool kfd_criu_vms_have_other_mappings(struct amdkfd_process_info *info)
{
	struct amdgpu_vm *vm;
	u64 all = 0, ours;

	list_for_each_entry(vm, &info->vm_list_head, vm_list_node)
		all += kfd_criu_vm_count_mappings(vm);
	ours = kfd_criu_bos_count_mappings(&info->kfd_bo_list) +
	       kfd_criu_bos_count_mappings(&info->userptr_valid_list) +
	       kfd_criu_bos_count_mappings(&info->userptr_inval_list);
	return all != ours;
}

/* Stores the attachments from @n on, unless @to is NULL. Returns how many there are. */
static size_t kfd_criu_get_attachments(const struct list_head *bos, size_t n,
				       const struct kfd_mem_attachment **to)
{
	const struct kfd_mem_attachment *attachment;
	const struct kgd_mem *mem;

	list_for_each_entry(mem, bos, validate_list)
		list_for_each_entry(attachment, &mem->attachments, list) {
			if (to)
				to[n] = attachment;
			n++;
		}
	return n;
}

static size_t
kfd_criu_get_all_attachments(const struct amdkfd_process_info *info,
			     const struct kfd_mem_attachment **to)
{
	size_t n;

	n = kfd_criu_get_attachments(&info->kfd_bo_list, 0, to);
	n = kfd_criu_get_attachments(&info->userptr_valid_list, n, to);
	return kfd_criu_get_attachments(&info->userptr_inval_list, n, to);
}

static int kfd_criu_compare_attachments(const void *a, const void *b)
{
	const struct amdgpu_bo_va *x =
		(*(const struct kfd_mem_attachment *const *)a)->bo_va;
	const struct amdgpu_bo_va *y =
		(*(const struct kfd_mem_attachment *const *)b)->bo_va;

	return x < y ? -1 : x > y;
}

/*
 * Whether the mappings of a BO are those of amdkfd and, if the file of the render
 * node has a handle of the BO, others that user space can list. @attachments are
 * all @n of amdkfd to this VM. Each of them is a user of the bo_va, and so is a
 * handle.
 */
static bool
kfd_criu_mappings_can_be_listed(const struct kfd_mem_attachment **attachments,
				size_t n)
{
	struct amdgpu_bo_va *bo_va = attachments[0]->bo_va;
	size_t i, ours = 0;

	for (i = 0; i < n; i++) {
		if (!attachments[i]->is_mapped)
			continue;
		if (!kfd_criu_attachment_is_mapped(attachments[i]))
			return false;
		ours++;
	}
	return READ_ONCE(bo_va->ref_count) > n ||
	       list_count_nodes(&bo_va->valids) +
			       list_count_nodes(&bo_va->invalids) == ours;
}

/*
 * Looks for mappings that a caller who saves the objects of render nodes cannot
 * find. Objects that amdkfd does not have cannot be in the VM without a handle.
 */
static int kfd_criu_vms_have_hidden_mappings(struct amdkfd_process_info *info,
					     bool *found)
{
	const size_t n = kfd_criu_get_all_attachments(info, NULL);
	const struct kfd_mem_attachment **all;
	size_t first, end;

	*found = false;
	if (!n)
		return 0;
	all = kvmalloc_array(n, sizeof(*all), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!all)
		return -ENOMEM;
	kfd_criu_get_all_attachments(info, all);
	sort(all, n, sizeof(*all), kfd_criu_compare_attachments, NULL);
	for (first = 0; first < n && !*found; first = end) {
		for (end = first + 1; end < n; end++)
			if (all[end]->bo_va != all[first]->bo_va)
				break;
		*found = !kfd_criu_mappings_can_be_listed(&all[first],
							  end - first);
	}
	kvfree(all);
	return 0;
}

static int kfd_criu_check_mappings(struct amdkfd_process_info *info,
				   bool saves_objects, bool *refused)
{
	struct drm_exec exec;
	int r;

	/*
	 * The worker that faults in user pages holds the lock while it waits for
	 * a page, which may be one of a file whose server does not answer.
	 */
	if (mutex_lock_interruptible(&info->lock))
		return -EINTR;
	r = kfd_criu_lock_vms(info, &exec);
	if (r)
		goto out_unlock;
	if (saves_objects)
		r = kfd_criu_vms_have_hidden_mappings(info, refused);
	else
		*refused = kfd_criu_vms_have_other_mappings(info);
out_unlock:
	drm_exec_fini(&exec);
	mutex_unlock(&info->lock);
	return r;
}

static u32 kfd_criu_drm_file_reason(struct drm_file *file)
{
	if (kfd_criu_drm_file_has_handles(file))
		return KFD_CRIU_REASON_GEM_OBJECT;
	if (kfd_criu_drm_file_has_syncobjs(file) ||
	    kfd_criu_drm_file_has_contexts(file) ||
	    kfd_criu_drm_file_has_bo_lists(file))
		return KFD_CRIU_REASON_DRM_CONTEXT;
	return KFD_CRIU_REASON_NONE;
}

/**
 * kfd_criu_drm_file_check - check that the render nodes of a process have no
 * objects that an image does not contain
 * @p: the process; its mutex is held
 * @saves_objects: the caller of the checkpoint saves such objects itself. Then
 *	only mappings are refused that it cannot find, and processes of which a
 *	mapping of amdkfd was removed or replaced
 * @reason: returns KFD_CRIU_REASON_* if the function returns -EOPNOTSUPP
 *
 * Takes time in proportion to the number of BOs and mappings, but for sorting.
 *
 * Return: 0; -EOPNOTSUPP if there are such objects; -EINTR if a signal was
 * pending; -ENOMEM.
 */
int kfd_criu_drm_file_check(struct kfd_process *p, bool saves_objects,
			    u32 *reason)
{
	unsigned int i;
	bool refused;
	int r;

	if (!p->kgd_process_info)
		return 0;
	r = kfd_criu_check_mappings(p->kgd_process_info, saves_objects,
				    &refused);
	if (r)
		return r;
	*reason = refused ? KFD_CRIU_REASON_GEM_MAPPING : KFD_CRIU_REASON_NONE;
	if (saves_objects)
		return refused ? -EOPNOTSUPP : 0;
	for (i = 0; i < p->n_pdds && *reason == KFD_CRIU_REASON_NONE; i++)
		if (p->pdds[i]->drm_priv)
			*reason = kfd_criu_drm_file_reason(p->pdds[i]->drm_priv);
	return *reason == KFD_CRIU_REASON_NONE ? 0 : -EOPNOTSUPP;
}
