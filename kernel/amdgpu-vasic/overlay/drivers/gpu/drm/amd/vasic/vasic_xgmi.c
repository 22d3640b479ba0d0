// SPDX-License-Identifier: MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The XGMI hive of a GPU, if the host puts it into one: ids, place of the VRAM of
 * each node, and distances: every node is a neighbour of every other. Page table
 * entries hold addresses in a peer's VRAM, and the host accesses it.
 */
#include "amdgpu.h"
#include "amdgpu_xgmi.h"
#include "vasic.h"

static int vasic_get_xgmi_info(struct amdgpu_device *adev)
{
	const struct vasic_info *info = &adev->vasic->info;

	adev->gmc.xgmi.physical_node_id = info->xgmi_node_id;
	adev->gmc.xgmi.num_physical_nodes = info->xgmi_num_nodes;
	adev->gmc.xgmi.node_segment_size = info->xgmi_segment_size;
	return 0;
}

static const struct amdgpu_gfxhub_funcs vasic_gfxhub_funcs = {
	.get_xgmi_info = vasic_get_xgmi_info,
};

/* sysfs shows link errors; this value means that there are none. */
#define VASIC_FICA_ENABLED	0x1f

static uint64_t vasic_get_fica(struct amdgpu_device *adev, uint32_t ficaa_val)
{
	return VASIC_FICA_ENABLED;
}

static void vasic_set_fica(struct amdgpu_device *adev, uint32_t ficaa_val,
			   uint32_t ficadl_val, uint32_t ficadh_val)
{
}

static const struct amdgpu_df_funcs vasic_df_funcs = {
	.get_fica = vasic_get_fica,
	.set_fica = vasic_set_fica,
};

/**
 * vasic_xgmi_early_init - tell amdgpu whether there is a hive
 * @adev: the virtual device
 *
 * Return: 0, or -EPROTO if the host's description of the hive is inconsistent.
 */
int vasic_xgmi_early_init(struct amdgpu_device *adev)
{
	const struct vasic_info *info = &adev->vasic->info;
	struct psp_xgmi_topology_info *top = &adev->psp.xgmi_context.top_info;
	u32 i;

	if (!info->xgmi_hive_id)
		return 0;
	if (info->xgmi_num_nodes > AMDGPU_XGMI_MAX_CONNECTED_NODES ||
	    info->xgmi_node_id >= info->xgmi_num_nodes ||
	    info->xgmi_segment_size < info->vram_size)
		return -EPROTO;
	adev->gmc.xgmi.supported = true;
	adev->gfxhub.funcs = &vasic_gfxhub_funcs;
	adev->df.funcs = &vasic_df_funcs;
	/* amdgpu_xgmi_add_device() sets the ids of these nodes */
	for (i = 0; i < info->xgmi_num_nodes; i++) {
		top->nodes[i].num_hops = 1;
		top->nodes[i].num_links = 1;
	}
	return 0;
}

/**
 * vasic_xgmi_place - compute the place of this GPU's VRAM in the hive
 * @adev: the virtual device
 * @vram_base: MC address of node 0
 *
 * Return: MC address of this GPU's own VRAM.
 */
u64 vasic_xgmi_place(struct amdgpu_device *adev, u64 vram_base)
{
	const struct amdgpu_xgmi *xgmi = &adev->gmc.xgmi;

	if (!xgmi->num_physical_nodes)
		return vram_base;
	adev->gmc.fb_start = vram_base;
	adev->gmc.fb_end = vram_base - 1 +
			   xgmi->num_physical_nodes * xgmi->node_segment_size;
	return vram_base + xgmi->physical_node_id * xgmi->node_segment_size;
}

/**
 * vasic_xgmi_identify - hook of amdgpu_xgmi_add_device(): set ids, without a PSP
 * @adev: any device without a PSP
 */
void vasic_xgmi_identify(struct amdgpu_device *adev)
{
	if (!amdgpu_is_vasic(adev))
		return;
	adev->gmc.xgmi.hive_id = adev->vasic->info.xgmi_hive_id;
	adev->gmc.xgmi.node_id = adev->vasic->info.xgmi_node_id + 1;
}
