/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * What a member of a record must not be, and what the kernel says to it then: a row
 * for each (Documentation/gpu/amdgpu/kfd-criu.rst).
 */
#ifndef KFD_CRIU_SELFTEST_REFUSALS_H
#define KFD_CRIU_SELFTEST_REFUSALS_H

#include <stddef.h>
#include <linux/const.h>
#include "kfd.h"

enum refusal_change {
	SET,	/* it gets the value */
	ADD,	/* the value is added to it */
	SAME,	/* it gets what the next such record has there */
};

/* What the process must have for a row to make sense; else it is left out. */
enum refusal_need {
	ALWAYS,
	SAVES_WAVES,	/* and so an end-of-pipe buffer */
	OWN_DOORBELLS,	/* before gfx9 a queue's doorbell is that of its id */
	SVM,
	REGISTERS,
	TWO_GPUS,
	SMALL_BAR,	/* of GPU 0 */
};

/* Where it is refused. */
enum refusal_time {
	AT_RESTORE,
	AT_RESUME,
};

struct refusal {
	const char *what;
	__u32 record;		/* V1_IN_*, or KFD_CRIU_RECORD_* */
	/* Of records of the type those whose word has these bits, or is this word. */
	__u32 match_at;
	__u32 match_mask;
	__u32 match;
	__u32 at;		/* bytes from the record's beginning */
	__u32 bytes;		/* 2, 4 or 8 */
	enum refusal_change change;
	__u64 value;
	int error;
	enum refusal_need need;
	enum refusal_time time;
};

/* Where in an image of version 1. */
enum {
	V1_IN_PROCESS,
	V1_IN_DEVICE,	/* its public part */
	V1_IN_BO,	/* its public part */
	V1_IN_BO_PRIVATE,
	V1_IN_QUEUE,
	V1_IN_EVENT,
	V1_IN_SVM,
};

/* For rows: a member, and what becomes of it. */
#define PLACE(member)		.at = (unsigned long)&(member), .bytes = sizeof(member)
#define FIELD(type, member)	PLACE((*(struct type *)0).member)
#define SETS(number)	.change = SET, .value = (number)
#define ADDS(number)	.change = ADD, .value = (number)
#define COPIES		.change = SAME, .value = 0

/* An address that no program has; added to one, there is neither BO nor memory. */
#define UNREACHABLE	_BITULL(63)
#define ELSEWHERE	_BITULL(32)
#define NO_GPU		0xffffffffU
#define BEYOND_IDS	_BITULL(31)
#define UNKNOWN_BO_FLAG	0x400

extern const struct refusal v1_refusals[], v2_refusals[];
extern const unsigned int num_v1_refusals, num_v2_refusals;

#endif /* KFD_CRIU_SELFTEST_REFUSALS_H */
