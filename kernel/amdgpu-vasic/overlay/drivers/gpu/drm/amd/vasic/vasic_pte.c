// SPDX-License-Identifier: MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Page table entries in the format of each generation: memory types, flags of a
 * mapping, what a directory entry holds. The facts come from gmc_v7_0.c to
 * gmc_v12_0.c. The host walks the tables.
 */
#include "amdgpu.h"
#include "amdgpu_gmc.h"
#include "vasic.h"
#include "vega10_enum.h"

#define VASIC_UNCACHED_BO \
	(AMDGPU_GEM_CREATE_COHERENT | AMDGPU_GEM_CREATE_EXT_COHERENT | \
	 AMDGPU_GEM_CREATE_UNCACHED)

static u64 vasic_mtype(u32 flags)
{
	switch (flags) {
	case AMDGPU_VM_MTYPE_WC:
		return MTYPE_WC;
	case AMDGPU_VM_MTYPE_RW:
		return MTYPE_RW;
	case AMDGPU_VM_MTYPE_CC:
		return MTYPE_CC;
	case AMDGPU_VM_MTYPE_UC:
		return MTYPE_UC;
	default:
		return MTYPE_NC;
	}
}

static bool vasic_bo_is_uncached(struct amdgpu_bo_va_mapping *mapping)
{
	const struct amdgpu_bo *bo = mapping->bo_va->base.bo;

	return bo && (bo->flags & VASIC_UNCACHED_BO);
}

/* Copies these bits from the flags of the mapping to those of the entry. */
static void vasic_copy_pte_bits(struct amdgpu_bo_va_mapping *mapping, u64 bits,
				u64 *flags)
{
	*flags = (*flags & ~bits) | (mapping->flags & bits);
}

/* Directory entries of gfx7 and gfx8 hold MC addresses, as amdgpu_vm passes them. */
static void vasic_pde_gfx7(struct amdgpu_device *adev, int level, u64 *addr,
			   u64 *flags)
{
}

static void vasic_pte_gfx7(struct amdgpu_device *adev,
			   struct amdgpu_bo_va_mapping *mapping, u64 *flags)
{
	vasic_copy_pte_bits(mapping, AMDGPU_PTE_EXECUTABLE, flags);
	*flags &= ~AMDGPU_PTE_PRT;
}

static u64 vasic_mtype_gfx9(struct amdgpu_device *adev, u32 flags)
{
	return AMDGPU_PTE_MTYPE_VG10(0ULL, vasic_mtype(flags));
}

static void vasic_pde_gfx9(struct amdgpu_device *adev, int level, u64 *addr,
			   u64 *flags)
{
	if (!(*flags & (AMDGPU_PDE_PTE | AMDGPU_PTE_SYSTEM)))
		*addr = amdgpu_gmc_vram_mc2pa(adev, *addr);
}

static void vasic_pte_gfx9(struct amdgpu_device *adev,
			   struct amdgpu_bo_va_mapping *mapping, u64 *flags)
{
	vasic_copy_pte_bits(mapping, AMDGPU_PTE_EXECUTABLE |
			    AMDGPU_PTE_MTYPE_VG10_MASK, flags);
	if (mapping->flags & AMDGPU_PTE_PRT) {
		*flags |= AMDGPU_PTE_PRT;
		*flags &= ~AMDGPU_PTE_VALID;
	}
	if ((*flags & AMDGPU_PTE_VALID) && vasic_bo_is_uncached(mapping))
		*flags = AMDGPU_PTE_MTYPE_VG10(*flags, MTYPE_UC);
}

static u64 vasic_mtype_gfx10(struct amdgpu_device *adev, u32 flags)
{
	return AMDGPU_PTE_MTYPE_NV10(0ULL, vasic_mtype(flags));
}

static void vasic_pte_gfx10(struct amdgpu_device *adev,
			    struct amdgpu_bo_va_mapping *mapping, u64 *flags)
{
	vasic_copy_pte_bits(mapping, AMDGPU_PTE_EXECUTABLE |
			    AMDGPU_PTE_MTYPE_NV10_MASK | AMDGPU_PTE_NOALLOC,
			    flags);
	if (mapping->flags & AMDGPU_PTE_PRT) {
		*flags |= AMDGPU_PTE_PRT | AMDGPU_PTE_SNOOPED |
			  AMDGPU_PTE_LOG | AMDGPU_PTE_SYSTEM;
		*flags &= ~AMDGPU_PTE_VALID;
	}
	if (vasic_bo_is_uncached(mapping))
		*flags = AMDGPU_PTE_MTYPE_NV10(*flags, MTYPE_UC);
}

static u64 vasic_mtype_gfx12(struct amdgpu_device *adev, u32 flags)
{
	return AMDGPU_PTE_MTYPE_GFX12(0ULL, flags == AMDGPU_VM_MTYPE_UC ?
					    MTYPE_UC : MTYPE_NC);
}

static void vasic_pde_gfx12(struct amdgpu_device *adev, int level, u64 *addr,
			    u64 *flags)
{
	if (!(*flags & (AMDGPU_PDE_PTE_GFX12 | AMDGPU_PTE_SYSTEM)))
		*addr = amdgpu_gmc_vram_mc2pa(adev, *addr);
}

static void vasic_pte_gfx12(struct amdgpu_device *adev,
			    struct amdgpu_bo_va_mapping *mapping, u64 *flags)
{
	const struct amdgpu_bo *bo = mapping->bo_va->base.bo;

	vasic_copy_pte_bits(mapping, AMDGPU_PTE_EXECUTABLE |
			    AMDGPU_PTE_MTYPE_GFX12_MASK, flags);
	if (mapping->flags & AMDGPU_PTE_PRT_GFX12) {
		*flags |= AMDGPU_PTE_PRT_GFX12 | AMDGPU_PTE_SNOOPED |
			  AMDGPU_PTE_SYSTEM | AMDGPU_PTE_IS_PTE;
		*flags &= ~AMDGPU_PTE_VALID;
	}
	if (bo && bo->flags & AMDGPU_GEM_CREATE_UNCACHED)
		*flags = AMDGPU_PTE_MTYPE_GFX12(*flags, MTYPE_UC);
}

static unsigned int vasic_get_vbios_fb_size(struct amdgpu_device *adev)
{
	return 0;
}

/* Called on GC 9.4.3, whose virtual XCCs are one partition. */
static enum amdgpu_memory_partition
vasic_query_mem_partition_mode(struct amdgpu_device *adev)
{
	return AMDGPU_NPS1_PARTITION_MODE;
}

#define VASIC_GMC_FUNCS(pde, pte, mtype)			\
	{							\
		.flush_gpu_tlb = vasic_flush_gpu_tlb,		\
		.flush_gpu_tlb_pasid = vasic_flush_gpu_tlb_pasid, \
		.emit_flush_gpu_tlb = vasic_emit_flush_gpu_tlb,	\
		.emit_pasid_mapping = vasic_emit_pasid_mapping,	\
		.map_mtype = mtype,				\
		.get_vm_pde = pde,				\
		.get_vm_pte = pte,				\
		.get_vbios_fb_size = vasic_get_vbios_fb_size,	\
		.query_mem_partition_mode = vasic_query_mem_partition_mode, \
	}

/* Indexed by enum vasic_pte_format. On gfx7 and gfx8 VRAM begins at MC address 0,
 * so that directory entries (MC addresses) and page table entries (VRAM offsets)
 * agree.
 */
static const struct vasic_pte_layout vasic_pte_layouts[] = {
	[VASIC_PTE_GFX7] = {
		.funcs = VASIC_GMC_FUNCS(vasic_pde_gfx7, vasic_pte_gfx7, NULL),
		.gart_flags = AMDGPU_PTE_EXECUTABLE,
		.mc_bits = 40,
		.dma_bits = 40,
		.min_vm_gib = 64,
	},
	[VASIC_PTE_GFX9] = {
		.funcs = VASIC_GMC_FUNCS(vasic_pde_gfx9, vasic_pte_gfx9,
					 vasic_mtype_gfx9),
		.gart_flags = AMDGPU_PTE_MTYPE_VG10(0ULL, MTYPE_UC) |
			      AMDGPU_PTE_EXECUTABLE,
		.mc_bits = 48,
		.dma_bits = 44,
		.min_vm_gib = 256 * 1024,
		.vram_base = 0x8000000000ULL,
	},
	[VASIC_PTE_GFX10] = {
		.funcs = VASIC_GMC_FUNCS(vasic_pde_gfx9, vasic_pte_gfx10,
					 vasic_mtype_gfx10),
		.gart_flags = AMDGPU_PTE_MTYPE_NV10(0ULL, MTYPE_UC) |
			      AMDGPU_PTE_EXECUTABLE,
		.mc_bits = 48,
		.dma_bits = 44,
		.min_vm_gib = 256 * 1024,
		.vram_base = 0x8000000000ULL,
	},
	[VASIC_PTE_GFX12] = {
		.funcs = VASIC_GMC_FUNCS(vasic_pde_gfx12, vasic_pte_gfx12,
					 vasic_mtype_gfx12),
		.gart_flags = AMDGPU_PTE_MTYPE_GFX12(0ULL, MTYPE_UC) |
			      AMDGPU_PTE_EXECUTABLE | AMDGPU_PTE_IS_PTE,
		.mc_bits = 48,
		.dma_bits = 44,
		.min_vm_gib = 256 * 1024,
		.vram_base = 0x8000000000ULL,
	},
};

/**
 * vasic_pte_layout - return the layout of page table entries
 * @vd: the device; vasic_attach() has checked its pte_format
 *
 * Return: constant data.
 */
const struct vasic_pte_layout *vasic_pte_layout(struct vasic_device *vd)
{
	return &vasic_pte_layouts[vd->info.pte_format];
}
