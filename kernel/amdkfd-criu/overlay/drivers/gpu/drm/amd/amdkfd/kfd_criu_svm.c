// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * SVM ranges at checkpoint and restore: addresses and attributes. The contents
 * are memory of the process. RESTORE only stages the ranges, because that
 * memory is not in place yet; RESUME registers them
 * (kfd_criu_svm_register.c).
 *
 * Locks: the callers hold p->mutex. The functions here take svms->lock, and do
 * not touch user memory under it, because the page fault handler takes it too.
 */
#include <linux/jiffies.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include "kfd_criu.h"
#include "kfd_criu_svm.h"
#include "kfd_priv.h"
#include "kfd_svm.h"

/* How long a pause waits for the worker that removes ranges. */
#define FLUSH_LIMIT_MS 1000

static u32 kfd_criu_svm_count_locked(struct kfd_process *p)
{
	lockdep_assert_held(&p->svms.lock);
	return list_count_nodes(&p->svms.list);
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
	/* AMDKFD_IOC_SVM stores other bits too, which have no meaning. */
	cs->flags = prange->flags & KFD_CRIU_SVM_FLAGS;
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
 * The caller cannot be killed while it waits for the worker that removes ranges
 * of memory that the program has unmapped. The worker waits for the mmap lock of
 * the program, and so for each thread that reads memory of the program which
 * userfaultfd or a FUSE server has to supply. RESUME is affected if it fails
 * after ranges were registered: its worker waits then, and its caller can be
 * killed.
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

/*
 * Waits as flush_work() does for the worker that removes ranges of memory that
 * the program has unmapped, see kfd_criu_svm_count(). work_busy() is reliable for
 * a work that was queued before: the work is pending until its worker is known to
 * run it. Threads that are not stopped can keep the worker busy for ever, so this
 * gives up then.
 */
static int kfd_criu_svm_flush_killable(struct kfd_process *p)
{
	const unsigned long end = jiffies + msecs_to_jiffies(FLUSH_LIMIT_MS);

	while (work_busy(&p->svms.deferred_list_work)) {
		if (fatal_signal_pending(current))
			return -EINTR;
		if (time_after(jiffies, end))
			return -EAGAIN;
		schedule_timeout_killable(1);
	}
	return 0;
}

/**
 * kfd_criu_svm_count_killable - count the SVM ranges of a process that runs
 * @p: the process
 * @n: returns the number of ranges
 *
 * Ranges may be added and removed afterwards; see kfd_criu_svm_save().
 *
 * A thread that registers a range holds the lock while it faults pages in, which
 * may be those of a file whose server does not answer.
 *
 * Return: 0; -EINTR if the caller is killed; -EAGAIN if the worker that removes
 * ranges does not become idle in time.
 */
int kfd_criu_svm_count_killable(struct kfd_process *p, u32 *n)
{
	const int r = kfd_criu_svm_flush_killable(p);

	if (r)
		return r;
	if (mutex_lock_killable(&p->svms.lock))
		return -EINTR;
	*n = kfd_criu_svm_count_locked(p);
	mutex_unlock(&p->svms.lock);
	return 0;
}

/**
 * kfd_criu_svm_save - describe all SVM ranges of a process
 * @p: the process
 * @ranges: returns an array, to be freed with kvfree(); NULL on failure
 * @n: number of ranges according to kfd_criu_svm_count_killable()
 *
 * Return: 0; -EAGAIN if the number of ranges is not @n any more; -ENOMEM; -EINTR
 * if the caller is killed.
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
	if (mutex_lock_killable(&p->svms.lock)) {
		kvfree(array);
		return -EINTR;
	}
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
