// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Decides who may checkpoint and restore a process, and when. Only this file,
 * kfd_criu_session_pause.c and kfd_criu_session_restore.c change
 * kfd_process.criu, except for its lists of files (kfd_criu_file.c).
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
#include <linux/pid.h>
#include <linux/ptrace.h>
#include <linux/sched/signal.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/kfd_criu_ioctl.h>
#include "kfd_criu.h"
#include "kfd_priv.h"

/*
 * A workqueue executes a limited number of works at a time (WQ_MAX_ACTIVE).
 * RESUME may wait without a limit for memory that another program supplies, and
 * the end of a pause for an operation of its process. Each kind has a workqueue
 * of its own with one work for each process.
 *
 * RESUME uses its workqueue only when it cannot have a thread. The end of a pause
 * comes to its workqueue only if an operation of the process has kept close()
 * waiting. If WQ_MAX_ACTIVE processes hang in an operation at that time, further
 * processes of that kind, and no others, stay paused until one of these operations
 * ends; SIGKILL for its caller ends it, or the arrival of the memory. Works of
 * kfd_criu_undo_wq wait for neither: some are waited for with a mutex held.
 */
struct workqueue_struct *kfd_criu_resume_wq;
struct workqueue_struct *kfd_criu_end_wq;
struct workqueue_struct *kfd_criu_undo_wq;

/**
 * kfd_criu_session_create_wqs - create the workqueues of all sessions
 *
 * Return: 0; -ENOMEM, then kfd_criu_session_destroy_wqs() is needed.
 */
int kfd_criu_session_create_wqs(void)
{
	/* Their works use devices, which are suspended with the system. */
	const unsigned int flags = WQ_UNBOUND | WQ_FREEZABLE;

	kfd_criu_resume_wq = alloc_workqueue("kfd_criu_resume", flags,
					     WQ_UNBOUND_MAX_ACTIVE);
	kfd_criu_end_wq = alloc_workqueue("kfd_criu_end", flags,
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

/**
 * kfd_criu_device_was_reset - find out whether a device was reset while the
 * process had a VM on it, so that the process has lost state there
 * @p: the process
 *
 * Return: whether one was.
 */
bool kfd_criu_device_was_reset(const struct kfd_process *p)
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
		if (time_after_eq(jiffies, end))
			return -EBUSY;
		schedule_timeout_killable(msecs_to_jiffies(KFD_CRIU_RETRY_MS));
	}
	return 0;
}

/**
 * kfd_criu_set_state - change the checkpoint/restore state of a process
 * @p: the process
 * @state: new state; the diagram above has the permitted changes
 */
void kfd_criu_set_state(struct kfd_process *p, enum kfd_criu_state state)
{
	WRITE_ONCE(p->criu.state, state);
}

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
 * kfd_criu_is_self_or_tracer - find out whether a task belongs to the process
 * itself or to its tracer
 * @p: the process
 * @task: the task; the caller holds the RCU read lock
 *
 * A tracer has passed the ptrace access checks when it attached.
 *
 * Return: whether it does.
 */
bool kfd_criu_is_self_or_tracer(const struct kfd_process *p,
				struct task_struct *task)
{
	struct task_struct *tracer;

	if (p->lead_thread == task->group_leader)
		return true;
	tracer = ptrace_parent(p->lead_thread);
	return tracer && same_thread_group(tracer, task);
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
