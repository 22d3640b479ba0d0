// SPDX-License-Identifier: MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The interrupt handler block: the host fills a ring of entries in guest memory
 * and then raises an MSI-X. Entries are those of the chip's generation, and
 * amdgpu dispatches them.
 */
#include "amdgpu.h"
#include "amdgpu_ih.h"
#include "vasic.h"

#define VASIC_IH_RING_SIZE	(256 * 1024)
#define VASIC_IH_CIK_BYTES	16

static u32 vasic_ih_get_wptr(struct amdgpu_device *adev,
			     struct amdgpu_ih_ring *ih)
{
	return le32_to_cpu(READ_ONCE(*ih->wptr_cpu)) & ih->ptr_mask;
}

static void vasic_ih_set_rptr(struct amdgpu_device *adev,
			      struct amdgpu_ih_ring *ih)
{
	if (ih == &adev->irq.ih)
		vasic_ih_write_rptr(adev->vasic, ih->rptr);
}

/* As cik_ih_decode_iv(). amdgpu_irq_dispatch() sets the timestamp. */
static void vasic_ih_decode_cik(struct amdgpu_device *adev,
				struct amdgpu_ih_ring *ih,
				struct amdgpu_iv_entry *entry)
{
	const u32 *dw = (const u32 *)&ih->ring[ih->rptr / sizeof(u32)];
	u32 where = le32_to_cpu(dw[2]);

	entry->client_id = AMDGPU_IRQ_CLIENTID_LEGACY;
	entry->src_id = le32_to_cpu(dw[0]) & 0xff;
	entry->src_data[0] = le32_to_cpu(dw[1]) & 0xfffffff;
	entry->ring_id = where & 0xff;
	entry->vmid = (where >> 8) & 0xff;
	entry->pasid = where >> 16;
	entry->node_id = 0;
	ih->rptr += VASIC_IH_CIK_BYTES;
}

static uint64_t vasic_ih_no_timestamp(struct amdgpu_ih_ring *ih, u32 rptr,
				      signed int offset)
{
	return 0;
}

static const struct amdgpu_ih_funcs vasic_ih_funcs_cik = {
	.get_wptr = vasic_ih_get_wptr,
	.decode_iv = vasic_ih_decode_cik,
	.decode_iv_ts = vasic_ih_no_timestamp,
	.set_rptr = vasic_ih_set_rptr,
};

static const struct amdgpu_ih_funcs vasic_ih_funcs_soc15 = {
	.get_wptr = vasic_ih_get_wptr,
	.decode_iv = amdgpu_ih_decode_iv_helper,
	.decode_iv_ts = amdgpu_ih_decode_iv_ts_helper,
	.set_rptr = vasic_ih_set_rptr,
};

static int vasic_ih_early_init(struct amdgpu_ip_block *ip_block)
{
	struct amdgpu_device *adev = ip_block->adev;

	adev->irq.ih_funcs = adev->vasic->info.ih_format == VASIC_IH_CIK ?
			     &vasic_ih_funcs_cik : &vasic_ih_funcs_soc15;
	return 0;
}

static int vasic_ih_sw_init(void *handle)
{
	struct amdgpu_device *adev = handle;
	int r;

	r = amdgpu_ih_ring_init(adev, &adev->irq.ih, VASIC_IH_RING_SIZE, true);
	if (r)
		return r;
	/* amdgpu_irq_delegate() moves retry faults to this ring */
	r = amdgpu_ih_ring_init(adev, &adev->irq.ih_soft, IH_SW_RING_SIZE, true);
	if (r)
		return r;
	return amdgpu_irq_init(adev);
}

static int vasic_ih_sw_fini(void *handle)
{
	amdgpu_irq_fini_sw(handle);
	return 0;
}

static int vasic_ih_hw_init(void *handle)
{
	struct amdgpu_device *adev = handle;
	struct amdgpu_ih_ring *ih = &adev->irq.ih;
	struct vasic_args args = {
		.cmd.ih_setup = {
			.ring = ih->gpu_addr,
			.size = ih->ring_size,
			.wptr_addr = ih->wptr_addr,
		},
	};
	int r;

	ih->rptr = 0;
	*ih->wptr_cpu = 0;
	vasic_ih_write_rptr(adev->vasic, 0);
	pci_set_master(adev->pdev);
	r = vasic_command(adev->vasic, VASIC_CMD_IH_SETUP, &args);
	if (r)
		return r;
	ih->enabled = true;
	adev->irq.ih_soft.enabled = true;
	return 0;
}

static int vasic_ih_hw_fini(void *handle)
{
	struct amdgpu_device *adev = handle;
	struct vasic_args args = {};

	vasic_command(adev->vasic, VASIC_CMD_IH_SETUP, &args);
	adev->irq.ih.enabled = false;
	adev->irq.ih_soft.enabled = false;
	return 0;
}

static const struct amd_ip_funcs vasic_ih_ip_funcs = {
	.name = "vasic_ih",
	.early_init = vasic_ih_early_init,
	.sw_init = vasic_ih_sw_init,
	.sw_fini = vasic_ih_sw_fini,
	.hw_init = vasic_ih_hw_init,
	.hw_fini = vasic_ih_hw_fini,
	.suspend = vasic_ih_hw_fini,
	.resume = vasic_ih_hw_init,
};

const struct amdgpu_ip_block_version vasic_ih_ip_block = {
	.type = AMD_IP_BLOCK_TYPE_IH,
	.major = 4,
	.minor = 2,
	.funcs = &vasic_ih_ip_funcs,
};
