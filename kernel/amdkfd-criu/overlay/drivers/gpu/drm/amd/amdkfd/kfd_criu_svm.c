// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * SVM ranges at checkpoint and restore: addresses and attributes. The contents
 * are memory of the process. RESTORE only stages the ranges, because that
 * memory is not in place yet; RESUME registers them.
 *
 * Locks: the callers hold p->mutex. The functions here take svms->lock, and do
 * not touch user memory under it, because the page fault handler takes it too.
 */
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include "kfd_criu.h"
#include "kfd_priv.h"
#include "kfd_svm.h"

/*
 * Preferred and prefetch location, flags to set, flags to clear, granularity.
 */
#define NUM_COMMON_ATTRS 5
/*
 * How long to retry while pages of a range are moved during its registration.
 */
#define REGISTER_RETRY_MS 5000

struct kfd_criu_svm_staged {
	struct list_head list;
	struct kfd_criu_svm range;
};

static u32 kfd_criu_svm_count_locked(struct kfd_process *p)
{
	lockdep_assert_held(&p->svms.lock);
	return list_count_nodes(&p->svms.list);
}

/*
 * A device without a VM of the process, or without SVM support, cannot have
 * access.
 */
static bool kfd_criu_svm_supported(const struct kfd_process *p, unsigned int i)
{
	return p->pdds[i]->drm_priv && test_bit(i, p->svms.bitmap_supported);
}

static void kfd_criu_svm_describe(struct kfd_process *p,
				  const struct svm_range *prange,
				  struct kfd_criu_svm *cs)
{
	unsigned int i;

	cs->start = prange->start;
	cs->npages = prange->npages;
	cs->preferred_loc = prange->preferred_loc;
	cs->prefetch_loc = prange->prefetch_loc;
	cs->flags = prange->flags;
	cs->granularity = prange->granularity;
	for (i = 0; i < p->n_pdds; i++) {
		if (!kfd_criu_svm_supported(p, i))
			cs->access[i] = KFD_CRIU_SVM_UNKNOWN;
		else if (test_bit(i, prange->bitmap_access))
			cs->access[i] = KFD_CRIU_SVM_ACCESS;
		else if (test_bit(i, prange->bitmap_aip))
			cs->access[i] = KFD_CRIU_SVM_IN_PLACE;
		else
			cs->access[i] = KFD_CRIU_SVM_NO_ACCESS;
	}
}

/**
 * kfd_criu_svm_count - count the SVM ranges of a process
 * @p: the process
 *
 * Ranges may be added and removed afterwards; see kfd_criu_svm_save().
 *
 * Return: the number of ranges.
 */
u32 kfd_criu_svm_count(struct kfd_process *p)
{
	u32 n;

	flush_work(&p->svms.deferred_list_work);
	mutex_lock(&p->svms.lock);
	n = kfd_criu_svm_count_locked(p);
	mutex_unlock(&p->svms.lock);
	return n;
}

/**
 * kfd_criu_svm_save - describe all SVM ranges of a process
 * @p: the process
 * @ranges: returns an array, to be freed with kvfree(); NULL on failure
 * @n: number of ranges according to kfd_criu_svm_count()
 *
 * Return: 0; -EAGAIN if the number of ranges is not @n any more; -ENOMEM.
 */
int kfd_criu_svm_save(struct kfd_process *p, struct kfd_criu_svm **ranges,
		      u32 n)
{
	struct kfd_criu_svm *array, *cs;
	struct svm_range *prange;
	int r = 0;

	*ranges = NULL;
	array = kvcalloc(max(n, 1u), sizeof(*array), GFP_KERNEL_ACCOUNT);
	if (!array)
		return -ENOMEM;
	mutex_lock(&p->svms.lock);
	if (kfd_criu_svm_count_locked(p) == n) {
		cs = array;
		list_for_each_entry(prange, &p->svms.list, list)
			kfd_criu_svm_describe(p, prange, cs++);
	} else {
		r = -EAGAIN;
	}
	mutex_unlock(&p->svms.lock);
	if (r) {
		kvfree(array);
		return r;
	}
	*ranges = array;
	return 0;
}

/**
 * kfd_criu_svm_add_access - set the access of a device to a range
 * @p: process being restored; its devices are bound
 * @cs: the range
 * @gpu_id: id by which the program knows the device
 * @access: access of the device
 *
 * "No access" is accepted for a device that does not exist on this machine.
 *
 * Return: 0; -EINVAL if the device cannot have that access.
 */
int kfd_criu_svm_add_access(struct kfd_process *p, struct kfd_criu_svm *cs,
			    u32 gpu_id, enum kfd_criu_svm_access access)
{
	const int i = kfd_process_gpuidx_from_gpuid(p, gpu_id);

	if (i >= 0 && kfd_criu_svm_supported(p, i)) {
		cs->access[i] = access;
		return 0;
	}
	return access == KFD_CRIU_SVM_NO_ACCESS ? 0 : -EINVAL;
}

/**
 * kfd_criu_svm_stage - remember a range until the process is resumed
 * @p: process being restored
 * @cs: description from an image
 *
 * Return: 0; -EINVAL if the range is not within user memory; -ENOMEM.
 */
int kfd_criu_svm_stage(struct kfd_process *p, const struct kfd_criu_svm *cs)
{
	const u64 limit = TASK_SIZE_MAX >> PAGE_SHIFT;
	struct kfd_criu_svm_staged *staged;

	if (!cs->npages || cs->start >= limit || cs->npages > limit - cs->start)
		return -EINVAL;
	staged = kmalloc(sizeof(*staged), GFP_KERNEL_ACCOUNT);
	if (!staged)
		return -ENOMEM;
	staged->range = *cs;
	list_add_tail(&staged->list, &p->svms.criu_svm_metadata_list);
	return 0;
}

/**
 * kfd_criu_svm_drop_staged - free all staged ranges
 * @p: the process
 */
void kfd_criu_svm_drop_staged(struct kfd_process *p)
{
	struct kfd_criu_svm_staged *staged, *next;

	list_for_each_entry_safe(staged, next, &p->svms.criu_svm_metadata_list,
				 list) {
		list_del(&staged->list);
		kfree(staged);
	}
}

static void kfd_criu_svm_add_attr(struct kfd_ioctl_svm_attribute *attrs, u32 *n,
				  u32 type, u32 value)
{
	attrs[*n].type = type;
	attrs[*n].value = value;
	*n += 1;
}

static u32 kfd_criu_svm_make_attrs(struct kfd_process *p,
				   const struct kfd_criu_svm *cs,
				   struct kfd_ioctl_svm_attribute *attrs)
{
	unsigned int i;
	u32 n = 0;

	kfd_criu_svm_add_attr(attrs, &n, KFD_IOCTL_SVM_ATTR_PREFERRED_LOC,
			      cs->preferred_loc);
	/*
	 * svm_range_set_attr() does not accept an undefined prefetch location.
	 */
	if (cs->prefetch_loc != KFD_IOCTL_SVM_LOCATION_UNDEFINED)
		kfd_criu_svm_add_attr(attrs, &n,
				      KFD_IOCTL_SVM_ATTR_PREFETCH_LOC,
				      cs->prefetch_loc);
	kfd_criu_svm_add_attr(attrs, &n, KFD_IOCTL_SVM_ATTR_SET_FLAGS,
			      cs->flags);
	kfd_criu_svm_add_attr(attrs, &n, KFD_IOCTL_SVM_ATTR_CLR_FLAGS,
			      ~cs->flags);
	kfd_criu_svm_add_attr(attrs, &n, KFD_IOCTL_SVM_ATTR_GRANULARITY,
			      cs->granularity);
	for (i = 0; i < p->n_pdds; i++)
		if (cs->access[i] != KFD_CRIU_SVM_UNKNOWN)
			kfd_criu_svm_add_attr(attrs, &n,
					      kfd_criu_svm_access_to_attr(cs->access[i]),
					      p->pdds[i]->user_gpu_id);
	return n;
}

/*
 * Breaks the copy-on-write sharing of pages with another process since a fork.
 * Otherwise svm_range_set_attr() would do that for 2 MiB in each call, and fail
 * with -EAGAIN in between. A page that cannot be faulted in makes
 * svm_range_set_attr() fail afterwards.
 */
static void kfd_criu_svm_break_cow(struct mm_struct *mm, u64 start, u64 end)
{
	struct vm_area_struct *vma;

	VMA_ITERATOR(vmi, mm, start);

	mmap_read_lock(mm);
	for_each_vma_range(vmi, vma, end) {
		const u64 first = max_t(u64, vma->vm_start, start);
		const u64 last = min_t(u64, vma->vm_end, end);

		if (vma->vm_flags & VM_WRITE)
			get_user_pages_remote(mm, first,
					      (last - first) >> PAGE_SHIFT,
					      FOLL_WRITE, NULL, NULL);
	}
	mmap_read_unlock(mm);
}

/*
 * svm_range_set_attr() returns -EAGAIN if pages were moved meanwhile; the
 * caller has to repeat it.
 */
static int kfd_criu_svm_register_range(struct kfd_process *p,
				       struct mm_struct *mm,
				       const struct kfd_criu_svm *cs,
				       struct kfd_ioctl_svm_attribute *attrs)
{
	const u32 n = kfd_criu_svm_make_attrs(p, cs, attrs);
	unsigned long end;
	int r;

	r = svm_range_set_attr(p, mm, cs->start, cs->npages, n, attrs);
	if (r != -EAGAIN)
		return r;
	kfd_criu_svm_break_cow(mm, cs->start << PAGE_SHIFT,
			       (cs->start + cs->npages) << PAGE_SHIFT);
	end = jiffies + msecs_to_jiffies(REGISTER_RETRY_MS);
	do {
		r = svm_range_set_attr(p, mm, cs->start, cs->npages, n, attrs);
	} while (r == -EAGAIN && time_before(jiffies, end) &&
		 !fatal_signal_pending(current));
	return r;
}

static int kfd_criu_svm_register_staged(struct kfd_process *p,
					struct mm_struct *mm,
					struct kfd_ioctl_svm_attribute *attrs)
{
	struct kfd_criu_svm_staged *staged;

	list_for_each_entry(staged, &p->svms.criu_svm_metadata_list, list) {
		int r = kfd_criu_check_killed();

		if (r)
			return r;
		r = kfd_criu_svm_register_range(p, mm, &staged->range, attrs);
		if (r)
			return r;
	}
	return 0;
}

/**
 * kfd_criu_svm_resume - register the staged ranges
 * @p: process being resumed; its memory is in place
 *
 * No range stays staged, whether this succeeds or not.
 *
 * Return: 0; -ESRCH if the process has released its mm; -ENOMEM; -EAGAIN if
 * pages of a range were moved again and again; -EINTR if the caller was killed;
 * the error of a range that cannot be registered, then the ranges before it are
 * registered.
 */
int kfd_criu_svm_resume(struct kfd_process *p)
{
	struct kfd_ioctl_svm_attribute *attrs;
	struct mm_struct *mm;
	int r;

	if (list_empty(&p->svms.criu_svm_metadata_list))
		return 0;
	mm = kfd_criu_get_mm(p);
	if (!mm) {
		r = -ESRCH;
		goto out_drop_staged;
	}
	attrs = kcalloc(NUM_COMMON_ATTRS + p->n_pdds, sizeof(*attrs),
			GFP_KERNEL);
	if (!attrs) {
		r = -ENOMEM;
		goto out_put_mm;
	}
	r = kfd_criu_svm_register_staged(p, mm, attrs);
	kfree(attrs);
out_put_mm:
	mmput_async(mm);
out_drop_staged:
	kfd_criu_svm_drop_staged(p);
	return r;
}
