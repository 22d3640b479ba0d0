/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * User queues (SDMA, PM4, AQL) and packets that write memory or wait for it, as every
 * generation of GPUs understands them. Rings never get full: tests write few packets.
 * Functions return 0 or a negative errno unless their comment says otherwise.
 */
#ifndef KFD_CRIU_SELFTEST_QUEUE_H
#define KFD_CRIU_SELFTEST_QUEUE_H

#include "bo.h"
#include "kfd.h"

struct kfd_queue {
	__u32 id;
	unsigned int gpu;
	struct kfd_bo ring;	/* size 0: the fixture does not have this queue */
	struct kfd_bo memory;	/* write pointer, read pointer, fence */
	void *doorbell;
	__u64 doorbell_offset;	/* for mmap() on /dev/kfd */
	bool small_doorbell;	/* doorbells have 4 bytes before gfx9, then 8 */
	bool mtypes;		/* SDMA packets name the memory type from gfx10 on */
	__u64 written;		/* bytes of packets since the queue was created */
};

/*
 * Creates an SDMA queue whose ring is empty. It occupies a slot of the GPU's SDMA engines:
 * another process can restore the queue in that slot only when this queue is destroyed.
 */
int kfd_queue_create(struct kfd *kfd, unsigned int gpu,
		     struct kfd_queue *queue);
/* Creates an SDMA queue of another type, for example KFD_IOC_QUEUE_TYPE_SDMA_XGMI. */
int kfd_sdma_queue_create(struct kfd *kfd, unsigned int gpu, __u32 type,
			  struct kfd_queue *queue);
int kfd_queue_destroy(const struct kfd *kfd, const struct kfd_queue *queue);
/* Maps the doorbell at the offset that AMDKFD_IOC_CREATE_QUEUE returned. */
int kfd_queue_map_doorbell(const struct kfd *kfd, struct kfd_queue *queue,
			   __u64 offset);
/* In a restored process: maps the queue's BOs and its doorbell. */
int kfd_queue_remap(const struct kfd *kfd, struct kfd_queue *queue);
/* Lets an SDMA queue write a fence. Returns whether that happens within ten seconds. */
bool kfd_queue_runs(const struct kfd *kfd, struct kfd_queue *queue);

/* Bytes in which the GPU saves the waves of a compute queue; 0 before gfx8. */
__u64 kfd_cwsr_area_size(const struct kfd_gpu *gpu);
/* Creates a BO of that size; no BO, with size 0, where the GPU does not save waves. */
int kfd_cwsr_area_create(struct kfd *kfd, unsigned int gpu,
			 struct kfd_bo *area);

struct kfd_compute_queue_options {
	__u32 type;		/* KFD_IOC_QUEUE_TYPE_COMPUTE or _COMPUTE_AQL */
	__u32 percentage;
	__u32 priority;
	const struct kfd_bo *area;	/* where its waves are saved */
};

/* Creates a compute queue with its own ring, pointers and end-of-pipe buffer. */
int kfd_compute_queue_create(struct kfd *kfd, unsigned int gpu,
			     const struct kfd_compute_queue_options *options,
			     struct kfd_queue *queue);

/* Packets: the queue writes a 32-bit value, or waits until memory has the value. */
void kfd_sdma_write(struct kfd_queue *queue, __u64 va, __u32 value);
void kfd_sdma_wait(struct kfd_queue *queue, __u64 va, __u32 value);
void kfd_pm4_write(struct kfd_queue *queue, __u64 va, __u32 value);
void kfd_pm4_wait(struct kfd_queue *queue, __u64 va, __u32 value);
/* Packet: the queue raises an interrupt that carries the id of an event. */
void kfd_sdma_trap(struct kfd_queue *queue, __u32 event);

/* amd_signal_t of the HSA ABI, as far as barrier packets use it. */
struct hsa_signal {
	__s64 kind;
	__s64 value;
	__u64 unused[6];
};

/*
 * Packet: an AQL barrier that waits until the signal at the GPU address `gate` is 0, then
 * decrements the signal at `done`. With gate 0 it does not wait.
 */
void kfd_aql_barrier(const struct kfd *kfd, struct kfd_queue *queue,
		     __u64 gate, __u64 done);

#endif /* KFD_CRIU_SELFTEST_QUEUE_H */
