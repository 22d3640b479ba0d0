// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Events at checkpoint and restore. The signal page is a BO of the process, or
 * belongs to the driver; its slots are restored with the memory of the process.
 *
 * Locks: the callers hold p->mutex; the functions here take p->event_mutex,
 * because events are created and destroyed without p->mutex. A thread of the
 * program that waits for events holds p->event_mutex while it faults in the
 * array of events, for which userfaultfd or FUSE may never answer. So an
 * operation that another process can call must be killable while it waits for
 * that mutex, or for the interrupt worker of a device, which takes the
 * event_mutex of processes that are being debugged.
 */
#include <linux/interrupt.h>
#include <linux/kfifo.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include "kfd_criu.h"
#include "kfd_events.h"
#include "kfd_priv.h"
#include "amdgpu.h"
#include "amdgpu_ih.h"

static bool kfd_criu_event_is_signal(u32 type)
{
	return type == KFD_EVENT_TYPE_SIGNAL || type == KFD_EVENT_TYPE_DEBUG;
}

/**
 * kfd_criu_event_type_is_known - whether an event type has a meaning
 * @type: KFD_IOC_EVENT_*
 *
 * AMDKFD_IOC_CREATE_EVENT accepts all types, and so do images of version 1. The
 * extensible ABI does not, so that a later kernel can give a type a meaning.
 *
 * Return: true if it has.
 */
bool kfd_criu_event_type_is_known(u32 type)
{
	return type <= KFD_IOC_EVENT_MEMORY;
}

/* Callback of idr_for_each(); stops at an event whose type is not known. */
static int kfd_criu_event_is_unknown(int id, void *ev, void *data)
{
	return !kfd_criu_event_type_is_known(((struct kfd_event *)ev)->type);
}

/**
 * kfd_criu_event_has_unknown_type - whether a process has an event of a type that
 * no image of the extensible ABI can contain
 * @p: the process
 *
 * Return: 1 if it has one; 0 if not; -EINTR if the caller is killed.
 */
int kfd_criu_event_has_unknown_type(struct kfd_process *p)
{
	int r;

	r = mutex_lock_killable(&p->event_mutex);
	if (r)
		return r;
	r = idr_for_each(&p->event_idr, kfd_criu_event_is_unknown, NULL);
	mutex_unlock(&p->event_mutex);
	return r;
}

/*
 * Callback of idr_for_each(), which is faster than idr_for_each_entry() (see
 * kfd_criu_bo.c).
 */
static int kfd_criu_event_count_one(int id, void *ev, void *data)
{
	u32 *n = data;

	++*n;
	return 0;
}

static u32 kfd_criu_event_count_locked(struct kfd_process *p)
{
	u32 n = 0;

	idr_for_each(&p->event_idr, kfd_criu_event_count_one, &n);
	return n;
}

static void kfd_criu_event_describe(const struct kfd_event *ev,
				    struct kfd_criu_event *ce)
{
	ce->id = ev->event_id;
	ce->type = ev->type;
	ce->auto_reset = ev->auto_reset;
	ce->signaled = ev->signaled;
	ce->age = ev->event_age;
	if (ev->type == KFD_EVENT_TYPE_MEMORY)
		ce->memory_exception = ev->memory_exception_data;
	else if (ev->type == KFD_EVENT_TYPE_HW_EXCEPTION)
		ce->hw_exception = ev->hw_exception_data;
}

/* Callback of idr_for_each(); @data points to the next element to fill in. */
static int kfd_criu_event_describe_next(int id, void *ev, void *data)
{
	struct kfd_criu_event **next = data;

	kfd_criu_event_describe(ev, (*next)++);
	return 0;
}

/**
 * kfd_criu_event_has_any - whether a process has an event
 * @p: the process; no ioctl of the program is in progress, so no thread creates
 *	or destroys events, and the mutex of the events need not be waited for
 *
 * Id 0 is reserved, so the IDR is never empty.
 *
 * Return: true if it has one.
 */
bool kfd_criu_event_has_any(struct kfd_process *p)
{
	int id = 0;

	return idr_get_next(&p->event_idr, &id) != NULL;
}

/**
 * kfd_criu_event_count - count the events of a process
 * @p: the process
 * @n: returns the number of events
 *
 * Events may be created and destroyed afterwards; see kfd_criu_event_save().
 *
 * Return: 0; -EINTR if the caller is killed.
 */
int kfd_criu_event_count(struct kfd_process *p, u32 *n)
{
	int r;

	r = mutex_lock_killable(&p->event_mutex);
	if (r)
		return r;
	*n = kfd_criu_event_count_locked(p);
	mutex_unlock(&p->event_mutex);
	return 0;
}

/*
 * Write pointer of the first IH ring, which the GPU writes to memory.
 * amdgpu_ih_get_wptr() changes rptr after an overflow, which only the interrupt
 * handler may do. The bit that tells of an overflow can stay in memory after the
 * handler has cleared it in the register. It is below the bits of the position.
 */
static u32 kfd_criu_ih_wptr(const struct amdgpu_ih_ring *ih)
{
	return le32_to_cpu(READ_ONCE(*ih->wptr_cpu)) & ih->ptr_mask &
	       ~(u32)(sizeof(u64) - 1);
}

/* @ts is the timestamp of the last interrupt that is waited for; NULL: none. */
static bool kfd_criu_ih_ring_is_handled(const struct amdgpu_ih_ring *ih,
					const u64 *ts)
{
	const u64 processed = READ_ONCE(ih->processed_timestamp);

	if (READ_ONCE(ih->rptr) == kfd_criu_ih_wptr(ih))
		return true;
	/* It is 0 before the first interrupt, and 0 is after half of all times. */
	return ts && processed && amdgpu_ih_ts_after(*ts, processed);
}

/*
 * Waits for the interrupts that are in the IH ring now, or until it is empty.
 * Before SOC15 they have no timestamp to wait for.
 */
static long kfd_criu_wait_for_ih_ring(struct amdgpu_device *adev,
				      struct amdgpu_ih_ring *ih)
{
	const u64 *last = NULL;
	u32 wptr;
	u64 ts;

	if (adev->irq.ih_funcs->decode_iv_ts) {
		wptr = kfd_criu_ih_wptr(ih);
		/* The GPU writes an interrupt before the pointer behind it. */
		rmb();
		ts = amdgpu_ih_decode_iv_ts(adev, ih, wptr, -1);
		last = &ts;
	}
	return wait_event_interruptible_timeout(ih->wait_process,
						kfd_criu_ih_ring_is_handled(ih, last),
						HZ);
}

/*
 * The interrupt handler takes an interrupt out of the ring before it queues it for
 * the worker of amdkfd. So while it runs, the ring can be empty, or a later
 * interrupt be the next one, although one that was waited for is not queued yet.
 */
static void kfd_criu_wait_for_ih_handler(struct amdgpu_device *adev)
{
	if (READ_ONCE(adev->irq.installed))
		synchronize_irq(adev->irq.irq);
}

/*
 * Whether the interrupt worker has handled the bytes of its queue before @end. It
 * handles one interrupt after the other, so it has if it has taken out a later
 * one. That cannot be waited for if there is none; then it has when it does not
 * run. work_busy() is reliable for a work that was queued before: the work is
 * pending until its worker is known to run it.
 */
static bool kfd_criu_interrupts_are_handled(struct kfd_node *node,
					    unsigned int end)
{
	const int left = end - READ_ONCE(node->ih_fifo.kfifo.out);

	/* The queue is freed when the device is removed. */
	if (!READ_ONCE(node->interrupts_active))
		return true;
	return left < 0 || (!left && !work_busy(&node->interrupt_work));
}

/*
 * flush_work() cannot be interrupted, and the worker may wait for a mutex that
 * some process keeps as long as its memory does not arrive. Interrupts that come
 * meanwhile, perhaps without a pause, are not waited for.
 */
static int kfd_criu_wait_for_interrupt_worker(struct kfd_node *node)
{
	const unsigned int end = READ_ONCE(node->ih_fifo.kfifo.in);

	while (!kfd_criu_interrupts_are_handled(node, end)) {
		if (fatal_signal_pending(current))
			return -EINTR;
		schedule_timeout_killable(1);
	}
	return 0;
}

/*
 * If the ring is not read for a second the device hangs and is going to be
 * reset.
 */
static int kfd_criu_drain_device_interrupts(struct kfd_node *node)
{
	struct amdgpu_device *adev = node->adev;

	if (adev->shutdown)
		return -ENODEV;
	if (adev->irq.ih.enabled) {
		long r = kfd_criu_wait_for_ih_ring(adev, &adev->irq.ih);

		if (r < 0)
			return r;
	}
	kfd_criu_wait_for_ih_handler(adev);
	return kfd_criu_wait_for_interrupt_worker(node);
}

/**
 * kfd_criu_event_drain_interrupts - wait until pending interrupts have signaled
 * their events
 * @p: the process; its queues are evicted, and its mutex is not held, because
 *	the interrupt worker may wait for it
 *
 * Without this, events signaled by the last instructions before the pause would
 * be lost.
 *
 * Return: 0; -ERESTARTSYS if a signal is pending; -EINTR if the caller is killed;
 * -ENODEV if a device is being removed.
 */
int kfd_criu_event_drain_interrupts(struct kfd_process *p)
{
	unsigned int i;
	int r;

	for (i = 0; i < p->n_pdds; i++) {
		/*
		 * A device that the process does not use may be runtime
		 * suspended and would not respond.
		 */
		if (!READ_ONCE(p->pdds[i]->runtime_inuse))
			continue;
		r = kfd_criu_drain_device_interrupts(p->pdds[i]->dev);
		if (r)
			return r;
	}
	return 0;
}

/**
 * kfd_criu_event_save - describe all events of a process
 * @p: the process; its queues are evicted
 * @events: returns an array, to be freed with kvfree(); NULL on failure
 * @n: returns the length of the array
 *
 * kfd_criu_event_drain_interrupts() must have been called before.
 *
 * Return: 0; -ENOMEM; -EINTR if the caller is killed.
 */
int kfd_criu_event_save(struct kfd_process *p, struct kfd_criu_event **events,
			u32 *n)
{
	struct kfd_criu_event *next;
	int r;

	*events = NULL;
	r = mutex_lock_killable(&p->event_mutex);
	if (r)
		return r;
	*n = kfd_criu_event_count_locked(p);
	next = kvcalloc(max(*n, 1u), sizeof(*next), GFP_KERNEL_ACCOUNT);
	*events = next;
	if (next)
		idr_for_each(&p->event_idr, kfd_criu_event_describe_next,
			     &next);
	mutex_unlock(&p->event_mutex);
	return *events ? 0 : -ENOMEM;
}

/*
 * Ids of signal events are slots of the signal page; ids of other events are
 * above these.
 */
static int kfd_criu_event_check(const struct kfd_criu_event *ce)
{
	if (ce->id == 0 || ce->id > INT_MAX)
		return -EINVAL;
	/* The driver warns when an age wraps around to 0. */
	if (ce->age == U64_MAX)
		return -EINVAL;
	if (kfd_criu_event_is_signal(ce->type))
		return ce->id < KFD_SIGNAL_EVENT_LIMIT ? 0 : -EINVAL;
	/* AMDKFD_IOC_CREATE_EVENT accepts any other type, so this does too. */
	return ce->id >= KFD_FIRST_NONSIGNAL_EVENT_ID ? 0 : -EINVAL;
}

/**
 * kfd_criu_event_restore - create an event from its description
 * @p: process being restored; its signal page is set, if it had one
 * @ce: description from an image
 *
 * Return: 0; -EINVAL if the description is invalid; -ENOSPC if the id is in
 * use; -ENOMEM.
 */
int kfd_criu_event_restore(struct kfd_process *p,
			   const struct kfd_criu_event *ce)
{
	const int id = ce->id;
	struct kfd_event *ev;
	int r;

	r = kfd_criu_event_check(ce);
	if (r)
		return r;
	ev = kzalloc(sizeof(*ev), GFP_KERNEL_ACCOUNT);
	if (!ev)
		return -ENOMEM;
	ev->type = ce->type;
	ev->auto_reset = ce->auto_reset;
	ev->signaled = ce->signaled;
	/* An event that was never signaled has age 1. */
	ev->event_age = max(ce->age, 1ULL);
	if (ce->type == KFD_EVENT_TYPE_MEMORY)
		ev->memory_exception_data = ce->memory_exception;
	else if (ce->type == KFD_EVENT_TYPE_HW_EXCEPTION)
		ev->hw_exception_data = ce->hw_exception;
	spin_lock_init(&ev->lock);
	init_waitqueue_head(&ev->wq);
	/* No thread of a process that is being restored waits for events. */
	mutex_lock(&p->event_mutex);
	if (kfd_criu_event_is_signal(ce->type)) {
		r = create_signal_event(NULL, p, ev, &id);
		if (r)
			goto err_unlock;
		/*
		 * The driver owns the signal page, and learns the mapped size
		 * when the program maps it.
		 */
		if (!p->signal_handle)
			p->signal_mapped_size = KFD_SIGNAL_EVENT_LIMIT *
						sizeof(u64);
	} else {
		r = create_other_event(p, ev, &id);
		if (r)
			goto err_unlock;
	}
	mutex_unlock(&p->event_mutex);
	return 0;

err_unlock:
	mutex_unlock(&p->event_mutex);
	kfree(ev);
	return r;
}

/**
 * kfd_criu_event_destroy_all - destroy all events of a process
 * @p: process whose restore has failed
 */
void kfd_criu_event_destroy_all(struct kfd_process *p)
{
	struct kfd_event *ev;
	u32 id;

	idr_for_each_entry(&p->event_idr, ev, id)
		kfd_event_destroy(p, id);
}
