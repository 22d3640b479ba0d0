/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Checks that an operation that failed left no file, queue, BO, memory of a BO or other
 * object, and no state but running or aborted.
 */
#ifndef KFD_CRIU_SELFTEST_LEAK_CHECK_H
#define KFD_CRIU_SELFTEST_LEAK_CHECK_H

#include "kfd.h"

/* Results of leak_check(): exit statuses of a child that are no errno. */
enum {
	LEAK_NONE,
	LEAK_STATE = 240,
	LEAK_FILE,
	LEAK_QUEUE,
	LEAK_MEMORY,
	LEAK_OBJECT,
	LEAK_PAUSE,
};

/* What was there before the operation. */
struct leak_baseline {
	int files;	/* number of open files; 0: do not compare it */
	long long available[KFD_MAX_GPUS];	/* free VRAM of each GPU */
};

void leak_baseline_take(const struct kfd *kfd, struct leak_baseline *baseline);
/* Compares this process, which had no object, with the baseline. Returns LEAK_*. */
int leak_check(const struct kfd *kfd, const struct leak_baseline *baseline);
/* Returns the number of queues of this process, or a negative errno. */
int leak_count_queues(void);

#endif /* KFD_CRIU_SELFTEST_LEAK_CHECK_H */
