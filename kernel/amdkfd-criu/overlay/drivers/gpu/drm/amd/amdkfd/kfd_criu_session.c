// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Decides who may checkpoint and restore a process, and when. Only this file
 * changes kfd_process.criu.
 *
 *            pause             begin_restore            end_restore
 *   PAUSED <-------- RUNNING ----------------> RESTORING ---------> RESTORED
 *     |               ^ ^ ^                        |                 |   |
 *     +---------------+ | +------------------------|-----------------+   |
 *       unpause, or     |            resume        |                     |
 *       the owner exits +--------------------------+                     |
 *                         failure before any       | failure     failure |
 *                         device was bound         v                     v
 *                                                ABORTED <---------------+
 *
 * Locks: the callers hold p->mutex unless a function's comment says otherwise.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/pid.h>
#include <linux/ptrace.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <linux/user_namespace.h>
#include <linux/workqueue.h>
#include "kfd_criu.h"
#include "kfd_priv.h"
#include "kfd_device_queue_manager.h"
#include "kfd_smi_events.h"
#include "amdgpu_amdkfd.h"

/*
 * A process stays paused for at most this long after the owner of the pause has
 * gone.
 */
#define KFD_CRIU_OWNER_POLL_MS 250
/* RESUME waits at most this long for the queues to run. */
#define KFD_CRIU_RESUME_MS	5000
#define KFD_CRIU_RETRY_MS	2

/* Error for an operation in a state; 0 if the operation is permitted. */
static const s8 kfd_criu_op_errno[KFD_CRIU_OPS][KFD_CRIU_STATES] = {
	[KFD_CRIU_OP_PROCESS_INFO] = {
		[KFD_CRIU_RESTORING] = -EBUSY,
		[KFD_CRIU_RESTORED] = -EBUSY,
		[KFD_CRIU_ABORTED] = -EIO,
	},
	[KFD_CRIU_OP_CHECKPOINT] = {
		[KFD_CRIU_RUNNING] = -EINVAL,
		[KFD_CRIU_RESTORING] = -EBUSY,
		[KFD_CRIU_RESTORED] = -EBUSY,
		[KFD_CRIU_ABORTED] = -EIO,
	},
	[KFD_CRIU_OP_UNPAUSE] = {
		[KFD_CRIU_RUNNING] = -EINVAL,
		[KFD_CRIU_RESTORING] = -EINVAL,
		[KFD_CRIU_RESTORED] = -EINVAL,
		[KFD_CRIU_ABORTED] = -EINVAL,
	},
	[KFD_CRIU_OP_RESTORE] = {
		[KFD_CRIU_PAUSED] = -EBUSY,
		[KFD_CRIU_RESTORING] = -EBUSY,
		[KFD_CRIU_RESTORED] = -EBUSY,
		[KFD_CRIU_ABORTED] = -EIO,
	},
	[KFD_CRIU_OP_RESUME] = {
		[KFD_CRIU_RUNNING] = -EINVAL,
		[KFD_CRIU_PAUSED] = -EINVAL,
		[KFD_CRIU_RESTORING] = -EBUSY,
		[KFD_CRIU_ABORTED] = -EIO,
	},
};

/**
 * kfd_criu_session_state - checkpoint/restore state of a process
 * @p: the process; its mutex need not be held
 *
 * Return: the state; KFD_CRIU_ABORTED for a process that has released its mm,
 * because all it can do is exit.
 */
enum kfd_criu_state kfd_criu_session_state(const struct kfd_process *p)
{
	return READ_ONCE(p->mm) ? READ_ONCE(p->criu.state) : KFD_CRIU_ABORTED;
}

static bool kfd_criu_paused_by_other(const struct kfd_process *p)
{
	return p->criu.owner && p->criu.owner != task_tgid(current);
}

/*
 * Whether a device was reset while the process had a VM on it, so that the
 * process has lost state there.
 */
static bool kfd_criu_device_was_reset(const struct kfd_process *p)
{
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		if (READ_ONCE(p->pdds[i]->is_lost))
			return true;
	return false;
}

/*
 * An image cannot describe what a debugger has set up, nor the work of a queue
 * that hung and was reset: the MQD of such a queue does not show what it lost.
 */
static int kfd_criu_check_supported(const struct kfd_process *p)
{
	unsigned int i;

	if (p->debug_trap_enabled)
		return -EOPNOTSUPP;
	for (i = 0; i < p->n_pdds; i++)
		if (p->pdds[i]->has_reset_queue)
			return -ENOTRECOVERABLE;
	return kfd_criu_device_was_reset(p) ? -ENOTRECOVERABLE : 0;
}

/**
 * kfd_criu_session_check - check whether an operation is permitted now
 * @p: the process; its mutex is held
 * @op: the operation
 *
 * Return: 0; -EINVAL, -EBUSY or -EIO if the state does not permit @op; -EBUSY
 * if another thread group has paused the process. Operations other than UNPAUSE
 * and RESUME also fail with -EOPNOTSUPP if a debugger uses the process, and
 * with -ENOTRECOVERABLE if one of its queues or devices was reset.
 */
int kfd_criu_session_check(const struct kfd_process *p, enum kfd_criu_op op)
{
	const int err = kfd_criu_op_errno[op][kfd_criu_session_state(p)];

	if (err)
		return err;
	if (kfd_criu_paused_by_other(p))
		return -EBUSY;
	if (op == KFD_CRIU_OP_UNPAUSE || op == KFD_CRIU_OP_RESUME)
		return 0;
	return kfd_criu_check_supported(p);
}

static void kfd_criu_set_state(struct kfd_process *p, enum kfd_criu_state state)
{
	WRITE_ONCE(p->criu.state, state);
}

/*
 * Whether @task belongs to the process itself or to its tracer. A tracer has
 * passed the ptrace access checks when it attached.
 */
static bool kfd_criu_is_self_or_tracer(const struct kfd_process *p,
				       struct task_struct *task)
{
	struct task_struct *tracer;

	if (p->lead_thread == task->group_leader)
		return true;
	tracer = ptrace_parent(p->lead_thread);
	return tracer && same_thread_group(tracer, task);
}

/*
 * An owner that no longer traces the process could not end the pause, so it
 * counts as gone.
 */
static bool kfd_criu_owner_is_alive(const struct kfd_process *p)
{
	struct task_struct *task;
	bool alive;

	rcu_read_lock();
	task = pid_task(p->criu.owner, PIDTYPE_TGID);
	alive = task && !(task->exit_state && thread_group_empty(task)) &&
		kfd_criu_is_self_or_tracer(p, task);
	rcu_read_unlock();
	return alive;
}

static int kfd_criu_unevict_pdd(struct kfd_process_device *pdd)
{
	struct device_queue_manager *dqm = pdd->dev->dqm;

	kfd_smi_event_queue_restore(pdd->dev, pdd->process->lead_thread->pid);
	return dqm->ops.restore_process_queues(dqm, &pdd->qpd);
}

static int kfd_criu_evict_pdd(struct kfd_process_device *pdd, u32 trigger)
{
	struct device_queue_manager *dqm = pdd->dev->dqm;

	kfd_smi_event_queue_eviction(pdd->dev, pdd->process->lead_thread->pid,
				     trigger);
	return dqm->ops.evict_process_queues(dqm, &pdd->qpd);
}

/*
 * Restores the queues on all devices. After an error the device in question
 * does not respond, and the driver is about to reset it.
 */
static int kfd_criu_unevict_queues(struct kfd_process *p)
{
	unsigned int i;
	int r, ret = 0;

	for (i = 0; i < p->n_pdds; i++) {
		r = kfd_criu_unevict_pdd(p->pdds[i]);
		ret = ret ? ret : r;
	}
	return ret;
}

/*
 * Evicts the queues from all devices or from none. A device that hangs or is
 * being reset returns -EIO and has saved none of its queues.
 */
static int kfd_criu_evict_queues(struct kfd_process *p, u32 trigger)
{
	unsigned int i;
	int r;

	for (i = 0; i < p->n_pdds; i++) {
		r = kfd_criu_evict_pdd(p->pdds[i], trigger);
		if (r)
			goto err_unevict;
	}
	return 0;

err_unevict:
	/* The device counts the failed eviction too, so it is undone as well. */
	do {
		kfd_criu_unevict_pdd(p->pdds[i]);
	} while (i-- > 0);
	return r;
}

static int kfd_criu_end_pause(struct kfd_process *p)
{
	put_pid(p->criu.owner);
	p->criu.owner = NULL;
	kfd_criu_set_state(p, KFD_CRIU_RUNNING);
	return kfd_criu_unevict_queues(p);
}

static void kfd_criu_owner_work_fn(struct work_struct *work)
{
	struct kfd_process *p = container_of(to_delayed_work(work),
					     struct kfd_process,
					     criu.owner_work);

	mutex_lock(&p->mutex);
	if (kfd_criu_session_state(p) == KFD_CRIU_PAUSED) {
		if (kfd_criu_owner_is_alive(p))
			schedule_delayed_work(&p->criu.owner_work,
					      msecs_to_jiffies(KFD_CRIU_OWNER_POLL_MS));
		else
			kfd_criu_end_pause(p);
	}
	mutex_unlock(&p->mutex);
}

/**
 * kfd_criu_session_init - initialise the session of a new process
 * @p: the process, which no other thread can find yet
 */
void kfd_criu_session_init(struct kfd_process *p)
{
	p->criu.state = KFD_CRIU_RUNNING;
	p->criu.owner = NULL;
	init_rwsem(&p->criu.ioctl_sem);
	INIT_DELAYED_WORK(&p->criu.owner_work, kfd_criu_owner_work_fn);
}

/**
 * kfd_criu_session_fini - release the session of a process that is being freed
 * @p: the process, which no other thread can find any more; its mutex is not
 *	held
 *
 * This cannot be done when the process releases its mm, because the last
 * reference to the mm may be put by owner_work itself, or by a thread that holds
 * the mutex.
 */
void kfd_criu_session_fini(struct kfd_process *p)
{
	cancel_delayed_work_sync(&p->criu.owner_work);
	put_pid(p->criu.owner);
	p->criu.owner = NULL;
}

static bool kfd_criu_ioctl_is_query(unsigned int nr)
{
	return nr == _IOC_NR(AMDKFD_IOC_GET_VERSION) ||
	       nr == _IOC_NR(AMDKFD_IOC_GET_CLOCK_COUNTERS) ||
	       nr == _IOC_NR(AMDKFD_IOC_GET_PROCESS_APERTURES) ||
	       nr == _IOC_NR(AMDKFD_IOC_GET_PROCESS_APERTURES_NEW) ||
	       nr == _IOC_NR(AMDKFD_IOC_GET_TILE_CONFIG) ||
	       nr == _IOC_NR(AMDKFD_IOC_AVAILABLE_MEMORY);
}

static bool kfd_criu_ioctl_is_locked_out(unsigned int nr)
{
	return nr != _IOC_NR(AMDKFD_IOC_CRIU_OP) &&
	       !kfd_criu_ioctl_is_query(nr);
}

/**
 * kfd_criu_session_allows - check whether objects of a process may be created
 * or changed
 * @p: the process; its ioctl_sem or its mutex is held
 *
 * Return: 0; -EBUSY while the process is being restored; -EIO after a failed
 * restore.
 */
int kfd_criu_session_allows(const struct kfd_process *p)
{
	const enum kfd_criu_state state = kfd_criu_session_state(p);

	if (state == KFD_CRIU_RUNNING || state == KFD_CRIU_PAUSED)
		return 0;
	return state == KFD_CRIU_ABORTED ? -EIO : -EBUSY;
}

/**
 * kfd_criu_session_begin_ioctl - admit an ioctl of the program, and keep
 * RESTORE out
 * @p: the process; its mutex is not held
 * @nr: _IOC_NR() of the ioctl
 *
 * RESTORE cannot start before kfd_criu_session_end_ioctl() is called.
 *
 * Return: 0; as kfd_criu_session_allows(), then kfd_criu_session_end_ioctl()
 * must not be called.
 */
int kfd_criu_session_begin_ioctl(struct kfd_process *p, unsigned int nr)
{
	int r;

	if (!kfd_criu_ioctl_is_locked_out(nr))
		return 0;
	down_read(&p->criu.ioctl_sem);
	r = kfd_criu_session_allows(p);
	if (r)
		up_read(&p->criu.ioctl_sem);
	return r;
}

/**
 * kfd_criu_session_end_ioctl - end an ioctl that kfd_criu_session_begin_ioctl()
 * admitted
 * @p: the process
 * @nr: _IOC_NR() of the ioctl
 */
void kfd_criu_session_end_ioctl(struct kfd_process *p, unsigned int nr)
{
	if (kfd_criu_ioctl_is_locked_out(nr))
		up_read(&p->criu.ioctl_sem);
}

/**
 * kfd_criu_check_access - check whether the caller may checkpoint and restore a
 * process
 * @p: the process; its mutex need not be held
 *
 * The caller must be the process itself or its tracer, and must have
 * CAP_CHECKPOINT_RESTORE in the process's user namespace. CAP_SYS_ADMIN is
 * accepted instead, because container engines that predate
 * CAP_CHECKPOINT_RESTORE grant that.
 *
 * Return: 0; -EBADF if the caller is neither the process nor its tracer;
 * -EACCES if it lacks the capability.
 */
int kfd_criu_check_access(struct kfd_process *p)
{
	struct user_namespace *ns;
	bool related, capable;

	rcu_read_lock();
	related = kfd_criu_is_self_or_tracer(p, current);
	ns = get_user_ns(__task_cred(p->lead_thread)->user_ns);
	rcu_read_unlock();
	if (!related) {
		put_user_ns(ns);
		return -EBADF;
	}
	capable = ns_capable(ns, CAP_CHECKPOINT_RESTORE) ||
		  ns_capable(ns, CAP_SYS_ADMIN);
	put_user_ns(ns);
	return capable ? 0 : -EACCES;
}

/*
 * Makes the caller the owner of the pause. A second call of the owner changes
 * nothing.
 */
static int kfd_criu_begin_pause(struct kfd_process *p)
{
	int r;

	if (p->criu.state == KFD_CRIU_PAUSED)
		return 0;
	r = kfd_criu_evict_queues(p, KFD_QUEUE_EVICTION_CRIU_CHECKPOINT);
	if (r)
		return r;
	p->criu.owner = get_pid(task_tgid(current));
	kfd_criu_set_state(p, KFD_CRIU_PAUSED);
	schedule_delayed_work(&p->criu.owner_work,
			      msecs_to_jiffies(KFD_CRIU_OWNER_POLL_MS));
	return 0;
}

/**
 * kfd_criu_pause - evict the queues of a process and make the caller own the
 * pause
 * @p: the process
 * @pid: returns the process id, as seen in the process's own PID namespace
 * @measure: stores in @args how large the image will be
 * @args: passed to @measure
 *
 * If the pause is new and @measure fails, the queues run again.
 *
 * Return: 0; as kfd_criu_session_check(); -ENODEV if the process has no device;
 * the error of a device whose queues cannot be evicted, then the queues run
 * again; as @measure.
 */
int kfd_criu_pause(struct kfd_process *p, u32 *pid,
		   int (*measure)(struct kfd_process *p, void *args), void *args)
{
	const bool already_paused = p->criu.state == KFD_CRIU_PAUSED;
	int r;

	r = kfd_criu_session_check(p, KFD_CRIU_OP_PROCESS_INFO);
	if (r)
		return r;
	if (!p->n_pdds)
		return -ENODEV;
	r = kfd_criu_begin_pause(p);
	if (r)
		return r;
	*pid = task_pid_nr_ns(p->lead_thread,
			      task_active_pid_ns(p->lead_thread));
	r = measure(p, args);
	if (r && !already_paused)
		kfd_criu_end_pause(p);
	return r;
}

/**
 * kfd_criu_unpause - let the queues of a paused process run again
 * @p: the process
 *
 * Return: 0; as kfd_criu_session_check(); -ENOTRECOVERABLE if a device was
 * reset during the pause, so that what was read from it may not be the
 * process's state; the error of a device whose queues cannot be restored. In
 * the last two cases the pause has ended nevertheless.
 */
int kfd_criu_unpause(struct kfd_process *p)
{
	int r;

	r = kfd_criu_session_check(p, KFD_CRIU_OP_UNPAUSE);
	if (r)
		return r;
	r = kfd_criu_end_pause(p);
	return kfd_criu_device_was_reset(p) ? -ENOTRECOVERABLE : r;
}

/**
 * kfd_criu_check_restore - check whether the caller may restore objects into a
 * process now
 * @p: the process
 *
 * Return: 0; -EPERM unless the caller is the process itself and has not called
 * exec since it opened /dev/kfd, because files and user memory are taken from
 * the caller; as kfd_criu_session_check().
 */
int kfd_criu_check_restore(const struct kfd_process *p)
{
	if (p->lead_thread != current->group_leader ||
	    READ_ONCE(p->mm) != current->mm)
		return -EPERM;
	return kfd_criu_session_check(p, KFD_CRIU_OP_RESTORE);
}

static bool kfd_criu_no_device_bound(const struct kfd_process *p)
{
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		if (p->pdds[i]->drm_file)
			return false;
	return true;
}

static bool kfd_criu_has_no_objects(struct kfd_process *p)
{
	return kfd_criu_no_device_bound(p) && !kfd_criu_event_count(p) &&
	       p->runtime_info.runtime_state == DEBUG_RUNTIME_STATE_DISABLED;
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
	if (!kfd_criu_has_no_objects(p)) {
		r = -EINVAL;
		goto out_unlock;
	}
	r = kfd_criu_evict_queues(p, KFD_QUEUE_EVICTION_CRIU_RESTORE);
	if (r)
		goto out_unlock;
	p->criu.saved_xnack = p->xnack_enabled;
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
	queue_work(system_unbound_wq, &undo.work);
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

static int kfd_criu_resume_locked(struct kfd_process *p)
{
	int r;

	if (kfd_criu_device_was_reset(p)) {
		r = -ENOTRECOVERABLE;
		goto err_abort;
	}
	r = kfd_criu_svm_resume(p);
	if (r)
		goto err_abort;
	r = kfd_criu_queue_acquire_deferred(p);
	if (r)
		goto err_abort;
	kfd_criu_bo_sync_all(p);
	r = amdgpu_amdkfd_criu_resume(p->kgd_process_info);
	if (r)
		goto err_abort;
	kfd_criu_set_state(p, KFD_CRIU_RUNNING);
	return 0;

err_abort:
	kfd_criu_abort_restore(p);
	return r;
}

static bool kfd_criu_userptr_pending(struct amdkfd_process_info *info)
{
	bool waits;

	mutex_lock(&info->notifier_lock);
	waits = info->evicted_bos;
	mutex_unlock(&info->notifier_lock);
	return waits;
}

/*
 * Queues are evicted for another reason than the restore, or wait for memory
 * for the runlist.
 */
static bool kfd_criu_pdd_is_evicted(const struct kfd_process_device *pdd)
{
	const struct device_queue_manager *dqm = pdd->dev->dqm;

	if (READ_ONCE(pdd->qpd.evicted))
		return true;
	return dqm->sched_policy != KFD_SCHED_POLICY_NO_HWS &&
	       delayed_work_pending(&dqm->map_work);
}

static bool kfd_criu_queues_are_evicted(const struct kfd_process *p)
{
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		if (p->pdds[i]->drm_priv && kfd_criu_pdd_is_evicted(p->pdds[i]))
			return true;
	return false;
}

/*
 * restore_userptr_work faults in user pages and then restores the queues. It
 * schedules itself again as long as pages are invalidated.
 */
static int kfd_criu_wait_running(struct kfd_process *p, unsigned int limit_ms)
{
	const unsigned long end = jiffies + msecs_to_jiffies(limit_ms);
	struct amdkfd_process_info *info = p->kgd_process_info;

	for (;;) {
		flush_delayed_work(&info->restore_userptr_work);
		if (!kfd_criu_userptr_pending(info) &&
		    !kfd_criu_queues_are_evicted(p))
			return 0;
		/*
		 * A process that has exited or was paused meanwhile does not
		 * run either.
		 */
		if (time_after(jiffies, end) ||
		    kfd_criu_session_state(p) != KFD_CRIU_RUNNING ||
		    fatal_signal_pending(current))
			return -ETIME;
		msleep(KFD_CRIU_RETRY_MS);
	}
}

/**
 * kfd_criu_resume - let the queues of a restored process run
 * @p: the process; its mutex is not held
 * @limit_ms: how long to wait for the queues, in milliseconds
 *
 * Return: 0 once all queues run. -ETIME if they do not run in time because user
 * pages or memory for the runlist are missing (the driver keeps trying), or
 * because the process was paused or exits meanwhile. As
 * kfd_criu_session_check(). -ENOTRECOVERABLE if a device was reset since
 * RESTORE, or the error of an SVM range or a context save area that cannot be
 * used: then the restore has failed, see kfd_criu_end_restore().
 */
int kfd_criu_resume(struct kfd_process *p, unsigned int limit_ms)
{
	int r;

	mutex_lock(&p->mutex);
	r = kfd_criu_session_check(p, KFD_CRIU_OP_RESUME);
	if (!r)
		r = kfd_criu_resume_locked(p);
	mutex_unlock(&p->mutex);
	if (r)
		return r;
	return kfd_criu_wait_running(p, limit_ms);
}

/**
 * kfd_criu_resume_pid - kfd_criu_resume() for a process id, with a limit of
 * five seconds
 * @number: process id in the caller's PID namespace
 * @state: returns the state of that process; unchanged if the caller has no
 *	access to it
 *
 * Return: as kfd_criu_resume() and kfd_criu_check_access(); -ESRCH if there is
 * no such process, or it does not use amdkfd.
 */
int kfd_criu_resume_pid(u32 number, u32 *state)
{
	struct kfd_process *target;
	struct pid *pid;
	int r;

	pid = find_get_pid(number);
	if (!pid)
		return -ESRCH;
	target = kfd_lookup_process_by_pid(pid);
	put_pid(pid);
	if (!target)
		return -ESRCH;
	r = kfd_criu_check_access(target);
	if (r)
		goto out_unref;
	r = kfd_criu_resume(target, KFD_CRIU_RESUME_MS);
	*state = kfd_criu_session_state(target);
out_unref:
	kfd_unref_process(target);
	return r;
}
