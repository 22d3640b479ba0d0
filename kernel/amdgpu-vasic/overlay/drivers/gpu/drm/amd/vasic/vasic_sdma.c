// SPDX-License-Identifier: MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The SDMA block: a kernel ring for each engine, for TTM moves, page table
 * updates and the IBs of DRM clients, and the traps by which engines announce
 * fences. User SDMA queues belong to amdkfd, see vasic_kfd.c.
 */
#include "amdgpu.h"
#include "ivsrcid/gfx/irqsrcs_gfx_11_0_0.h"
#include "ivsrcid/ivsrcid_vislands30.h"
#include "soc15_ih_clientid.h"
#include "vasic.h"
#include "vega10_sdma_pkt_open.h"

#define VASIC_SDMA_TRAP_SRCID	224	/* SDMA0_4_0__SRCID__SDMA_TRAP */
#define VASIC_SDMA_RING_DW	1024
#define VASIC_SDMA_NO_ENGINE	(-1)

/* SOC15 client ids of the engines of one AID, which are contiguous only by
 * pairs. The fourth engine of gfx10 has another one, see vasic_sdma_client().
 */
static const u32 vasic_sdma_clients[] = {
	SOC15_IH_CLIENTID_SDMA0, SOC15_IH_CLIENTID_SDMA1,
	SOC15_IH_CLIENTID_SDMA2, SOC15_IH_CLIENTID_SDMA3,
	SOC15_IH_CLIENTID_SDMA4, SOC15_IH_CLIENTID_SDMA5,
	SOC15_IH_CLIENTID_SDMA6, SOC15_IH_CLIENTID_SDMA7,
};

static u32 vasic_sdma_client(const struct vasic_info *info, u32 engine)
{
	u32 index = engine % info->sdma_per_aid;

	if (info->gfx_level == 10 && index == 3)
		return SOC15_IH_CLIENTID_SDMA3_Sienna_Cichlid;
	return vasic_sdma_clients[index];
}

static void vasic_sdma_insert_nop(struct amdgpu_ring *ring, uint32_t count)
{
	while (count--)
		amdgpu_ring_write(ring, ring->funcs->nop);
}

static void vasic_sdma_pad_ib(struct amdgpu_ring *ring, struct amdgpu_ib *ib)
{
	while (ib->length_dw & 7)
		ib->ptr[ib->length_dw++] = ring->funcs->nop;
}

static int vasic_sdma_test_ring(struct amdgpu_ring *ring)
{
	return vasic_ring_test_ring(ring, vasic_sdma_write_packet);
}

static int vasic_sdma_test_ib(struct amdgpu_ring *ring, long timeout)
{
	return vasic_ring_test_ib(ring, timeout, vasic_sdma_write_packet);
}

static const struct amdgpu_ring_funcs vasic_sdma_ring_funcs = {
	.type = AMDGPU_RING_TYPE_SDMA,
	.align_mask = 0xff,
	.nop = SDMA_PKT_NOP_HEADER_OP(SDMA_OP_NOP),
	.support_64bit_ptrs = true,
	.get_rptr = vasic_ring_get_rptr,
	.get_wptr = vasic_ring_get_wptr,
	.set_wptr = vasic_ring_set_wptr,
	.emit_frame_size =
		6 +		/* pipeline sync */
		4 * 3 +		/* VM flush and PASID: four registers */
		3 * 10,		/* user fence and VM fence */
	.emit_ib_size = 7 + 6,
	.emit_ib = vasic_sdma_emit_ib,
	.emit_fence = vasic_sdma_emit_fence,
	.emit_pipeline_sync = vasic_sdma_emit_pipeline_sync,
	.emit_vm_flush = vasic_ring_emit_vm_flush,
	.emit_wreg = vasic_sdma_emit_wreg,
	.test_ring = vasic_sdma_test_ring,
	.test_ib = vasic_sdma_test_ib,
	.reset = vasic_ring_reset,
	.insert_nop = vasic_sdma_insert_nop,
	.pad_ib = vasic_sdma_pad_ib,
};

static int vasic_sdma_trap_set(struct amdgpu_device *adev,
			       struct amdgpu_irq_src *src, unsigned int type,
			       enum amdgpu_interrupt_state state)
{
	return 0; /* a TRAP packet always interrupts */
}

static int vasic_sdma_engine_of_soc15(const struct vasic_info *info,
				      const struct amdgpu_iv_entry *entry)
{
	u32 first = entry->node_id / VASIC_NODES_PER_AID * info->sdma_per_aid;
	u32 i;

	for (i = 0; i < info->sdma_per_aid; i++)
		if (vasic_sdma_client(info, i) == entry->client_id)
			return first + i;
	return VASIC_SDMA_NO_ENGINE;
}

/* Returns the engine whose kernel ring raised the interrupt, or
 * VASIC_SDMA_NO_ENGINE if a user queue did. The encodings are those of
 * cik_sdma_process_trap_irq(), sdma_v4_4_2_process_trap_irq() and
 * sdma_v6_0_process_trap_irq().
 */
static int vasic_sdma_engine_of(struct amdgpu_device *adev,
				const struct amdgpu_iv_entry *entry)
{
	const struct vasic_info *info = &adev->vasic->info;

	if (entry->vmid)
		return VASIC_SDMA_NO_ENGINE;
	switch (info->ih_format) {
	case VASIC_IH_CIK:
		return entry->ring_id & 0xc ? VASIC_SDMA_NO_ENGINE :
					      entry->ring_id & 0x3;
	case VASIC_IH_SOC21:
		return entry->ring_id & 0xf ? VASIC_SDMA_NO_ENGINE :
					      entry->ring_id >> 4;
	default:
		return vasic_sdma_engine_of_soc15(info, entry);
	}
}

/* Returns 0, so that amdkfd sees the traps of user queues. */
static int vasic_sdma_trap_process(struct amdgpu_device *adev,
				   struct amdgpu_irq_src *src,
				   struct amdgpu_iv_entry *entry)
{
	int engine = vasic_sdma_engine_of(adev, entry);

	if (engine >= 0 && engine < adev->sdma.num_instances)
		amdgpu_fence_process(&adev->sdma.instance[engine].ring);
	return 0;
}

static const struct amdgpu_irq_src_funcs vasic_sdma_trap_funcs = {
	.set = vasic_sdma_trap_set,
	.process = vasic_sdma_trap_process,
};

static int vasic_sdma_early_init(struct amdgpu_ip_block *ip_block)
{
	struct amdgpu_device *adev = ip_block->adev;
	const struct vasic_info *info = &adev->vasic->info;
	int i;

	for (i = 0; i < adev->sdma.num_instances; i++) {
		adev->sdma.instance[i].fw_version = info->sdma_fw_version;
		adev->sdma.instance[i].aid_id = i / info->sdma_per_aid;
		adev->sdma.instance[i].ring.funcs = &vasic_sdma_ring_funcs;
		adev->sdma.instance[i].ring.me = i;
		adev->vm_manager.vm_pte_scheds[i] =
			&adev->sdma.instance[i].ring.sched;
	}
	adev->sdma.num_inst_per_aid = info->sdma_per_aid;
	adev->vm_manager.vm_pte_num_scheds = adev->sdma.num_instances;
	adev->mman.buffer_funcs_ring = &adev->sdma.instance[0].ring;
	vasic_sdma_set_packets(adev);
	adev->sdma.trap_irq.num_types = adev->sdma.num_instances;
	adev->sdma.trap_irq.funcs = &vasic_sdma_trap_funcs;
	return 0;
}

static int vasic_sdma_add_irqs(struct amdgpu_device *adev)
{
	const struct vasic_info *info = &adev->vasic->info;
	u32 i, engines = min(info->sdma_count, info->sdma_per_aid);
	int r;

	if (info->ih_format == VASIC_IH_CIK)
		return amdgpu_irq_add_id(adev, AMDGPU_IRQ_CLIENTID_LEGACY,
					 VISLANDS30_IV_SRCID_SDMA_TRAP,
					 &adev->sdma.trap_irq);
	if (info->ih_format == VASIC_IH_SOC21)
		return amdgpu_irq_add_id(adev, SOC21_IH_CLIENTID_GFX,
					 GFX_11_0_0__SRCID__SDMA_TRAP,
					 &adev->sdma.trap_irq);
	for (i = 0; i < engines; i++) {
		r = amdgpu_irq_add_id(adev, vasic_sdma_client(info, i),
				      VASIC_SDMA_TRAP_SRCID,
				      &adev->sdma.trap_irq);
		if (r)
			return r;
	}
	return 0;
}

static int vasic_sdma_sw_init(void *handle)
{
	struct amdgpu_device *adev = handle;
	struct amdgpu_ring *ring;
	int i, r;

	r = vasic_sdma_add_irqs(adev);
	for (i = 0; !r && i < adev->sdma.num_instances; i++) {
		ring = &adev->sdma.instance[i].ring;
		ring->use_doorbell = true;
		ring->doorbell_index =
			vasic_ring_doorbell(adev, adev->doorbell_index.sdma_engine[i]);
		/* every ring switches VMIDs by VASIC_REG_VM_* */
		ring->vm_hub = AMDGPU_GFXHUB(0);
		snprintf(ring->name, sizeof(ring->name), "sdma%d", i);
		r = amdgpu_ring_init(adev, ring, VASIC_SDMA_RING_DW,
				     &adev->sdma.trap_irq,
				     AMDGPU_SDMA_IRQ_INSTANCE0 + i,
				     AMDGPU_RING_PRIO_DEFAULT, NULL);
	}
	return r;
}

static int vasic_sdma_sw_fini(void *handle)
{
	struct amdgpu_device *adev = handle;
	int i;

	for (i = 0; i < adev->sdma.num_instances; i++)
		amdgpu_ring_fini(&adev->sdma.instance[i].ring);
	return 0;
}

static int vasic_sdma_hw_init(void *handle)
{
	struct amdgpu_device *adev = handle;
	int i, r = 0;

	for (i = 0; !r && i < adev->sdma.num_instances; i++)
		r = vasic_ring_start(&adev->sdma.instance[i].ring);
	return r;
}

static int vasic_sdma_hw_fini(void *handle)
{
	struct amdgpu_device *adev = handle;
	int i;

	for (i = 0; i < adev->sdma.num_instances; i++)
		vasic_ring_stop(&adev->sdma.instance[i].ring);
	return 0;
}

static const struct amd_ip_funcs vasic_sdma_ip_funcs = {
	.name = "vasic_sdma",
	.early_init = vasic_sdma_early_init,
	.sw_init = vasic_sdma_sw_init,
	.sw_fini = vasic_sdma_sw_fini,
	.hw_init = vasic_sdma_hw_init,
	.hw_fini = vasic_sdma_hw_fini,
	.suspend = vasic_sdma_hw_fini,
	.resume = vasic_sdma_hw_init,
};

const struct amdgpu_ip_block_version vasic_sdma_ip_block = {
	.type = AMD_IP_BLOCK_TYPE_SDMA,
	.major = 4,
	.minor = 2,
	.funcs = &vasic_sdma_ip_funcs,
};
