// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Events in the private data of the released ABI, version 1; see
 * kfd_criu_v1_queue.c.
 *
 * Locks: the callers hold p->mutex.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "kfd_criu.h"
#include "kfd_events.h"
#include "kfd_priv.h"

static void kfd_criu_v1_fill_event(struct kfd_criu_event_priv_data *out,
				   const struct kfd_criu_event *ce)
{
	memset(out, 0, sizeof(*out));
	out->object_type = KFD_CRIU_OBJECT_TYPE_EVENT;
	out->event_id = ce->id;
	out->type = ce->type;
	out->auto_reset = ce->auto_reset;
	out->signaled = ce->signaled;
	if (ce->type == KFD_EVENT_TYPE_MEMORY)
		out->memory_exception_data = ce->memory_exception;
	else if (ce->type == KFD_EVENT_TYPE_HW_EXCEPTION)
		out->hw_exception_data = ce->hw_exception;
}

static int kfd_criu_v1_parse_event(struct kfd_criu_event *ce,
				   const struct kfd_criu_event_priv_data *in)
{
	memset(ce, 0, sizeof(*ce));
	if (in->auto_reset > 1 || in->signaled > 1)
		return -EINVAL;
	ce->id = in->event_id;
	ce->type = in->type;
	ce->auto_reset = in->auto_reset;
	ce->signaled = in->signaled;
	if (ce->type == KFD_EVENT_TYPE_MEMORY)
		ce->memory_exception = in->memory_exception_data;
	else if (ce->type == KFD_EVENT_TYPE_HW_EXCEPTION)
		ce->hw_exception = in->hw_exception_data;
	return 0;
}

/**
 * kfd_criu_v1_checkpoint_events - write the records of all events of a process
 * @p: the process; its queues are evicted
 * @priv: private data
 * @offset: position in the private data; advanced
 * @size: bytes of private data
 *
 * The handle of the signal page is stored in the record of the first event.
 *
 * Return: 0; -EINVAL if events were created meanwhile and do not fit; -EFAULT,
 * -ENOMEM.
 */
int kfd_criu_v1_checkpoint_events(struct kfd_process *p, u8 __user *priv,
				  u64 *offset, u64 size)
{
	struct kfd_criu_event_priv_data *records;
	struct kfd_criu_event *events;
	u32 i, n;
	int r;

	r = kfd_criu_event_save(p, &events, &n);
	if (r)
		return r;
	/*
	 * All records are copied at once, because they are small and there may
	 * be thousands.
	 */
	records = kvmalloc_array(max(n, 1u), sizeof(*records),
				 GFP_KERNEL_ACCOUNT);
	if (!records) {
		r = -ENOMEM;
		goto out_free_events;
	}
	if (*offset > size || (size - *offset) / sizeof(*records) < n) {
		r = -EINVAL;
		goto out_free_records;
	}
	for (i = 0; i < n; i++)
		kfd_criu_v1_fill_event(&records[i], &events[i]);
	if (n && p->signal_page)
		records[0].user_handle = p->signal_handle;
	if (copy_to_user(priv + *offset, records, n * sizeof(*records))) {
		r = -EFAULT;
		goto out_free_records;
	}
	*offset += n * sizeof(*records);
out_free_records:
	kvfree(records);
out_free_events:
	kvfree(events);
	return r;
}

/**
 * kfd_criu_v1_restore_event - restore the event that a record describes
 * @p: process being restored; its BOs are restored
 * @priv: private data
 * @offset: position of the record in the private data; advanced
 * @size: bytes of private data
 *
 * Return: 0; -EINVAL if the record is invalid; -EFAULT; as
 * kfd_kmap_event_page() and kfd_criu_event_restore().
 */
int kfd_criu_v1_restore_event(struct kfd_process *p, const u8 __user *priv,
			      u64 *offset, u64 size)
{
	struct kfd_criu_event_priv_data record;
	struct kfd_criu_event ce;
	int r;

	if (*offset > size || size - *offset < sizeof(record))
		return -EINVAL;
	if (copy_from_user(&record, priv + *offset, sizeof(record)))
		return -EFAULT;
	*offset += sizeof(record);
	r = kfd_criu_v1_parse_event(&ce, &record);
	if (r)
		return r;
	if (record.user_handle) {
		r = kfd_kmap_event_page(p, record.user_handle);
		if (r)
			return r;
	}
	return kfd_criu_event_restore(p, &ce);
}
