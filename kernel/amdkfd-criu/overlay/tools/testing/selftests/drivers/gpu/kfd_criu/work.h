/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Compute queues, and what queues are given to do: packets that write and wait, as
 * every generation understands them. Functions return 0 or a negative errno.
 */
#ifndef KFD_CRIU_SELFTEST_WORK_H
#define KFD_CRIU_SELFTEST_WORK_H

#include "kfd.h"

#define GFX9	90000

/* Bytes that a GPU wants for the waves of a compute queue; 0 before gfx8. */
__u64 work_save_area_size(const struct kfd_gpu *gpu);
/* Memory of that size; of size 0 nothing is made. */
int work_save_area_create(struct kfd *kfd, unsigned int gpu,
			  struct kfd_bo *area);

struct work_compute {
	__u32 type;		/* KFD_IOC_QUEUE_TYPE_COMPUTE or _COMPUTE_AQL */
	__u32 percentage;
	__u32 priority;
	const struct kfd_bo *area;
};

/* Its ring, its pointers and its end-of-pipe buffer are its own. */
int work_compute_create(struct kfd *kfd, unsigned int gpu,
			const struct work_compute *wish,
			struct kfd_queue *queue);

void work_sdma_write(struct kfd_queue *queue, __u64 va, __u32 value);
void work_sdma_wait(struct kfd_queue *queue, __u64 va, __u32 value);
/* Interrupts with a word that tells which event it is. */
void work_sdma_trap(struct kfd_queue *queue, __u32 event);
void work_pm4_write(struct kfd_queue *queue, __u64 va, __u32 value);
void work_pm4_wait(struct kfd_queue *queue, __u64 va, __u32 value);

/* amd_signal_t of the HSA ABI, as far as packets look at it. */
struct work_signal {
	__s64 kind;
	__s64 value;
	__u64 nothing[6];
};

/* Waits until the signal at `gate` is 0, then counts that at `done` down by one.
 * gate 0: waits for nothing.
 */
void work_aql_barrier(const struct kfd *kfd, struct kfd_queue *queue,
		      __u64 gate, __u64 done);

/* Waits until a word has a value, ten seconds at most. */
bool work_becomes(const __u32 *word, __u32 value);
/* Waits for an event: KFD_IOC_WAIT_RESULT_*, or a negative errno. */
int work_wait(const struct kfd *kfd, __u32 event, __u32 limit_ms);

#endif /* KFD_CRIU_SELFTEST_WORK_H */
