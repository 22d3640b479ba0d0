// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Evicts the queues of a process from its devices and restores them. A device
 * counts how many reasons there are for that; a pause and a restore are one each.
 *
 * Locks: the callers hold p->mutex unless a function's comment says otherwise.
 */
#include <linux/sched.h>
#include <linux/workqueue.h>
#include "kfd_criu.h"
#include "kfd_priv.h"
#include "kfd_device_queue_manager.h"
#include "kfd_smi_events.h"

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

/**
 * kfd_criu_unevict_queues - restore the queues on all devices
 * @p: the process, after a successful kfd_criu_evict_queues()
 *
 * Return: 0; the error of a device that does not respond: the driver is about to
 * reset it.
 */
int kfd_criu_unevict_queues(struct kfd_process *p)
{
	unsigned int i;
	int r, ret = 0;

	for (i = 0; i < p->n_pdds; i++) {
		r = kfd_criu_unevict_pdd(p->pdds[i]);
		ret = ret ? ret : r;
	}
	return ret;
}

/**
 * kfd_criu_evict_queues - evict the queues from all devices or from none
 * @p: the process
 * @trigger: KFD_QUEUE_EVICTION_*, which amdkfd reports to profilers
 *
 * Return: 0; -EIO if a device hangs or is being reset, so that it has saved none
 * of its queues.
 */
int kfd_criu_evict_queues(struct kfd_process *p, u32 trigger)
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

/**
 * kfd_criu_queues_are_evicted - find out whether a queue of the process does not run
 * @p: the process; its mutex need not be held
 *
 * Return: whether queues are evicted from a device, for whatever reason.
 */
bool kfd_criu_queues_are_evicted(const struct kfd_process *p)
{
	unsigned int i;

	for (i = 0; i < p->n_pdds; i++)
		if (p->pdds[i]->drm_priv && kfd_criu_pdd_is_evicted(p->pdds[i]))
			return true;
	return false;
}
