/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Checkpoint and restore of amdkfd processes: what its files tell each other and
 * the rest of the driver.
 */
#ifndef KFD_CRIU_H_INCLUDED
#define KFD_CRIU_H_INCLUDED

struct kfd_process;
struct kfd_process_device;
struct queue_properties;

int kfd_criu_queue_acquire_buffers(struct kfd_process_device *pdd,
				   struct queue_properties *qp);
int kfd_criu_queue_acquire_deferred(struct kfd_process *p);

#endif /* KFD_CRIU_H_INCLUDED */
