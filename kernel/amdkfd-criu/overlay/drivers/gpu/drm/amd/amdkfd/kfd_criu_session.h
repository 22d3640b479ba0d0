/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Checkpoint/restore state of a process; embedded in struct kfd_process. Only
 * kfd_criu_session*.c change it, except for its lists of files.
 */
#ifndef KFD_CRIU_SESSION_H_INCLUDED
#define KFD_CRIU_SESSION_H_INCLUDED

#include <linux/list.h>
#include <linux/rwsem.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <drm/drm_checkpoint.h>

struct kfd_process;
struct pid;

/**
 * enum kfd_criu_state - checkpoint/restore state of a process
 * @KFD_CRIU_RUNNING: neither paused nor being restored; its queues run
 * @KFD_CRIU_PAUSED: its queues are evicted until the last pause ends
 * @KFD_CRIU_RESTORING: RESTORE is creating its objects
 * @KFD_CRIU_RESTORED: all objects exist; its queues stay evicted until RESUME
 * @KFD_CRIU_ABORTED: a restore failed; the process has no objects and cannot
 *	create any
 * @KFD_CRIU_RESUMING: SVM ranges are registered and the queues prepared, by a
 *	thread of the driver
 * @KFD_CRIU_STATES: number of states
 *
 * The numbers are those of KFD_CRIU_STATE_* in linux/kfd_criu_ioctl.h.
 */
enum kfd_criu_state {
	KFD_CRIU_RUNNING,
	KFD_CRIU_PAUSED,
	KFD_CRIU_RESTORING,
	KFD_CRIU_RESTORED,
	KFD_CRIU_ABORTED,
	KFD_CRIU_RESUMING,
	KFD_CRIU_STATES,
};

/**
 * struct kfd_criu_session - checkpoint/restore state of one process
 * @state: written under p->mutex; kfd_criu_session_state() reads it without
 * @ioctl_sem: held for reading by the program's ioctls; RESTORE starts only if
 *	it can take it for writing
 * @pauses: number of pauses; the process is in KFD_CRIU_PAUSED unless it is 0
 * @owner: thread group that owns the pause of version 1; NULL: there is none
 * @owner_work: polls whether @owner still exists, while there is one
 * @files: struct kfd_criu_file of this process; changed by kfd_criu_file.c
 * @closed_files: those whose pause @end_work ends; changed by kfd_criu_file.c
 * @end_work: ends the pauses of @closed_files; holds a reference to the process
 * @resume_work: does the work of RESUME if there cannot be a thread for it; holds a
 *	reference to the process
 * @resume_result: -EINPROGRESS in KFD_CRIU_RESUMING, then the result of RESUME
 * @resumed: woken when the process leaves KFD_CRIU_RESUMING
 * @saved_xnack: kfd_process.xnack_enabled before the restore, for undoing it
 */
struct kfd_criu_session {
	enum kfd_criu_state state;
	struct rw_semaphore ioctl_sem;
	unsigned int pauses;
	struct pid *owner;
	struct delayed_work owner_work;
	struct list_head files;
	struct list_head closed_files;
	struct work_struct end_work;
	struct work_struct resume_work;
	int resume_result;
	wait_queue_head_t resumed;
	bool saved_xnack;
};

extern struct workqueue_struct *kfd_criu_end_wq;

int kfd_criu_session_create_wqs(void);
void kfd_criu_session_flush_wqs(void);
void kfd_criu_session_destroy_wqs(void);
void kfd_criu_session_init(struct kfd_process *p);
void kfd_criu_session_fini(struct kfd_process *p);
enum kfd_criu_state kfd_criu_session_state(const struct kfd_process *p);
int kfd_criu_session_allows(const struct kfd_process *p);
int kfd_criu_session_begin_ioctl(struct kfd_process *p, unsigned int nr);
void kfd_criu_session_end_ioctl(struct kfd_process *p, unsigned int nr);
int kfd_criu_check_access(struct kfd_process *p, enum drm_checkpoint_what what,
			  bool is_validated);
int kfd_criu_check_tracer_access(struct kfd_process *p,
				 enum drm_checkpoint_what what,
				 bool is_validated);

/* For kfd_criu_session*.c and kfd_criu_evict.c only. */
#define KFD_CRIU_RETRY_MS	2

extern struct workqueue_struct *kfd_criu_resume_wq;
extern struct workqueue_struct *kfd_criu_undo_wq;

void kfd_criu_set_state(struct kfd_process *p, enum kfd_criu_state state);
bool kfd_criu_device_was_reset(const struct kfd_process *p);
bool kfd_criu_is_self_or_tracer(const struct kfd_process *p,
				struct task_struct *task);
void kfd_criu_owner_work_fn(struct work_struct *work);
void kfd_criu_resume_work_fn(struct work_struct *work);
int kfd_criu_evict_queues(struct kfd_process *p, u32 trigger);
int kfd_criu_unevict_queues(struct kfd_process *p);
bool kfd_criu_queues_are_evicted(const struct kfd_process *p);

/* kfd_criu_file.c */
void kfd_criu_files_end_work_fn(struct work_struct *work);
void kfd_criu_files_report_exit(struct kfd_process *p);
void kfd_criu_files_detach(struct kfd_process *p);

#endif /* KFD_CRIU_SESSION_H_INCLUDED */
