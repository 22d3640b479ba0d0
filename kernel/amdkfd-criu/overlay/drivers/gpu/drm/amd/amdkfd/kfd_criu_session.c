// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Decides who may checkpoint and restore a process, and when. Only this file
 * changes kfd_process.criu.
 *
 *            pause             begin_restore            end_restore
 *   PAUSED <-------- RUNNING ----------------> RESTORING ---------> RESTORED
 *     |               ^ ^ ^                      |   |               |   |
 *     +---------------+ | +----------------------+   |        resume |   | abort
 *       the last pause  |   failure before any       |               v   |
 *       ends            |   device was bound         |          RESUMING |
 *                       |                            | failure    |  |   |
 *                       |       queues may run       |            |  |   |
 *                       +----------------------------|------------+  |   |
 *                                                    v       failure v   v
 *                                                  ABORTED <-------------+
 *
 * A process can have several pauses: one of version 1, which belongs to a thread
 * group, and any number of files (kfd_criu_file.c). It is paused as long as one
 * of them exists.
 *
 * Locks: the callers hold p->mutex unless a function's comment says otherwise.
 */
#include <linux/kthread.h>
#include <linux/pid.h>
#include <linux/ptrace.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/kfd_criu_ioctl.h>
#include "kfd_criu.h"
#include "kfd_priv.h"
#include "kfd_device_queue_manager.h"
#include "kfd_smi_events.h"
#include "amdgpu_amdkfd.h"

/*
 * A process stays paused for at most this long after the owner of a pause of
 * version 1 has gone. The file of a pause needs no such poll.
 */
#define KFD_CRIU_OWNER_POLL_MS 250
#define KFD_CRIU_RETRY_MS	2

/*
 * A workqueue executes a limited number of works at a time. RESUME may wait for
 * memory of a program for as long as its server likes, and the end of a pause for
 * an operation of its process. They have a workqueue each, so that programs whose
 * memory does not arrive cannot keep the pauses of others from ending. Works of
 * kfd_criu_undo_wq wait for neither: some are waited for with a mutex held.
 */
static struct workqueue_struct *kfd_criu_resume_wq;
struct workqueue_struct *kfd_criu_end_wq;
static struct workqueue_struct *kfd_criu_undo_wq;

/**
 * kfd_criu_session_create_wqs - create the workqueues of all sessions
 *
 * Return: 0; -ENOMEM, then kfd_criu_session_destroy_wqs() is needed.
 */
int kfd_criu_session_create_wqs(void)
{
	kfd_criu_resume_wq = alloc_workqueue("kfd_criu_resume", WQ_UNBOUND,
					     WQ_UNBOUND_MAX_ACTIVE);
	kfd_criu_end_wq = alloc_workqueue("kfd_criu_end", WQ_UNBOUND,
					  WQ_UNBOUND_MAX_ACTIVE);
	kfd_criu_undo_wq = alloc_workqueue("kfd_criu_undo", WQ_UNBOUND, 0);
	if (!kfd_criu_resume_wq || !kfd_criu_end_wq || !kfd_criu_undo_wq)
		return -ENOMEM;
	return 0;
}

/**
 * kfd_criu_session_flush_wqs - wait for works that have references to processes
 *
 * The caller destroys the workqueue that frees processes after this.
 */
void kfd_criu_session_flush_wqs(void)
{
	if (kfd_criu_resume_wq)
		flush_workqueue(kfd_criu_resume_wq);
	if (kfd_criu_end_wq)
		flush_workqueue(kfd_criu_end_wq);
}

/**
 * kfd_criu_session_destroy_wqs - destroy the workqueues of all sessions
 */
void kfd_criu_session_destroy_wqs(void)
{
	if (kfd_criu_resume_wq)
		destroy_workqueue(kfd_criu_resume_wq);
	if (kfd_criu_end_wq)
		destroy_workqueue(kfd_criu_end_wq);
	if (kfd_criu_undo_wq)
		destroy_workqueue(kfd_criu_undo_wq);
	kfd_criu_resume_wq = NULL;
	kfd_criu_end_wq = NULL;
	kfd_criu_undo_wq = NULL;
}

/* Error for an operation in a state; 0 if the operation is permitted. */
static const s8 kfd_criu_op_errno[KFD_CRIU_OPS][KFD_CRIU_STATES] = {
	[KFD_CRIU_OP_PROCESS_INFO] = {
		[KFD_CRIU_RESTORING] = -EBUSY,
		[KFD_CRIU_RESTORED] = -EBUSY,
		[KFD_CRIU_ABORTED] = -EIO,
		[KFD_CRIU_RESUMING] = -EBUSY,
	},
	[KFD_CRIU_OP_CHECKPOINT] = {
		[KFD_CRIU_RUNNING] = -EINVAL,
		[KFD_CRIU_RESTORING] = -EBUSY,
		[KFD_CRIU_RESTORED] = -EBUSY,
		[KFD_CRIU_ABORTED] = -EIO,
		[KFD_CRIU_RESUMING] = -EBUSY,
	},
	[KFD_CRIU_OP_UNPAUSE] = {
		[KFD_CRIU_RUNNING] = -EINVAL,
		[KFD_CRIU_RESTORING] = -EINVAL,
		[KFD_CRIU_RESTORED] = -EINVAL,
		[KFD_CRIU_ABORTED] = -EINVAL,
		[KFD_CRIU_RESUMING] = -EINVAL,
	},
	[KFD_CRIU_OP_RESTORE] = {
		[KFD_CRIU_PAUSED] = -EBUSY,
		[KFD_CRIU_RESTORING] = -EBUSY,
		[KFD_CRIU_RESTORED] = -EBUSY,
		[KFD_CRIU_ABORTED] = -EIO,
		[KFD_CRIU_RESUMING] = -EBUSY,
	},
	/* A RESUME while one is in progress waits for that one. */
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

/**
 * kfd_criu_session_pid - process id of a process
 * @p: the process
 *
 * Return: the id as seen in the process's own PID namespace.
 */
u32 kfd_criu_session_pid(const struct kfd_process *p)
{
	return task_pid_nr_ns(p->lead_thread,
			      task_active_pid_ns(p->lead_thread));
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

/* The MQD of a queue that hung and was reset does not show what it lost. */
static bool kfd_criu_queue_was_reset(const struct kfd_process *p)
{
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		if (READ_ONCE(p->pdds[i]->has_reset_queue))
			return true;
	return false;
}

/**
 * kfd_criu_session_reset_reason - find out whether the process has lost state on
 * a device
 * @p: the process
 *
 * Return: KFD_CRIU_REASON_QUEUE_RESET, KFD_CRIU_REASON_GPU_RESET, or
 * KFD_CRIU_REASON_NONE.
 */
u32 kfd_criu_session_reset_reason(const struct kfd_process *p)
{
	if (kfd_criu_queue_was_reset(p))
		return KFD_CRIU_REASON_QUEUE_RESET;
	if (kfd_criu_device_was_reset(p))
		return KFD_CRIU_REASON_GPU_RESET;
	return KFD_CRIU_REASON_NONE;
}

/*
 * An image cannot describe what a debugger has set up, nor work that was lost.
 */
static int kfd_criu_check_supported(const struct kfd_process *p, u32 *reason)
{
	if (p->debug_trap_enabled) {
		*reason = KFD_CRIU_REASON_DEBUGGER;
		return -EOPNOTSUPP;
	}
	if (kfd_criu_queue_has_unknown_type(p)) {
		*reason = KFD_CRIU_REASON_QUEUE_TYPE;
		return -EOPNOTSUPP;
	}
	if (kfd_criu_queue_has_unknown_gpu(p)) {
		*reason = KFD_CRIU_REASON_GPU;
		return -EOPNOTSUPP;
	}
	*reason = kfd_criu_session_reset_reason(p);
	return *reason == KFD_CRIU_REASON_NONE ? 0 : -ENOTRECOVERABLE;
}

/**
 * kfd_criu_session_check - check whether an operation is permitted now
 * @p: the process; its mutex is held
 * @op: the operation; those of version 1 stand for those of the extensible ABI
 * @reason: returns KFD_CRIU_REASON_* with -EOPNOTSUPP and -ENOTRECOVERABLE
 *
 * Return: 0; -EINVAL, -EBUSY or -EIO if the state does not permit @op.
 * Operations other than UNPAUSE and RESUME also fail with -EOPNOTSUPP if a
 * debugger uses the process or a queue is of an unknown type or generation, and
 * with -ENOTRECOVERABLE if one of its queues or devices was reset.
 */
int kfd_criu_session_check(const struct kfd_process *p, enum kfd_criu_op op,
			   u32 *reason)
{
	const int err = kfd_criu_op_errno[op][kfd_criu_session_state(p)];

	*reason = KFD_CRIU_REASON_NONE;
	if (err)
		return err;
	if (op == KFD_CRIU_OP_UNPAUSE || op == KFD_CRIU_OP_RESUME)
		return 0;
	return kfd_criu_check_supported(p, reason);
}

/**
 * kfd_criu_session_check_restoring - check an operation that a RESTORE excludes
 * @p: the process; its mutex need not be held
 * @op: the operation; those of version 1 stand for those of the extensible ABI
 *
 * RESTORE holds the mutex while it reads the image, which takes as long as the
 * memory of the image needs to arrive. So callers look at the state before they
 * wait for the mutex.
 *
 * Return: 0 unless the process is in the state RESTORING; then as
 * kfd_criu_session_check().
 */
int kfd_criu_session_check_restoring(const struct kfd_process *p,
				     enum kfd_criu_op op)
{
	if (kfd_criu_session_state(p) != KFD_CRIU_RESTORING)
		return 0;
	return kfd_criu_op_errno[op][KFD_CRIU_RESTORING];
}

/**
 * kfd_criu_lock_until - lock the mutex of a process, for a limited time
 * @p: the process
 * @end: time in jiffies
 *
 * Return: 0; -EBUSY when the time is over; -EINTR if the caller is killed.
 */
int kfd_criu_lock_until(struct kfd_process *p, unsigned long end)
{
	while (!mutex_trylock(&p->mutex)) {
		if (fatal_signal_pending(current))
			return -EINTR;
		if (time_after(jiffies, end))
			return -EBUSY;
		schedule_timeout_killable(msecs_to_jiffies(KFD_CRIU_RETRY_MS));
	}
	return 0;
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

struct kfd_criu_unevict_work {
	struct work_struct work;
	struct kfd_process_device *pdd;
	int result;
};

static void kfd_criu_unevict_work_fn(struct work_struct *work)
{
	struct kfd_criu_unevict_work *unevict =
		container_of(work, struct kfd_criu_unevict_work, work);
	struct kfd_process_device *pdd = unevict->pdd;
	struct device_queue_manager *dqm = pdd->dev->dqm;

	unevict->result = dqm->ops.restore_process_queues(dqm, &pdd->qpd);
}

/*
 * Without a hardware scheduler the driver reads write pointers from user memory
 * when it loads queues, and can do so as the program itself or as a kernel thread
 * only. In the context of a checkpointer, queues that have work would not
 * continue before the program rings their doorbells again.
 */
static bool kfd_criu_unevict_needs_worker(const struct kfd_process_device *pdd)
{
	return pdd->dev->dqm->sched_policy == KFD_SCHED_POLICY_NO_HWS &&
	       current->mm != READ_ONCE(pdd->process->mm) &&
	       !(current->flags & PF_KTHREAD);
}

static int kfd_criu_unevict_pdd(struct kfd_process_device *pdd)
{
	struct kfd_criu_unevict_work unevict = { .pdd = pdd };

	kfd_smi_event_queue_restore(pdd->dev, pdd->process->lead_thread->pid);
	if (!kfd_criu_unevict_needs_worker(pdd)) {
		kfd_criu_unevict_work_fn(&unevict.work);
		return unevict.result;
	}
	INIT_WORK_ONSTACK(&unevict.work, kfd_criu_unevict_work_fn);
	queue_work(kfd_criu_undo_wq, &unevict.work);
	flush_work(&unevict.work);
	destroy_work_on_stack(&unevict.work);
	return unevict.result;
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

/**
 * kfd_criu_begin_pause - evict the queues of a process, unless it is paused
 * already
 * @p: the process
 * @reason: as kfd_criu_session_check()
 *
 * Each successful call needs one of kfd_criu_end_pause().
 *
 * Return: 0; as kfd_criu_session_check(); -ENODEV if the process has no device;
 * as kfd_criu_drm_file_check(); the error of a device whose queues cannot be
 * evicted, then the queues run again.
 */
int kfd_criu_begin_pause(struct kfd_process *p, u32 *reason)
{
	int r;

	r = kfd_criu_session_check(p, KFD_CRIU_OP_PROCESS_INFO, reason);
	if (r)
		return r;
	if (!p->n_pdds)
		return -ENODEV;
	r = kfd_criu_drm_file_check(p, reason);
	if (r)
		return r;
	if (!p->criu.pauses) {
		r = kfd_criu_evict_queues(p, KFD_QUEUE_EVICTION_CRIU_CHECKPOINT);
		if (r)
			return r;
		kfd_criu_set_state(p, KFD_CRIU_PAUSED);
	}
	p->criu.pauses++;
	return 0;
}

/**
 * kfd_criu_end_pause - end a pause; the last one lets the queues run again
 * @p: the process, after a successful kfd_criu_begin_pause()
 *
 * Return: 0; -ENOTRECOVERABLE if a device or a queue was reset during the pause,
 * so that what was read may not be the process's state; the error of a device
 * whose queues cannot be restored. The pause has ended in any case.
 */
int kfd_criu_end_pause(struct kfd_process *p)
{
	int r = 0;

	/* The queues of a process that has exited must not run again. */
	if (!--p->criu.pauses && kfd_criu_session_state(p) == KFD_CRIU_PAUSED) {
		kfd_criu_set_state(p, KFD_CRIU_RUNNING);
		r = kfd_criu_unevict_queues(p);
	}
	if (kfd_criu_session_reset_reason(p) != KFD_CRIU_REASON_NONE)
		return -ENOTRECOVERABLE;
	return r;
}

static int kfd_criu_end_owned_pause(struct kfd_process *p)
{
	/* May be called by that work, which then is not pending. */
	cancel_delayed_work(&p->criu.owner_work);
	put_pid(p->criu.owner);
	p->criu.owner = NULL;
	return kfd_criu_end_pause(p);
}

static void kfd_criu_poll_owner_later(struct kfd_process *p)
{
	queue_delayed_work(kfd_criu_undo_wq, &p->criu.owner_work,
			   msecs_to_jiffies(KFD_CRIU_OWNER_POLL_MS));
}

static void kfd_criu_owner_work_fn(struct work_struct *work)
{
	struct kfd_process *p = container_of(to_delayed_work(work),
					     struct kfd_process,
					     criu.owner_work);

	/* It polls anyway, and works of its workqueue must not wait. */
	if (!mutex_trylock(&p->mutex)) {
		kfd_criu_poll_owner_later(p);
		return;
	}
	if (kfd_criu_session_state(p) == KFD_CRIU_PAUSED && p->criu.owner) {
		if (kfd_criu_owner_is_alive(p))
			kfd_criu_poll_owner_later(p);
		else
			kfd_criu_end_owned_pause(p);
	}
	mutex_unlock(&p->mutex);
}

static void kfd_criu_resume_work_fn(struct work_struct *work);

/**
 * kfd_criu_session_init - initialise the session of a new process
 * @p: the process, which no other thread can find yet
 */
void kfd_criu_session_init(struct kfd_process *p)
{
	p->criu.state = KFD_CRIU_RUNNING;
	p->criu.pauses = 0;
	p->criu.owner = NULL;
	init_rwsem(&p->criu.ioctl_sem);
	INIT_DELAYED_WORK(&p->criu.owner_work, kfd_criu_owner_work_fn);
	INIT_LIST_HEAD(&p->criu.files);
	INIT_LIST_HEAD(&p->criu.closed_files);
	INIT_WORK(&p->criu.end_work, kfd_criu_files_end_work_fn);
	INIT_WORK(&p->criu.resume_work, kfd_criu_resume_work_fn);
	init_waitqueue_head(&p->criu.resumed);
	p->criu.resume_result = 0;
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
	kfd_criu_files_detach(p);
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
 * kfd_criu_check_access - check whether the caller may checkpoint or restore a
 * process
 * @p: the process; its mutex need not be held
 * @what: what the caller wants to do
 * @is_validated: DRM_CHECKPOINT_WRITE_STATE: nothing that is written decides
 *	registers which no other ioctl can set
 *
 * Return: as drm_checkpoint_may().
 */
int kfd_criu_check_access(struct kfd_process *p, enum drm_checkpoint_what what,
			  bool is_validated)
{
	return drm_checkpoint_may(p->lead_thread, what, is_validated);
}

/**
 * kfd_criu_check_tracer_access - kfd_criu_check_access() as version 1 does it
 * @p: the process; its mutex need not be held
 * @what: what the caller wants to do
 * @is_validated: as for kfd_criu_check_access()
 *
 * Return: 0; -EBADF if the caller is neither the process itself nor its tracer;
 * as kfd_criu_check_access().
 */
int kfd_criu_check_tracer_access(struct kfd_process *p,
				 enum drm_checkpoint_what what,
				 bool is_validated)
{
	bool is_related;

	rcu_read_lock();
	is_related = kfd_criu_is_self_or_tracer(p, current);
	rcu_read_unlock();
	if (!is_related)
		return -EBADF;
	return kfd_criu_check_access(p, what, is_validated);
}

/*
 * Whether the caller may end the pause of version 1, or use it. 0: yes; -EINVAL:
 * there is none; -EBUSY: it belongs to another thread group.
 */
static int kfd_criu_check_owner(const struct kfd_process *p)
{
	if (!p->criu.owner)
		return -EINVAL;
	return p->criu.owner == task_tgid(current) ? 0 : -EBUSY;
}

/*
 * A program that has paused itself, for which it needs no privilege but in its
 * own user namespace, must not keep its tracer from using version 1. So the
 * tracer becomes the owner of that pause.
 */
static void kfd_criu_take_over_pause(struct kfd_process *p)
{
	struct pid *owner = p->criu.owner;

	if (owner != task_tgid(p->lead_thread) || owner == task_tgid(current))
		return;
	p->criu.owner = get_pid(task_tgid(current));
	put_pid(owner);
}

/**
 * kfd_criu_owned_pause - evict the queues of a process and make the caller's
 * thread group own the pause, as version 1 does
 * @p: the process
 * @pid: returns the process id, as seen in the process's own PID namespace
 * @measure: stores in @args how large the image will be
 * @args: passed to @measure
 *
 * A second call of the owner changes nothing but measures again. A pause that the
 * process itself owns goes over to its tracer. If the pause is new and @measure
 * fails, it ends.
 *
 * Return: 0; -EBUSY if another thread group owns the pause; as
 * kfd_criu_begin_pause() and @measure.
 */
int kfd_criu_owned_pause(struct kfd_process *p, u32 *pid,
			 int (*measure)(struct kfd_process *p, void *args),
			 void *args)
{
	const bool owned = p->criu.owner;
	u32 reason;
	int r;

	if (owned) {
		r = kfd_criu_session_check(p, KFD_CRIU_OP_PROCESS_INFO,
					   &reason);
		if (!r) {
			kfd_criu_take_over_pause(p);
			r = kfd_criu_check_owner(p);
		}
	} else {
		r = kfd_criu_begin_pause(p, &reason);
	}
	if (r)
		return r;
	*pid = kfd_criu_session_pid(p);
	r = measure(p, args);
	if (owned)
		return r;
	if (r) {
		kfd_criu_end_pause(p);
		return r;
	}
	p->criu.owner = get_pid(task_tgid(current));
	kfd_criu_poll_owner_later(p);
	return 0;
}

/**
 * kfd_criu_check_owned_pause - check whether the caller may read the state of a
 * process that it has paused by version 1
 * @p: the process
 *
 * Return: 0; as kfd_criu_session_check(); -EINVAL or -EBUSY if the caller does
 * not own the pause.
 */
int kfd_criu_check_owned_pause(const struct kfd_process *p)
{
	u32 reason;
	int r;

	r = kfd_criu_session_check(p, KFD_CRIU_OP_CHECKPOINT, &reason);
	return r ? r : kfd_criu_check_owner(p);
}

/**
 * kfd_criu_owned_unpause - end the pause of version 1
 * @p: the process
 *
 * Return: 0; as kfd_criu_session_check(); -EINVAL or -EBUSY if the caller does
 * not own the pause; as kfd_criu_end_pause().
 */
int kfd_criu_owned_unpause(struct kfd_process *p)
{
	u32 reason;
	int r;

	r = kfd_criu_session_check(p, KFD_CRIU_OP_UNPAUSE, &reason);
	if (r)
		return r;
	r = kfd_criu_check_owner(p);
	return r ? r : kfd_criu_end_owned_pause(p);
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
	u32 reason;

	if (p->lead_thread != current->group_leader ||
	    READ_ONCE(p->mm) != current->mm)
		return -EPERM;
	return kfd_criu_session_check(p, KFD_CRIU_OP_RESTORE, &reason);
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

/* All that RESUME does under the mutex. */
static int kfd_criu_resume_locked(struct kfd_process *p)
{
	int r;

	if (kfd_criu_session_state(p) != KFD_CRIU_RESUMING)
		return -ESRCH;	/* the process exits */
	if (kfd_criu_device_was_reset(p))
		return -ENOTRECOVERABLE;
	r = kfd_criu_queue_acquire_deferred(p);
	if (r)
		return r;
	kfd_criu_bo_sync_all(p);
	return amdgpu_amdkfd_criu_resume(p->kgd_process_info);
}

/*
 * The state RESUMING keeps everybody else away from the staged ranges and from
 * the queues while the mutex is not held.
 */
static void kfd_criu_run_resume(struct kfd_process *p)
{
	int r;

	r = kfd_criu_svm_resume(p);
	if (!r)
		kfd_criu_queue_fault_in_wptrs(p);
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

static void kfd_criu_resume_work_fn(struct work_struct *work)
{
	struct kfd_process *p = container_of(work, struct kfd_process,
					     criu.resume_work);

	kfd_criu_run_resume(p);
	kfd_unref_process(p);
}

/*
 * Registering SVM ranges and reading write pointers faults in user pages, which
 * can take as long as a file system likes. A worker does it then, because the
 * caller could not be killed, and could not stop waiting.
 */
static void kfd_criu_begin_resume(struct kfd_process *p)
{
	if (list_empty(&p->svms.criu_svm_metadata_list) &&
	    !kfd_criu_queue_needs_wptrs(p)) {
		kfd_criu_run_resume(p);
		return;
	}
	kref_get(&p->ref);
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
 * Does nothing if that has begun already.
 *
 * Return: 0; as kfd_criu_session_check() and kfd_criu_lock_until().
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
	const unsigned long limit = msecs_to_jiffies(limit_ms);
	const unsigned long end = jiffies + limit;
	long left;
	int r;

	r = kfd_criu_start_resume(p, end);
	if (r)
		return r;
	left = wait_event_killable_timeout(p->criu.resumed,
					   READ_ONCE(p->criu.resume_result) !=
					   -EINPROGRESS, limit);
	if (left < 0)
		return -EINTR;
	if (!left)
		return -ETIME;
	r = READ_ONCE(p->criu.resume_result);
	return r ? r : kfd_criu_wait_running(p, end);
}

/**
 * kfd_criu_find_process - find a process that uses amdkfd by its process id
 * @number: process id in the caller's PID namespace
 *
 * Return: the process, for kfd_unref_process(); NULL if there is no such process,
 * or it does not use amdkfd.
 */
struct kfd_process *kfd_criu_find_process(u32 number)
{
	struct kfd_process *p;
	struct pid *pid;

	pid = find_get_pid(number);
	if (!pid)
		return NULL;
	p = kfd_lookup_process_by_pid(pid);
	put_pid(pid);
	return p;
}
