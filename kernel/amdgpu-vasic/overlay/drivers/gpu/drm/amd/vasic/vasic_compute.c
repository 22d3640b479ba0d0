// SPDX-License-Identifier: MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Kernel compute rings: the PM4 packets of fences, IBs and VMID switches, and
 * the end-of-pipe interrupts. DRM clients submit AMDGPU_HW_IP_COMPUTE to these
 * rings. The layouts are those of gfx_v7_0.c to gfx_v12_0.c, which differ in
 * RELEASE_MEM alone.
 */
#include "amdgpu.h"
#include "amdgpu_gfx.h"
#include "ivsrcid/ivsrcid_vislands30.h"
#include "soc15_ih_clientid.h"
#include "soc15d.h"
#include "vasic.h"
#include "vega10_enum.h"

#define VASIC_CP_EOP_SRCID	VISLANDS30_IV_SRCID_CP_END_OF_PIPE
#define VASIC_COMPUTE_RING_DW	1024
#define VASIC_WAIT_EQUAL	3
#define VASIC_WAIT_INTERVAL	4
#define VASIC_DATA_SEL_32	1
#define VASIC_DATA_SEL_64	2
#define VASIC_INT_SEL_CONFIRM	2
#define VASIC_EOP_EVENT_INDEX	5
#define VASIC_DST_REGISTER	0
#define VASIC_DST_MEMORY	5

/* Makes a packet that writes one dword, for the ring tests. */
static void vasic_compute_write_packet(const struct vasic_device *vd, u64 addr,
				       u32 value, u32 packet[VASIC_WRITE_DW])
{
	packet[0] = PACKET3(PACKET3_WRITE_DATA, VASIC_WRITE_DW - 2);
	packet[1] = WRITE_DATA_DST_SEL(VASIC_DST_MEMORY) | WR_CONFIRM;
	packet[2] = lower_32_bits(addr);
	packet[3] = upper_32_bits(addr);
	packet[4] = value;
}

static void vasic_compute_emit_ib(struct amdgpu_ring *ring,
				  struct amdgpu_job *job, struct amdgpu_ib *ib,
				  uint32_t flags)
{
	amdgpu_ring_write(ring, PACKET3(PACKET3_INDIRECT_BUFFER, 2));
	vasic_ring_emit_addr(ring, ib->gpu_addr);
	amdgpu_ring_write(ring, INDIRECT_BUFFER_VALID | ib->length_dw |
			  AMDGPU_JOB_GET_VMID(job) << 24);
}

static void vasic_compute_emit_fence(struct amdgpu_ring *ring, u64 addr,
				     u64 seq, unsigned int flags)
{
	bool has_context = ring->adev->vasic->info.gfx_level >= 9;
	u32 data_sel = flags & AMDGPU_FENCE_FLAG_64BIT ? VASIC_DATA_SEL_64 :
							 VASIC_DATA_SEL_32;
	u32 int_sel = flags & AMDGPU_FENCE_FLAG_INT ? VASIC_INT_SEL_CONFIRM : 0;

	amdgpu_ring_write(ring, PACKET3(PACKET3_RELEASE_MEM,
					has_context ? 6 : 5));
	amdgpu_ring_write(ring, EVENT_TYPE(CACHE_FLUSH_AND_INV_TS_EVENT) |
			  EVENT_INDEX(VASIC_EOP_EVENT_INDEX));
	amdgpu_ring_write(ring, DATA_SEL(data_sel) | INT_SEL(int_sel));
	vasic_ring_emit_addr(ring, addr);
	vasic_ring_emit_addr(ring, seq);
	if (has_context)
		amdgpu_ring_write(ring, 0);
}

static void vasic_compute_emit_pipeline_sync(struct amdgpu_ring *ring)
{
	amdgpu_ring_write(ring, PACKET3(PACKET3_WAIT_REG_MEM, 5));
	amdgpu_ring_write(ring, WAIT_REG_MEM_MEM_SPACE(1) |
			  WAIT_REG_MEM_FUNCTION(VASIC_WAIT_EQUAL));
	vasic_ring_emit_addr(ring, ring->fence_drv.gpu_addr);
	amdgpu_ring_write(ring, ring->fence_drv.sync_seq);
	amdgpu_ring_write(ring, 0xffffffff);
	amdgpu_ring_write(ring, VASIC_WAIT_INTERVAL);
}

static void vasic_compute_emit_wreg(struct amdgpu_ring *ring, uint32_t reg,
				    uint32_t value)
{
	amdgpu_ring_write(ring, PACKET3(PACKET3_WRITE_DATA, 3));
	amdgpu_ring_write(ring, WRITE_DATA_DST_SEL(VASIC_DST_REGISTER) |
			  WR_CONFIRM);
	vasic_ring_emit_addr(ring, reg);
	amdgpu_ring_write(ring, value);
}

static int vasic_compute_test_ring(struct amdgpu_ring *ring)
{
	return vasic_ring_test_ring(ring, vasic_compute_write_packet);
}

static int vasic_compute_test_ib(struct amdgpu_ring *ring, long timeout)
{
	return vasic_ring_test_ib(ring, timeout, vasic_compute_write_packet);
}

static const struct amdgpu_ring_funcs vasic_compute_ring_funcs = {
	.type = AMDGPU_RING_TYPE_COMPUTE,
	.align_mask = 0xff,
	.nop = PACKET3(PACKET3_NOP, 0x3FFF),
	.support_64bit_ptrs = true,
	.get_rptr = vasic_ring_get_rptr,
	.get_wptr = vasic_ring_get_wptr,
	.set_wptr = vasic_ring_set_wptr,
	.emit_frame_size =
		7 +		/* pipeline sync */
		4 * 5 +		/* VM flush and PASID: four registers */
		3 * 8,		/* user fence and VM fence */
	.emit_ib_size = 4,
	.emit_ib = vasic_compute_emit_ib,
	.emit_fence = vasic_compute_emit_fence,
	.emit_pipeline_sync = vasic_compute_emit_pipeline_sync,
	.emit_vm_flush = vasic_ring_emit_vm_flush,
	.emit_wreg = vasic_compute_emit_wreg,
	.test_ring = vasic_compute_test_ring,
	.test_ib = vasic_compute_test_ib,
	.reset = vasic_ring_reset,
	.insert_nop = amdgpu_ring_insert_nop,
	.pad_ib = amdgpu_ring_generic_pad_ib,
};

static int vasic_compute_eop_set(struct amdgpu_device *adev,
				 struct amdgpu_irq_src *src, unsigned int type,
				 enum amdgpu_interrupt_state state)
{
	return 0; /* the RELEASE_MEM packet says whether to interrupt */
}

/* Returns 0, so that amdkfd sees the interrupts of user queues. */
static int vasic_compute_eop_process(struct amdgpu_device *adev,
				     struct amdgpu_irq_src *src,
				     struct amdgpu_iv_entry *entry)
{
	int i;

	/* fences of kernel rings are written with VMID 0 */
	for (i = 0; !entry->vmid && i < adev->gfx.num_compute_rings; i++)
		amdgpu_fence_process(&adev->gfx.compute_ring[i]);
	return 0;
}

static const struct amdgpu_irq_src_funcs vasic_compute_eop_funcs = {
	.set = vasic_compute_eop_set,
	.process = vasic_compute_eop_process,
};

/**
 * vasic_compute_early_init - tell amdgpu how many rings there are
 * @adev: the virtual device; the number of its pipes and queues is known
 */
void vasic_compute_early_init(struct amdgpu_device *adev)
{
	u32 i;

	adev->gfx.num_compute_rings = adev->vasic->info.compute_rings;
	for (i = 0; i < adev->gfx.num_compute_rings; i++)
		adev->gfx.compute_ring[i].funcs = &vasic_compute_ring_funcs;
	adev->gfx.eop_irq.num_types = AMDGPU_CP_IRQ_LAST;
	adev->gfx.eop_irq.funcs = &vasic_compute_eop_funcs;
}

static int vasic_compute_init_ring(struct amdgpu_device *adev, u32 i)
{
	struct amdgpu_ring *ring = &adev->gfx.compute_ring[i];
	u32 pipes = adev->gfx.mec.num_pipe_per_mec;

	ring->me = 1;
	ring->pipe = i % pipes;
	ring->queue = i / pipes;
	ring->use_doorbell = true;
	ring->doorbell_index =
		vasic_ring_doorbell(adev, adev->doorbell_index.mec_ring0 + i);
	ring->vm_hub = AMDGPU_GFXHUB(0);
	snprintf(ring->name, sizeof(ring->name), "comp_%u.%u.%u", ring->me,
		 ring->pipe, ring->queue);
	return amdgpu_ring_init(adev, ring, VASIC_COMPUTE_RING_DW,
				&adev->gfx.eop_irq,
				AMDGPU_CP_IRQ_COMPUTE_MEC1_PIPE0_EOP + ring->pipe,
				AMDGPU_RING_PRIO_DEFAULT, NULL);
}

/**
 * vasic_compute_sw_init - allocate the rings
 * @adev: the virtual device
 *
 * Return: 0 or a negative errno.
 */
int vasic_compute_sw_init(struct amdgpu_device *adev)
{
	/* SOC15 and SOC21 have the same client id for the CP */
	u32 client = adev->vasic->info.ih_format == VASIC_IH_CIK ?
		     AMDGPU_IRQ_CLIENTID_LEGACY : SOC15_IH_CLIENTID_GRBM_CP;
	u32 i;
	int r;

	if (!adev->gfx.num_compute_rings)
		return 0;
	/* queues that are acquired here are not available to amdkfd */
	amdgpu_gfx_compute_queue_acquire(adev);
	r = amdgpu_irq_add_id(adev, client, VASIC_CP_EOP_SRCID,
			      &adev->gfx.eop_irq);
	for (i = 0; !r && i < adev->gfx.num_compute_rings; i++)
		r = vasic_compute_init_ring(adev, i);
	return r;
}

/**
 * vasic_compute_sw_fini - undo vasic_compute_sw_init()
 * @adev: the virtual device
 */
void vasic_compute_sw_fini(struct amdgpu_device *adev)
{
	u32 i;

	for (i = 0; i < adev->gfx.num_compute_rings; i++)
		amdgpu_ring_fini(&adev->gfx.compute_ring[i]);
}

static void vasic_compute_disable(struct amdgpu_device *adev)
{
	u32 i;

	for (i = 0; i < adev->gfx.num_compute_rings; i++) {
		adev->gfx.compute_ring[i].sched.ready = false;
		adev->gfx.compute_ring[i].no_scheduler = true;
	}
}

/**
 * vasic_compute_start - load the rings and test them
 * @adev: the virtual device
 *
 * A host that does not support compute rings is no error: the rings are marked
 * not ready, which DRM clients see.
 *
 * Return: 0 or a negative errno.
 */
int vasic_compute_start(struct amdgpu_device *adev)
{
	u32 i;
	int r = 0;

	for (i = 0; !r && i < adev->gfx.num_compute_rings; i++)
		r = vasic_ring_start(&adev->gfx.compute_ring[i]);
	if (r != -EOPNOTSUPP)
		return r;
	vasic_compute_disable(adev);
	return 0;
}

/**
 * vasic_compute_stop - stop the rings
 * @adev: the virtual device
 */
void vasic_compute_stop(struct amdgpu_device *adev)
{
	u32 i;

	for (i = 0; i < adev->gfx.num_compute_rings; i++)
		vasic_ring_stop(&adev->gfx.compute_ring[i]);
}
