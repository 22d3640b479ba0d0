/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * A program with something of everything on one GPU: memory of each kind, an SVM range,
 * events, and an SDMA and a PM4 queue with a packet behind them and others before
 * them. It is checkpointed into a recording and goes on from one.
 */
#ifndef KFD_CRIU_SELFTEST_PROGRAM_H
#define KFD_CRIU_SELFTEST_PROGRAM_H

#include "kfd.h"
#include "recording.h"

/* Memory of the process: a page that is a BO too, and one that is an SVM range. In the
 * address space of every GPU, and not where the kernel puts anything by itself.
 */
#define HOST_MEMORY	0x1000000000UL
#define HOST_BYTES	(2 * KFD_PAGE)
#define USER_PAGE	HOST_MEMORY
#define SVM_PAGE	(HOST_MEMORY + KFD_PAGE)

struct program {
	struct recording_numbers numbers;
	struct kfd_queue sdma, compute;
	/* Of the CPU. */
	__u32 *words;
	__u32 *vram;
	__u32 *user;
	__u32 *svm;
};

/* Starts it on GPU 0, whose VM is acquired. -EOPNOTSUPP: there is no SVM. */
int program_start(struct kfd *kfd, struct program *program);
/* Lets each queue do a packet, and leaves it before a closed gate with one behind. */
int program_wait_at_gate(struct program *program);
/* Pauses the process and checkpoints it, with the memory. */
int program_take(const struct kfd *kfd, const struct program *program,
		 struct recording *recording);
/* In a process that has nothing, on its GPU 0, as the devices of the image say. */
int program_restore(struct kfd *kfd, struct recording *recording,
		    struct program *program);
/* NULL if everything is as it was and works, else what does not. */
const char *program_goes_on(const struct kfd *kfd, struct program *program);

#endif /* KFD_CRIU_SELFTEST_PROGRAM_H */
