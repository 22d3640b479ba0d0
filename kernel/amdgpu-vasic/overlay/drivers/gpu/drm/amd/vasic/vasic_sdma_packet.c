// SPDX-License-Identifier: MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * SDMA packets of each generation, where they differ: whether a count is one
 * less than what it counts, how long a TRAP, an INDIRECT and a COPY are, how
 * registers are numbered. The facts come from cik_sdma.c, sdma_v3_0.c to
 * sdma_v7_0.c and their packet headers; opcodes and all other fields are equal
 * from gfx7 to gfx12.
 */
#include "amdgpu.h"
#include "vasic.h"
#include "vega10_sdma_pkt_open.h"

#define SDMA_OP(op, sub) \
	(SDMA_PKT_HEADER_OP(SDMA_OP_##op) | SDMA_PKT_HEADER_SUB_OP(sub))

/* Header bits that vega10_sdma_pkt_open.h does not name. */
#define VASIC_FENCE_UNCACHED	(3 << 16)	/* MTYPE UC, sdma_v5_0.c */
#define VASIC_COPY_CPV		BIT(19)		/* sdma_v7_0.c */
#define VASIC_FILL_COMPRESS	BIT(16)		/* sdma_v7_0.c */
#define VASIC_POLL_EQUAL	3
#define VASIC_IB_ALIGN_DW	8

struct vasic_sdma_layout {
	u32 less_one;		/* counts are one less than what they count */
	u32 trap_dw;
	u32 ib_dw;
	u32 fence_bits;
	u32 register_header;	/* bytes to write */
	u32 register_bytes;	/* 4: registers are numbered in bytes */
};

#define VASIC_ALL_BYTES	SDMA_PKT_SRBM_WRITE_HEADER_BYTE_EN(0xf)

/* Indexed by enum vasic_sdma_format. */
static const struct vasic_sdma_layout vasic_sdma_layouts[] = {
	[VASIC_SDMA_V2] = { 0, 1, 4, 0, VASIC_ALL_BYTES, 1 },
	[VASIC_SDMA_V3] = { 0, 2, 6, 0, VASIC_ALL_BYTES, 1 },
	[VASIC_SDMA_V4] = { 1, 2, 6, 0, VASIC_ALL_BYTES, 1 },
	[VASIC_SDMA_V5] = { 1, 2, 6, VASIC_FENCE_UNCACHED, VASIC_ALL_BYTES, 1 },
	[VASIC_SDMA_V6] = { 1, 2, 6, VASIC_FENCE_UNCACHED, VASIC_ALL_BYTES, 1 },
	[VASIC_SDMA_V7] = { 1, 2, 6, VASIC_FENCE_UNCACHED, 0, 4 },
};

static const struct vasic_sdma_layout *vasic_sdma_layout(const struct vasic_device *vd)
{
	return &vasic_sdma_layouts[vd->info.sdma_format];
}

static void vasic_ib_write(struct amdgpu_ib *ib, u32 value)
{
	ib->ptr[ib->length_dw++] = value;
}

static void vasic_ib_write_addr(struct amdgpu_ib *ib, u64 addr)
{
	vasic_ib_write(ib, lower_32_bits(addr));
	vasic_ib_write(ib, upper_32_bits(addr));
}

/**
 * vasic_sdma_write_packet - make a packet that writes one dword
 * @vd: the virtual device
 * @addr: address of the dword
 * @value: its new value
 * @packet: the packet is written here
 */
void vasic_sdma_write_packet(const struct vasic_device *vd, u64 addr, u32 value,
			     u32 packet[VASIC_WRITE_DW])
{
	packet[0] = SDMA_OP(WRITE, SDMA_SUBOP_WRITE_LINEAR);
	packet[1] = lower_32_bits(addr);
	packet[2] = upper_32_bits(addr);
	packet[3] = 1 - vasic_sdma_layout(vd)->less_one;
	packet[4] = value;
}

/**
 * vasic_sdma_emit_ib - write a packet that executes an IB
 * @ring: where to, a kernel ring of an SDMA engine
 * @job: whose VMID the IB uses; NULL: VMID 0
 * @ib: the IB, aligned to 32 bytes
 * @flags: not used
 *
 * Callback of struct amdgpu_ring_funcs. NOPs before the packet make it end on a
 * multiple of 8 dwords.
 */
void vasic_sdma_emit_ib(struct amdgpu_ring *ring, struct amdgpu_job *job,
			struct amdgpu_ib *ib, uint32_t flags)
{
	const u32 ib_dw = vasic_sdma_layout(ring->adev->vasic)->ib_dw;
	u32 i;

	/* the packet ends on a multiple of 8 */
	amdgpu_ring_insert_nop(ring, -(lower_32_bits(ring->wptr) + ib_dw) &
			       (VASIC_IB_ALIGN_DW - 1));
	amdgpu_ring_write(ring, SDMA_OP(INDIRECT, 0) |
			  SDMA_PKT_INDIRECT_HEADER_VMID(AMDGPU_JOB_GET_VMID(job)));
	vasic_ring_emit_addr(ring, ib->gpu_addr & ~0x1fULL);
	amdgpu_ring_write(ring, ib->length_dw);
	for (i = 4; i < ib_dw; i++)
		amdgpu_ring_write(ring, 0); /* address of the CSA: none */
}

static void vasic_sdma_emit_fence_word(struct amdgpu_ring *ring, u64 addr,
				       u32 value)
{
	amdgpu_ring_write(ring, SDMA_OP(FENCE, 0) |
			  vasic_sdma_layout(ring->adev->vasic)->fence_bits);
	vasic_ring_emit_addr(ring, addr);
	amdgpu_ring_write(ring, value);
}

/**
 * vasic_sdma_emit_fence - write packets that store a number and raise an interrupt
 * @ring: where to, a kernel ring of an SDMA engine
 * @addr: GPU address of the number
 * @seq: the number
 * @flags: AMDGPU_FENCE_FLAG_64BIT: all of @seq is stored, in two halves; else its
 *	lower 32 bits
 *
 * Callback of struct amdgpu_ring_funcs. The interrupt is raised whether @flags
 * have AMDGPU_FENCE_FLAG_INT or not.
 */
void vasic_sdma_emit_fence(struct amdgpu_ring *ring, u64 addr, u64 seq,
			   unsigned int flags)
{
	vasic_sdma_emit_fence_word(ring, addr, lower_32_bits(seq));
	if (flags & AMDGPU_FENCE_FLAG_64BIT)
		vasic_sdma_emit_fence_word(ring, addr + 4, upper_32_bits(seq));
	amdgpu_ring_write(ring, SDMA_OP(TRAP, 0));
	if (vasic_sdma_layout(ring->adev->vasic)->trap_dw > 1)
		amdgpu_ring_write(ring, SDMA_PKT_TRAP_INT_CONTEXT_INT_CONTEXT(0));
}

/**
 * vasic_sdma_emit_pipeline_sync - write a packet that waits for all earlier fences
 * of the ring
 * @ring: where to, a kernel ring of an SDMA engine
 *
 * Callback of struct amdgpu_ring_funcs.
 */
void vasic_sdma_emit_pipeline_sync(struct amdgpu_ring *ring)
{
	amdgpu_ring_write(ring, SDMA_OP(POLL_REGMEM, 0) |
			  SDMA_PKT_POLL_REGMEM_HEADER_MEM_POLL(1) |
			  SDMA_PKT_POLL_REGMEM_HEADER_FUNC(VASIC_POLL_EQUAL));
	vasic_ring_emit_addr(ring, ring->fence_drv.gpu_addr & ~0x3ULL);
	amdgpu_ring_write(ring, ring->fence_drv.sync_seq);
	amdgpu_ring_write(ring, 0xffffffff);
	amdgpu_ring_write(ring, SDMA_PKT_POLL_REGMEM_DW5_RETRY_COUNT(0xfff) |
			  SDMA_PKT_POLL_REGMEM_DW5_INTERVAL(4));
}

/**
 * vasic_sdma_emit_wreg - write a packet that writes a register
 * @ring: where to, a kernel ring of an SDMA engine
 * @reg: the register, in dwords from the begin of the MMIO window
 * @value: its value
 *
 * Callback of struct amdgpu_ring_funcs.
 */
void vasic_sdma_emit_wreg(struct amdgpu_ring *ring, uint32_t reg,
			  uint32_t value)
{
	const struct vasic_sdma_layout *layout = vasic_sdma_layout(ring->adev->vasic);

	amdgpu_ring_write(ring, SDMA_OP(SRBM_WRITE, 0) | layout->register_header);
	amdgpu_ring_write(ring, reg * layout->register_bytes);
	amdgpu_ring_write(ring, value);
}

/* amdgpu does not pass the device to the functions that write IBs, so each
 * encoding has functions of its own (_v2, _v4, _v7).
 */
static void vasic_sdma_copy(struct amdgpu_ib *ib, u32 header, u64 src, u64 dst,
			    u32 count)
{
	vasic_ib_write(ib, SDMA_OP(COPY, SDMA_SUBOP_COPY_LINEAR) | header);
	vasic_ib_write(ib, count);
	vasic_ib_write(ib, 0);
	vasic_ib_write_addr(ib, src);
	vasic_ib_write_addr(ib, dst);
}

static void vasic_sdma_fill(struct amdgpu_ib *ib, u32 header, u32 value,
			    u64 dst, u32 count)
{
	vasic_ib_write(ib, SDMA_OP(CONST_FILL, 0) | header);
	vasic_ib_write_addr(ib, dst);
	vasic_ib_write(ib, value);
	vasic_ib_write(ib, count);
}

static void vasic_sdma_write(struct amdgpu_ib *ib, u64 pe, u64 value,
			     unsigned int entries, u32 incr, u32 less_one)
{
	vasic_ib_write(ib, SDMA_OP(WRITE, SDMA_SUBOP_WRITE_LINEAR));
	vasic_ib_write_addr(ib, pe);
	vasic_ib_write(ib, entries * 2 - less_one);
	for (; entries; entries--, value += incr)
		vasic_ib_write_addr(ib, value);
}

static void vasic_sdma_generate(struct amdgpu_ib *ib, u64 pe, u64 addr,
				u32 count, u32 incr, u64 flags)
{
	vasic_ib_write(ib, SDMA_OP(PTEPDE, 0));
	vasic_ib_write_addr(ib, pe);
	vasic_ib_write_addr(ib, flags);
	vasic_ib_write_addr(ib, addr);
	vasic_ib_write_addr(ib, incr);
	vasic_ib_write(ib, count);
}

static void vasic_sdma_copy_v2(struct amdgpu_ib *ib, uint64_t src, uint64_t dst,
			       uint32_t bytes, uint32_t flags)
{
	vasic_sdma_copy(ib, 0, src, dst, bytes);
}

static void vasic_sdma_copy_v4(struct amdgpu_ib *ib, uint64_t src, uint64_t dst,
			       uint32_t bytes, uint32_t flags)
{
	vasic_sdma_copy(ib, 0, src, dst, bytes - 1);
}

static void vasic_sdma_copy_v7(struct amdgpu_ib *ib, uint64_t src, uint64_t dst,
			       uint32_t bytes, uint32_t flags)
{
	vasic_sdma_copy(ib, VASIC_COPY_CPV, src, dst, bytes - 1);
	vasic_ib_write(ib, 0); /* metadata: no compression */
}

static void vasic_sdma_fill_v2(struct amdgpu_ib *ib, uint32_t value,
			       uint64_t dst, uint32_t bytes)
{
	vasic_sdma_fill(ib, 0, value, dst, bytes);
}

static void vasic_sdma_fill_v4(struct amdgpu_ib *ib, uint32_t value,
			       uint64_t dst, uint32_t bytes)
{
	vasic_sdma_fill(ib, 0, value, dst, bytes - 1);
}

static void vasic_sdma_fill_v7(struct amdgpu_ib *ib, uint32_t value,
			       uint64_t dst, uint32_t bytes)
{
	vasic_sdma_fill(ib, VASIC_FILL_COMPRESS, value, dst, bytes - 1);
}

static void vasic_sdma_copy_pte_v2(struct amdgpu_ib *ib, uint64_t pe,
				   uint64_t src, unsigned int count)
{
	vasic_sdma_copy_v2(ib, src, pe, count * 8, 0);
}

static void vasic_sdma_copy_pte_v4(struct amdgpu_ib *ib, uint64_t pe,
				   uint64_t src, unsigned int count)
{
	vasic_sdma_copy_v4(ib, src, pe, count * 8, 0);
}

static void vasic_sdma_copy_pte_v7(struct amdgpu_ib *ib, uint64_t pe,
				   uint64_t src, unsigned int count)
{
	vasic_sdma_copy_v7(ib, src, pe, count * 8, 0);
}

static void vasic_sdma_write_pte_v2(struct amdgpu_ib *ib, uint64_t pe,
				    uint64_t value, unsigned int count,
				    uint32_t incr)
{
	vasic_sdma_write(ib, pe, value, count, incr, 0);
}

static void vasic_sdma_write_pte_v4(struct amdgpu_ib *ib, uint64_t pe,
				    uint64_t value, unsigned int count,
				    uint32_t incr)
{
	vasic_sdma_write(ib, pe, value, count, incr, 1);
}

static void vasic_sdma_set_pte_v2(struct amdgpu_ib *ib, uint64_t pe,
				  uint64_t addr, unsigned int count,
				  uint32_t incr, uint64_t flags)
{
	vasic_sdma_generate(ib, pe, addr, count, incr, flags);
}

static void vasic_sdma_set_pte_v4(struct amdgpu_ib *ib, uint64_t pe,
				  uint64_t addr, unsigned int count,
				  uint32_t incr, uint64_t flags)
{
	vasic_sdma_generate(ib, pe, addr, count - 1, incr, flags);
}

/* COUNT of a copy has 21 bits on gfx7 and 22 bits on later chips. */
static const struct amdgpu_buffer_funcs vasic_sdma_buffer_v2 = {
	.copy_max_bytes = 0x1fffff,
	.copy_num_dw = 7,
	.emit_copy_buffer = vasic_sdma_copy_v2,
	.fill_max_bytes = 0x1fffff,
	.fill_num_dw = 5,
	.emit_fill_buffer = vasic_sdma_fill_v2,
};

static const struct amdgpu_buffer_funcs vasic_sdma_buffer_v3 = {
	.copy_max_bytes = 0x3fffe0,
	.copy_num_dw = 7,
	.emit_copy_buffer = vasic_sdma_copy_v2,
	.fill_max_bytes = 0x3fffe0,
	.fill_num_dw = 5,
	.emit_fill_buffer = vasic_sdma_fill_v2,
};

static const struct amdgpu_buffer_funcs vasic_sdma_buffer_v4 = {
	.copy_max_bytes = 0x400000,
	.copy_num_dw = 7,
	.emit_copy_buffer = vasic_sdma_copy_v4,
	.fill_max_bytes = 0x400000,
	.fill_num_dw = 5,
	.emit_fill_buffer = vasic_sdma_fill_v4,
};

static const struct amdgpu_buffer_funcs vasic_sdma_buffer_v7 = {
	.copy_max_bytes = 0x400000,
	.copy_num_dw = 8,
	.emit_copy_buffer = vasic_sdma_copy_v7,
	.fill_max_bytes = 0x400000,
	.fill_num_dw = 5,
	.emit_fill_buffer = vasic_sdma_fill_v7,
};

static const struct amdgpu_vm_pte_funcs vasic_sdma_pte_v2 = {
	.copy_pte_num_dw = 7,
	.copy_pte = vasic_sdma_copy_pte_v2,
	.write_pte = vasic_sdma_write_pte_v2,
	.set_pte_pde = vasic_sdma_set_pte_v2,
};

static const struct amdgpu_vm_pte_funcs vasic_sdma_pte_v4 = {
	.copy_pte_num_dw = 7,
	.copy_pte = vasic_sdma_copy_pte_v4,
	.write_pte = vasic_sdma_write_pte_v4,
	.set_pte_pde = vasic_sdma_set_pte_v4,
};

static const struct amdgpu_vm_pte_funcs vasic_sdma_pte_v7 = {
	.copy_pte_num_dw = 8,
	.copy_pte = vasic_sdma_copy_pte_v7,
	.write_pte = vasic_sdma_write_pte_v4,
	.set_pte_pde = vasic_sdma_set_pte_v4,
};

/**
 * vasic_sdma_set_packets - set the functions that write packets of this device
 * @adev: the virtual device
 */
void vasic_sdma_set_packets(struct amdgpu_device *adev)
{
	switch (adev->vasic->info.sdma_format) {
	case VASIC_SDMA_V2:
		adev->mman.buffer_funcs = &vasic_sdma_buffer_v2;
		adev->vm_manager.vm_pte_funcs = &vasic_sdma_pte_v2;
		break;
	case VASIC_SDMA_V3:
		adev->mman.buffer_funcs = &vasic_sdma_buffer_v3;
		adev->vm_manager.vm_pte_funcs = &vasic_sdma_pte_v2;
		break;
	case VASIC_SDMA_V7:
		adev->mman.buffer_funcs = &vasic_sdma_buffer_v7;
		adev->vm_manager.vm_pte_funcs = &vasic_sdma_pte_v7;
		break;
	default:
		adev->mman.buffer_funcs = &vasic_sdma_buffer_v4;
		adev->vm_manager.vm_pte_funcs = &vasic_sdma_pte_v4;
	}
}
