// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * RESUME registers the SVM ranges that RESTORE has staged (kfd_criu_svm.c),
 * when the memory of the process is in place.
 *
 * Locks: as kfd_criu_svm_resume() says. The functions here take svms->lock, and
 * do not touch user memory under it, because the page fault handler takes it
 * too.
 */
#include <linux/freezer.h>
#include <linux/list_sort.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include "kfd_criu.h"
#include "kfd_criu_svm.h"
#include "kfd_priv.h"
#include "kfd_svm.h"

/*
 * Preferred and prefetch location, flags to set, flags to clear, granularity.
 */
#define NUM_COMMON_ATTRS 5
/*
 * How long RESUME retries in total while pages of ranges are moved during their
 * registration.
 */
#define REGISTER_RETRY_MS 5000

/*
 * RESUME of the ranges of one process. @attrs has space for the attributes of
 * one range.
 */
struct kfd_criu_svm_registration {
	struct kfd_process *p;
	struct mm_struct *mm;
	struct kfd_ioctl_svm_attribute *attrs;
	s64 retry_ns_left;
};

/* Which attributes one call of svm_range_set_attr() sets. */
enum kfd_criu_svm_attrs {
	/* All attributes but the prefetch location; no device gets access. */
	KFD_CRIU_SVM_ATTRS_NO_ACCESS,
	/* The access of each device. */
	KFD_CRIU_SVM_ATTRS_ACCESS,
	/* All attributes but the prefetch location. */
	KFD_CRIU_SVM_ATTRS_NO_PREFETCH,
	/* All attributes. A GPU as prefetch location makes the pages move. */
	KFD_CRIU_SVM_ATTRS_ALL,
};

/*
 * Access of device @i to the range once it is registered. The image does not
 * know a device that this machine has in addition; the driver then gives the
 * access that every new range has.
 */
static enum kfd_criu_svm_access
kfd_criu_svm_access_of(const struct kfd_process *p,
		       const struct kfd_criu_svm *cs, unsigned int i)
{
	if (cs->access[i] != KFD_CRIU_SVM_UNKNOWN)
		return cs->access[i];
	if (!kfd_criu_svm_supported(p, i))
		return KFD_CRIU_SVM_UNKNOWN;
	return p->xnack_enabled ? KFD_CRIU_SVM_ACCESS : KFD_CRIU_SVM_NO_ACCESS;
}

static bool kfd_criu_svm_has_access(const struct kfd_process *p,
				    const struct kfd_criu_svm *cs,
				    enum kfd_criu_svm_access access)
{
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		if (kfd_criu_svm_access_of(p, cs, i) == access)
			return true;
	return false;
}

/*
 * Whether the range has to be mapped for a GPU whenever queues run, because the
 * GPU does not retry an access that faults.
 */
static bool kfd_criu_svm_must_be_mapped(const struct kfd_process *p,
					const struct kfd_criu_svm *cs)
{
	if (p->xnack_enabled &&
	    !(cs->flags & KFD_IOCTL_SVM_FLAG_GPU_ALWAYS_MAPPED))
		return false;
	return kfd_criu_svm_has_access(p, cs, KFD_CRIU_SVM_ACCESS) ||
	       kfd_criu_svm_has_access(p, cs, KFD_CRIU_SVM_IN_PLACE);
}

static void kfd_criu_svm_add_attr(struct kfd_ioctl_svm_attribute *attrs, u32 *n,
				  u32 type, u32 value)
{
	attrs[*n].type = type;
	attrs[*n].value = value;
	*n += 1;
}

static void kfd_criu_svm_add_common_attrs(struct kfd_ioctl_svm_attribute *attrs,
					  u32 *n, const struct kfd_criu_svm *cs)
{
	kfd_criu_svm_add_attr(attrs, n, KFD_IOCTL_SVM_ATTR_PREFERRED_LOC,
			      cs->preferred_loc);
	kfd_criu_svm_add_attr(attrs, n, KFD_IOCTL_SVM_ATTR_SET_FLAGS,
			      cs->flags);
	kfd_criu_svm_add_attr(attrs, n, KFD_IOCTL_SVM_ATTR_CLR_FLAGS,
			      ~cs->flags);
	kfd_criu_svm_add_attr(attrs, n, KFD_IOCTL_SVM_ATTR_GRANULARITY,
			      cs->granularity);
}

static u32 kfd_criu_svm_make_attrs(const struct kfd_criu_svm_registration *reg,
				   const struct kfd_criu_svm *cs,
				   enum kfd_criu_svm_attrs which)
{
	struct kfd_process *p = reg->p;
	unsigned int i;
	u32 n = 0;

	if (which != KFD_CRIU_SVM_ATTRS_ACCESS)
		kfd_criu_svm_add_common_attrs(reg->attrs, &n, cs);
	/*
	 * svm_range_set_attr() does not accept an undefined prefetch location.
	 */
	if (which == KFD_CRIU_SVM_ATTRS_ALL &&
	    cs->prefetch_loc != KFD_IOCTL_SVM_LOCATION_UNDEFINED)
		kfd_criu_svm_add_attr(reg->attrs, &n,
				      KFD_IOCTL_SVM_ATTR_PREFETCH_LOC,
				      cs->prefetch_loc);
	for (i = 0; i < p->n_pdds; i++) {
		enum kfd_criu_svm_access access =
			kfd_criu_svm_access_of(p, cs, i);

		if (access == KFD_CRIU_SVM_UNKNOWN)
			continue;
		if (which == KFD_CRIU_SVM_ATTRS_NO_ACCESS)
			access = KFD_CRIU_SVM_NO_ACCESS;
		kfd_criu_svm_add_attr(reg->attrs, &n,
				      kfd_criu_svm_access_to_attr(access),
				      p->pdds[i]->user_gpu_id);
	}
	return n;
}

/*
 * The thread of RESUME is killed some time after the process has ended, see
 * kfd_criu_session_restore.c.
 */
static bool kfd_criu_svm_is_unused(const struct kfd_criu_svm_registration *reg)
{
	return fatal_signal_pending(current) ||
	       kfd_criu_has_ended(reg->p, reg->mm);
}

/*
 * Faults in pages from @addr on, in one mapping and not behind @end, as
 * hmm_range_fault() would: for writing where the program may write. The mmap
 * lock is not held while a page is read from a file or from userfaultfd.
 * Returns the address from which on pages are left to do; @end if no page
 * behind @addr can be faulted in, or the caller is killed.
 */
static u64 kfd_criu_svm_fault_in_vma(struct mm_struct *mm, u64 addr, u64 end)
{
	struct vm_area_struct *vma;
	int locked = 1;
	long n = 0;
	u64 last;

	if (mmap_read_lock_killable(mm))
		return end;
	vma = vma_lookup(mm, addr);
	if (!vma) {
		last = end;
		goto out_unlock;
	}
	last = min_t(u64, vma->vm_end, end);
	/* svm_range_set_attr() leaves out what the program cannot read. */
	if (!(vma->vm_flags & VM_READ))
		goto out_unlock;
	n = get_user_pages_remote(mm, addr, (last - addr) >> PAGE_SHIFT,
				  vma->vm_flags & VM_WRITE ? FOLL_WRITE : 0,
				  NULL, &locked);
	last = n > 0 ? addr + ((u64)n << PAGE_SHIFT) : end;
out_unlock:
	if (locked)
		mmap_read_unlock(mm);
	return last;
}

/*
 * Makes the pages of a range present, a huge page at a time, and breaks their
 * copy-on-write sharing since a fork. svm_range_set_attr() would do that itself
 * while it holds the locks of the process's memory, without a check whether the
 * process still lives, and fail with -EAGAIN for each page that it unshares. It
 * returns an error afterwards if a page could not be faulted in here.
 */
static int
kfd_criu_svm_fault_in(const struct kfd_criu_svm_registration *reg,
		      const struct kfd_criu_svm *cs)
{
	const u64 end = (cs->start + cs->npages) << PAGE_SHIFT;
	u64 addr = cs->start << PAGE_SHIFT;

	while (addr < end) {
		const u64 piece = min(ALIGN(addr + 1, PMD_SIZE), end);

		if (kfd_criu_svm_is_unused(reg))
			return -ESRCH;
		addr = kfd_criu_svm_fault_in_vma(reg->mm, addr, piece);
		cond_resched();
	}
	return 0;
}

static int kfd_criu_svm_set_attrs(const struct kfd_criu_svm_registration *reg,
				  const struct kfd_criu_svm *cs,
				  enum kfd_criu_svm_attrs which)
{
	const u32 n = kfd_criu_svm_make_attrs(reg, cs, which);

	if (kfd_criu_svm_is_unused(reg))
		return -ESRCH;
	return svm_range_set_attr(reg->p, reg->mm, cs->start, cs->npages, n,
				  reg->attrs);
}

/*
 * Registers a range whose pages a GPU needs now. svm_range_set_attr() returns
 * -EAGAIN if pages were moved or unshared meanwhile; the caller has to repeat
 * it.
 */
static int kfd_criu_svm_register_mapped(struct kfd_criu_svm_registration *reg,
					const struct kfd_criu_svm *cs)
{
	ktime_t begin;
	int r;

	/*
	 * Without access nothing is faulted in, but the driver checks that the
	 * range is valid and that memory of its size may be used.
	 */
	if (cs->npages > PMD_SIZE >> PAGE_SHIFT) {
		r = kfd_criu_svm_set_attrs(reg, cs,
					   KFD_CRIU_SVM_ATTRS_NO_ACCESS);
		if (r)
			return r;
	}
	do {
		r = kfd_criu_svm_fault_in(reg, cs);
		if (r)
			return r;
		begin = ktime_get();
		r = kfd_criu_svm_set_attrs(reg, cs, KFD_CRIU_SVM_ATTRS_ALL);
		if (r != -EAGAIN)
			return r;
		cond_resched();
		reg->retry_ns_left -= ktime_to_ns(ktime_sub(ktime_get(), begin));
	} while (reg->retry_ns_left > 0);
	return r;
}

static int kfd_criu_svm_check_prefetch(struct kfd_process *p,
				       const struct kfd_criu_svm *cs)
{
	int i;

	if (cs->prefetch_loc == KFD_IOCTL_SVM_LOCATION_SYSMEM ||
	    cs->prefetch_loc == KFD_IOCTL_SVM_LOCATION_UNDEFINED)
		return 0;
	i = kfd_process_gpuidx_from_gpuid(p, cs->prefetch_loc);
	return i >= 0 && test_bit(i, p->svms.bitmap_supported) ? 0 : -EINVAL;
}

static void kfd_criu_svm_set_prefetch(struct kfd_process *p,
				      const struct kfd_criu_svm *cs)
{
	const unsigned long last = cs->start + cs->npages - 1;
	struct interval_tree_node *node;

	mutex_lock(&p->svms.lock);
	for (node = interval_tree_iter_first(&p->svms.objects, cs->start, last);
	     node; node = interval_tree_iter_next(node, cs->start, last))
		container_of(node, struct svm_range, it_node)->prefetch_loc =
			cs->prefetch_loc;
	mutex_unlock(&p->svms.lock);
}

/*
 * Registers a range for which the GPU faults pages in when it needs them. If
 * svm_range_set_attr() sets flags of a range that a device accesses in place,
 * it maps the range for that device and so allocates all of its pages. It does
 * not if it sets the access afterwards.
 */
static int kfd_criu_svm_register_unmapped(struct kfd_criu_svm_registration *reg,
					  const struct kfd_criu_svm *cs)
{
	int r;

	r = kfd_criu_svm_check_prefetch(reg->p, cs);
	if (r)
		return r;
	if (kfd_criu_svm_has_access(reg->p, cs, KFD_CRIU_SVM_IN_PLACE)) {
		r = kfd_criu_svm_set_attrs(reg, cs,
					   KFD_CRIU_SVM_ATTRS_NO_ACCESS);
		r = r ? r : kfd_criu_svm_set_attrs(reg, cs,
						   KFD_CRIU_SVM_ATTRS_ACCESS);
	} else {
		r = kfd_criu_svm_set_attrs(reg, cs,
					   KFD_CRIU_SVM_ATTRS_NO_PREFETCH);
	}
	if (r)
		return r;
	kfd_criu_svm_set_prefetch(reg->p, cs);
	return 0;
}

static int kfd_criu_svm_compare(void *unused, const struct list_head *a,
				const struct list_head *b)
{
	const struct kfd_criu_svm_staged *x =
		list_entry(a, struct kfd_criu_svm_staged, list);
	const struct kfd_criu_svm_staged *y =
		list_entry(b, struct kfd_criu_svm_staged, list);

	return (x->range.start > y->range.start) -
	       (x->range.start < y->range.start);
}

/*
 * The driver never has two ranges for an address, so no image that it wrote has
 * any. Attributes of the second range would be applied to the first one, which
 * has pages and access already.
 */
static int kfd_criu_svm_check_overlap(struct kfd_process *p)
{
	struct kfd_criu_svm_staged *staged;
	u64 end = 0;

	list_sort(NULL, &p->svms.criu_svm_metadata_list, kfd_criu_svm_compare);
	list_for_each_entry(staged, &p->svms.criu_svm_metadata_list, list) {
		if (staged->range.start < end)
			return -EINVAL;
		end = staged->range.start + staged->range.npages;
	}
	return 0;
}

static int kfd_criu_svm_register_staged(struct kfd_criu_svm_registration *reg)
{
	struct kfd_criu_svm_staged *staged;
	int r;

	r = kfd_criu_svm_check_overlap(reg->p);
	if (r)
		return r;
	list_for_each_entry(staged, &reg->p->svms.criu_svm_metadata_list,
			    list) {
		const struct kfd_criu_svm *cs = &staged->range;

		if (kfd_criu_svm_must_be_mapped(reg->p, cs))
			r = kfd_criu_svm_register_mapped(reg, cs);
		else
			r = kfd_criu_svm_register_unmapped(reg, cs);
		if (r)
			return r;
		cond_resched();
		/* Without effect in a worker, which the workqueue freezes. */
		try_to_freeze();
	}
	return 0;
}

/**
 * kfd_criu_svm_resume - register the staged ranges
 * @p: process being resumed; its memory is in place, and nothing else uses its
 *	staged ranges. Its mutex need not be held, and should not: pages may
 *	come from a file whose server does not answer
 * @mm: its mm, to which the caller has one reference; NULL: it is released
 *
 * No range stays staged, whether this succeeds or not. It stops soon after the
 * process has ended or was killed. A page that is being read is waited for until
 * the caller is killed; if its file system cannot be interrupted, until its server
 * answers or ends.
 *
 * What memory this may take depends on how the GPU uses a range:
 *
 *  - With XNACK the GPU faults a page in when it needs it. The range gets its
 *    attributes and no page, whatever they are. The prefetch location in
 *    particular is only stored. Acting on it would allocate VRAM of the whole
 *    range's size and fill its holes, and the contents that CRIU has put into
 *    system memory move at the first fault or the next prefetch anyway. The
 *    program does not see the difference, except in speed.
 *  - Without XNACK, or with KFD_IOCTL_SVM_FLAG_GPU_ALWAYS_MAPPED, every page of
 *    a range to which a device has access must be there before queues run. The
 *    ioctl that registered the range has allocated all of them. If the program
 *    dropped pages later (MADV_DONTNEED) or came to share them (fork), the
 *    driver stopped its queues, and allocated or copied these pages before it
 *    let them run again. The checkpointed process thus had the memory, and
 *    registering the range creates it again where the image lacks it: only in
 *    an image that was changed, for a page dropped while the process was
 *    paused, or for memory that the program could not access at first and
 *    whose protection it changed later. The pages are charged to the program.
 *    Without XNACK they are at most what amdkfd lets all programs use. A
 *    prefetch location is acted on, as the pages exist and only move.
 *
 * Return: 0; -ESRCH if the process has released its mm, has ended or was
 * killed; -ENOMEM; -EINVAL if ranges overlap; -EAGAIN if pages of ranges were
 * moved again and again; the error of a range that cannot be registered, then
 * the ranges with lower addresses are registered.
 */
int kfd_criu_svm_resume(struct kfd_process *p, struct mm_struct *mm)
{
	struct kfd_criu_svm_registration reg = {
		.p = p,
		.mm = mm,
		.retry_ns_left = (s64)REGISTER_RETRY_MS * NSEC_PER_MSEC,
	};
	int r;

	if (list_empty(&p->svms.criu_svm_metadata_list))
		return 0;
	if (!mm) {
		r = -ESRCH;
		goto out_drop_staged;
	}
	reg.attrs = kcalloc(NUM_COMMON_ATTRS + p->n_pdds, sizeof(*reg.attrs),
			    GFP_KERNEL);
	if (!reg.attrs) {
		r = -ENOMEM;
		goto out_drop_staged;
	}
	r = kfd_criu_svm_register_staged(&reg);
	kfree(reg.attrs);
out_drop_staged:
	kfd_criu_svm_drop_staged(p);
	return r;
}
