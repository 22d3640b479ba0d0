/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * A job on an SDMA engine that does not end before the CPU opens its gate. Functions return
 * 0 or a negative errno.
 */
#ifndef DRM_HANDLE_AT_SELFTEST_JOB_H
#define DRM_HANDLE_AT_SELFTEST_JOB_H

#include <linux/types.h>

struct gated_job {
	int drm;
	__u32 context;
	__u32 object;		/* GEM handle of the commands and the gate */
	volatile __u32 *words;	/* the object, mapped */
	__u64 sequence;		/* of the fence */
};

/* Submits the job in the context. The object is the handle at which it is created. */
int gated_job_submit(struct gated_job *job, int drm, __u32 context, __u32 object);
void gated_job_open_gate(struct gated_job *job);
/* Waits until the job has ended. Returns -ETIME after LIMIT_S without, or the job's error. */
int gated_job_wait(const struct gated_job *job, unsigned int limit_s);
void gated_job_free(struct gated_job *job);

#endif /* DRM_HANDLE_AT_SELFTEST_JOB_H */
