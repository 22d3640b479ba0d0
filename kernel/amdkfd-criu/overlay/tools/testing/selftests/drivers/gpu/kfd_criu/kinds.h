/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * A process with an object of every kind that its GPUs have, and queues in the middle of
 * their work; its images, and what it is like in a process that was restored from one.
 * Functions return 0 or a negative errno.
 */
#ifndef KFD_CRIU_SELFTEST_KINDS_H
#define KFD_CRIU_SELFTEST_KINDS_H

#include "kfd.h"

#define KINDS_QUEUES		5
#define KINDS_HIDDEN		2
#define KINDS_CONTENTS		13
/* Types of events: all that AMDKFD_IOC_CREATE_EVENT knows, KFD_IOC_EVENT_MEMORY last. */
#define KINDS_EVENT_TYPES	(KFD_IOC_EVENT_MEMORY + 1)

struct kinds {
	/* BOs of GPU 0; each says with its size whether there is one. Hidden: VRAM that the
	 * process does not map.
	 */
	struct kfd_bo words, visible, hidden[KINDS_HIDDEN], user, doorbells, registers, page, area;
	struct kfd_bo imported, twin;	/* words, by GPU 0 and GPU 1 */
	/* Compute queues with a PM4 and an AQL ring, one that is stopped, SDMA queues. */
	struct kfd_queue pm4, aql, idle, sdma, xgmi;
	__u32 events[KINDS_EVENT_TYPES];	/* ids */
	__u32 set_event;
	__u32 *svm;		/* NULL: no SVM */
	bool gws;
	/* The checkpoint, and what was in the BOs then. */
	struct kfd_image v1;
	struct kfd_v2_image v2;
	void *contents[KINDS_CONTENTS];
};

/* In a process that has nothing. */
int kinds_make(struct kfd *kfd, struct kinds *kinds);
/* Brings the queues into the middle of their work, and checkpoints by both ABIs. The
 * process has no queues afterwards: what they had of the GPUs is free.
 */
int kinds_take(struct kfd *kfd, struct kinds *kinds);
/* Without a checkpoint: NULL if each queue that is not stopped does what it is given, else
 * which one does not. Not of queues that stand before the gate.
 */
const char *kinds_run(const struct kfd *kfd, struct kinds *kinds);
/* In a process that was restored, before it is resumed: finds the BOs and queues, and
 * gives the BOs their contents.
 */
int kinds_find(const struct kfd *kfd, struct kinds *kinds);
/* If it is aborted then: a BO that is mapped is there until it is unmapped. */
void kinds_unmap(struct kinds *kinds);
/* And after that: NULL if everything goes on, else what does not. */
const char *kinds_go_on(const struct kfd *kfd, struct kinds *kinds);
void kinds_free(struct kinds *kinds);

/* All queues; one that is not there has a ring of size 0. */
struct kfd_queue *kinds_queue(struct kinds *kinds, unsigned int i);

#endif /* KFD_CRIU_SELFTEST_KINDS_H */
