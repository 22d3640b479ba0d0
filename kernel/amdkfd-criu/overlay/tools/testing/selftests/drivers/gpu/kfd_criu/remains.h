/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * What a restore that failed must not leave: files, queues, BOs and their memory, other
 * objects, a state.
 */
#ifndef KFD_CRIU_SELFTEST_REMAINS_H
#define KFD_CRIU_SELFTEST_REMAINS_H

#include "kfd.h"

/* What a child says beside an errno. */
enum {
	NO_REMAINS,
	REMAINS_STATE = 240,
	REMAINS_FILE,
	REMAINS_QUEUE,
	REMAINS_MEMORY,
	REMAINS_OBJECT,
	REMAINS_PAUSE,
};

/* What there was before: nothing but files and the driver's own. */
struct remains_before {
	int files;
	long long available[KFD_MAX_GPUS];	/* VRAM */
};

void remains_look(const struct kfd *kfd, struct remains_before *before);
/* What is left of it in this process, whose files are not looked at if there were none. */
int remains_of(const struct kfd *kfd, const struct remains_before *before);
/* Queues of this process. */
int remains_count_queues(void);

#endif /* KFD_CRIU_SELFTEST_REMAINS_H */
