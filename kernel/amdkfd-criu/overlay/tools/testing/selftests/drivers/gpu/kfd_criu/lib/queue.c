// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Packets are those of cikd.h, soc15d.h and vega10_sdma_pkt_open.h in amdgpu, and of the
 * HSA specification for AQL.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include "criu_op.h"
#include "queue.h"

/* Offsets in the queue's memory; an AQL queue has amd_queue_t of the HSA ABI there. */
#define WRITE_POINTER		0
#define READ_POINTER		8
#define AQL_WRITE_INDEX		56
#define FENCE			64
#define AQL_READ_INDEX		128
#define AQL_READ_INDEX_AT	136

#define AQL_PACKET		64
#define AQL_INVALID		1
/* Type barrier-AND, the barrier bit, fences of system scope. */
#define AQL_BARRIER_AND		(3 | 1 << 8 | 2 << 9 | 2 << 11)

/* HSA_CAP_DOORBELL_TYPE_*: what the hardware expects in an AQL queue's doorbell. */
#define DOORBELL_TYPE(capability) ((capability) >> 12 & 3)
#define DOORBELL_DWORDS		0
#define DOORBELL_COUNT		1

/*
 * SDMA_OP_FENCE writes a word. From gfx10 on it needs SDMA_PKT_FENCE_HEADER_MTYPE(), or
 * the word may stay in a cache.
 */
#define SDMA_FENCE		5
#define SDMA_UNCACHED		(3 << 16)
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

/* ---- doorbells ---- */

/*
 * Before gfx9 the driver returns where the page of the process's doorbells is, and the
 * queue's id is the index in it.
 */
int kfd_queue_map_doorbell(const struct kfd *kfd, struct kfd_queue *queue,
			   __u64 offset)
{
	const bool small = kfd->gpus[queue->gpu].gfx_version < GFX9;
	const size_t size = small ? KFD_PAGE : 2 * KFD_PAGE;
	const __u64 at = small ? queue->id * 4 : offset % size;
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
			  kfd->fd, offset - offset % size);

	if (page == MAP_FAILED)
		return -errno;
	queue->doorbell = page + at;
	queue->doorbell_offset = offset;
	queue->small_doorbell = small;
	queue->mtypes = kfd->gpus[queue->gpu].gfx_version >= GFX10;
	return 0;
}

/* Before gfx9 pointers and doorbells have 32 bits. */
static void ring_doorbell(const struct kfd_queue *queue, unsigned int pointer_at,
			  __u64 pointer, __u64 doorbell)
{
	void *at = queue->memory.cpu + pointer_at;

	if (queue->small_doorbell) {
		__atomic_store_n((__u32 *)at, pointer, __ATOMIC_RELEASE);
		__atomic_store_n((__u32 *)queue->doorbell, doorbell,
				 __ATOMIC_RELEASE);
	} else {
		__atomic_store_n((__u64 *)at, pointer, __ATOMIC_RELEASE);
		__atomic_store_n((__u64 *)queue->doorbell, doorbell,
				 __ATOMIC_RELEASE);
	}
}

/* ---- SDMA queues ---- */

int kfd_sdma_queue_create(struct kfd *kfd, unsigned int gpu, __u32 type,
			  struct kfd_queue *queue)
{
	struct kfd_ioctl_create_queue_args args = {
		.ring_size = KFD_PAGE,
		.gpu_id = kfd->gpus[gpu].id,
		.queue_type = type,
		.queue_percentage = KFD_MAX_QUEUE_PERCENTAGE,
		.queue_priority = KFD_MAX_QUEUE_PRIORITY / 2,
	};
	int r;

	memset(queue, 0, sizeof(*queue));
	queue->gpu = gpu;
	r = kfd_bo_create(kfd, gpu, KFD_BO_GTT, KFD_PAGE, &queue->ring);
	r = r ? r : kfd_bo_create(kfd, gpu, KFD_BO_GTT, KFD_PAGE,
				  &queue->memory);
	r = r ? r : kfd_bo_move_to_va(&queue->memory);
	if (r)
		return r;
	args.ring_base_address = queue->ring.va;
	args.write_pointer_address = queue->memory.va + WRITE_POINTER;
	args.read_pointer_address = queue->memory.va + READ_POINTER;
	r = kfd_call(kfd->fd, AMDKFD_IOC_CREATE_QUEUE, &args);
	if (r)
		return r;
	queue->id = args.queue_id;
	return kfd_queue_map_doorbell(kfd, queue, args.doorbell_offset);
}

int kfd_queue_create(struct kfd *kfd, unsigned int gpu, struct kfd_queue *queue)
{
	return kfd_sdma_queue_create(kfd, gpu, KFD_IOC_QUEUE_TYPE_SDMA, queue);
}

int kfd_queue_destroy(const struct kfd *kfd, const struct kfd_queue *queue)
{
	struct kfd_ioctl_destroy_queue_args args = { .queue_id = queue->id };

	return kfd_call(kfd->fd, AMDKFD_IOC_DESTROY_QUEUE, &args);
}

int kfd_queue_remap(const struct kfd *kfd, struct kfd_queue *queue)
{
	int r = kfd_bo_remap(kfd, KFD_NO_PAUSE, queue->gpu, &queue->ring);

	r = r ? r : kfd_bo_remap(kfd, KFD_NO_PAUSE, queue->gpu, &queue->memory);
	return r ? r : kfd_queue_map_doorbell(kfd, queue,
					      queue->doorbell_offset);
}

bool kfd_queue_runs(const struct kfd *kfd, struct kfd_queue *queue)
{
	__u32 *fence = queue->memory.cpu + FENCE;

	__atomic_store_n(fence, 0, __ATOMIC_RELEASE);
	kfd_sdma_write(queue, queue->memory.va + FENCE, 1);
	return wait_for_word(fence, 1);
}

/* ---- compute queues ---- */

/* The size that kfd_queue.c of amdkfd computes: for all XCCs, with a debugger's data. */
__u64 kfd_cwsr_area_size(const struct kfd_gpu *gpu)
{
	const __u64 xccs = kfd_gpu_property(gpu, "num_xcc") ?: 1;
	const __u64 cus = kfd_gpu_property(gpu, "simd_count") /
			  kfd_gpu_property(gpu, "simd_per_cu") / xccs;
	const __u64 engines = kfd_gpu_property(gpu, "array_count") / xccs /
			      kfd_gpu_property(gpu, "simd_arrays_per_engine");
	const __u64 saved = kfd_gpu_property(gpu, "cwsr_size");
	__u64 waves = cus * 32;

	if (gpu->gfx_version < GFX10)
		waves = cus * 40 < engines * 512 ? cus * 40 : engines * 512;
	return saved ? align((saved + align(waves * 32, 64)) * xccs, KFD_PAGE) : 0;
}

int kfd_cwsr_area_create(struct kfd *kfd, unsigned int gpu,
			 struct kfd_bo *area)
{
	const __u64 size = kfd_cwsr_area_size(&kfd->gpus[gpu]);

	memset(area, 0, sizeof(*area));
	return size ? kfd_bo_create(kfd, gpu, KFD_BO_GTT, size, area) : 0;
}

/* Before gfx9 an AQL ring is mapped twice in a row, and its size is that of both. */
static int create_ring(struct kfd *kfd, unsigned int gpu, __u32 type,
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

int kfd_compute_queue_create(struct kfd *kfd, unsigned int gpu,
			     const struct kfd_compute_queue_options *options,
			     struct kfd_queue *queue)
{
	const struct kfd_gpu *of = &kfd->gpus[gpu];
	const bool aql = options->type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
	struct kfd_ioctl_create_queue_args args = {
		.gpu_id = of->id,
		.queue_type = options->type,
		.queue_percentage = options->percentage,
		.queue_priority = options->priority,
		.ctx_save_restore_address = options->area->va,
		.ctx_save_restore_size = kfd_gpu_property(of, "cwsr_size"),
		.ctl_stack_size = kfd_gpu_property(of, "ctl_stack_size"),
	};
	struct kfd_bo eop = { 0 };
	int r;

	memset(queue, 0, sizeof(*queue));
	queue->gpu = gpu;
	r = create_ring(kfd, gpu, options->type, &queue->ring, &args.ring_size);
	r = r ? r : kfd_bo_create(kfd, gpu, KFD_BO_GTT, KFD_PAGE,
				  &queue->memory);
	r = r ? r : kfd_bo_move_to_va(&queue->memory);
	if (!r && options->area->size)
		r = kfd_bo_create(kfd, gpu, KFD_BO_GTT, KFD_PAGE, &eop);
	if (r)
		return r;
	*(__u32 *)(queue->memory.cpu + AQL_READ_INDEX_AT) = AQL_READ_INDEX;
	args.ring_base_address = queue->ring.va;
	args.write_pointer_address = queue->memory.va +
				     (aql ? AQL_WRITE_INDEX : WRITE_POINTER);
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

/* ---- packets ---- */

/*
 * Copies a packet into the ring and rings the doorbell. Pointers and doorbells count units
 * of so many bytes; before gfx9 they wrap with the ring.
 */
static void submit(struct kfd_queue *queue, unsigned int unit,
		   const __u32 *packet, unsigned int dwords)
{
	__u32 *ring = queue->ring.cpu;
	unsigned int i;
	__u64 pointer;

	for (i = 0; i < dwords; i++) {
		ring[queue->written % queue->ring.size / sizeof(*ring)] =
			packet[i];
		queue->written += sizeof(*ring);
	}
	pointer = queue->written;
	if (queue->small_doorbell)
		pointer %= queue->ring.size;
	ring_doorbell(queue, WRITE_POINTER, pointer / unit, pointer / unit);
}

#define SUBMIT(queue, unit, ...) do { \
	const __u32 packet[] = { __VA_ARGS__ }; \
	submit(queue, unit, packet, sizeof(packet) / sizeof(*packet)); \
} while (0)

/* Pointers and doorbells of SDMA queues count bytes, those of PM4 queues dwords. */
#define SUBMIT_SDMA(queue, ...)	SUBMIT(queue, 1, __VA_ARGS__)
#define SUBMIT_PM4(queue, ...)	SUBMIT(queue, sizeof(__u32), __VA_ARGS__)

void kfd_sdma_write(struct kfd_queue *queue, __u64 va, __u32 value)
{
	SUBMIT_SDMA(queue,
		    queue->mtypes ? SDMA_FENCE | SDMA_UNCACHED : SDMA_FENCE,
		    low(va), high(va), value);
}

void kfd_sdma_wait(struct kfd_queue *queue, __u64 va, __u32 value)
{
	SUBMIT_SDMA(queue, SDMA_POLL_EQUAL, low(va), high(va), value, ~0U,
		    SDMA_POLL_FOR_EVER);
}

void kfd_sdma_trap(struct kfd_queue *queue, __u32 event)
{
	SUBMIT_SDMA(queue, SDMA_TRAP, event);
}

void kfd_pm4_write(struct kfd_queue *queue, __u64 va, __u32 value)
{
	SUBMIT_PM4(queue, PM4_WRITE_DATA, PM4_TO_MEMORY, low(va), high(va),
		   value);
}

void kfd_pm4_wait(struct kfd_queue *queue, __u64 va, __u32 value)
{
	SUBMIT_PM4(queue, PM4_WAIT_REG_MEM, PM4_MEMORY_EQUAL, low(va),
		   high(va), value, ~0U, 4);
}

void kfd_aql_barrier(const struct kfd *kfd, struct kfd_queue *queue,
		     __u64 gate, __u64 done)
{
	const unsigned int type = DOORBELL_TYPE(kfd_gpu_property(&kfd->gpus[queue->gpu],
								 "capability"));
	__u64 *packet = queue->ring.cpu + queue->written % queue->ring.size;
	const __u64 index = queue->written / AQL_PACKET;
	__u64 doorbell = index;

	memset(packet, 0, AQL_PACKET);
	packet[1] = gate;
	packet[7] = done;
	/* The packet becomes valid with its header. */
	__atomic_store_n((__u16 *)packet, AQL_BARRIER_AND, __ATOMIC_RELEASE);
	queue->written += AQL_PACKET;
	if (type == DOORBELL_DWORDS)
		doorbell = queue->written % queue->ring.size / sizeof(__u32);
	else if (type == DOORBELL_COUNT)
		doorbell = index + 1;
	ring_doorbell(queue, AQL_WRITE_INDEX, index + 1, doorbell);
}
