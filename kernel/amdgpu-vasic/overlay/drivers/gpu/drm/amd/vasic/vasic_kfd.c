// SPDX-License-Identifier: MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * The kfd2kgd_calls of the virtual GPU. With the hardware scheduler amdkfd only
 * loads the HIQ here and sends everything else through it; without, it loads and
 * stops each queue here. The registers of the debugger act on waves, whose state
 * the guest does not see: these entry points do nothing, or return an error if
 * amdkfd would rely on the result.
 */
#include "amdgpu.h"
#include "amdgpu_amdkfd.h"
#include "cik_structs.h"
#include "kgd_kfd_interface.h"
#include "v10_structs.h"
#include "v11_structs.h"
#include "v12_structs.h"
#include "v9_structs.h"
#include "vasic.h"
#include "vi_structs.h"

/* The fields of an MQD that are read here have equal offsets in gfx8 and later. */
#define VASIC_SAME_MQD(type) \
	static_assert(offsetof(struct type, cp_mqd_base_addr_lo) == \
		      offsetof(struct v9_mqd, cp_mqd_base_addr_lo) && \
		      offsetof(struct type, cp_hqd_vmid) == \
		      offsetof(struct v9_mqd, cp_hqd_vmid))

VASIC_SAME_MQD(vi_mqd);
VASIC_SAME_MQD(v10_compute_mqd);
VASIC_SAME_MQD(v11_compute_mqd);
VASIC_SAME_MQD(v12_compute_mqd);

/* Address of an MQD and VMID of its queue. VMID 0 means the HIQ, which amdkfd
 * loads by hqd_load on gfx7 and gfx8.
 */
struct vasic_mqd_id {
	u64 addr;
	u32 vmid;
};

#define VASIC_MQD_ID(m) { \
	.addr = (u64)(m)->cp_mqd_base_addr_hi << 32 | (m)->cp_mqd_base_addr_lo, \
	.vmid = (m)->cp_hqd_vmid, \
}

static struct vasic_mqd_id vasic_mqd_id(struct amdgpu_device *adev,
					const void *mqd)
{
	const struct cik_mqd *cik = mqd;
	const struct v9_mqd *other = mqd;

	if (adev->vasic->info.gfx_level == 7)
		return (struct vasic_mqd_id)VASIC_MQD_ID(cik);
	return (struct vasic_mqd_id)VASIC_MQD_ID(other);
}

static u32 vasic_kind_of(struct amdgpu_device *adev, const void *mqd)
{
	return vasic_mqd_id(adev, mqd).vmid ? VASIC_QUEUE_COMPUTE :
					      VASIC_QUEUE_HIQ;
}

/* Translates enum kfd_preempt_type for VASIC_CMD_HQD_UNLOAD. */
static enum vasic_unload_mode vasic_unload_mode(enum kfd_preempt_type type)
{
	switch (type) {
	case KFD_PREEMPT_TYPE_WAVEFRONT_SAVE:
		return VASIC_UNLOAD_SAVE;
	case KFD_PREEMPT_TYPE_WAVEFRONT_RESET:
		return VASIC_UNLOAD_RESET;
	default:
		return VASIC_UNLOAD_DRAIN;
	}
}

static int vasic_hqd_load(struct amdgpu_device *adev, u32 kind,
			  const void *mqd, u32 pipe, u32 slot, u32 xcc)
{
	struct vasic_mqd_id id = vasic_mqd_id(adev, mqd);
	struct vasic_args args = {
		.cmd.hqd_load = {
			.hqd = {
				.kind = kind,
				.mqd = id.addr,
				.pipe = pipe,
				.slot = slot,
				.xcc = xcc,
			},
			.vmid = id.vmid,
		},
	};
	int r = vasic_command(adev->vasic, VASIC_CMD_HQD_LOAD, &args);

	if (r) /* amdkfd ignores the result of some loads */
		dev_err(adev->dev, "vasic: loading a queue failed: %d\n", r);
	return r;
}

/* Clears a stale doorbell: a value that is there now was written for an earlier
 * queue, or is older than the write pointer that the caller reads next.
 */
static void vasic_hqd_prepare(struct amdgpu_device *adev, const void *mqd,
			      u32 pipe, u32 slot, u32 xcc)
{
	struct vasic_args args = {
		.cmd.hqd_prepare.hqd = {
			.kind = vasic_kind_of(adev, mqd),
			.mqd = vasic_mqd_id(adev, mqd).addr,
			.pipe = pipe,
			.slot = slot,
			.xcc = xcc,
		},
	};

	vasic_command(adev->vasic, VASIC_CMD_HQD_PREPARE, &args);
}

static int vasic_hqd_unload(struct amdgpu_device *adev, u32 kind, u32 pipe,
			    u32 slot, u32 xcc, enum vasic_unload_mode mode)
{
	struct vasic_args args = {
		.cmd.hqd_unload = {
			.hqd = {
				.kind = kind,
				.pipe = pipe,
				.slot = slot,
				.xcc = xcc,
			},
			.mode = mode,
		},
	};

	return vasic_command(adev->vasic, VASIC_CMD_HQD_UNLOAD, &args);
}

/* Translates the result of an unload for amdkfd, to which a queue has either
 * ended (0) or hangs (-ETIME). In an empty slot (-EBUSY) and on a lost device
 * (-ENODEV) no queue runs.
 */
static int vasic_hqd_ended(struct amdgpu_device *adev, int r)
{
	if (!r || r == -EBUSY || r == -ENODEV)
		return 0;
	if (r != -ETIME)
		dev_err(adev->dev, "vasic: stopping a queue failed: %d\n", r);
	return -ETIME;
}

static u64 vasic_hqd_query(struct amdgpu_device *adev, u32 kind, u32 pipe,
			   u32 slot, u32 xcc, bool *occupied)
{
	struct vasic_args args = {
		.cmd.hqd_query.hqd = {
			.kind = kind,
			.pipe = pipe,
			.slot = slot,
			.xcc = xcc,
		},
	};

	*occupied = !vasic_command(adev->vasic, VASIC_CMD_HQD_QUERY, &args) &&
		    args.value[0];
	return *occupied ? args.value[1] : 0;
}

static void vasic_write_reg(struct amdgpu_device *adev, u32 reg, u32 value)
{
	struct vasic_args args = {
		.cmd.reg_write = { .index = reg, .value = value },
	};

	vasic_command(adev->vasic, VASIC_CMD_REG_WRITE, &args);
}

static void vasic_kfd_program_sh_mem(struct amdgpu_device *adev, uint32_t vmid,
				     uint32_t sh_mem_config,
				     uint32_t sh_mem_ape1_base,
				     uint32_t sh_mem_ape1_limit,
				     uint32_t sh_mem_bases, uint32_t inst)
{
	/* only waves use apertures, and the host knows those of the process */
}

static int vasic_kfd_set_pasid(struct amdgpu_device *adev, u32 pasid,
			       unsigned int vmid, uint32_t inst)
{
	WRITE_ONCE(adev->vasic->vmid_pasid[vmid % VASIC_MAX_VMID], pasid);
	vasic_write_reg(adev, VASIC_REG_VM_PASID(vmid), pasid);
	return 0;
}

static int vasic_kfd_init_interrupts(struct amdgpu_device *adev,
				     uint32_t pipe_id, uint32_t inst)
{
	return 0; /* interrupts are never masked */
}

static int vasic_kfd_hqd_load(struct amdgpu_device *adev, void *mqd,
			      uint32_t pipe_id, uint32_t queue_id,
			      uint32_t __user *wptr, uint32_t wptr_shift,
			      uint32_t wptr_mask, struct mm_struct *mm,
			      uint32_t inst)
{
	struct cik_mqd *cik = mqd;
	struct vi_mqd *vi = mqd;
	u32 kind = vasic_kind_of(adev, mqd);
	u32 value;

	/* these MQDs have no address to poll the write pointer from */
	if (adev->vasic->info.gfx_level < 9 && kind == VASIC_QUEUE_COMPUTE) {
		vasic_hqd_prepare(adev, mqd, pipe_id, queue_id, inst);
		if (read_user_wptr(mm, wptr, value)) {
			value = (value << wptr_shift) & wptr_mask;
			if (adev->vasic->info.gfx_level == 7)
				cik->cp_hqd_pq_wptr = value;
			else
				vi->cp_hqd_pq_wptr = value;
		}
	}
	return vasic_hqd_load(adev, kind, mqd, pipe_id, queue_id, inst);
}

static int vasic_kfd_hiq_load(struct amdgpu_device *adev, void *mqd,
			      uint32_t pipe_id, uint32_t queue_id,
			      uint32_t doorbell_off, uint32_t inst)
{
	/* amdkfd stays locked for all devices if one does not come up after a
	 * reset, so a lost device pretends to.
	 */
	if (vasic_is_lost(adev->vasic))
		return 0;
	/* amdkfd unmaps the HIQ through the KIQ, which the virtual GPU does not
	 * have, so the old HIQ is still loaded when amdkfd restarts.
	 */
	vasic_hqd_unload(adev, VASIC_QUEUE_HIQ, pipe_id, queue_id, inst,
			 VASIC_UNLOAD_RESET);
	return vasic_hqd_load(adev, VASIC_QUEUE_HIQ, mqd, pipe_id, queue_id,
			      inst);
}

static bool vasic_kfd_hqd_is_occupied(struct amdgpu_device *adev,
				      uint64_t queue_address, uint32_t pipe_id,
				      uint32_t queue_id, uint32_t inst)
{
	bool occupied;
	u64 base = vasic_hqd_query(adev, VASIC_QUEUE_COMPUTE, pipe_id, queue_id,
				   inst, &occupied);

	return occupied && base == queue_address;
}

static int vasic_kfd_hqd_destroy(struct amdgpu_device *adev, void *mqd,
				 enum kfd_preempt_type reset_type,
				 unsigned int timeout, uint32_t pipe_id,
				 uint32_t queue_id, uint32_t inst)
{
	int r = vasic_hqd_unload(adev, vasic_kind_of(adev, mqd), pipe_id,
				 queue_id, inst, vasic_unload_mode(reset_type));

	return vasic_hqd_ended(adev, r);
}

static u64 vasic_read_wptr64(struct mm_struct *mm, uint32_t __user *wptr,
			     u64 fallback)
{
	u64 __user *wptr64 = (u64 __user *)wptr;
	u64 value;

	return read_user_wptr(mm, wptr64, value) ? value : fallback;
}

static u32 vasic_read_wptr32(struct mm_struct *mm, uint32_t __user *wptr,
			     u32 fallback)
{
	u32 value;

	return read_user_wptr(mm, wptr, value) ? value : fallback;
}

#define VASIC_SDMA_SLOT(m) { \
	.engine = (m)->sdma_engine_id, \
	.queue = (m)->sdma_queue_id, \
	.size = sizeof(*(m)), \
}

/* Returns the slot that an SDMA MQD names, and the size of the MQD. */
static struct vasic_sdma_slot vasic_sdma_slot(struct amdgpu_device *adev,
					      const void *mqd)
{
	const struct cik_sdma_rlc_registers *cik = mqd;
	const struct vi_sdma_mqd *vi = mqd;
	const struct v9_sdma_mqd *v9 = mqd;
	const struct v10_sdma_mqd *v10 = mqd;

	switch (adev->vasic->info.gfx_level) {
	case 7:
		return (struct vasic_sdma_slot)VASIC_SDMA_SLOT(cik);
	case 8:
		return (struct vasic_sdma_slot)VASIC_SDMA_SLOT(vi);
	case 9:
		return (struct vasic_sdma_slot)VASIC_SDMA_SLOT(v9);
	default:
		return (struct vasic_sdma_slot)VASIC_SDMA_SLOT(v10);
	}
}

/* Stores the write pointer from user memory in the MQD, from where the host loads
 * it; on hardware the driver writes it to a register.
 */
static void vasic_sdma_set_wptr(struct amdgpu_device *adev, void *mqd,
				uint32_t __user *wptr, struct mm_struct *mm)
{
	struct cik_sdma_rlc_registers *cik = mqd;
	struct vi_sdma_mqd *vi = mqd;
	struct v9_sdma_mqd *v9 = mqd;
	u64 value;

	static_assert(offsetof(struct v10_sdma_mqd, sdmax_rlcx_rb_wptr_hi) ==
		      offsetof(struct v9_sdma_mqd, sdmax_rlcx_rb_wptr_hi));

	switch (adev->vasic->info.gfx_level) {
	case 7:
		cik->sdma_rlc_rb_wptr =
			vasic_read_wptr32(mm, wptr, cik->sdma_rlc_rb_rptr);
		break;
	case 8:
		vi->sdmax_rlcx_rb_wptr =
			vasic_read_wptr32(mm, wptr, vi->sdmax_rlcx_rb_rptr);
		break;
	default:
		value = vasic_read_wptr64(mm, wptr,
					  (u64)v9->sdmax_rlcx_rb_rptr_hi << 32 |
					  v9->sdmax_rlcx_rb_rptr);
		v9->sdmax_rlcx_rb_wptr = lower_32_bits(value);
		v9->sdmax_rlcx_rb_wptr_hi = upper_32_bits(value);
	}
}

/* An SDMA MQD does not contain its own address, so it is passed by value. */
static int vasic_kfd_hqd_sdma_load(struct amdgpu_device *adev, void *mqd,
				   uint32_t __user *wptr, struct mm_struct *mm)
{
	struct vasic_sdma_slot slot = vasic_sdma_slot(adev, mqd);

	vasic_sdma_hqd_prepare(adev->vasic, slot, mqd);
	vasic_sdma_set_wptr(adev, mqd, wptr, mm);
	return vasic_sdma_hqd_load(adev->vasic, slot, mqd);
}

static bool vasic_kfd_hqd_sdma_is_occupied(struct amdgpu_device *adev, void *mqd)
{
	struct vasic_sdma_slot slot = vasic_sdma_slot(adev, mqd);
	bool occupied;

	vasic_hqd_query(adev, VASIC_QUEUE_SDMA, slot.engine, slot.queue, 0,
			&occupied);
	return occupied;
}

static int vasic_kfd_hqd_sdma_destroy(struct amdgpu_device *adev, void *mqd,
				      unsigned int timeout)
{
	int r = vasic_sdma_hqd_unload(adev->vasic, vasic_sdma_slot(adev, mqd),
				      mqd);

	return vasic_hqd_ended(adev, r);
}

/* Returns whether the slot is occupied and the base address of its queue, in the
 * form of three registers, for debugfs.
 */
static int vasic_hqd_dump(struct amdgpu_device *adev, u32 kind, u32 pipe,
			  u32 slot, u32 xcc, u32 (**dump)[2], u32 *n_regs)
{
	bool occupied;
	u64 base = vasic_hqd_query(adev, kind, pipe, slot, xcc, &occupied);
	const u32 values[] = {
		occupied, lower_32_bits(base), upper_32_bits(base),
	};
	u32 i;

	*dump = kmalloc_array(ARRAY_SIZE(values), sizeof(**dump), GFP_KERNEL);
	if (!*dump)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(values); i++) {
		(*dump)[i][0] = i * sizeof(u32);
		(*dump)[i][1] = values[i];
	}
	*n_regs = ARRAY_SIZE(values);
	return 0;
}

static int vasic_kfd_hqd_dump(struct amdgpu_device *adev, uint32_t pipe_id,
			      uint32_t queue_id, uint32_t (**dump)[2],
			      uint32_t *n_regs, uint32_t inst)
{
	return vasic_hqd_dump(adev, VASIC_QUEUE_COMPUTE, pipe_id, queue_id,
			      inst, dump, n_regs);
}

static int vasic_kfd_hqd_sdma_dump(struct amdgpu_device *adev,
				   uint32_t engine_id, uint32_t queue_id,
				   uint32_t (**dump)[2], uint32_t *n_regs)
{
	return vasic_hqd_dump(adev, VASIC_QUEUE_SDMA, engine_id, queue_id, 0,
			      dump, n_regs);
}

static int vasic_kfd_wave_control(struct amdgpu_device *adev,
				  uint32_t gfx_index_val, uint32_t sq_cmd,
				  uint32_t inst)
{
	return 0; /* waves never outlive their queue */
}

static bool vasic_kfd_get_pasid(struct amdgpu_device *adev, uint8_t vmid,
				uint16_t *p_pasid)
{
	*p_pasid = READ_ONCE(adev->vasic->vmid_pasid[vmid % VASIC_MAX_VMID]);
	return *p_pasid;
}

/* Called on gfx7 and gfx8; the host takes the apertures from the process. */
static void vasic_kfd_set_scratch(struct amdgpu_device *adev, uint64_t va,
				  uint32_t vmid)
{
}

static void vasic_kfd_set_page_table_base(struct amdgpu_device *adev,
					  uint32_t vmid, uint64_t base)
{
	/* amdgpu_amdkfd_gpuvm_get_process_page_dir() */
	if (adev->vasic->info.gfx_level < 9)
		base <<= AMDGPU_GPU_PAGE_SHIFT;
	vasic_write_reg(adev, VASIC_REG_VM_PD_LO(vmid), lower_32_bits(base));
	vasic_write_reg(adev, VASIC_REG_VM_PD_HI(vmid), upper_32_bits(base));
}

static void vasic_kfd_get_iq_wait_times(struct amdgpu_device *adev,
					uint32_t *wait_times, uint32_t inst)
{
	*wait_times = 0;
}

static void vasic_kfd_build_grace_period(struct amdgpu_device *adev,
					 uint32_t wait_times,
					 uint32_t grace_period,
					 uint32_t *reg_offset,
					 uint32_t *reg_data)
{
	*reg_offset = 0;
	*reg_data = wait_times;
}

static void vasic_kfd_program_trap_handler(struct amdgpu_device *adev,
					   uint32_t vmid, uint64_t tba_addr,
					   uint64_t tma_addr, uint32_t inst)
{
}

static uint32_t vasic_kfd_enable_debug_trap(struct amdgpu_device *adev,
					    bool restore_dbg_registers,
					    uint32_t vmid)
{
	return 0;
}

static uint32_t vasic_kfd_disable_debug_trap(struct amdgpu_device *adev,
					     bool keep_trap_enabled,
					     uint32_t vmid)
{
	return 0;
}

static int vasic_kfd_validate_trap_override(struct amdgpu_device *adev,
					    uint32_t trap_override,
					    uint32_t *trap_mask_supported)
{
	*trap_mask_supported = 0;
	return -EPERM; /* as on hardware without such an override */
}

static uint32_t
vasic_kfd_set_trap_override(struct amdgpu_device *adev, uint32_t vmid,
			    uint32_t trap_override, uint32_t trap_mask_bits,
			    uint32_t trap_mask_request,
			    uint32_t *trap_mask_prev,
			    uint32_t kfd_dbg_trap_cntl_prev)
{
	*trap_mask_prev = 0;
	return kfd_dbg_trap_cntl_prev;
}

static uint32_t vasic_kfd_set_wave_launch_mode(struct amdgpu_device *adev,
					       uint8_t wave_launch_mode,
					       uint32_t vmid)
{
	return 0;
}

static uint32_t vasic_kfd_set_address_watch(struct amdgpu_device *adev,
					    uint64_t watch_address,
					    uint32_t watch_address_mask,
					    uint32_t watch_id,
					    uint32_t watch_mode,
					    uint32_t debug_vmid, uint32_t inst)
{
	return 0;
}

static uint32_t vasic_kfd_clear_address_watch(struct amdgpu_device *adev,
					      uint32_t watch_id)
{
	return 0;
}

static uint64_t vasic_kfd_hqd_get_pq_addr(struct amdgpu_device *adev,
					  uint32_t pipe_id, uint32_t queue_id,
					  uint32_t inst)
{
	bool occupied;

	return vasic_hqd_query(adev, VASIC_QUEUE_COMPUTE, pipe_id, queue_id,
			       inst, &occupied);
}

static uint64_t vasic_kfd_hqd_reset(struct amdgpu_device *adev,
				    uint32_t pipe_id, uint32_t queue_id,
				    uint32_t inst, unsigned int utimeout)
{
	u64 base = vasic_kfd_hqd_get_pq_addr(adev, pipe_id, queue_id, inst);

	if (vasic_hqd_unload(adev, VASIC_QUEUE_COMPUTE, pipe_id, queue_id, inst,
			     VASIC_UNLOAD_RESET))
		return 0;
	return base;
}

static const struct kfd2kgd_calls vasic_calls = {
	.program_sh_mem_settings = vasic_kfd_program_sh_mem,
	.set_pasid_vmid_mapping = vasic_kfd_set_pasid,
	.init_interrupts = vasic_kfd_init_interrupts,
	.hqd_load = vasic_kfd_hqd_load,
	.hiq_mqd_load = vasic_kfd_hiq_load,
	.hqd_sdma_load = vasic_kfd_hqd_sdma_load,
	.hqd_dump = vasic_kfd_hqd_dump,
	.hqd_sdma_dump = vasic_kfd_hqd_sdma_dump,
	.hqd_is_occupied = vasic_kfd_hqd_is_occupied,
	.hqd_destroy = vasic_kfd_hqd_destroy,
	.hqd_sdma_is_occupied = vasic_kfd_hqd_sdma_is_occupied,
	.hqd_sdma_destroy = vasic_kfd_hqd_sdma_destroy,
	.wave_control_execute = vasic_kfd_wave_control,
	.get_atc_vmid_pasid_mapping_info = vasic_kfd_get_pasid,
	.set_scratch_backing_va = vasic_kfd_set_scratch,
	.set_vm_context_page_table_base = vasic_kfd_set_page_table_base,
	.read_vmid_from_vmfault_reg = vasic_fault_vmid,
	.enable_debug_trap = vasic_kfd_enable_debug_trap,
	.disable_debug_trap = vasic_kfd_disable_debug_trap,
	.validate_trap_override_request = vasic_kfd_validate_trap_override,
	.set_wave_launch_trap_override = vasic_kfd_set_trap_override,
	.set_wave_launch_mode = vasic_kfd_set_wave_launch_mode,
	.set_address_watch = vasic_kfd_set_address_watch,
	.clear_address_watch = vasic_kfd_clear_address_watch,
	.get_iq_wait_times = vasic_kfd_get_iq_wait_times,
	.build_grace_period_packet_info = vasic_kfd_build_grace_period,
	.program_trap_handler_settings = vasic_kfd_program_trap_handler,
	.hqd_get_pq_addr = vasic_kfd_hqd_get_pq_addr,
	.hqd_reset = vasic_kfd_hqd_reset,
};

/**
 * vasic_kfd2kgd - hook of kgd2kfd_probe(): the table amdkfd is to use
 * @adev: any device
 * @asic: the table of the modelled chip; NULL if amdkfd has none, or has one
 *	only with amdgpu.exp_hw_support
 * @target: gfx_target_version; 0 if amdkfd does not know the chip
 *
 * Return: the table of this file for a virtual device whose chip amdkfd knows,
 * else @asic.
 */
const struct kfd2kgd_calls *vasic_kfd2kgd(struct amdgpu_device *adev,
					  const struct kfd2kgd_calls *asic,
					  u32 target)
{
	return amdgpu_is_vasic(adev) && target ? &vasic_calls : asic;
}
