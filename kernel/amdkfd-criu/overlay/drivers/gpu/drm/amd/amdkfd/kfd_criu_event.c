// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Events at checkpoint and restore. The signal page is a BO of the process, or none
 * at all: what is in its slots goes with the memory.
 *
 * Locks: the callers hold p->mutex; p->event_mutex is taken here, because events
 * come and go without the former.
 */
#include <linux/slab.h>
#include "kfd_criu.h"
#include "kfd_events.h"
#include "kfd_priv.h"
#include "amdgpu.h"
#include "amdgpu_ih.h"

static bool kfd_criu_event_is_signal(u32 type)
{
	return type == KFD_EVENT_TYPE_SIGNAL || type == KFD_EVENT_TYPE_DEBUG;
}

/* For idr_for_each(), as with BOs. Nothing is at id 0, which no event has. */
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

/* @data: where to, which moves on */
static int kfd_criu_event_describe_next(int id, void *ev, void *data)
{
	struct kfd_criu_event **next = data;

	kfd_criu_event_describe(ev, (*next)++);
	return 0;
}

/**
 * kfd_criu_event_count - how many events a process has
 * @p: the process
 *
 * Events may come and go afterwards; see kfd_criu_event_save().
 */
u32 kfd_criu_event_count(struct kfd_process *p)
{
	u32 n;

	mutex_lock(&p->event_mutex);
	n = kfd_criu_event_count_locked(p);
	mutex_unlock(&p->event_mutex);
	return n;
}

/* What the device's ring of interrupts holds. Before SOC15 they have no time. */
static long kfd_criu_wait_for_ih_ring(struct amdgpu_device *adev,
				      struct amdgpu_ih_ring *ih)
{
	if (adev->irq.ih_funcs->decode_iv_ts)
		return amdgpu_ih_wait_on_checkpoint_process_ts(adev, ih);
	return wait_event_interruptible_timeout(ih->wait_process,
						ih->rptr ==
						amdgpu_ih_get_wptr(adev, ih),
						HZ);
}

/* A ring that is not read any more, for a second, is going to be reset. */
static int kfd_criu_drain_device_interrupts(struct kfd_node *node)
{
	struct amdgpu_device *adev = node->adev;
	long r;

	r = adev->irq.ih.enabled ?
		    kfd_criu_wait_for_ih_ring(adev, &adev->irq.ih) :
		    0;
	if (r < 0)
		return r;
	/* It has handed them on to this. */
	flush_work(&node->interrupt_work);
	return 0;
}

/**
 * kfd_criu_event_drain_interrupts - wait for interrupts on their way
 * @p: the process; its queues are off the hardware, and its mutex is not held: the worker
 *	that hears them may wait for it
 *
 * Or their events would be lost.
 *
 * Return: 0; -ERESTARTSYS if a signal came; -ENODEV if a device is going away.
 */
int kfd_criu_event_drain_interrupts(struct kfd_process *p)
{
	unsigned int i;
	int r = 0;

	for (i = 0; !r && i < p->n_pdds; i++)
		/* A device that is not used may sleep, and would not answer. */
		if (READ_ONCE(p->pdds[i]->runtime_inuse))
			r = kfd_criu_drain_device_interrupts(p->pdds[i]->dev);
	return r;
}

/**
 * kfd_criu_event_save - describe all events of a process
 * @p: the process; its queues are off the hardware
 * @events: gets an array, for kvfree()
 * @n: gets its length
 *
 * Of what is on its way kfd_criu_event_drain_interrupts() has heard before.
 *
 * Return: 0; -ENOMEM.
 */
int kfd_criu_event_save(struct kfd_process *p, struct kfd_criu_event **events,
			u32 *n)
{
	struct kfd_criu_event *next;

	mutex_lock(&p->event_mutex);
	*n = kfd_criu_event_count_locked(p);
	next = kvcalloc(max(*n, 1u), sizeof(*next), GFP_KERNEL_ACCOUNT);
	*events = next;
	if (next)
		idr_for_each(&p->event_idr, kfd_criu_event_describe_next,
			     &next);
	mutex_unlock(&p->event_mutex);
	return *events ? 0 : -ENOMEM;
}

/* Signal events have the low ids, which are slots of the page; others the high. */
static int kfd_criu_event_check(const struct kfd_criu_event *ce)
{
	if (ce->id == 0 || ce->id > INT_MAX)
		return -EINVAL;
	/* The driver takes an age that turns over for a fault of its own. */
	if (ce->age == U64_MAX)
		return -EINVAL;
	if (kfd_criu_event_is_signal(ce->type))
		return ce->id < KFD_SIGNAL_EVENT_LIMIT ? 0 : -EINVAL;
	/* Of any type, as for AMDKFD_IOC_CREATE_EVENT. */
	return ce->id >= KFD_FIRST_NONSIGNAL_EVENT_ID ? 0 : -EINVAL;
}

/**
 * kfd_criu_event_restore - make an event again
 * @p: process being restored; its signal page is set, if it had one
 * @ce: from an image
 *
 * Return: 0; -EINVAL for what is no event; -ENOSPC if the id is taken; -ENOMEM.
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
	/* 1 is the age of an event that nothing happened to. */
	ev->event_age = max(ce->age, 1ULL);
	if (ce->type == KFD_EVENT_TYPE_MEMORY)
		ev->memory_exception_data = ce->memory_exception;
	else if (ce->type == KFD_EVENT_TYPE_HW_EXCEPTION)
		ev->hw_exception_data = ce->hw_exception;
	spin_lock_init(&ev->lock);
	init_waitqueue_head(&ev->wq);
	mutex_lock(&p->event_mutex);
	if (kfd_criu_event_is_signal(ce->type)) {
		r = create_signal_event(NULL, p, ev, &id);
		/* How much of the driver's page it had mapped is seen when it maps it. */
		if (!r && !p->signal_handle)
			p->signal_mapped_size = KFD_SIGNAL_EVENT_LIMIT *
						sizeof(u64);
	} else {
		r = create_other_event(p, ev, &id);
	}
	mutex_unlock(&p->event_mutex);
	if (r)
		kfree(ev);
	return r;
}

/**
 * kfd_criu_event_destroy_all - undo kfd_criu_event_restore()
 * @p: process whose restore has failed
 */
void kfd_criu_event_destroy_all(struct kfd_process *p)
{
	struct kfd_event *ev;
	u32 id;

	idr_for_each_entry(&p->event_idr, ev, id)
		kfd_event_destroy(p, id);
}
