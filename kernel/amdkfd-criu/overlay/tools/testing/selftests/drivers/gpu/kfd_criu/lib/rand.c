// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The generator is xorshift64.
 */
#include <stdlib.h>
#include "rand.h"

#define DEFAULT_MUTATIONS	200

static __u64 state;

static unsigned long number_of(const char *name, unsigned long default_number)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 0) : default_number;
}

unsigned long rand_mutations(void)
{
	return number_of("KFD_CRIU_MUTATIONS", DEFAULT_MUTATIONS);
}

unsigned long rand_first_seed(void)
{
	return number_of("KFD_CRIU_SEED", 1);
}

void rand_seed(unsigned long seed)
{
	state = 0x9e3779b97f4a7c15ULL * seed | 1;
}

__u64 rand_next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

__u32 rand_change(__u32 was)
{
	switch (rand_next() % 6) {
	case 0:
		return 0;
	case 1:
		return ~0U;
	case 2:
		return was ^ 1U << rand_next() % 32;
	case 3:
		return was + 1;
	case 4:
		return 1U << rand_next() % 32;
	default:
		return rand_next();
	}
}

void rand_change_one_word(void *data, __u64 bytes)
{
	__u32 *words = data;

	if (bytes >= sizeof(*words)) {
		__u32 *word = &words[rand_next() % (bytes / sizeof(*words))];

		*word = rand_change(*word);
	}
}
