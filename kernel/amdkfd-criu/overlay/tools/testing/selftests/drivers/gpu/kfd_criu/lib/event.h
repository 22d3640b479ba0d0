/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Events.
 */
#ifndef KFD_CRIU_SELFTEST_EVENT_H
#define KFD_CRIU_SELFTEST_EVENT_H

#include "kfd.h"

/* Bytes of an event page that is a BO: the driver wants room for every slot. */
#define KFD_EVENT_PAGE_SIZE	(KFD_SIGNAL_EVENT_LIMIT * 8)

/*
 * Creates an event of any type and stores its id; page is the handle of the BO that
 * becomes the process's event page with its first event, or 0. Returns 0 or a negative
 * errno.
 */
int kfd_event_create_type(const struct kfd *kfd, __u64 page, __u32 type,
			  bool auto_reset, __u32 *id);
/* Creates an event that needs no page. Returns its id, or a negative errno. */
int kfd_event_create(const struct kfd *kfd);
/* Sets the event. Returns 0 or a negative errno. */
int kfd_event_set(const struct kfd *kfd, __u32 id);
/* Waits for the event. Returns KFD_IOC_WAIT_RESULT_*, or a negative errno. */
int kfd_event_wait(const struct kfd *kfd, __u32 id, __u32 limit_ms);

#endif /* KFD_CRIU_SELFTEST_EVENT_H */
