/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Random numbers for the tests that change images and arguments at random. The same seed
 * gives the same sequence of numbers.
 */
#ifndef KFD_CRIU_SELFTEST_RAND_H
#define KFD_CRIU_SELFTEST_RAND_H

#include <linux/types.h>

/* How many changed images to try of each ABI: KFD_CRIU_MUTATIONS in the environment. */
unsigned long rand_mutations(void);
/* The seed of the first one: KFD_CRIU_SEED in the environment. */
unsigned long rand_first_seed(void);

/* Begins the sequence of a seed. */
void rand_seed(unsigned long seed);
/* The next number of the sequence. */
__u64 rand_next(void);
/* Returns a number instead of `was`: often 0, the largest number, or close to `was`. */
__u32 rand_change(__u32 was);
/* Changes one of the 32-bit words, if there is any. */
void rand_change_one_word(void *data, __u64 bytes);

#endif /* KFD_CRIU_SELFTEST_RAND_H */
