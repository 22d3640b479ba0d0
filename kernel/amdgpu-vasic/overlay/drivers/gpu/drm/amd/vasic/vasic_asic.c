// SPDX-License-Identifier: MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The chip as a whole: asic functions, layout of the doorbells, the common IP
 * block. Most functions return what a chip without firmware, clocks and a VBIOS
 * would.
 */
#include <linux/io.h>

#include "amdgpu.h"
#include "cik.h"
#include "soc15.h"
#include "vasic.h"

/* MMIO page that user space may map to flush the HDP; writes have no effect. */
#define VASIC_MMIO_REMAP_OFFSET	(VASIC_MMIO_SIZE - SZ_4K)

static bool vasic_read_disabled_bios(struct amdgpu_device *adev)
{
	return false;
}

static bool vasic_read_bios_from_rom(struct amdgpu_device *adev, u8 *bios,
				     u32 length_bytes)
{
	return false;
}

/* Dword offsets of the registers that libdrm reads when it opens a device. */
#define VASIC_MC_ARB_RAMCFG		0x09d8
#define VASIC_CC_RB_BACKEND_DISABLE	0x263d
#define VASIC_GB_ADDR_CONFIG		0x263e
#define VASIC_GB_TILE_MODE0		0x2644
#define VASIC_GB_MACROTILE_MODE15	0x2673
#define VASIC_PA_SC_RASTER_CONFIG	0xa0d4
#define VASIC_PA_SC_RASTER_CONFIG_1	0xa0d5

static int vasic_read_register(struct amdgpu_device *adev, u32 se_num,
			       u32 sh_num, u32 reg_offset, u32 *value)
{
	*value = 0;
	switch (reg_offset) {
	case VASIC_GB_ADDR_CONFIG:
		*value = adev->gfx.config.gb_addr_config;
		return 0;
	case VASIC_CC_RB_BACKEND_DISABLE:
		return 0;
	case VASIC_MC_ARB_RAMCFG:
	case VASIC_GB_TILE_MODE0 ... VASIC_GB_MACROTILE_MODE15:
	case VASIC_PA_SC_RASTER_CONFIG:
	case VASIC_PA_SC_RASTER_CONFIG_1:
		return adev->vasic->info.gfx_level < 9 ? 0 : -EINVAL;
	default:
		return -EINVAL;
	}
}

static void vasic_set_vga_state(struct amdgpu_device *adev, bool state)
{
}

static int vasic_asic_reset(struct amdgpu_device *adev)
{
	return vasic_reset(adev->vasic);
}

static enum amd_reset_method vasic_reset_method(struct amdgpu_device *adev)
{
	return AMD_RESET_METHOD_MODE1;
}

static u32 vasic_get_xclk(struct amdgpu_device *adev)
{
	return adev->vasic->info.clock_khz / 10;
}

static u32 vasic_get_memsize(struct amdgpu_device *adev)
{
	return adev->vasic->info.vram_size >> 20;
}

/* Host and guest share coherent memory, so a barrier is enough. */
static void vasic_flush_hdp(struct amdgpu_device *adev, struct amdgpu_ring *ring)
{
	mb(); /* CPU stores through the BAR before later doorbells and commands */
}

static bool vasic_need_full_reset(struct amdgpu_device *adev)
{
	return true;
}

static bool vasic_need_reset_on_init(struct amdgpu_device *adev)
{
	return false; /* vasic_attach() has reset the device */
}

static int vasic_supports_baco(struct amdgpu_device *adev)
{
	return 0;
}

static void vasic_get_pcie_usage(struct amdgpu_device *adev, uint64_t *count0,
				 uint64_t *count1)
{
	*count0 = 0;
	*count1 = 0;
}

static uint64_t vasic_get_pcie_replay_count(struct amdgpu_device *adev)
{
	return 0;
}

static void vasic_pre_asic_init(struct amdgpu_device *adev)
{
}

static int vasic_query_video_codecs(struct amdgpu_device *adev, bool encode,
				    const struct amdgpu_video_codecs **codecs)
{
	return -EINVAL; /* there is no VCN */
}

/* As nv_init_doorbell_index() and soc21_init_doorbell_index(), without the
 * doorbells of blocks that the virtual GPU does not have.
 */
static void vasic_doorbell_index_gfx10(struct amdgpu_device *adev)
{
	struct amdgpu_doorbell_index *index = &adev->doorbell_index;

	index->kiq = AMDGPU_NAVI10_DOORBELL_KIQ;
	index->mec_ring0 = AMDGPU_NAVI10_DOORBELL_MEC_RING0;
	index->userqueue_start = AMDGPU_NAVI10_DOORBELL_USERQUEUE_START;
	index->userqueue_end = AMDGPU_NAVI10_DOORBELL_USERQUEUE_END;
	index->mes_ring0 = AMDGPU_NAVI10_DOORBELL_MES_RING0;
	index->mes_ring1 = AMDGPU_NAVI10_DOORBELL_MES_RING1;
	index->sdma_engine[0] = AMDGPU_NAVI10_DOORBELL_sDMA_ENGINE0;
	index->sdma_engine[1] = AMDGPU_NAVI10_DOORBELL_sDMA_ENGINE1;
	index->sdma_engine[2] = AMDGPU_NAVI10_DOORBELL_sDMA_ENGINE2;
	index->sdma_engine[3] = AMDGPU_NAVI10_DOORBELL_sDMA_ENGINE3;
	index->ih = AMDGPU_NAVI10_DOORBELL_IH;
	index->first_non_cp = AMDGPU_NAVI10_DOORBELL64_FIRST_NON_CP;
	index->last_non_cp = AMDGPU_NAVI10_DOORBELL64_LAST_NON_CP;
	index->max_assignment = AMDGPU_NAVI10_DOORBELL_MAX_ASSIGNMENT << 1;
	index->sdma_doorbell_range = 20;
}

static void vasic_doorbell_index(struct amdgpu_device *adev)
{
	const struct vasic_info *info = &adev->vasic->info;

	if (info->gfx_level < 9)
		legacy_doorbell_index_init(adev);
	else if (info->gfx_level > 9)
		vasic_doorbell_index_gfx10(adev);
	else if (info->sdma_per_aid < info->sdma_count)
		aqua_vanjaram_doorbell_index_init(adev);
	else
		vega20_doorbell_index_init(adev);
}

static const struct amdgpu_asic_funcs vasic_asic_funcs = {
	.read_disabled_bios = vasic_read_disabled_bios,
	.read_bios_from_rom = vasic_read_bios_from_rom,
	.read_register = vasic_read_register,
	.set_vga_state = vasic_set_vga_state,
	.reset = vasic_asic_reset,
	.reset_method = vasic_reset_method,
	.get_xclk = vasic_get_xclk,
	.get_config_memsize = vasic_get_memsize,
	.flush_hdp = vasic_flush_hdp,
	.invalidate_hdp = vasic_flush_hdp,
	.need_full_reset = vasic_need_full_reset,
	.init_doorbell_index = vasic_doorbell_index,
	.get_pcie_usage = vasic_get_pcie_usage,
	.need_reset_on_init = vasic_need_reset_on_init,
	.get_pcie_replay_count = vasic_get_pcie_replay_count,
	.supports_baco = vasic_supports_baco,
	.query_video_codecs = vasic_query_video_codecs,
	.pre_asic_init = vasic_pre_asic_init,
};

/* The SMC, PCIE and DIDT register spaces, which debugfs can read, are empty. */
static u32 vasic_no_rreg(struct amdgpu_device *adev, uint32_t reg)
{
	return 0;
}

static void vasic_no_wreg(struct amdgpu_device *adev, uint32_t reg, uint32_t v)
{
}

static void vasic_set_register_spaces(struct amdgpu_device *adev)
{
	adev->smc_rreg = vasic_no_rreg;
	adev->smc_wreg = vasic_no_wreg;
	adev->pcie_rreg = vasic_no_rreg;
	adev->pcie_wreg = vasic_no_wreg;
	adev->didt_rreg = vasic_no_rreg;
	adev->didt_wreg = vasic_no_wreg;
}

static u32 vasic_get_rev_id(struct amdgpu_device *adev)
{
	return adev->vasic->info.pci_revision;
}

static const struct amdgpu_nbio_funcs vasic_nbio_funcs = {
	.get_rev_id = vasic_get_rev_id,
	.get_memsize = vasic_get_memsize,
};

/* There is no power management. The table exists because amdgpu_dpm dereferences
 * it without a check for NULL (AMDGPU_INFO_VCE_CLOCK_TABLE).
 */
static const struct amd_pm_funcs vasic_pm_funcs = {};

static enum amdgpu_pkg_type vasic_get_pkg_type(struct amdgpu_device *adev)
{
	return AMDGPU_PKG_TYPE_OAM; /* it is not an APU */
}

static const struct amdgpu_smuio_funcs vasic_smuio_funcs = {
	.get_pkg_type = vasic_get_pkg_type,
};

static int vasic_common_early_init(struct amdgpu_ip_block *ip_block)
{
	struct amdgpu_device *adev = ip_block->adev;

	vasic_watch_init(adev->vasic);
	vasic_set_register_spaces(adev);
	adev->asic_funcs = &vasic_asic_funcs;
	adev->nbio.funcs = &vasic_nbio_funcs;
	adev->smuio.funcs = &vasic_smuio_funcs;
	adev->powerplay.pp_funcs = &vasic_pm_funcs;
	adev->rev_id = adev->vasic->info.pci_revision;
	adev->external_rev_id = adev->vasic->info.external_rev_id;
	adev->unique_id = adev->vasic->info.unique_id;
	adev->firmware.load_type = AMDGPU_FW_LOAD_DIRECT;
	adev->rmmio_remap.bus_addr = adev->rmmio_base + VASIC_MMIO_REMAP_OFFSET;
	adev->rmmio_remap.reg_offset = VASIC_MMIO_REMAP_OFFSET;
	return 0;
}

static int vasic_common_sw_init(void *handle)
{
	struct amdgpu_device *adev = handle;

	/* amdgpu_device_init() has asked the root port of the virtual machine,
	 * but the host's atomics reach guest memory without its help.
	 */
	adev->have_atomics_support = true;
	return 0;
}

static int vasic_common_late_init(void *handle)
{
	struct amdgpu_device *adev = handle;

	vasic_watch_start(adev->vasic);
	return 0;
}

static int vasic_common_hw_fini(void *handle)
{
	struct amdgpu_device *adev = handle;

	vasic_watch_stop(adev->vasic);
	return 0;
}

static int vasic_common_nop(void *handle)
{
	return 0;
}

static const struct amd_ip_funcs vasic_common_ip_funcs = {
	.name = "vasic_common",
	.early_init = vasic_common_early_init,
	.late_init = vasic_common_late_init,
	.sw_init = vasic_common_sw_init,
	.sw_fini = vasic_common_nop,
	.hw_init = vasic_common_nop,
	.hw_fini = vasic_common_hw_fini,
	.suspend = vasic_common_nop,
	.resume = vasic_common_nop,
};

const struct amdgpu_ip_block_version vasic_common_ip_block = {
	.type = AMD_IP_BLOCK_TYPE_COMMON,
	.major = 1,
	.funcs = &vasic_common_ip_funcs,
};
