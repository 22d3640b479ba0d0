// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Packets: see amdgpu, cikd.h, soc15d.h and vega10_sdma_pkt_open.h; AQL: the HSA
 * specification.
 */
#include <string.h>
#include <unistd.h>
#include "work.h"

#define WAIT_LIMIT_MS		10000

/* In a queue's memory, see kfd.c; of AQL queues: amd_queue_t of the HSA ABI. */
#define READ_POINTER		8
#define AQL_WRITE_INDEX		56
#define AQL_READ_INDEX		128
#define AQL_READ_INDEX_AT	136
#define AQL_PACKET		64
#define AQL_INVALID		1
/* Barrier-AND, the barrier bit, fences of system scope. */
#define AQL_BARRIER_AND		(3 | 1 << 8 | 2 << 9 | 2 << 11)

/* HSA_CAP_DOORBELL_TYPE_* of topology's capability: what an AQL doorbell is told. */
#define DOORBELL_TYPE(capability) ((capability) >> 12 & 3)
#define DOORBELL_DWORDS		0
#define DOORBELL_COUNT		1

#define SDMA_TRAP		6
#define SDMA_POLL_EQUAL		(8 | 3U << 28 | 1U << 31)
#define SDMA_POLL_FOR_EVER	0x0fff0004
#define PM4(opcode, dwords)	(3U << 30 | ((dwords) - 2) << 16 | \
				 (opcode) << 8 | 1 << 1)
#define PM4_WRITE_DATA		PM4(0x37, 5)
#define PM4_TO_MEMORY		(5 << 8 | 1 << 20)
#define PM4_WAIT_REG_MEM	PM4(0x3c, 7)
#define PM4_MEMORY_EQUAL	(3 | 1 << 4)

static __u32 low(__u64 value)
{
	return value;
}

static __u32 high(__u64 value)
{
	return value >> 32;
}

static __u64 align(__u64 value, __u64 to)
{
	return (value + to - 1) / to * to;
}

/* Of all XCCs, with what a debugger is told of waves (amdkfd, kfd_queue.c). */
__u64 work_save_area_size(const struct kfd_gpu *gpu)
{
	const __u64 xccs = kfd_gpu_property(gpu, "num_xcc") ?: 1;
	const __u64 cus = kfd_gpu_property(gpu, "simd_count") /
			  kfd_gpu_property(gpu, "simd_per_cu") / xccs;
	const __u64 engines = kfd_gpu_property(gpu, "array_count") / xccs /
			      kfd_gpu_property(gpu, "simd_arrays_per_engine");
	const __u64 saved = kfd_gpu_property(gpu, "cwsr_size");
	__u64 waves = cus * 32;

	if (gpu->gfx_version < 100000)
		waves = cus * 40 < engines * 512 ? cus * 40 : engines * 512;
	return saved ? align((saved + align(waves * 32, 64)) * xccs, KFD_PAGE) : 0;
}

int work_save_area_create(struct kfd *kfd, unsigned int gpu,
			  struct kfd_bo *area)
{
	const __u64 size = work_save_area_size(&kfd->gpus[gpu]);

	memset(area, 0, sizeof(*area));
	return size ? kfd_bo_create(kfd, gpu, KFD_BO_GTT, size, area) : 0;
}

/* Before gfx9 an AQL ring is mapped twice in a row, and counts twice. */
static int make_ring(struct kfd *kfd, unsigned int gpu, __u32 type,
		     struct kfd_bo *ring, __u32 *size)
{
	const bool aql = type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
	const bool twice = aql && kfd->gpus[gpu].gfx_version < GFX9;
	__u32 flags = KFD_BO_GTT, i;
	int r;

	*size = twice ? 2 * KFD_PAGE : KFD_PAGE;
	if (twice)
		flags |= KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM;
	r = kfd_bo_create(kfd, gpu, flags, *size, ring);
	for (i = 0; !r && aql && i < ring->size; i += AQL_PACKET)
		*(__u32 *)(ring->cpu + i) = AQL_INVALID;
	return r;
}

int work_compute_create(struct kfd *kfd, unsigned int gpu,
			const struct work_compute *wish,
			struct kfd_queue *queue)
{
	const struct kfd_gpu *of = &kfd->gpus[gpu];
	const bool aql = wish->type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
	struct kfd_ioctl_create_queue_args args = {
		.gpu_id = of->id,
		.queue_type = wish->type,
		.queue_percentage = wish->percentage,
		.queue_priority = wish->priority,
		.ctx_save_restore_address = wish->area->va,
		.ctx_save_restore_size = kfd_gpu_property(of, "cwsr_size"),
		.ctl_stack_size = kfd_gpu_property(of, "ctl_stack_size"),
	};
	struct kfd_bo eop = { 0 };
	int r;

	memset(queue, 0, sizeof(*queue));
	queue->gpu = gpu;
	r = make_ring(kfd, gpu, wish->type, &queue->ring, &args.ring_size);
	r = r ? r : kfd_bo_create(kfd, gpu, KFD_BO_GTT, KFD_PAGE,
				  &queue->memory);
	r = r ? r : kfd_bo_place(&queue->memory);
	if (!r && wish->area->size)
		r = kfd_bo_create(kfd, gpu, KFD_BO_GTT, KFD_PAGE, &eop);
	if (r)
		return r;
	*(__u32 *)(queue->memory.cpu + AQL_READ_INDEX_AT) = AQL_READ_INDEX;
	args.ring_base_address = queue->ring.va;
	args.write_pointer_address = queue->memory.va + (aql ? AQL_WRITE_INDEX : 0);
	args.read_pointer_address = queue->memory.va +
				    (aql ? AQL_READ_INDEX : READ_POINTER);
	args.eop_buffer_address = eop.va;
	args.eop_buffer_size = eop.size;
	r = kfd_call(kfd->fd, AMDKFD_IOC_CREATE_QUEUE, &args);
	if (r)
		return r;
	queue->id = args.queue_id;
	return kfd_queue_map_doorbell(kfd, queue, args.doorbell_offset);
}

#define SUBMIT(queue, unit, ...) do { \
	const __u32 packet[] = { __VA_ARGS__ }; \
	kfd_queue_submit(queue, unit, packet, sizeof(packet) / sizeof(*packet)); \
} while (0)

/* Pointers and doorbells of SDMA queues count bytes, those of others dwords. */
#define SUBMIT_SDMA(queue, ...)	SUBMIT(queue, 1, __VA_ARGS__)
#define SUBMIT_PM4(queue, ...)	SUBMIT(queue, sizeof(__u32), __VA_ARGS__)

void work_sdma_write(struct kfd_queue *queue, __u64 va, __u32 value)
{
	kfd_queue_write(queue, va, value);
}

void work_sdma_wait(struct kfd_queue *queue, __u64 va, __u32 value)
{
	SUBMIT_SDMA(queue, SDMA_POLL_EQUAL, low(va), high(va), value, ~0U,
		    SDMA_POLL_FOR_EVER);
}

void work_sdma_trap(struct kfd_queue *queue, __u32 event)
{
	SUBMIT_SDMA(queue, SDMA_TRAP, event);
}

void work_pm4_write(struct kfd_queue *queue, __u64 va, __u32 value)
{
	SUBMIT_PM4(queue, PM4_WRITE_DATA, PM4_TO_MEMORY, low(va), high(va),
		   value);
}

void work_pm4_wait(struct kfd_queue *queue, __u64 va, __u32 value)
{
	SUBMIT_PM4(queue, PM4_WAIT_REG_MEM, PM4_MEMORY_EQUAL, low(va),
		   high(va), value, ~0U, 4);
}

void work_aql_barrier(const struct kfd *kfd, struct kfd_queue *queue,
		      __u64 gate, __u64 done)
{
	const unsigned int type = DOORBELL_TYPE(kfd_gpu_property(&kfd->gpus[queue->gpu],
								 "capability"));
	__u64 *packet = queue->ring.cpu + queue->written % queue->ring.size;
	const __u64 index = queue->written / AQL_PACKET;
	__u64 bell = index;

	memset(packet, 0, AQL_PACKET);
	packet[1] = gate;
	packet[7] = done;
	/* The header makes it a packet. */
	__atomic_store_n((__u16 *)packet, AQL_BARRIER_AND, __ATOMIC_RELEASE);
	queue->written += AQL_PACKET;
	if (type == DOORBELL_DWORDS)
		bell = queue->written % queue->ring.size / sizeof(__u32);
	else if (type == DOORBELL_COUNT)
		bell = index + 1;
	kfd_queue_ring(queue, AQL_WRITE_INDEX, index + 1, bell);
}

bool work_becomes(const __u32 *word, __u32 value)
{
	int i;

	for (i = 0; i < WAIT_LIMIT_MS * 10; i++) {
		if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
			return true;
		usleep(100);
	}
	return false;
}

int work_wait(const struct kfd *kfd, __u32 event, __u32 limit_ms)
{
	struct kfd_event_data data = { .event_id = event };
	struct kfd_ioctl_wait_events_args args = {
		.events_ptr = (unsigned long)&data,
		.num_events = 1,
		.timeout = limit_ms,
	};
	const int r = kfd_call(kfd->fd, AMDKFD_IOC_WAIT_EVENTS, &args);

	return r ? r : (int)args.wait_result;
}
