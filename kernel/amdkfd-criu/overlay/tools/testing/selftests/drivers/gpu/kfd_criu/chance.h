/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * What tests that nobody wrote down are made of. The same seed gives the same row.
 */
#ifndef KFD_CRIU_SELFTEST_CHANCE_H
#define KFD_CRIU_SELFTEST_CHANCE_H

#include <linux/types.h>

/* KFD_CRIU_MUTATIONS: how many of each; KFD_CRIU_SEED: the first one's. */
unsigned long chance_mutations(void);
unsigned long chance_first_seed(void);

void chance_begin(unsigned long seed);
__u64 chance_number(void);
/* Numbers at which code changes its mind, and others. */
__u32 chance_word(__u32 was);
/* Changes one of the 32-bit words, if there is one. */
void chance_change(void *data, __u64 bytes);

#endif /* KFD_CRIU_SELFTEST_CHANCE_H */
