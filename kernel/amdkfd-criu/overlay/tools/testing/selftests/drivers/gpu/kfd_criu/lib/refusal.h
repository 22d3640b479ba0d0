/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Tables of images that the driver refuses: each row changes one member of an image and
 * names the errno that Documentation/gpu/amdgpu/kfd-criu.rst documents for it.
 */
#ifndef KFD_CRIU_SELFTEST_REFUSAL_H
#define KFD_CRIU_SELFTEST_REFUSAL_H

#include <stddef.h>
#include <linux/const.h>
#include "kfd.h"

enum refusal_change {
	SET,	/* store the value in the member */
	ADD,	/* add the value to the member */
	SAME,	/* copy the member of the next record of the same kind */
};

/* What the process or the machine must have; without it the row is left out. */
enum refusal_need {
	ALWAYS,
	SAVES_WAVES,	/* the GPU saves waves, so queues have end-of-pipe buffers */
	OWN_DOORBELLS,	/* doorbells do not follow from queue ids, as they do before gfx9 */
	SVM,
	REGISTERS,
	TWO_GPUS,
	SMALL_BAR,	/* processes cannot map VRAM of GPU 0 */
};

/* The operation that refuses the image. */
enum refusal_time {
	AT_RESTORE,
	AT_RESUME,
};

struct refusal {
	const char *what;
	__u32 record;		/* type: V1_IN_*, or KFD_CRIU_RECORD_* */
	/* The row changes the first record of the type whose word has these bits. */
	__u32 match_at;
	__u32 match_mask;
	__u32 match;
	__u32 at;		/* offset of the member in the record */
	__u32 bytes;		/* size of the member: 2, 4 or 8 */
	enum refusal_change change;
	__u64 value;
	int error;
	enum refusal_need need;
	enum refusal_time time;
};

/* The parts of an image of version 1. */
enum {
	V1_IN_PROCESS,
	V1_IN_DEVICE,	/* struct kfd_criu_device_bucket */
	V1_IN_BO,	/* struct kfd_criu_bo_bucket */
	V1_IN_BO_PRIVATE,
	V1_IN_QUEUE,
	V1_IN_EVENT,
	V1_IN_SVM,
};

/* For rows: the member, and how the row changes it. */
#define PLACE(member)		.at = (unsigned long)&(member), .bytes = sizeof(member)
#define FIELD(type, member)	PLACE((*(struct type *)0).member)
#define SETS(number)	.change = SET, .value = (number)
#define ADDS(number)	.change = ADD, .value = (number)
#define COPIES		.change = SAME, .value = 0

/* An address that no process can have. */
#define UNREACHABLE	_BITULL(63)
/* Added to an address, the result is one without a BO and without memory. */
#define ELSEWHERE	_BITULL(32)
#define NO_GPU		0xffffffffU
#define BEYOND_IDS	_BITULL(31)
#define UNKNOWN_BO_FLAG	0x400

extern const struct refusal v1_refusals[], v2_refusals[];
extern const unsigned int num_v1_refusals, num_v2_refusals;

#endif /* KFD_CRIU_SELFTEST_REFUSAL_H */
