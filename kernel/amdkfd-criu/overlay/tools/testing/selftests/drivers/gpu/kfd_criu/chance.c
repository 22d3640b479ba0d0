// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 */
#include <stdlib.h>
#include "chance.h"

#define DEFAULT_MUTATIONS	200

static __u64 state;

static unsigned long number_of(const char *name, unsigned long otherwise)
{
	const char *text = getenv(name);

	return text ? strtoul(text, NULL, 0) : otherwise;
}

unsigned long chance_mutations(void)
{
	return number_of("KFD_CRIU_MUTATIONS", DEFAULT_MUTATIONS);
}

unsigned long chance_first_seed(void)
{
	return number_of("KFD_CRIU_SEED", 1);
}

void chance_begin(unsigned long seed)
{
	state = 0x9e3779b97f4a7c15ULL * seed | 1;
}

/* xorshift64 */
__u64 chance_number(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

__u32 chance_word(__u32 was)
{
	switch (chance_number() % 6) {
	case 0:
		return 0;
	case 1:
		return ~0U;
	case 2:
		return was ^ 1U << chance_number() % 32;
	case 3:
		return was + 1;
	case 4:
		return 1U << chance_number() % 32;
	default:
		return chance_number();
	}
}

void chance_change(void *data, __u64 bytes)
{
	__u32 *words = data;

	if (bytes >= sizeof(*words)) {
		__u32 *word = &words[chance_number() % (bytes / sizeof(*words))];

		*word = chance_word(*word);
	}
}
