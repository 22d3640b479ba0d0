// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Who may checkpoint and restore a process, and when. Every change of
 * kfd_process.criu is made here.
 *
 *            pause             begin_restore            end_restore
 *   PAUSED <-------- RUNNING ----------------> RESTORING ---------> RESTORED
 *     |               ^ ^ ^                        |                 |   |
 *     +---------------+ | +------------------------|-----------------+   |
 *       unpause, or     |            resume        |                     |
 *       the owner ends  +--------------------------+                     |
 *                         failure before any       | failure     failure |
 *                         device was bound         v                     v
 *                                                ABORTED <---------------+
 *
 * Locks: the callers hold p->mutex, where nothing else is said.
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

/* How long a pause outlives its owner at most. */
#define KFD_CRIU_OWNER_POLL_MS 250
/* What RESUME waits at most for the queues to run. */
#define KFD_CRIU_RESUME_MS	5000
#define KFD_CRIU_RETRY_MS	2

/* What an operation is told that comes in a state; 0: it is welcome. */
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
 * kfd_criu_session_state - where a process is
 * @p: the process; its mutex need not be held
 *
 * One that has lost its memory is good for nothing but to end, whatever it was at.
 */
enum kfd_criu_state kfd_criu_session_state(const struct kfd_process *p)
{
	return READ_ONCE(p->mm) ? READ_ONCE(p->criu.state) : KFD_CRIU_ABORTED;
}

static bool kfd_criu_paused_by_other(const struct kfd_process *p)
{
	return p->criu.owner && p->criu.owner != task_tgid(current);
}

/* On a device that was reset, whatever is there of it. */
static bool kfd_criu_device_was_reset(const struct kfd_process *p)
{
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		if (READ_ONCE(p->pdds[i]->is_lost))
			return true;
	return false;
}

/* What an image has no place for: what a debugger has set up, and the work of a queue
 * that hung and was reset, which is lost, whatever its MQD says.
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
 * kfd_criu_session_check - whether an operation may be done now
 * @p: the process
 * @op: the operation
 *
 * Return: 0; -EINVAL, -EBUSY or -EIO for the wrong state; -EBUSY if somebody else
 * has paused the process; -EOPNOTSUPP if it has a debugger, -ENOTRECOVERABLE if one
 * of its queues or devices was reset, unless the pause only ends, or it is only resumed.
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

/* Its own, or one that it traces, which was asked for its consent then. */
static bool kfd_criu_is_self_or_tracer(const struct kfd_process *p,
				       struct task_struct *task)
{
	struct task_struct *tracer;

	if (p->lead_thread == task->group_leader)
		return true;
	tracer = ptrace_parent(p->lead_thread);
	return tracer && same_thread_group(tracer, task);
}

/* One that does not trace the process any more could not end the pause either. */
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

/* All of them. An error says that a device does not answer, and is going to be reset. */
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

/* All of them or none. A device that hangs or is being reset says -EIO, and no queue of
 * it is saved. Also of the one that fails they count as off.
 */
static int kfd_criu_evict_queues(struct kfd_process *p, u32 trigger)
{
	unsigned int i;
	int r = 0;

	for (i = 0; i < p->n_pdds && !r; i++)
		r = kfd_criu_evict_pdd(p->pdds[i], trigger);
	if (!r)
		return 0;
	for (; i > 0; i--)
		kfd_criu_unevict_pdd(p->pdds[i - 1]);
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
 * kfd_criu_session_init - of a new process
 * @p: the process; nobody else knows it yet
 */
void kfd_criu_session_init(struct kfd_process *p)
{
	p->criu.state = KFD_CRIU_RUNNING;
	p->criu.owner = NULL;
	init_rwsem(&p->criu.ioctl_sem);
	INIT_DELAYED_WORK(&p->criu.owner_work, kfd_criu_owner_work_fn);
}

/**
 * kfd_criu_session_fini - of a process that nobody knows any more
 * @p: the process; its mutex is not held
 *
 * Not when it loses its memory: whoever gives up the last reference to that may be the
 * watch, or hold the mutex.
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
 * kfd_criu_session_allows - whether objects of a process may be touched now
 * @p: the process; it is in its gate, or its mutex is held
 *
 * Return: 0; -EBUSY if it is being restored; -EIO if that failed.
 */
int kfd_criu_session_allows(const struct kfd_process *p)
{
	const enum kfd_criu_state state = kfd_criu_session_state(p);

	if (state == KFD_CRIU_RUNNING || state == KFD_CRIU_PAUSED)
		return 0;
	return state == KFD_CRIU_ABORTED ? -EIO : -EBUSY;
}

/**
 * kfd_criu_session_begin_ioctl - whether an ioctl of the program may be done now
 * @p: the process; its mutex is not held
 * @nr: _IOC_NR() of it
 *
 * No restore begins until kfd_criu_session_end_ioctl() is called.
 *
 * Return: 0; as kfd_criu_session_allows(), and it is not admitted.
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
 * kfd_criu_session_end_ioctl - an ioctl has been done
 * @p: the process
 * @nr: as kfd_criu_session_begin_ioctl() was told
 */
void kfd_criu_session_end_ioctl(struct kfd_process *p, unsigned int nr)
{
	if (kfd_criu_ioctl_is_locked_out(nr))
		up_read(&p->criu.ioctl_sem);
}

/**
 * kfd_criu_check_access - whether the caller may checkpoint and restore a process
 * @p: the process; its mutex need not be held
 *
 * Its own, or one that it traces; and with the right to do so in the user namespace that
 * the process is in. CAP_SYS_ADMIN will do, because container engines are older than
 * CAP_CHECKPOINT_RESTORE.
 *
 * Return: 0; -EBADF for a process that is not the caller's; -EACCES without the
 * capability.
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

/* The caller owns the pause. Paused by it already: nothing happens. */
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
 * kfd_criu_pause - take the queues of a process off the hardware
 * @p: the process
 * @pid: gets its id in its own PID namespace
 * @measure: fills in @args what its image takes; if it fails, the queues go on
 * @args: for @measure
 *
 * The caller owns the pause.
 *
 * Return: 0; as kfd_criu_session_check(); -ENODEV if it has no device; why a queue
 * cannot be preempted: then all go on; as @measure.
 */
int kfd_criu_pause(struct kfd_process *p, u32 *pid,
		   int (*measure)(struct kfd_process *p, void *args), void *args)
{
	const bool already_paused = p->criu.state == KFD_CRIU_PAUSED;
	int r;

	r = kfd_criu_session_check(p, KFD_CRIU_OP_PROCESS_INFO);
	if (!r && !p->n_pdds)
		r = -ENODEV;
	if (!r)
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
 * kfd_criu_unpause - let the queues go on
 * @p: the process
 *
 * Return: 0; as kfd_criu_session_check(); -ENOTRECOVERABLE if a device was reset meanwhile:
 * what was read of it since is not what the process had; or why queues cannot be mapped.
 * In both cases the pause is over.
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
 * kfd_criu_check_restore - whether the caller may make objects for a process now
 * @p: the process
 *
 * Return: 0; -EPERM if it is another one, or was before exec: files and user memory are
 * the caller's; as kfd_criu_session_check().
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
 * kfd_criu_begin_restore - objects are going to be made
 * @p: the process; kfd_criu_check_restore() has said yes
 *
 * Queues that are made do not run until it is resumed. An ioctl of the program that was
 * admitted earlier and waits for the mutex would make its object afterwards.
 *
 * Return: 0; -EBUSY if there is such an ioctl; -EINVAL if it has objects already; why its
 * queues cannot be stopped.
 */
int kfd_criu_begin_restore(struct kfd_process *p)
{
	int r;

	if (!down_write_trylock(&p->criu.ioctl_sem))
		return -EBUSY;
	r = kfd_criu_has_no_objects(p) ? 0 : -EINVAL;
	if (!r)
		r = kfd_criu_evict_queues(p, KFD_QUEUE_EVICTION_CRIU_RESTORE);
	if (!r) {
		p->criu.saved_xnack = p->xnack_enabled;
		kfd_criu_set_state(p, KFD_CRIU_RESTORING);
	}
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

	/* The driver reads the counter of an SDMA queue that goes from user memory: only
	 * from the program's, and nobody waits for a page of it.
	 */
	kthread_use_mm(undo->mm);
	pagefault_disable();
	kfd_criu_queue_destroy_all(undo->p);
	pagefault_enable();
	kthread_unuse_mm(undo->mm);
	kfd_criu_event_destroy_all(undo->p);
	kfd_criu_bo_destroy_all(undo->p);
}

/* All that was made. Locks are waited for interruptibly: of a caller that has a signal a
 * queue would stay, and its memory. So, as at the end of every process, a worker does
 * it. A process without memory is at its end, which gives back everything.
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
		/* Ranges that were registered stay, accounted by their mode. */
		if (!kfd_criu_svm_count(p))
			p->xnack_enabled = p->criu.saved_xnack;
		/* Now that there are none the count of evictions must not stay. */
		kfd_criu_unevict_queues(p);
	}
	kfd_criu_set_state(p, no_device_bound ? KFD_CRIU_RUNNING :
						KFD_CRIU_ABORTED);
}

/**
 * kfd_criu_end_restore - objects have been made, or could not be
 * @p: process after kfd_criu_begin_restore()
 * @failed: whether one of them could not
 *
 * After a failure all objects are gone, but SVM ranges that RESUME has registered. The
 * devices stay bound to their render nodes, for there is no way back from that, so the
 * process is good for nothing but to end, unless it failed before any was.
 */
void kfd_criu_end_restore(struct kfd_process *p, bool failed)
{
	if (failed)
		kfd_criu_abort_restore(p);
	else
		kfd_criu_set_state(p, KFD_CRIU_RESTORED);
}

/**
 * kfd_criu_abort - give up a restore
 * @p: the process
 *
 * Return: 0; -EINVAL if it is not restored, or runs already.
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

	r = kfd_criu_device_was_reset(p) ? -ENOTRECOVERABLE :
					   kfd_criu_svm_resume(p);
	if (!r)
		r = kfd_criu_queue_acquire_deferred(p);
	if (!r) {
		kfd_criu_bo_sync_all(p);
		r = amdgpu_amdkfd_criu_resume(p->kgd_process_info);
	}
	if (r)
		kfd_criu_abort_restore(p);
	else
		kfd_criu_set_state(p, KFD_CRIU_RUNNING);
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

/* Evicted for another reason, or without memory for the run list. */
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

/* A worker brings user pages and then lets the queues run; it tries again while pages
 * move.
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
		/* Nor does one run that has ended, or was paused by somebody. */
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
 * @limit_ms: how long to wait for them
 *
 * Comes back when they run; or after so long, when pages of the process or memory for its
 * queues cannot be had, and the driver goes on trying.
 *
 * Return: 0; -ETIME in the latter case, or when the process is paused or ends meanwhile;
 * as kfd_criu_session_check(); -ENOTRECOVERABLE if a device was reset since, or why an SVM
 * range or a save area is not there: the restore has failed then, see
 * kfd_criu_end_restore().
 */
int kfd_criu_resume(struct kfd_process *p, unsigned int limit_ms)
{
	int r;

	mutex_lock(&p->mutex);
	r = kfd_criu_session_check(p, KFD_CRIU_OP_RESUME);
	if (!r)
		r = kfd_criu_resume_locked(p);
	mutex_unlock(&p->mutex);
	return r ? r : kfd_criu_wait_running(p, limit_ms);
}

/**
 * kfd_criu_resume_pid - as above, of another process, for five seconds
 * @number: of the process, in the caller's PID namespace
 * @state: gets where that process is afterwards, if the caller may know
 *
 * Return: as above; -ESRCH if there is no such process, or it does not use amdkfd; as
 * kfd_criu_check_access().
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
	if (!r) {
		r = kfd_criu_resume(target, KFD_CRIU_RESUME_MS);
		*state = kfd_criu_session_state(target);
	}
	kfd_unref_process(target);
	return r;
}
