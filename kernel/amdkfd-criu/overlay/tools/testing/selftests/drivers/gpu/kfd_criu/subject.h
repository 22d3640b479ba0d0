/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * A small process that is checkpointed: BOs, an event, an SVM range, and a queue that
 * has done nothing yet, so that zeros are all that its memory needs. Functions return 0
 * or a negative errno where nothing else is said.
 */
#ifndef KFD_CRIU_SELFTEST_SUBJECT_H
#define KFD_CRIU_SELFTEST_SUBJECT_H

#include "kfd.h"

struct subject {
	struct kfd_objects has;
	struct kfd_queue queue;
	struct kfd_image v1;
	struct kfd_v2_image v2;
};

/* In a process that has nothing. */
int subject_make(struct kfd *kfd, struct subject *subject);
/* By both ABIs; the process runs and has no queue then: its place is for others. */
int subject_take(struct kfd *kfd, struct subject *subject);
void subject_free(struct subject *subject);
/* In a process that was restored and resumed. */
int subject_goes_on(const struct kfd *kfd, struct subject *subject);
/* A child's body: 0 if a new process can be made and works. */
int subject_is_possible(struct kfd *kfd, void *data);

#endif /* KFD_CRIU_SELFTEST_SUBJECT_H */
