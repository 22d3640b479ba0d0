// SPDX-License-Identifier: MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The graphics and compute block as amdgpu needs to know it: numbers of XCCs,
 * CUs, pipes and queues, firmware versions. Its kernel rings are in
 * vasic_compute.c; amdkfd's queues go through the HIQ or the MES, see
 * vasic_kfd.c and vasic_mes.c.
 */
#include "amdgpu.h"
#include "amdgpu_gfx.h"
#include "vasic.h"

static uint64_t vasic_gfx_clock_counter(struct amdgpu_device *adev)
{
	return vasic_clock(adev->vasic);
}

/* The virtual GPU has no banks of registers to select. */
static void vasic_gfx_select_se_sh(struct amdgpu_device *adev, u32 se_num,
				   u32 sh_num, u32 instance, int xcc_id)
{
}

static void vasic_gfx_select_me_pipe_q(struct amdgpu_device *adev, u32 me,
				       u32 pipe, u32 queue, u32 vmid,
				       u32 xcc_id)
{
}

/**
 * vasic_node_to_xcc - find the XCC that an interrupt comes from
 * @adev: the virtual device
 * @node: node id of an IH entry; 1 and 2 are the XCCs of the first AID, 5 and 6
 *	those of the second, and so on
 *
 * Return: the XCC or a negative errno.
 */
int vasic_node_to_xcc(struct amdgpu_device *adev, int node)
{
	int xcc = hweight16(adev->gfx.xcc_mask & GENMASK(node / 2, 0));

	return xcc ? xcc - 1 : -EINVAL;
}

static const struct amdgpu_gfx_funcs vasic_gfx_funcs = {
	.get_gpu_clock_counter = vasic_gfx_clock_counter,
	.select_se_sh = vasic_gfx_select_se_sh,
	.select_me_pipe_q = vasic_gfx_select_me_pipe_q,
	.ih_node_to_logical_xcc = vasic_node_to_xcc,
};

static bool vasic_rlc_is_enabled(struct amdgpu_device *adev)
{
	return false;
}

/* amdgpu dereferences rlc.funcs to see whether optional functions are there. */
static const struct amdgpu_rlc_funcs vasic_rlc_funcs = {
	.is_rlc_enabled = vasic_rlc_is_enabled,
};

static void vasic_gfx_config(struct amdgpu_device *adev)
{
	const struct vasic_info *info = &adev->vasic->info;
	struct amdgpu_gfx_config *config = &adev->gfx.config;

	config->max_shader_engines = info->se_count;
	config->max_sh_per_se = info->sh_per_se;
	config->max_cu_per_sh = info->cu_per_sh;
	config->max_backends_per_se = info->rb_per_se;
	config->max_tile_pipes = info->tile_pipes;
	config->max_texture_channel_caches = info->tcc_count;
	config->gb_addr_config = info->gb_addr_config;
}

/* Fills what amdgpu_discovery_get_gfx_info() reads from the table of a GPU, in both
 * of the forms that kfd_get_gpu_cache_info() knows: GC 9.4.3 counts CUs of an SQC,
 * later chips SQCs of a pair of CUs.
 */
static void vasic_gfx_caches(struct amdgpu_device *adev)
{
	const struct vasic_info *info = &adev->vasic->info;
	struct amdgpu_gfx_config *config = &adev->gfx.config;

	if (!info->vector_l1_kib)
		return;
	config->gc_num_tcp_per_wpg = 2;
	config->gc_tcp_l1_size = info->vector_l1_kib;
	config->gc_tcp_size_per_cu = info->vector_l1_kib;
	config->gc_tcp_cache_line_size = info->vector_line;
	config->gc_num_sqc_per_wgp = 2 / info->cu_per_sqc;
	config->gc_num_cu_per_sqc = info->cu_per_sqc;
	config->gc_l1_instruction_cache_size_per_sqc = info->scalar_inst_kib;
	config->gc_instruction_cache_line_size = info->scalar_inst_line;
	config->gc_l1_data_cache_size_per_sqc = info->scalar_data_kib;
	config->gc_scalar_data_cache_line_size = info->scalar_data_line;
	config->gc_gl1c_per_sa = info->gl1_kib ? 1 : 0;
	config->gc_gl1c_size_per_instance = info->gl1_kib;
	config->gc_gl2c_per_gpu = info->l2_kib;
	config->gc_tcc_size = info->l2_kib;
	config->gc_tcc_cache_line_size = info->l2_line;
}

static void vasic_gfx_cu_info(struct amdgpu_device *adev)
{
	const struct vasic_info *info = &adev->vasic->info;
	struct amdgpu_cu_info *cu = &adev->gfx.cu_info;
	int xcc, se, sh;

	cu->number = info->cu_count * info->xcc_count;
	cu->simd_per_cu = info->simd_per_cu;
	cu->max_waves_per_simd = info->max_waves_per_simd;
	cu->wave_front_size = info->wave_front_size;
	cu->max_scratch_slots_per_cu = info->max_scratch_slots_per_cu;
	cu->lds_size = info->lds_size_kib;
	for (xcc = 0; xcc < info->xcc_count; xcc++)
		for (se = 0; se < info->se_count; se++)
			for (sh = 0; sh < info->sh_per_se; sh++)
				cu->bitmap[xcc][se % 4]
					  [sh + se / 4 * info->sh_per_se] =
					info->cu_bitmap[se][sh];
}

static int vasic_gfx_early_init(struct amdgpu_ip_block *ip_block)
{
	struct amdgpu_device *adev = ip_block->adev;
	const struct vasic_info *info = &adev->vasic->info;

	adev->gfx.funcs = &vasic_gfx_funcs;
	adev->gfx.rlc.funcs = &vasic_rlc_funcs;
	adev->gfx.xcc_mask = BIT(info->xcc_count) - 1;
	adev->gfx.num_xcc_per_xcp = info->xcc_count;
	adev->gfx.num_gfx_rings = 0;
	adev->gfx.mec.num_mec = info->mec_count;
	adev->gfx.mec.num_pipe_per_mec = info->pipes_per_mec;
	adev->gfx.mec.num_queue_per_pipe = info->queues_per_pipe;
	adev->gfx.mec_fw_version = info->mec_fw_version;
	adev->gfx.mec2_fw_version = info->mec_fw_version;
	adev->gfx.mec_feature_version = info->mec_feature_version;
	adev->gds.gds_size = info->gds_size;
	adev->gds.gws_size = info->gws_size;
	adev->gds.oa_size = 0;
	vasic_gfx_config(adev);
	vasic_gfx_caches(adev);
	vasic_gfx_cu_info(adev);
	vasic_compute_early_init(adev);
	return 0;
}

static int vasic_gfx_sw_init(void *handle)
{
	return vasic_compute_sw_init(handle);
}

static int vasic_gfx_sw_fini(void *handle)
{
	vasic_compute_sw_fini(handle);
	return 0;
}

static int vasic_gfx_hw_init(void *handle)
{
	return vasic_compute_start(handle);
}

static int vasic_gfx_hw_fini(void *handle)
{
	vasic_compute_stop(handle);
	return 0;
}

static const struct amd_ip_funcs vasic_gfx_ip_funcs = {
	.name = "vasic_gfx",
	.early_init = vasic_gfx_early_init,
	.sw_init = vasic_gfx_sw_init,
	.sw_fini = vasic_gfx_sw_fini,
	.hw_init = vasic_gfx_hw_init,
	.hw_fini = vasic_gfx_hw_fini,
	.suspend = vasic_gfx_hw_fini,
	.resume = vasic_gfx_hw_init,
};

const struct amdgpu_ip_block_version vasic_gfx_ip_block = {
	.type = AMD_IP_BLOCK_TYPE_GFX,
	.major = 9,
	.minor = 4,
	.funcs = &vasic_gfx_ip_funcs,
};
