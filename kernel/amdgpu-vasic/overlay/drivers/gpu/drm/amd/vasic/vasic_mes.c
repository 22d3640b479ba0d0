// SPDX-License-Identifier: MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The MES, which schedules amdkfd's queues on gfx11 and gfx12: each request that
 * amdgpu would write to the firmware's ring becomes a command to the host. Kernel
 * rings are not mapped by it, see vasic_ring.c.
 */
#include "amdgpu.h"
#include "amdgpu_mes.h"
#include "mes_v11_api_def.h"
#include "vasic.h"

/* Quanta in units of 100 ns, as in mes_v11_0.c. */
#define VASIC_MES_PROCESS_QUANTUM	1000
#define VASIC_MES_GANG_QUANTUM		10000

static u64 vasic_mes_kind(u32 queue_type)
{
	return queue_type == MES_QUEUE_TYPE_SDMA ? VASIC_QUEUE_SDMA :
						   VASIC_QUEUE_COMPUTE;
}

static u64 vasic_mes_flags(const struct mes_add_queue_input *input)
{
	return (input->is_aql_queue ? VASIC_MES_AQL : 0) |
	       (input->trap_en ? VASIC_MES_TRAP : 0) |
	       (input->exclusively_scheduled ? VASIC_MES_EXCLUSIVE : 0);
}

static int vasic_mes_add_hw_queue(struct amdgpu_mes *mes,
				  struct mes_add_queue_input *input)
{
	struct vasic_args args = {
		.cmd.mes_add_queue = {
			.pasid = input->process_id,
			.page_directory = input->page_table_base_addr,
			.process_context = input->process_context_addr,
			.gang_context = input->gang_context_addr,
			.mqd = input->mqd_addr,
			.wptr_addr = input->wptr_addr,
			.wptr_mc_addr = input->wptr_mc_addr,
			.doorbell = input->doorbell_offset,
			.kind = vasic_mes_kind(input->queue_type),
			.flags = vasic_mes_flags(input),
			.quanta = input->process_quantum << 32 |
				  lower_32_bits(input->gang_quantum),
			.priority = input->gang_global_priority_level,
			.gws = (u64)input->gws_base << 32 | input->gws_size,
		},
	};

	return vasic_command(mes->adev->vasic, VASIC_CMD_MES_ADD_QUEUE, &args);
}

static int vasic_mes_remove_hw_queue(struct amdgpu_mes *mes,
				     struct mes_remove_queue_input *input)
{
	struct vasic_args args = {
		.cmd.mes_remove_queue = {
			.doorbell = input->doorbell_offset,
			.gang_context = input->gang_context_addr,
		},
	};

	return vasic_command(mes->adev->vasic, VASIC_CMD_MES_REMOVE_QUEUE,
			     &args);
}

static int vasic_mes_reset_hw_queue(struct amdgpu_mes *mes,
				    struct mes_reset_queue_input *input)
{
	struct vasic_args args = {
		.cmd.mes_reset_queue.doorbell = input->doorbell_offset,
	};

	return vasic_command(mes->adev->vasic, VASIC_CMD_MES_RESET_QUEUE,
			     &args);
}

static int vasic_mes_suspend_gang(struct amdgpu_mes *mes,
				  struct mes_suspend_gang_input *input)
{
	struct vasic_args args = {
		.cmd.mes_gang.gang_context =
			input->suspend_all_gangs ? 0 : input->gang_context_addr,
	};

	return vasic_command(mes->adev->vasic, VASIC_CMD_MES_SUSPEND, &args);
}

static int vasic_mes_resume_gang(struct amdgpu_mes *mes,
				 struct mes_resume_gang_input *input)
{
	struct vasic_args args = {
		.cmd.mes_gang.gang_context =
			input->resume_all_gangs ? 0 : input->gang_context_addr,
	};

	return vasic_command(mes->adev->vasic, VASIC_CMD_MES_RESUME, &args);
}

/* Kernel rings are loaded by vasic_ring_load(), not mapped by the MES. */
static int vasic_mes_map_legacy_queue(struct amdgpu_mes *mes,
				      struct mes_map_legacy_queue_input *input)
{
	return 0;
}

static int
vasic_mes_unmap_legacy_queue(struct amdgpu_mes *mes,
			     struct mes_unmap_legacy_queue_input *input)
{
	return 0;
}

static int
vasic_mes_reset_legacy_queue(struct amdgpu_mes *mes,
			     struct mes_reset_legacy_queue_input *input)
{
	return -EOPNOTSUPP;
}

/* Registers and the settings of the debugger act on waves, whose state the guest
 * does not see: writes have no effect and reads return 0.
 */
static int vasic_mes_misc_op(struct amdgpu_mes *mes,
			     struct mes_misc_op_input *input)
{
	if (input->op == MES_MISC_OP_READ_REG)
		*mes->read_val_ptr = 0;
	return 0;
}

static const struct amdgpu_mes_funcs vasic_mes_funcs = {
	.add_hw_queue = vasic_mes_add_hw_queue,
	.remove_hw_queue = vasic_mes_remove_hw_queue,
	.map_legacy_queue = vasic_mes_map_legacy_queue,
	.unmap_legacy_queue = vasic_mes_unmap_legacy_queue,
	.suspend_gang = vasic_mes_suspend_gang,
	.resume_gang = vasic_mes_resume_gang,
	.misc_op = vasic_mes_misc_op,
	.reset_legacy_queue = vasic_mes_reset_legacy_queue,
	.reset_hw_queue = vasic_mes_reset_hw_queue,
};

static int vasic_mes_early_init(struct amdgpu_ip_block *ip_block)
{
	struct amdgpu_device *adev = ip_block->adev;

	adev->enable_mes = true;
	adev->mes.funcs = &vasic_mes_funcs;
	adev->mes.sched_version = adev->vasic->info.mes_version;
	adev->mes.kiq_version = adev->vasic->info.mes_version;
	adev->mes.default_process_quantum = VASIC_MES_PROCESS_QUANTUM;
	adev->mes.default_gang_quantum = VASIC_MES_GANG_QUANTUM;
	return 0;
}

static int vasic_mes_sw_init(void *handle)
{
	return amdgpu_mes_init(handle);
}

static int vasic_mes_sw_fini(void *handle)
{
	amdgpu_mes_fini(handle);
	return 0;
}

static int vasic_mes_nop(void *handle)
{
	return 0; /* the host's scheduler runs as soon as it answers commands */
}

static const struct amd_ip_funcs vasic_mes_ip_funcs = {
	.name = "vasic_mes",
	.early_init = vasic_mes_early_init,
	.sw_init = vasic_mes_sw_init,
	.sw_fini = vasic_mes_sw_fini,
	.hw_init = vasic_mes_nop,
	.hw_fini = vasic_mes_nop,
	.suspend = vasic_mes_nop,
	.resume = vasic_mes_nop,
};

const struct amdgpu_ip_block_version vasic_mes_ip_block = {
	.type = AMD_IP_BLOCK_TYPE_MES,
	.major = 11,
	.funcs = &vasic_mes_ip_funcs,
};
