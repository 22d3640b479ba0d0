// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * From RESTORE to RESUME or ABORT: the states in which a process gets its
 * objects, and how they are undone. The diagram of the states is in
 * kfd_criu_session.c.
 *
 * Locks: the callers hold p->mutex unless a function's comment says otherwise.
 */
#include <linux/cred.h>
#include <linux/freezer.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <linux/user_namespace.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include "kfd_criu.h"
#include "kfd_priv.h"
#include "kfd_device_queue_manager.h"
#include "amdgpu_amdkfd.h"

/* How often the driver looks whether a process that is being resumed has ended. */
#define KFD_CRIU_RESUME_POLL_MS	100
/* How many threads of RESUME may remain of processes that have ended, for a user. */
#define KFD_CRIU_LEFT_THREADS	64

/**
 * kfd_criu_check_restore - check whether the caller may restore objects into a
 * process now
 * @p: the process
 *
 * The caller reads the image with the mutex held, and may wait there for memory
 * that nobody supplies. The worker that handles the interrupts of a device waits
 * for the same mutex if one is of a queue of the process, so the process must have
 * no queue yet.
 *
 * Return: 0; -EPERM unless the caller is the process itself and has not called
 * exec since it opened /dev/kfd, because files and user memory are taken from
 * the caller; as kfd_criu_session_check(); -EINVAL if the process has a queue.
 */
int kfd_criu_check_restore(const struct kfd_process *p)
{
	u32 reason;
	int r;

	if (p->lead_thread != current->group_leader ||
	    READ_ONCE(p->mm) != current->mm)
		return -EPERM;
	r = kfd_criu_session_check(p, KFD_CRIU_OP_RESTORE, &reason);
	if (r)
		return r;
	return list_empty(&p->pqm.queues) ? 0 : -EINVAL;
}

static bool kfd_criu_no_device_bound(const struct kfd_process *p)
{
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		if (p->pdds[i]->drm_file)
			return false;
	return true;
}

/**
 * kfd_criu_begin_restore - enter the state in which objects are restored
 * @p: the process; kfd_criu_check_restore() has returned 0
 *
 * Queues that are restored stay evicted until RESUME. An ioctl of the program
 * that was admitted earlier and waits for the mutex would create its object in
 * the middle of the restore, so there must be none.
 *
 * Return: 0; -EBUSY if an ioctl of the program is in progress; -EINVAL if the
 * process has objects already; the error of a device whose queues cannot be
 * evicted.
 */
int kfd_criu_begin_restore(struct kfd_process *p)
{
	int r;

	if (!down_write_trylock(&p->criu.ioctl_sem))
		return -EBUSY;
	if (!kfd_criu_process_is_untouched(p)) {
		r = -EINVAL;
		goto out_unlock;
	}
	r = kfd_criu_evict_queues(p, KFD_QUEUE_EVICTION_CRIU_RESTORE);
	if (r)
		goto out_unlock;
	p->criu.saved_xnack = p->xnack_enabled;
	kfd_criu_process_save_gpu_ids(p);
	kfd_criu_set_state(p, KFD_CRIU_RESTORING);
out_unlock:
	up_write(&p->criu.ioctl_sem);
	return r;
}

struct kfd_criu_undo_work {
	struct work_struct work;
	struct kfd_process *p;
	struct mm_struct *mm;
};

static void kfd_criu_undo_work_fn(struct work_struct *work)
{
	struct kfd_criu_undo_work *undo =
		container_of(work, struct kfd_criu_undo_work, work);

	/*
	 * Destroying an active SDMA queue reads its activity counter from user
	 * memory. That has to be the program's memory, and must not wait for a
	 * page fault.
	 */
	kthread_use_mm(undo->mm);
	pagefault_disable();
	kfd_criu_queue_destroy_all(undo->p);
	pagefault_enable();
	kthread_unuse_mm(undo->mm);
	kfd_criu_event_destroy_all(undo->p);
	kfd_criu_bo_destroy_all(undo->p);
}

/*
 * Destroys all objects of the process. Some locks are taken interruptibly, and
 * with a signal pending a queue or its memory would be leaked. So a worker does
 * it, as at the exit of every process. Returns false if the process has
 * released its mm: then the exit path destroys everything.
 */
static bool kfd_criu_destroy_objects(struct kfd_process *p)
{
	struct kfd_criu_undo_work undo = { .p = p, .mm = kfd_criu_get_mm(p) };

	if (!undo.mm)
		return false;
	INIT_WORK_ONSTACK(&undo.work, kfd_criu_undo_work_fn);
	queue_work(kfd_criu_undo_wq, &undo.work);
	flush_work(&undo.work);
	destroy_work_on_stack(&undo.work);
	mmput_async(undo.mm);
	return true;
}

static void kfd_criu_abort_restore(struct kfd_process *p)
{
	const bool no_device_bound = kfd_criu_no_device_bound(p);

	kfd_criu_svm_drop_staged(p);
	if (kfd_criu_destroy_objects(p)) {
		/*
		 * SVM ranges that are registered remain, and are accounted in
		 * their XNACK mode.
		 */
		if (!kfd_criu_svm_count(p))
			p->xnack_enabled = p->criu.saved_xnack;
		/*
		 * There are no queues left; this undoes the eviction count of
		 * begin_restore.
		 */
		kfd_criu_unevict_queues(p);
	}
	kfd_criu_process_restore_gpu_ids(p);
	kfd_criu_set_state(p, no_device_bound ? KFD_CRIU_RUNNING :
						KFD_CRIU_ABORTED);
}

/**
 * kfd_criu_end_restore - leave the state in which objects are restored
 * @p: process after kfd_criu_begin_restore()
 * @failed: an object could not be restored
 *
 * After a failure all objects have been destroyed, except SVM ranges that
 * RESUME has registered. Devices stay bound to their render nodes, because a
 * process cannot give up a VM. So the process can only exit, unless the restore
 * failed before any device was bound.
 */
void kfd_criu_end_restore(struct kfd_process *p, bool failed)
{
	if (failed)
		kfd_criu_abort_restore(p);
	else
		kfd_criu_set_state(p, KFD_CRIU_RESTORED);
}

/**
 * kfd_criu_abort - undo a restore that was not resumed yet
 * @p: the process
 *
 * Return: 0; -EINVAL if the process is not in the state RESTORED.
 */
int kfd_criu_abort(struct kfd_process *p)
{
	if (kfd_criu_session_state(p) != KFD_CRIU_RESTORED)
		return -EINVAL;
	kfd_criu_abort_restore(p);
	return 0;
}

/*
 * What of RESUME may wait for others: for user pages, and for fences of memory
 * that was passed to RESTORE. The mutex is not held. @mm is NULL if the process
 * has released it.
 */
static int kfd_criu_resume_unlocked(struct kfd_process *p, struct mm_struct *mm)
{
	int r;

	r = kfd_criu_svm_resume(p, mm);
	if (r)
		return r;
	if (mm)
		kfd_criu_queue_fault_in_wptrs(p, mm);
	/* Only the end of the process interrupts this. */
	return kfd_criu_bo_sync_all(p) ? -ESRCH : 0;
}

/* All that RESUME does under the mutex. */
static int kfd_criu_resume_locked(struct kfd_process *p)
{
	int r;

	if (kfd_criu_session_state(p) != KFD_CRIU_RESUMING)
		return -ESRCH;	/* the process exits */
	if (kfd_criu_device_was_reset(p))
		return -ENOTRECOVERABLE;
	r = kfd_criu_queue_acquire_deferred(p);
	return r ? r : amdgpu_amdkfd_criu_resume(p->kgd_process_info);
}

/* @r is the result of kfd_criu_resume_unlocked(). */
static void kfd_criu_finish_resume(struct kfd_process *p, int r)
{
	mutex_lock(&p->mutex);
	if (!r)
		r = kfd_criu_resume_locked(p);
	if (r)
		kfd_criu_abort_restore(p);
	else
		kfd_criu_set_state(p, KFD_CRIU_RUNNING);
	WRITE_ONCE(p->criu.resume_result, r);
	mutex_unlock(&p->mutex);
	wake_up_all(&p->criu.resumed);
}

/**
 * kfd_criu_resume_work_fn - do the work of RESUME if there is no thread for it
 * @work: resume_work of a session; the mutex of its process is not held
 *
 * Does what the thread of kfd_criu_begin_resume() does, but cannot be killed.
 */
void kfd_criu_resume_work_fn(struct work_struct *work)
{
	struct kfd_process *p = container_of(work, struct kfd_process,
					     criu.resume_work);
	struct mm_struct *mm = kfd_criu_get_mm(p);
	const int r = kfd_criu_resume_unlocked(p, mm);

	if (mm)
		mmput_async(mm);
	kfd_criu_finish_resume(p, r);
	kfd_unref_process(p);
}

/*
 * Who answers for a thread of RESUME: a user, with all user namespaces that the
 * user has created; or such a namespace, if root has created it for somebody else.
 */
struct kfd_criu_account {
	kuid_t uid;
	const struct user_namespace *ns;
};

/**
 * struct kfd_criu_resume_watch - kills the thread of RESUME when its process has
 * ended
 * @work: looks whether it has
 * @list: entry in kfd_criu_watches
 * @account: who answers for the thread
 * @p: the process
 * @mm: its mm
 * @thread: the thread
 */
struct kfd_criu_resume_watch {
	struct delayed_work work;
	struct list_head list;
	struct kfd_criu_account account;
	const struct kfd_process *p;
	struct mm_struct *mm;
	struct task_struct *thread;
};

static LIST_HEAD(kfd_criu_watches);
static DEFINE_SPINLOCK(kfd_criu_watches_lock);

static struct kfd_criu_account kfd_criu_account_of(const struct kfd_process *p)
{
	const struct cred *cred = get_task_cred(p->lead_thread);
	struct kfd_criu_account account = { .uid = cred->uid };
	const struct user_namespace *ns;

	for (ns = cred->user_ns; ns->parent; ns = ns->parent) {
		account.uid = ns->owner;
		account.ns = ns;
	}
	put_cred(cred);
	if (!uid_eq(account.uid, GLOBAL_ROOT_UID))
		account.ns = NULL;
	return account;
}

/*
 * Whether so many processes of the same account have ended during RESUME and left
 * a thread behind that there must be no further one. Not even SIGKILL ends a
 * thread that waits for a file system that cannot be interrupted. Threads whose
 * process lives need no limit: they are at most as many as its user may have
 * processes.
 */
static bool kfd_criu_has_left_threads(const struct kfd_process *p)
{
	const struct kfd_criu_account account = kfd_criu_account_of(p);
	const struct kfd_criu_resume_watch *watch;
	unsigned int n = 0;

	spin_lock(&kfd_criu_watches_lock);
	list_for_each_entry(watch, &kfd_criu_watches, list)
		if (uid_eq(watch->account.uid, account.uid) &&
		    watch->account.ns == account.ns &&
		    kfd_criu_has_ended(watch->p, watch->mm))
			n++;
	spin_unlock(&kfd_criu_watches_lock);
	return n >= KFD_CRIU_LEFT_THREADS;
}

static void kfd_criu_start_watch(struct kfd_criu_resume_watch *watch)
{
	watch->account = kfd_criu_account_of(watch->p);
	spin_lock(&kfd_criu_watches_lock);
	list_add(&watch->list, &kfd_criu_watches);
	spin_unlock(&kfd_criu_watches_lock);
}

static void kfd_criu_stop_watch(struct kfd_criu_resume_watch *watch)
{
	spin_lock(&kfd_criu_watches_lock);
	list_del(&watch->list);
	spin_unlock(&kfd_criu_watches_lock);
	cancel_delayed_work_sync(&watch->work);
	destroy_delayed_work_on_stack(&watch->work);
}

static void kfd_criu_watch_later(struct kfd_criu_resume_watch *watch)
{
	queue_delayed_work(kfd_criu_undo_wq, &watch->work,
			   msecs_to_jiffies(KFD_CRIU_RESUME_POLL_MS));
}

static void kfd_criu_watch_fn(struct work_struct *work)
{
	struct kfd_criu_resume_watch *watch =
		container_of(to_delayed_work(work),
			     struct kfd_criu_resume_watch, work);

	if (kfd_criu_has_ended(watch->p, watch->mm))
		send_sig(SIGKILL, watch->thread, 1);
	else
		kfd_criu_watch_later(watch);
}

/*
 * kfd_criu_resume_unlocked() in the thread of RESUME. Nobody counts that thread
 * among those of a user. So it must not wait for a page or a fence when the
 * process has ended: a user could have any number of such threads.
 */
static int kfd_criu_resume_unlocked_killable(struct kfd_process *p)
{
	struct kfd_criu_resume_watch watch = {
		.p = p,
		.mm = kfd_criu_get_mm(p),
		.thread = current,
	};
	int r;

	if (!watch.mm)
		return kfd_criu_resume_unlocked(p, NULL);
	allow_kernel_signal(SIGKILL);
	INIT_DELAYED_WORK_ONSTACK(&watch.work, kfd_criu_watch_fn);
	kfd_criu_start_watch(&watch);
	kfd_criu_watch_later(&watch);
	r = kfd_criu_resume_unlocked(p, watch.mm);
	kfd_criu_stop_watch(&watch);
	/* What follows would leak objects if it were interrupted. */
	flush_signals(current);
	mmput_async(watch.mm);
	return r;
}

static int kfd_criu_resume_thread_fn(void *data)
{
	struct kfd_process *p = data;
	int r;

	/* Ranges and queues change page tables of devices that may be suspended. */
	set_freezable();
	r = kfd_criu_resume_unlocked_killable(p);
	try_to_freeze();
	kfd_criu_finish_resume(p, r);
	kfd_unref_process(p);
	module_put_and_kthread_exit(0);
}

/*
 * RESUME faults in user pages, which can take as long as a file system likes, and
 * waits for fences of memory that it shares. The caller could not be killed
 * meanwhile, and could not stop waiting. So a thread of the process's own does it:
 * a workqueue executes a limited number of works, so that processes which wait for
 * ever would keep others from being resumed. The workqueue is used if there cannot
 * be a thread, because memory is short or the caller is killed.
 */
static void kfd_criu_begin_resume(struct kfd_process *p)
{
	struct task_struct *thread;

	kref_get(&p->ref);
	__module_get(THIS_MODULE);
	thread = kthread_run(kfd_criu_resume_thread_fn, p, "kfd_criu_resume");
	if (!IS_ERR(thread))
		return;
	module_put(THIS_MODULE);
	queue_work(kfd_criu_resume_wq, &p->criu.resume_work);
}

static bool kfd_criu_userptr_pending(struct amdkfd_process_info *info)
{
	bool waits;

	mutex_lock(&info->notifier_lock);
	waits = info->evicted_bos;
	mutex_unlock(&info->notifier_lock);
	return waits;
}

/**
 * kfd_criu_check_running - find out whether the queues of a process run
 * @p: the process; its mutex need not be held
 *
 * Only looks, and does not wait for the worker that faults in user pages: a page
 * of a file system that does not answer would make that wait for ever.
 *
 * Return: 0: they run. -EAGAIN: the driver is about to let them run. -EBUSY:
 * the process is paused, or waits for RESUME. -ESRCH: they will never run.
 */
int kfd_criu_check_running(struct kfd_process *p)
{
	switch (kfd_criu_session_state(p)) {
	case KFD_CRIU_RUNNING:
		if (p->kgd_process_info &&
		    kfd_criu_userptr_pending(p->kgd_process_info))
			return -EAGAIN;
		return kfd_criu_queues_are_evicted(p) ? -EAGAIN : 0;
	case KFD_CRIU_RESUMING:
		return -EAGAIN;
	case KFD_CRIU_ABORTED:
		return -ESRCH;
	default:
		return -EBUSY;
	}
}

static int kfd_criu_wait_running(struct kfd_process *p, unsigned long end)
{
	for (;;) {
		const int r = kfd_criu_check_running(p);

		if (r != -EAGAIN)
			return r ? -ETIME : 0;
		if (fatal_signal_pending(current))
			return -EINTR;
		if (time_after(jiffies, end))
			return -ETIME;
		schedule_timeout_killable(msecs_to_jiffies(KFD_CRIU_RETRY_MS));
	}
}

/**
 * kfd_criu_start_resume - begin to let the queues of a restored process run
 * @p: the process; its mutex is not held
 * @end: until when to wait for an operation of the process, in jiffies
 *
 * Does nothing if that has begun already: then there is a thread for it, and
 * whether there may be another one does not matter.
 *
 * Return: 0; as kfd_criu_session_check() and kfd_criu_lock_until(); -EAGAIN if too
 * many threads of RESUME cannot be ended although their processes have, then
 * nothing has begun.
 */
int kfd_criu_start_resume(struct kfd_process *p, unsigned long end)
{
	bool begins;
	u32 reason;
	int r;

	r = kfd_criu_session_check_restoring(p, KFD_CRIU_OP_RESUME);
	if (r)
		return r;
	r = kfd_criu_lock_until(p, end);
	if (r)
		return r;
	r = kfd_criu_session_check(p, KFD_CRIU_OP_RESUME, &reason);
	begins = !r && p->criu.state == KFD_CRIU_RESTORED;
	if (begins && kfd_criu_has_left_threads(p)) {
		begins = false;
		r = -EAGAIN;
	}
	if (begins) {
		kfd_criu_set_state(p, KFD_CRIU_RESUMING);
		WRITE_ONCE(p->criu.resume_result, -EINPROGRESS);
	}
	mutex_unlock(&p->mutex);
	if (begins)
		kfd_criu_begin_resume(p);
	return r;
}

/**
 * kfd_criu_resume - let the queues of a restored process run, and wait for that
 * @p: the process; its mutex is not held
 * @limit_ms: how long to wait, in milliseconds
 *
 * Return: 0 once all queues run. -ETIME if they do not run in time because user
 * pages or memory for the runlist are missing (the driver keeps trying), or
 * because the process was paused or exits meanwhile. -EBUSY if an operation of
 * the process has not ended in time, then nothing has begun. -EINTR if the caller
 * is killed. As kfd_criu_session_check(). -ENOTRECOVERABLE if a device was reset
 * since RESTORE, or the error of an SVM range or a context save area that cannot
 * be used: then the restore has failed, see kfd_criu_end_restore().
 */
int kfd_criu_resume(struct kfd_process *p, unsigned int limit_ms)
{
	const unsigned long end = jiffies + msecs_to_jiffies(limit_ms);
	long left;
	int r;

	r = kfd_criu_start_resume(p, end);
	if (r)
		return r;
	left = wait_event_killable_timeout(p->criu.resumed,
					   READ_ONCE(p->criu.resume_result) !=
					   -EINPROGRESS,
					   max((long)(end - jiffies), 0L));
	if (left < 0)
		return -EINTR;
	if (!left)
		return -ETIME;
	r = READ_ONCE(p->criu.resume_result);
	return r ? r : kfd_criu_wait_running(p, end);
}
