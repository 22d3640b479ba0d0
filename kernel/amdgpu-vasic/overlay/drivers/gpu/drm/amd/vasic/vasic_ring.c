// SPDX-License-Identifier: MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * What kernel rings of both kinds have in common: pointers, loading, stopping,
 * and the two self-tests, in which an engine writes one word. Does not know any
 * packet: the callers in vasic_sdma.c and vasic_compute.c pass the one that
 * writes a word.
 */
#include <linux/delay.h>

#include "amdgpu.h"
#include "vasic.h"

#define VASIC_RING_TEST_VALUE	0xdeadbeef
#define VASIC_RING_TEST_MS	2000
#define VASIC_RING_TEST_IB	256

/* Pointer words count bytes of an SDMA ring and dwords of a compute ring. */
static unsigned int vasic_ring_shift(const struct amdgpu_ring *ring)
{
	return ring->funcs->type == AMDGPU_RING_TYPE_SDMA ? 2 : 0;
}

static u64 vasic_ring_kind(const struct amdgpu_ring *ring)
{
	return ring->funcs->type == AMDGPU_RING_TYPE_SDMA ?
	       VASIC_RING_SDMA : VASIC_RING_COMPUTE;
}

/* The host numbers SDMA engines and compute rings from 0. For compute rings
 * amdgpu's me is 1-based, so the index in its array is used.
 */
static u64 vasic_ring_instance(const struct amdgpu_ring *ring)
{
	if (ring->funcs->type == AMDGPU_RING_TYPE_SDMA)
		return ring->me;
	return ring - ring->adev->gfx.compute_ring;
}

/**
 * vasic_ring_get_rptr - read how far the GPU has read a ring
 * @ring: a kernel ring
 *
 * Callback of struct amdgpu_ring_funcs.
 *
 * Return: the read pointer that the GPU writes to memory, in dwords.
 */
uint64_t vasic_ring_get_rptr(struct amdgpu_ring *ring)
{
	return READ_ONCE(*(u64 *)ring->rptr_cpu_addr) >> vasic_ring_shift(ring);
}

/**
 * vasic_ring_get_wptr - read how far a ring was given to the GPU
 * @ring: a kernel ring
 *
 * Callback of struct amdgpu_ring_funcs.
 *
 * Return: the write pointer in memory, in dwords.
 */
uint64_t vasic_ring_get_wptr(struct amdgpu_ring *ring)
{
	return READ_ONCE(*(u64 *)ring->wptr_cpu_addr) >> vasic_ring_shift(ring);
}

/**
 * vasic_ring_set_wptr - let the GPU execute what was written to a ring
 * @ring: a kernel ring; ring->wptr is its write pointer, in dwords
 *
 * Callback of struct amdgpu_ring_funcs. May be called in atomic context.
 */
void vasic_ring_set_wptr(struct amdgpu_ring *ring)
{
	struct amdgpu_device *adev = ring->adev;
	u64 wptr = ring->wptr << vasic_ring_shift(ring);

	WRITE_ONCE(*(u64 *)ring->wptr_cpu_addr, wptr);
	wmb(); /* the pointer in memory before the doorbell */
	if (adev->vasic->info.doorbell_size == sizeof(u64))
		WDOORBELL64(ring->doorbell_index, wptr);
	else
		WDOORBELL32(ring->doorbell_index, lower_32_bits(wptr));
	vasic_kick(adev->vasic);
}

/**
 * vasic_ring_doorbell - dword index of a doorbell of the driver's layout
 * @adev: the virtual device
 * @slot: from adev->doorbell_index
 *
 * Return: the index, as WDOORBELL32() and the host take it.
 */
u32 vasic_ring_doorbell(struct amdgpu_device *adev, u32 slot)
{
	return slot * (adev->vasic->info.doorbell_size / sizeof(u32));
}

/**
 * vasic_ring_load - load an empty ring
 * @ring: initialised
 *
 * Return: 0 or a negative errno.
 */
int vasic_ring_load(struct amdgpu_ring *ring)
{
	struct vasic_args args = {
		.cmd.ring_load = {
			.instance = vasic_ring_instance(ring),
			.base = ring->gpu_addr,
			.size = ring->ring_size,
			.rptr_addr = ring->rptr_gpu_addr,
			.doorbell = ring->doorbell_index,
			.wptr_addr = ring->wptr_gpu_addr,
			.kind = vasic_ring_kind(ring),
		},
	};

	ring->wptr = 0;
	WRITE_ONCE(*(u64 *)ring->rptr_cpu_addr, 0);
	WRITE_ONCE(*(u64 *)ring->wptr_cpu_addr, 0);
	return vasic_command(ring->adev->vasic, VASIC_CMD_RING_LOAD, &args);
}

/**
 * vasic_ring_unload - stop a ring
 * @ring: loaded or not
 * @mode: how to stop it
 *
 * Return: 0 or a negative errno.
 */
int vasic_ring_unload(struct amdgpu_ring *ring, enum vasic_unload_mode mode)
{
	struct vasic_args args = {
		.cmd.ring_unload = {
			.instance = vasic_ring_instance(ring),
			.kind = vasic_ring_kind(ring),
			.mode = mode,
		},
	};

	return vasic_command(ring->adev->vasic, VASIC_CMD_RING_UNLOAD, &args);
}

/**
 * vasic_ring_start - load a ring and test it
 * @ring: initialised
 *
 * Return: 0 or a negative errno.
 */
int vasic_ring_start(struct amdgpu_ring *ring)
{
	int r = vasic_ring_load(ring);

	if (r)
		return r;
	return amdgpu_ring_test_helper(ring);
}

/**
 * vasic_ring_stop - stop a ring, if need be by force
 * @ring: loaded or not
 */
void vasic_ring_stop(struct amdgpu_ring *ring)
{
	if (vasic_ring_unload(ring, VASIC_UNLOAD_DRAIN))
		vasic_ring_unload(ring, VASIC_UNLOAD_RESET);
}

/**
 * vasic_ring_reset - drop the packet that a ring hangs on
 * @ring: a loaded ring
 * @vmid: VMID of the job that hangs
 *
 * Return: 0 or a negative errno.
 */
int vasic_ring_reset(struct amdgpu_ring *ring, unsigned int vmid)
{
	int r;

	r = vasic_ring_unload(ring, VASIC_UNLOAD_RESET);
	if (r)
		return r;
	r = vasic_ring_load(ring);
	if (r)
		return r;
	return amdgpu_ring_test_ring(ring);
}

/**
 * vasic_ring_emit_addr - write an address as two dwords
 * @ring: the ring
 * @addr: any
 */
void vasic_ring_emit_addr(struct amdgpu_ring *ring, u64 addr)
{
	amdgpu_ring_write(ring, lower_32_bits(addr));
	amdgpu_ring_write(ring, upper_32_bits(addr));
}

/**
 * vasic_ring_emit_vm_flush - write packets that set the page directory of a VMID
 * @ring: where to
 * @vmid: the VMID
 * @pd_addr: the page directory, as amdgpu_gmc_pd_addr() returns it
 *
 * Callback of struct amdgpu_ring_funcs. Writes the packets of
 * vasic_emit_flush_gpu_tlb(), and those of vasic_emit_pasid_mapping() are written
 * by amdgpu_vm_flush().
 */
void vasic_ring_emit_vm_flush(struct amdgpu_ring *ring, unsigned int vmid,
			      uint64_t pd_addr)
{
	amdgpu_gmc_emit_flush_gpu_tlb(ring, vmid, pd_addr);
}

static int vasic_ring_wait_for_word(struct amdgpu_ring *ring,
				    const __le32 *word)
{
	ktime_t deadline = ktime_add_ms(ktime_get(), VASIC_RING_TEST_MS);

	while (le32_to_cpu(READ_ONCE(*word)) != VASIC_RING_TEST_VALUE) {
		if (vasic_is_lost(ring->adev->vasic))
			return -ENODEV;
		if (ktime_after(ktime_get(), deadline))
			return -ETIMEDOUT;
		usleep_range(20, 50);
	}
	return 0;
}

/**
 * vasic_ring_test_ring - let a packet in the ring write a word
 * @ring: a loaded ring
 * @write_packet: makes the packet
 *
 * Return: 0 or a negative errno.
 */
int vasic_ring_test_ring(struct amdgpu_ring *ring,
			 vasic_write_packet_t write_packet)
{
	struct amdgpu_device *adev = ring->adev;
	u32 packet[VASIC_WRITE_DW];
	unsigned int index;
	__le32 *word;
	int i, r;

	r = amdgpu_device_wb_get(adev, &index);
	if (r)
		return r;
	word = (__le32 *)&adev->wb.wb[index];
	WRITE_ONCE(*word, 0);
	r = amdgpu_ring_alloc(ring, VASIC_WRITE_DW);
	if (!r) {
		write_packet(adev->vasic, adev->wb.gpu_addr + index * 4,
			     VASIC_RING_TEST_VALUE, packet);
		for (i = 0; i < VASIC_WRITE_DW; i++)
			amdgpu_ring_write(ring, packet[i]);
		amdgpu_ring_commit(ring);
		r = vasic_ring_wait_for_word(ring, word);
	}
	amdgpu_device_wb_free(adev, index);
	return r;
}

static int vasic_ring_run_test_ib(struct amdgpu_ring *ring, u64 gpu_addr,
				  long timeout,
				  vasic_write_packet_t write_packet)
{
	struct amdgpu_device *adev = ring->adev;
	struct dma_fence *fence = NULL;
	struct amdgpu_ib ib = {};
	long r;

	r = amdgpu_ib_get(adev, NULL, VASIC_RING_TEST_IB,
			  AMDGPU_IB_POOL_DIRECT, &ib);
	if (r)
		return r;
	write_packet(adev->vasic, gpu_addr, VASIC_RING_TEST_VALUE, ib.ptr);
	ib.length_dw = VASIC_WRITE_DW;
	if (ring->funcs->type == AMDGPU_RING_TYPE_SDMA)
		amdgpu_ring_pad_ib(ring, &ib);
	r = amdgpu_ib_schedule(ring, 1, &ib, NULL, &fence);
	if (!r) {
		r = dma_fence_wait_timeout(fence, false, timeout);
		if (!r)
			r = -ETIMEDOUT;
		else if (r > 0)
			r = 0;
	}
	amdgpu_ib_free(adev, &ib, NULL);
	dma_fence_put(fence);
	return r;
}

/**
 * vasic_ring_test_ib - let a packet in an IB write a word
 * @ring: a loaded ring
 * @timeout: how long to wait for the IB's fence, jiffies
 * @write_packet: makes the packet
 *
 * Return: 0 or a negative errno.
 */
int vasic_ring_test_ib(struct amdgpu_ring *ring, long timeout,
		       vasic_write_packet_t write_packet)
{
	struct amdgpu_device *adev = ring->adev;
	unsigned int index;
	int r;

	r = amdgpu_device_wb_get(adev, &index);
	if (r)
		return r;
	adev->wb.wb[index] = 0;
	r = vasic_ring_run_test_ib(ring, adev->wb.gpu_addr + index * 4, timeout,
				   write_packet);
	if (!r && le32_to_cpu(adev->wb.wb[index]) != VASIC_RING_TEST_VALUE)
		r = -EINVAL;
	amdgpu_device_wb_free(adev, index);
	return r;
}
