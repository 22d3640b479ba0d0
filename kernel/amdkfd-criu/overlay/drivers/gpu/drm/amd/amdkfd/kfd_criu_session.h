/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Where a process is between running and being restored; part of struct
 * kfd_process. Only kfd_criu_session.c changes it.
 */
#ifndef KFD_CRIU_SESSION_H_INCLUDED
#define KFD_CRIU_SESSION_H_INCLUDED

#include <linux/rwsem.h>
#include <linux/workqueue.h>

struct kfd_process;
struct pid;

/**
 * enum kfd_criu_state - what checkpoint and restore have made of a process
 * @KFD_CRIU_RUNNING: nothing; its queues run
 * @KFD_CRIU_PAUSED: its queues are off the hardware until the owner of the pause
 *	ends it, or has ended itself
 * @KFD_CRIU_RESTORING: objects are being made
 * @KFD_CRIU_RESTORED: all objects are there; the queues wait to be resumed
 * @KFD_CRIU_ABORTED: a restore failed; there are no objects, and there can be none
 *
 * @KFD_CRIU_STATES: how many there are
 */
enum kfd_criu_state {
	KFD_CRIU_RUNNING,
	KFD_CRIU_PAUSED,
	KFD_CRIU_RESTORING,
	KFD_CRIU_RESTORED,
	KFD_CRIU_ABORTED,
	KFD_CRIU_STATES,
};

/**
 * struct kfd_criu_session - of one process
 * @state: changed under p->mutex; may be read without, by kfd_criu_session_state()
 * @gate: ioctls of the program read; a restore begins with it to itself
 * @owner: thread group that paused it
 * @watch: looks whether @owner is still there
 * @xnack_was: before it was restored
 */
struct kfd_criu_session {
	enum kfd_criu_state state;
	struct rw_semaphore ioctl_sem;
	struct pid *owner;
	struct delayed_work owner_work;
	bool saved_xnack;
};

void kfd_criu_session_init(struct kfd_process *p);
void kfd_criu_session_fini(struct kfd_process *p);
enum kfd_criu_state kfd_criu_session_state(const struct kfd_process *p);
int kfd_criu_session_allows(const struct kfd_process *p);
int kfd_criu_session_begin_ioctl(struct kfd_process *p, unsigned int nr);
void kfd_criu_session_end_ioctl(struct kfd_process *p, unsigned int nr);
int kfd_criu_check_access(struct kfd_process *p);

#endif /* KFD_CRIU_SESSION_H_INCLUDED */
