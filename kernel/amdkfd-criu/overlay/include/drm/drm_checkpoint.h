/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Who may checkpoint and restore the client of a driver.
 */
#ifndef DRM_CHECKPOINT_H_
#define DRM_CHECKPOINT_H_

#include <linux/types.h>

struct task_struct;

/**
 * enum drm_checkpoint_what - what a checkpointer wants to do with a client
 * @DRM_CHECKPOINT_QUIESCE: stop the work that the client has submitted, or let
 *	it continue
 * @DRM_CHECKPOINT_READ_STATE: read state of the client that no other ioctl of
 *	the driver returns
 * @DRM_CHECKPOINT_WRITE_STATE: give the client state that no other ioctl of the
 *	driver can give it
 */
enum drm_checkpoint_what {
	DRM_CHECKPOINT_QUIESCE,
	DRM_CHECKPOINT_READ_STATE,
	DRM_CHECKPOINT_WRITE_STATE,
};

int drm_checkpoint_may(struct task_struct *owner, enum drm_checkpoint_what what,
		       bool state_is_validated);

#endif /* DRM_CHECKPOINT_H_ */
