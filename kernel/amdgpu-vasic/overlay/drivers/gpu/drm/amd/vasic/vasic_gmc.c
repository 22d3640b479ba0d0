// SPDX-License-Identifier: MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The graphics memory controller: place of VRAM and GART, size of a virtual
 * address space, TLB invalidation. The host walks the tables that amdgpu_vm
 * writes; nothing is translated here.
 */
#include "amdgpu.h"
#include "amdgpu_gem.h"
#include "amdgpu_gmc.h"
#include "vasic.h"

/* Default fragment of a page table entry, log2 of 4 KiB pages, as gmc_v9_0.c and
 * later files have it.
 */
#define VASIC_FRAGMENT_BITS	9

/**
 * vasic_flush_gpu_tlb - make the GPU drop all translations that it has cached
 * @adev: the device
 * @vmid: which VMID is meant; the host drops the translations of all
 * @vmhub: which hub is meant; the host has one cache for all
 * @flush_type: not used; no access through an older translation remains
 *
 * Callback of struct amdgpu_gmc_funcs; see vasic_tlb_invalidate().
 */
void vasic_flush_gpu_tlb(struct amdgpu_device *adev, uint32_t vmid,
			 uint32_t vmhub, uint32_t flush_type)
{
	vasic_tlb_invalidate(adev->vasic);
}

/**
 * vasic_flush_gpu_tlb_pasid - make the GPU drop all translations that it has
 * cached
 * @adev: the device
 * @pasid: which process is meant; the host drops the translations of all
 * @flush_type: not used; no access through an older translation remains
 * @all_hub: not used; the host has one cache for all hubs
 * @inst: not used; the host has one cache for all XCCs
 *
 * Callback of struct amdgpu_gmc_funcs; see vasic_tlb_invalidate().
 */
void vasic_flush_gpu_tlb_pasid(struct amdgpu_device *adev, uint16_t pasid,
			       uint32_t flush_type, bool all_hub, uint32_t inst)
{
	vasic_tlb_invalidate(adev->vasic);
}

/**
 * vasic_emit_flush_gpu_tlb - write packets that set the page directory of a VMID
 * and drop its cached translations
 * @ring: where to
 * @vmid: the VMID
 * @pd_addr: the page directory, as amdgpu_gmc_pd_addr() returns it
 *
 * Callback of struct amdgpu_gmc_funcs. Writes three packets that write a
 * register.
 *
 * Return: @pd_addr.
 */
uint64_t vasic_emit_flush_gpu_tlb(struct amdgpu_ring *ring, unsigned int vmid,
				  uint64_t pd_addr)
{
	amdgpu_ring_emit_wreg(ring, VASIC_REG_VM_PD_LO(vmid), lower_32_bits(pd_addr));
	amdgpu_ring_emit_wreg(ring, VASIC_REG_VM_PD_HI(vmid), upper_32_bits(pd_addr));
	amdgpu_ring_emit_wreg(ring, VASIC_REG_TLB_INVALIDATE, BIT(vmid));
	return pd_addr;
}

/**
 * vasic_emit_pasid_mapping - write a packet that gives a VMID a PASID
 * @ring: where to
 * @vmid: the VMID
 * @pasid: the PASID; 0: none
 *
 * Callback of struct amdgpu_gmc_funcs. Writes one packet that writes a register.
 */
void vasic_emit_pasid_mapping(struct amdgpu_ring *ring, unsigned int vmid,
			      unsigned int pasid)
{
	amdgpu_ring_emit_wreg(ring, VASIC_REG_VM_PASID(vmid), pasid);
}

static int vasic_gmc_early_init(struct amdgpu_ip_block *ip_block)
{
	struct vasic_device *vd = ip_block->adev->vasic;
	struct amdgpu_gmc *gmc = &ip_block->adev->gmc;

	gmc->gmc_funcs = &vasic_pte_layout(vd)->funcs;
	gmc->noretry_flags = AMDGPU_VM_NORETRY_FLAGS_TF;
	/* LDS and scratch apertures as in gmc_v7_0_early_init() and
	 * gmc_v9_0_early_init()
	 */
	gmc->shared_aperture_start = 0x2000000000000000ULL;
	gmc->shared_aperture_end = gmc->shared_aperture_start + SZ_4G - 1;
	gmc->private_aperture_start = vd->info.gfx_level < 9 ?
		gmc->shared_aperture_end + 1 : 0x1000000000000000ULL;
	gmc->private_aperture_end = gmc->private_aperture_start + SZ_4G - 1;
	vasic_fault_early_init(ip_block->adev);
	return vasic_xgmi_early_init(ip_block->adev);
}

static void vasic_gmc_place(struct amdgpu_device *adev)
{
	const struct vasic_pte_layout *layout = vasic_pte_layout(adev->vasic);
	const struct vasic_info *info = &adev->vasic->info;
	struct amdgpu_gmc *gmc = &adev->gmc;

	gmc->vram_type = info->vram_type;
	gmc->vram_width = info->vram_width;
	gmc->mc_mask = BIT_ULL(layout->mc_bits) - 1;
	gmc->aper_base = pci_resource_start(adev->pdev, 2) + VASIC_OFF_VRAM;
	gmc->aper_size = info->vram_visible_size;
	gmc->mc_vram_size = info->vram_size;
	gmc->real_vram_size = info->vram_size;
	gmc->visible_vram_size = info->vram_visible_size;
	gmc->gart_size = info->gart_size;
	gmc->mall_size = (u64)info->mall_kib * SZ_1K;
	amdgpu_gmc_set_agp_default(adev, gmc);
	amdgpu_gmc_vram_location(adev, gmc,
				 vasic_xgmi_place(adev, layout->vram_base));
	amdgpu_gmc_gart_location(adev, gmc, AMDGPU_GART_PLACEMENT_BEST_FIT);
	/* addresses in page table entries count from the VRAM of node 0 */
	adev->vm_manager.vram_base_offset = gmc->vram_start - layout->vram_base;
}

static int vasic_gart_init(struct amdgpu_device *adev)
{
	int r = amdgpu_gart_init(adev);

	if (r)
		return r;
	adev->gart.table_size = adev->gart.num_gpu_pages * 8;
	adev->gart.gart_pte_flags = vasic_pte_layout(adev->vasic)->gart_flags;
	return amdgpu_gart_table_vram_alloc(adev);
}

/* Each XCC has a GFX hub; the SDMA engines of an AID share an MM hub. */
static void vasic_gmc_set_hubs(struct amdgpu_device *adev)
{
	const struct vasic_info *info = &adev->vasic->info;
	int i;

	for (i = 0; i < info->xcc_count; i++)
		set_bit(AMDGPU_GFXHUB(i), adev->vmhubs_mask);
	for (i = 0; i < DIV_ROUND_UP(info->sdma_count, info->sdma_per_aid); i++)
		set_bit(AMDGPU_MMHUB0(i), adev->vmhubs_mask);
}

static int vasic_gmc_sw_init(void *handle)
{
	struct amdgpu_device *adev = handle;
	const struct vasic_info *info = &adev->vasic->info;
	const struct vasic_pte_layout *layout = vasic_pte_layout(adev->vasic);
	int r;

	vasic_gmc_set_hubs(adev);
	spin_lock_init(&adev->gmc.invalidate_lock);
	amdgpu_vm_adjust_size(adev, layout->min_vm_gib, VASIC_FRAGMENT_BITS,
			      info->vm_levels, info->vm_address_bits);
	/* amdgpu_gmc_noretry_set() decides by IP version, not by the host's word */
	if (!info->retry_faults)
		adev->gmc.noretry = 1;
	r = vasic_fault_sw_init(adev);
	if (!r)
		r = dma_set_mask_and_coherent(adev->dev,
					      DMA_BIT_MASK(layout->dma_bits));
	if (r)
		return r;

	vasic_gmc_place(adev);
	r = amdgpu_bo_init(adev);
	if (r)
		return r;
	r = vasic_gart_init(adev);
	if (r)
		return r;
	adev->vm_manager.first_kfd_vmid = info->first_kfd_vmid;
	amdgpu_vm_manager_init(adev);
	return 0;
}

static int vasic_gmc_sw_fini(void *handle)
{
	struct amdgpu_device *adev = handle;

	amdgpu_gem_force_release(adev);
	amdgpu_vm_manager_fini(adev);
	amdgpu_gart_table_vram_free(adev);
	amdgpu_bo_fini(adev);
	vasic_fault_sw_fini(adev);
	return 0;
}

static int vasic_gmc_hw_init(void *handle)
{
	struct amdgpu_device *adev = handle;
	struct amdgpu_gmc *gmc = &adev->gmc;
	struct vasic_args args = {
		.cmd.mc_setup = {
			.vram_base = gmc->vram_start,
			.gart_base = gmc->gart_start,
			.gart_size = gmc->gart_size,
			.gart_table = amdgpu_bo_gpu_offset(adev->gart.bo) -
				      gmc->vram_start,
			.bar_address = pci_resource_start(adev->pdev, 2),
			.table_bits = adev->vm_manager.block_size,
			.va_pages = adev->vm_manager.max_pfn,
		},
	};

	amdgpu_gtt_mgr_recover(&adev->mman.gtt_mgr);
	vasic_tlb_invalidate(adev->vasic);
	return vasic_command(adev->vasic, VASIC_CMD_MC_SETUP, &args);
}

static int vasic_gmc_hw_fini(void *handle)
{
	return 0;
}

static const struct amd_ip_funcs vasic_gmc_ip_funcs = {
	.name = "vasic_gmc",
	.early_init = vasic_gmc_early_init,
	.sw_init = vasic_gmc_sw_init,
	.sw_fini = vasic_gmc_sw_fini,
	.hw_init = vasic_gmc_hw_init,
	.hw_fini = vasic_gmc_hw_fini,
	.suspend = vasic_gmc_hw_fini,
	.resume = vasic_gmc_hw_init,
};

const struct amdgpu_ip_block_version vasic_gmc_ip_block = {
	.type = AMD_IP_BLOCK_TYPE_GMC,
	.major = 9,
	.funcs = &vasic_gmc_ip_funcs,
};
