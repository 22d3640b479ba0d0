// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Pauses of a process, and who owns that of version 1. The diagram of the states
 * is in kfd_criu_session.c.
 *
 * Locks: the callers hold p->mutex unless a function's comment says otherwise.
 */
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/workqueue.h>
#include <linux/kfd_criu_ioctl.h>
#include "kfd_criu.h"
#include "kfd_priv.h"

/*
 * How often the driver looks whether the owner of a pause of version 1 has gone.
 * It looks again this much later if the process is in the middle of an operation.
 * The file of a pause needs no such poll.
 */
#define KFD_CRIU_OWNER_POLL_MS 250

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

/**
 * kfd_criu_begin_pause - evict the queues of a process, unless it is paused
 * already
 * @p: the process
 * @saves_drm_objects: as kfd_criu_drm_file_check()
 * @reason: as kfd_criu_session_check()
 *
 * Each successful call needs one of kfd_criu_end_pause().
 *
 * Return: 0; as kfd_criu_session_check(); -ENODEV if the process has no device;
 * as kfd_criu_drm_file_check(); the error of a device whose queues cannot be
 * evicted, then the queues run again.
 */
int kfd_criu_begin_pause(struct kfd_process *p, bool saves_drm_objects,
			 u32 *reason)
{
	int r;

	r = kfd_criu_session_check(p, KFD_CRIU_OP_PROCESS_INFO, reason);
	if (r)
		return r;
	if (!p->n_pdds)
		return -ENODEV;
	r = kfd_criu_drm_file_check(p, saves_drm_objects, reason);
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

/**
 * kfd_criu_owner_work_fn - end the pause of version 1 if its owner has gone
 * @work: owner_work of a session; the mutex of its process is not held
 */
void kfd_criu_owner_work_fn(struct work_struct *work)
{
	struct kfd_process *p = container_of(to_delayed_work(work),
					     struct kfd_process,
					     criu.owner_work);

	/* The works of kfd_criu_undo_wq must not wait for operations. */
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
		r = kfd_criu_begin_pause(p, false, &reason);
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
