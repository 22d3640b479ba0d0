// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Thin: an ioctl each.
 */
#include "event.h"

int kfd_event_create_type(const struct kfd *kfd, __u64 page, __u32 type,
			  bool auto_reset, __u32 *id)
{
	struct kfd_ioctl_create_event_args args = {
		.event_page_offset = page,
		.event_type = type,
		.auto_reset = auto_reset,
	};
	int r = kfd_call(kfd->fd, AMDKFD_IOC_CREATE_EVENT, &args);

	*id = args.event_id;
	return r;
}

int kfd_event_create(const struct kfd *kfd)
{
	__u32 id;
	int r = kfd_event_create_type(kfd, 0, KFD_IOC_EVENT_HW_EXCEPTION, false,
				      &id);

	return r ? r : (int)(id & 0x7fffffff);
}

int kfd_event_set(const struct kfd *kfd, __u32 id)
{
	struct kfd_ioctl_set_event_args args = { .event_id = id };

	return kfd_call(kfd->fd, AMDKFD_IOC_SET_EVENT, &args);
}

int kfd_event_wait(const struct kfd *kfd, __u32 id, __u32 limit_ms)
{
	struct kfd_event_data data = { .event_id = id };
	struct kfd_ioctl_wait_events_args args = {
		.events_ptr = (unsigned long)&data,
		.num_events = 1,
		.timeout = limit_ms,
	};
	const int r = kfd_call(kfd->fd, AMDKFD_IOC_WAIT_EVENTS, &args);

	return r ? r : (int)args.wait_result;
}
