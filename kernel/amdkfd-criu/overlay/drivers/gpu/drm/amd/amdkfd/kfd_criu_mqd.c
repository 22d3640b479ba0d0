// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * MQDs at checkpoint and restore. A checkpoint copies them whole. A restore
 * initialises new MQDs as for a new queue and merges from the image only the
 * fields that the hardware wrote while the queue ran. Addresses, VMID,
 * doorbell, privileges, priority and the context save area are always set by
 * the driver.
 *
 * On gfx9 the control stack follows the MQD in kernel memory. On a device with
 * several XCCs each XCC has its own MQD and control stack.
 *
 * Locks: the callers hold p->mutex; kfd_criu_mqd_restore() is called with the
 * lock of the device's queue manager.
 */
#include <linux/slab.h>
#include "kfd_criu.h"
#include "kfd_priv.h"
#include "kfd_device_queue_manager.h"
#include "kfd_mqd_manager.h"
#include "cik_structs.h"
#include "vi_structs.h"
#include "v9_structs.h"
#include "v10_structs.h"
#include "v11_structs.h"
#include "v12_structs.h"

/*
 * Fields that are taken from an image: dwords @first to @last of the MQD, or
 * the bits of @mask in dword @first if @mask is not 0. @saved_waves fields are
 * taken only if CWSR has saved waves, which the device restores.
 */
struct kfd_criu_mqd_range {
	u16 first;
	u16 last;
	u32 mask;
	bool saved_waves;
};

/* Fields of an MQD that a restore reads. */
struct kfd_criu_mqd_layout {
	const struct kfd_criu_mqd_range *ranges;
	unsigned int num_ranges;
	/*
	 * Dword offsets of the CWSR stack and wave pointers; 0: this generation
	 * has no CWSR.
	 */
	u16 stack_offset;
	u16 wave_offset;
};

#define DWORD(type, member) (offsetof(struct type, member) / sizeof(u32))
#define RANGE(type, from, to) { .first = DWORD(type, from), .last = DWORD(type, to) }
#define BITS(type, member, bits) { .first = DWORD(type, member), .mask = (bits) }
#define WAVE_BITS(type, member, bits) \
	{ .first = DWORD(type, member), .mask = (bits), .saved_waves = true }
/*
 * COMPUTE_PGM_RSRC2.TRAP_PRESENT: up to gfx9 the driver sets it if there is a
 * trap handler.
 */
#define NOT_TRAP_PRESENT	((u32)~BIT(6))
/*
 * CP_HQD_IB_CONTROL: IB_SIZE and PROCESSING_IB are the CP's, the rest is the
 * driver's.
 */
#define IB_PROGRESS		(GENMASK(19, 0) | BIT(31))
/* CP_HQD_PERSISTENT_STATE: DISP_ACTIVE; RELAUNCH_WAVES and RESTORE_ACTIVE. */
#define DISPATCH_PROGRESS	BIT(31)
#define RESTORE_PROGRESS	(BIT(29) | BIT(28))
/*
 * CP_HQD_EOP_CONTROL: PEND_SIG_SEM, SIG_SEM_RESULT, PROCESSING_EOPIB,
 * PROCESSING_EOP.
 */
#define EOP_PROGRESS		(GENMASK(31, 29) | BIT(13) | BIT(8))
#define EOP_PROGRESS_GFX12	(BIT(13) | BIT(8))
/* CP_HQD_HQ_STATUS0: TCL2_DIRTY, SAVE_STATUS, CWSR. */
#define SAVED_STATE		(BIT(8) | BIT(1) | BIT(0))
/*
 * SDMA: IB_CNTL.IB_ENABLE. The VMID of the IB in this register is the driver's.
 */
#define SDMA_IB_ENABLE		BIT(0)

/*
 * Fields of a compute queue's MQD that the hardware writes:
 *
 *  - the dispatch registers without the VMID and the trap handler's addresses.
 *    A program sets these registers with SET_SH_REG, so they give an image no
 *    additional privileges. The trap handler's addresses are there up to gfx8
 *    only: on gfx9 and gfx10 the structs still call the registers of a
 *    dispatch's packet and scratch addresses compute_tba_* and compute_tma_*,
 *    and registers such as COMPUTE_PGM_RSRC3 have the names of other registers,
 *    or reserved names;
 *  - the position of the CP in the ring, in an indirect buffer and in packets
 *    that take time. iqtimer_pkt_dw0 is among these, because the timer that
 *    sends that packet is off;
 *  - whether a dispatch is active;
 *  - the pointers into the EOP ring;
 *  - how much of the control stack and save area is in use, see
 *    kfd_criu_mqd_offsets_valid().
 */
static const struct kfd_criu_mqd_range cik_cp_ranges[] = {
	RANGE(cik_mqd, compute_dispatch_initiator, compute_pgm_hi),
	RANGE(cik_mqd, compute_pgm_rsrc1, compute_pgm_rsrc1),
	BITS(cik_mqd, compute_pgm_rsrc2, NOT_TRAP_PRESENT),
	RANGE(cik_mqd, compute_user_data_0, compute_user_data_15),
	RANGE(cik_mqd, cp_compute_csinvoc_count_lo,
	      cp_compute_csinvoc_count_hi),
	RANGE(cik_mqd, compute_resource_limits, compute_thread_trace_enable),
	BITS(cik_mqd, cp_hqd_persistent_state, DISPATCH_PROGRESS),
	RANGE(cik_mqd, cp_hqd_pq_rptr, cp_hqd_pq_rptr),
	RANGE(cik_mqd, cp_hqd_ib_base_addr_lo, cp_hqd_ib_rptr),
	BITS(cik_mqd, cp_hqd_ib_control, IB_PROGRESS),
	RANGE(cik_mqd, cp_hqd_sema_cmd, cp_hqd_atomic1_preop_hi),
	RANGE(cik_mqd, iqtimer_pkt_dw0, iqtimer_pkt_dw0),
	RANGE(cik_mqd, cp_hqd_pq_wptr, cp_hqd_pq_wptr),
};

static const struct kfd_criu_mqd_range vi_cp_ranges[] = {
	RANGE(vi_mqd, compute_dispatch_initiator, compute_pgm_hi),
	RANGE(vi_mqd, compute_pgm_rsrc1, compute_pgm_rsrc1),
	BITS(vi_mqd, compute_pgm_rsrc2, NOT_TRAP_PRESENT),
	RANGE(vi_mqd, compute_user_data_0, compute_user_data_15),
	RANGE(vi_mqd, cp_compute_csinvoc_count_lo, cp_compute_csinvoc_count_hi),
	RANGE(vi_mqd, compute_resource_limits, compute_wave_restore_control),
	RANGE(vi_mqd, gds_cs_ctxsw_cnt0, gds_cs_ctxsw_cnt3),
	RANGE(vi_mqd, cp_pq_exe_status_lo, cp_packet_exe_status_hi),
	BITS(vi_mqd, cp_hqd_persistent_state, DISPATCH_PROGRESS),
	WAVE_BITS(vi_mqd, cp_hqd_persistent_state, RESTORE_PROGRESS),
	RANGE(vi_mqd, cp_hqd_pq_rptr, cp_hqd_pq_rptr),
	RANGE(vi_mqd, cp_hqd_ib_base_addr_lo, cp_hqd_ib_rptr),
	BITS(vi_mqd, cp_hqd_ib_control, IB_PROGRESS),
	RANGE(vi_mqd, cp_hqd_sema_cmd, cp_hqd_atomic1_preop_hi),
	RANGE(vi_mqd, iqtimer_pkt_dw0, iqtimer_pkt_dw0),
	RANGE(vi_mqd, cp_hqd_pq_wptr, cp_hqd_pq_wptr),
	BITS(vi_mqd, cp_hqd_eop_control, EOP_PROGRESS),
	RANGE(vi_mqd, cp_hqd_eop_rptr, cp_hqd_eop_done_events),
	RANGE(vi_mqd, cp_hqd_eop_wptr_mem, cp_hqd_eop_wptr_mem),
	RANGE(vi_mqd, cp_hqd_cntl_stack_offset, cp_hqd_cntl_stack_offset),
	RANGE(vi_mqd, cp_hqd_wg_state_offset, cp_hqd_wg_state_offset),
	RANGE(vi_mqd, cp_hqd_gds_resource_state, cp_hqd_error),
	RANGE(vi_mqd, cp_hqd_eop_dones, cp_hqd_eop_dones),
};

static const struct kfd_criu_mqd_range v9_cp_ranges[] = {
	RANGE(v9_mqd, compute_dispatch_initiator, compute_pgm_rsrc1),
	BITS(v9_mqd, compute_pgm_rsrc2, NOT_TRAP_PRESENT),
	RANGE(v9_mqd, compute_user_data_0, compute_user_data_15),
	RANGE(v9_mqd, cp_compute_csinvoc_count_lo, cp_compute_csinvoc_count_hi),
	/*
	 * With several XCCs these include the part of a dispatch that each XCC
	 * executes.
	 */
	RANGE(v9_mqd, compute_resource_limits, reserved_64),
	RANGE(v9_mqd, cp_mqd_readindex_lo, cp_mqd_readindex_hi),
	RANGE(v9_mqd, gds_cs_ctxsw_cnt0, gds_cs_ctxsw_cnt3),
	RANGE(v9_mqd, cp_pq_exe_status_lo, cp_packet_exe_status_hi),
	BITS(v9_mqd, cp_hqd_persistent_state, DISPATCH_PROGRESS),
	WAVE_BITS(v9_mqd, cp_hqd_persistent_state, RESTORE_PROGRESS),
	RANGE(v9_mqd, cp_hqd_pq_rptr, cp_hqd_pq_rptr),
	RANGE(v9_mqd, cp_hqd_ib_base_addr_lo, cp_hqd_ib_rptr),
	BITS(v9_mqd, cp_hqd_ib_control, IB_PROGRESS),
	RANGE(v9_mqd, cp_hqd_sema_cmd, cp_hqd_atomic1_preop_hi),
	RANGE(v9_mqd, iqtimer_pkt_dw0, iqtimer_pkt_dw0),
	BITS(v9_mqd, cp_hqd_eop_control, EOP_PROGRESS),
	RANGE(v9_mqd, cp_hqd_eop_rptr, cp_hqd_eop_done_events),
	RANGE(v9_mqd, cp_hqd_eop_wptr_mem, cp_hqd_eop_wptr_mem),
	RANGE(v9_mqd, cp_hqd_cntl_stack_offset, cp_hqd_cntl_stack_offset),
	RANGE(v9_mqd, cp_hqd_wg_state_offset, cp_hqd_wg_state_offset),
	RANGE(v9_mqd, cp_hqd_gds_resource_state, cp_hqd_error),
	RANGE(v9_mqd, cp_hqd_pq_wptr_lo, cp_hqd_pq_wptr_hi),
};

static const struct kfd_criu_mqd_range v10_cp_ranges[] = {
	RANGE(v10_compute_mqd, compute_dispatch_initiator, compute_pgm_rsrc2),
	RANGE(v10_compute_mqd, compute_user_data_0, compute_user_data_15),
	RANGE(v10_compute_mqd, cp_compute_csinvoc_count_lo,
	      cp_compute_csinvoc_count_hi),
	RANGE(v10_compute_mqd, compute_resource_limits, reserved_64),
	RANGE(v10_compute_mqd, cp_mqd_readindex_lo, cp_mqd_readindex_hi),
	RANGE(v10_compute_mqd, gds_cs_ctxsw_cnt0, gds_cs_ctxsw_cnt3),
	RANGE(v10_compute_mqd, cp_pq_exe_status_lo, cp_packet_exe_status_hi),
	BITS(v10_compute_mqd, cp_hqd_persistent_state, DISPATCH_PROGRESS),
	WAVE_BITS(v10_compute_mqd, cp_hqd_persistent_state, RESTORE_PROGRESS),
	RANGE(v10_compute_mqd, cp_hqd_pq_rptr, cp_hqd_pq_rptr),
	RANGE(v10_compute_mqd, cp_hqd_ib_base_addr_lo, cp_hqd_ib_rptr),
	BITS(v10_compute_mqd, cp_hqd_ib_control, IB_PROGRESS),
	RANGE(v10_compute_mqd, cp_hqd_sema_cmd, cp_hqd_atomic1_preop_hi),
	RANGE(v10_compute_mqd, iqtimer_pkt_dw0, iqtimer_pkt_dw0),
	BITS(v10_compute_mqd, cp_hqd_eop_control, EOP_PROGRESS),
	RANGE(v10_compute_mqd, cp_hqd_eop_rptr, cp_hqd_eop_done_events),
	RANGE(v10_compute_mqd, cp_hqd_eop_wptr_mem, cp_hqd_eop_wptr_mem),
	RANGE(v10_compute_mqd, cp_hqd_cntl_stack_offset,
	      cp_hqd_cntl_stack_offset),
	RANGE(v10_compute_mqd, cp_hqd_wg_state_offset, cp_hqd_wg_state_offset),
	RANGE(v10_compute_mqd, cp_hqd_gds_resource_state, cp_hqd_error),
	RANGE(v10_compute_mqd, cp_hqd_pq_wptr_lo,
	      cp_hqd_suspend_wg_state_offset),
};

static const struct kfd_criu_mqd_range v11_cp_ranges[] = {
	RANGE(v11_compute_mqd, compute_dispatch_initiator, compute_pgm_hi),
	RANGE(v11_compute_mqd, compute_pgm_rsrc1, compute_pgm_rsrc2),
	RANGE(v11_compute_mqd, compute_user_data_0, compute_user_data_15),
	RANGE(v11_compute_mqd, cp_compute_csinvoc_count_lo,
	      cp_compute_csinvoc_count_hi),
	RANGE(v11_compute_mqd, compute_dispatch_pkt_addr_lo,
	      compute_dispatch_scratch_base_hi),
	RANGE(v11_compute_mqd, compute_resource_limits,
	      compute_wave_restore_control),
	RANGE(v11_compute_mqd, cp_mqd_readindex_lo, cp_mqd_readindex_hi),
	RANGE(v11_compute_mqd, gds_cs_ctxsw_cnt0, gds_cs_ctxsw_cnt3),
	RANGE(v11_compute_mqd, cp_pq_exe_status_lo, cp_packet_exe_status_hi),
	BITS(v11_compute_mqd, cp_hqd_persistent_state, DISPATCH_PROGRESS),
	WAVE_BITS(v11_compute_mqd, cp_hqd_persistent_state, RESTORE_PROGRESS),
	RANGE(v11_compute_mqd, cp_hqd_pq_rptr, cp_hqd_pq_rptr),
	RANGE(v11_compute_mqd, cp_hqd_ib_base_addr_lo, cp_hqd_ib_rptr),
	BITS(v11_compute_mqd, cp_hqd_ib_control, IB_PROGRESS),
	RANGE(v11_compute_mqd, cp_hqd_sema_cmd, cp_hqd_atomic1_preop_hi),
	RANGE(v11_compute_mqd, iqtimer_pkt_dw0, iqtimer_pkt_dw0),
	WAVE_BITS(v11_compute_mqd, cp_hqd_hq_status0, SAVED_STATE),
	BITS(v11_compute_mqd, cp_hqd_eop_control, EOP_PROGRESS),
	RANGE(v11_compute_mqd, cp_hqd_eop_rptr, cp_hqd_eop_done_events),
	RANGE(v11_compute_mqd, cp_hqd_eop_wptr_mem, cp_hqd_eop_wptr_mem),
	RANGE(v11_compute_mqd, cp_hqd_cntl_stack_offset,
	      cp_hqd_cntl_stack_offset),
	RANGE(v11_compute_mqd, cp_hqd_wg_state_offset, cp_hqd_wg_state_offset),
	RANGE(v11_compute_mqd, cp_hqd_gds_resource_state, cp_hqd_error),
	RANGE(v11_compute_mqd, cp_hqd_pq_wptr_lo, cp_hqd_pq_wptr_hi),
	RANGE(v11_compute_mqd, gws_0_val, gws_63_val),
};

static const struct kfd_criu_mqd_range v12_cp_ranges[] = {
	RANGE(v12_compute_mqd, compute_dispatch_initiator, compute_pgm_hi),
	RANGE(v12_compute_mqd, compute_pgm_rsrc1, compute_pgm_rsrc2),
	RANGE(v12_compute_mqd, compute_user_data_0, compute_user_data_15),
	RANGE(v12_compute_mqd, cp_compute_csinvoc_count_lo,
	      cp_compute_csinvoc_count_hi),
	RANGE(v12_compute_mqd, compute_dispatch_pkt_addr_lo,
	      compute_dispatch_scratch_base_hi),
	RANGE(v12_compute_mqd, compute_resource_limits,
	      compute_static_thread_mgmt_se8),
	RANGE(v12_compute_mqd, cp_mqd_readindex_lo, cp_mqd_readindex_hi),
	RANGE(v12_compute_mqd, cp_pq_exe_status_lo, cp_packet_exe_status_hi),
	BITS(v12_compute_mqd, cp_hqd_persistent_state, DISPATCH_PROGRESS),
	WAVE_BITS(v12_compute_mqd, cp_hqd_persistent_state, RESTORE_PROGRESS),
	RANGE(v12_compute_mqd, cp_hqd_pq_rptr, cp_hqd_pq_rptr),
	RANGE(v12_compute_mqd, cp_hqd_ib_base_addr_lo, cp_hqd_ib_rptr),
	BITS(v12_compute_mqd, cp_hqd_ib_control, IB_PROGRESS),
	RANGE(v12_compute_mqd, cp_hqd_sema_cmd, cp_hqd_atomic1_preop_hi),
	RANGE(v12_compute_mqd, iqtimer_pkt_dw0, iqtimer_pkt_dw0),
	WAVE_BITS(v12_compute_mqd, cp_hqd_hq_status0, SAVED_STATE),
	BITS(v12_compute_mqd, cp_hqd_eop_control, EOP_PROGRESS_GFX12),
	RANGE(v12_compute_mqd, cp_hqd_eop_rptr, cp_hqd_eop_done_events),
	RANGE(v12_compute_mqd, cp_hqd_eop_wptr_mem, cp_hqd_eop_wptr_mem),
	RANGE(v12_compute_mqd, cp_hqd_cntl_stack_offset,
	      cp_hqd_cntl_stack_offset),
	RANGE(v12_compute_mqd, cp_hqd_wg_state_offset, cp_hqd_wg_state_offset),
	RANGE(v12_compute_mqd, cp_hqd_error, cp_hqd_error),
	RANGE(v12_compute_mqd, cp_hqd_pq_wptr_lo, cp_hqd_pq_wptr_hi),
	RANGE(v12_compute_mqd, gws_0_val, gws_63_val),
};

static const struct kfd_criu_mqd_range cik_sdma_ranges[] = {
	RANGE(cik_sdma_rlc_registers, sdma_rlc_rb_rptr, sdma_rlc_rb_wptr),
	BITS(cik_sdma_rlc_registers, sdma_rlc_ib_cntl, SDMA_IB_ENABLE),
	RANGE(cik_sdma_rlc_registers, sdma_rlc_ib_rptr,
	      sdma_rlc_context_status),
};

static const struct kfd_criu_mqd_range vi_sdma_ranges[] = {
	RANGE(vi_sdma_mqd, sdmax_rlcx_rb_rptr, sdmax_rlcx_rb_wptr),
	BITS(vi_sdma_mqd, sdmax_rlcx_ib_cntl, SDMA_IB_ENABLE),
	RANGE(vi_sdma_mqd, sdmax_rlcx_ib_rptr, sdmax_rlcx_context_status),
};

/*
 * SDMA 4.4 and 5.2 have two more midcmd_data registers (state of an interrupted
 * command), so that midcmd_cntl is where the struct has reserved_43.
 */
static const struct kfd_criu_mqd_range v9_sdma_ranges[] = {
	RANGE(v9_sdma_mqd, sdmax_rlcx_rb_rptr, sdmax_rlcx_rb_wptr_hi),
	BITS(v9_sdma_mqd, sdmax_rlcx_ib_cntl, SDMA_IB_ENABLE),
	RANGE(v9_sdma_mqd, sdmax_rlcx_ib_rptr, sdmax_rlcx_ib_size),
	RANGE(v9_sdma_mqd, sdmax_rlcx_ib_sub_remain, sdmax_rlcx_ib_sub_remain),
	RANGE(v9_sdma_mqd, sdmax_rlcx_skip_cntl, sdmax_rlcx_context_status),
	RANGE(v9_sdma_mqd, sdmax_rlcx_midcmd_data0, reserved_43),
};

static const struct kfd_criu_mqd_range v10_sdma_ranges[] = {
	RANGE(v10_sdma_mqd, sdmax_rlcx_rb_rptr, sdmax_rlcx_rb_wptr_hi),
	BITS(v10_sdma_mqd, sdmax_rlcx_ib_cntl, SDMA_IB_ENABLE),
	RANGE(v10_sdma_mqd, sdmax_rlcx_ib_rptr, sdmax_rlcx_ib_size),
	RANGE(v10_sdma_mqd, sdmax_rlcx_ib_sub_remain, sdmax_rlcx_ib_sub_remain),
	RANGE(v10_sdma_mqd, sdmax_rlcx_skip_cntl, sdmax_rlcx_context_status),
	RANGE(v10_sdma_mqd, sdmax_rlcx_midcmd_data0, reserved_43),
};

static const struct kfd_criu_mqd_range v11_sdma_ranges[] = {
	RANGE(v11_sdma_mqd, sdmax_rlcx_rb_rptr, sdmax_rlcx_rb_wptr_hi),
	BITS(v11_sdma_mqd, sdmax_rlcx_ib_cntl, SDMA_IB_ENABLE),
	RANGE(v11_sdma_mqd, sdmax_rlcx_ib_rptr, sdmax_rlcx_ib_size),
	RANGE(v11_sdma_mqd, sdmax_rlcx_ib_sub_remain, sdmax_rlcx_ib_sub_remain),
	RANGE(v11_sdma_mqd, sdmax_rlcx_midcmd_cntl, sdmax_rlcx_midcmd_cntl),
	RANGE(v11_sdma_mqd, sdmax_rlcx_skip_cntl, sdmax_rlcx_context_status),
	RANGE(v11_sdma_mqd, sdmax_rlcx_midcmd_data0, sdmax_rlcx_midcmd_data10),
};

static const struct kfd_criu_mqd_range v12_sdma_ranges[] = {
	RANGE(v12_sdma_mqd, sdmax_rlcx_rb_rptr, sdmax_rlcx_rb_wptr_hi),
	BITS(v12_sdma_mqd, sdmax_rlcx_ib_cntl, SDMA_IB_ENABLE),
	RANGE(v12_sdma_mqd, sdmax_rlcx_ib_rptr, sdmax_rlcx_ib_size),
	RANGE(v12_sdma_mqd, sdmax_rlcx_ib_sub_remain, sdmax_rlcx_ib_sub_remain),
	RANGE(v12_sdma_mqd, sdmax_rlcx_midcmd_cntl, sdmax_rlcx_midcmd_cntl),
	RANGE(v12_sdma_mqd, sdmax_rlcx_context_switch_status,
	      sdmax_rlcx_context_switch_status),
	RANGE(v12_sdma_mqd, sdmax_rlcx_midcmd_data0, sdmax_rlcx_midcmd_data10),
};

/* The tables below are indexed by generation, starting at gfx7. */
#define FIRST_GENERATION 7

static const struct kfd_criu_mqd_layout cp_layouts[] = {
	{ cik_cp_ranges, ARRAY_SIZE(cik_cp_ranges) },
	{ vi_cp_ranges, ARRAY_SIZE(vi_cp_ranges),
	  DWORD(vi_mqd, cp_hqd_cntl_stack_offset),
	  DWORD(vi_mqd, cp_hqd_wg_state_offset) },
	{ v9_cp_ranges, ARRAY_SIZE(v9_cp_ranges),
	  DWORD(v9_mqd, cp_hqd_cntl_stack_offset),
	  DWORD(v9_mqd, cp_hqd_wg_state_offset) },
	{ v10_cp_ranges, ARRAY_SIZE(v10_cp_ranges),
	  DWORD(v10_compute_mqd, cp_hqd_cntl_stack_offset),
	  DWORD(v10_compute_mqd, cp_hqd_wg_state_offset) },
	{ v11_cp_ranges, ARRAY_SIZE(v11_cp_ranges),
	  DWORD(v11_compute_mqd, cp_hqd_cntl_stack_offset),
	  DWORD(v11_compute_mqd, cp_hqd_wg_state_offset) },
	{ v12_cp_ranges, ARRAY_SIZE(v12_cp_ranges),
	  DWORD(v12_compute_mqd, cp_hqd_cntl_stack_offset),
	  DWORD(v12_compute_mqd, cp_hqd_wg_state_offset) },
};

static const struct kfd_criu_mqd_layout sdma_layouts[] = {
	{ cik_sdma_ranges, ARRAY_SIZE(cik_sdma_ranges) },
	{ vi_sdma_ranges, ARRAY_SIZE(vi_sdma_ranges) },
	{ v9_sdma_ranges, ARRAY_SIZE(v9_sdma_ranges) },
	{ v10_sdma_ranges, ARRAY_SIZE(v10_sdma_ranges) },
	{ v11_sdma_ranges, ARRAY_SIZE(v11_sdma_ranges) },
	{ v12_sdma_ranges, ARRAY_SIZE(v12_sdma_ranges) },
};

static unsigned int kfd_criu_gfx_generation(const struct kfd_node *node)
{
	return node->kfd->device_info.gfx_target_version / 10000;
}

static const struct kfd_criu_mqd_layout *
kfd_criu_mqd_get_layout(const struct kfd_node *node, enum kfd_queue_type type)
{
	unsigned int i = kfd_criu_gfx_generation(node) - FIRST_GENERATION;

	if (i >= ARRAY_SIZE(cp_layouts))
		return NULL;
	return type == KFD_QUEUE_TYPE_COMPUTE ? &cp_layouts[i] :
						&sdma_layouts[i];
}

static struct mqd_manager *kfd_criu_mqd_get_manager(const struct kfd_node *node,
						    enum kfd_queue_type type)
{
	return node->dqm->mqd_mgrs[type == KFD_QUEUE_TYPE_COMPUTE ?
				   KFD_MQD_TYPE_CP : KFD_MQD_TYPE_SDMA];
}

/*
 * On gfx9 the control stack follows the MQD. Other generations keep it in the
 * save area.
 */
static bool kfd_criu_mqd_has_ctl_stack(const struct kfd_node *node,
				       const struct queue_properties *qp)
{
	return qp->type == KFD_QUEUE_TYPE_COMPUTE &&
	       kfd_criu_gfx_generation(node) == 9 && node->kfd->cwsr_enabled &&
	       qp->ctx_save_restore_area_address;
}

static void *kfd_criu_mqd_image(const struct kfd_criu_mqd *mqd,
				unsigned int xcc)
{
	return mqd->data + (size_t)xcc * mqd->mqd_size;
}

static void *kfd_criu_mqd_image_ctl_stack(const struct kfd_criu_mqd *mqd,
					  unsigned int xcc)
{
	return mqd->data + (size_t)mqd->n_xcc * mqd->mqd_size +
	       (size_t)xcc * mqd->ctl_stack_size;
}

/**
 * kfd_criu_mqd_describe - get number and sizes of a queue's MQDs on its device
 * @node: the device
 * @qp: properties of the queue, validated
 * @mqd: returns number and sizes; its data is left alone
 *
 * Return: 0; -EOPNOTSUPP if the generation of the device is unknown.
 */
int kfd_criu_mqd_describe(const struct kfd_node *node,
			  const struct queue_properties *qp,
			  struct kfd_criu_mqd *mqd)
{
	if (!kfd_criu_mqd_get_layout(node, qp->type))
		return -EOPNOTSUPP;
	mqd->mqd_size = kfd_criu_mqd_get_manager(node, qp->type)->mqd_size;
	mqd->n_xcc = 1;
	if (qp->type == KFD_QUEUE_TYPE_COMPUTE &&
	    kfd_criu_gfx_generation(node) == 9)
		mqd->n_xcc = NUM_XCC(node->xcc_mask);
	mqd->ctl_stack_size =
		kfd_criu_mqd_has_ctl_stack(node, qp) ? qp->ctl_stack_size : 0;
	return 0;
}

/*
 * The control stack grows down. The unused part is cleared in the copy, because
 * it holds whatever was in that memory before the queue was created.
 */
static void kfd_criu_mqd_copy_ctl_stack(void *to, const void *mqd, u32 size)
{
	const u32 *words = mqd;
	const u32 used_from =
		min(words[DWORD(v9_mqd, cp_hqd_cntl_stack_offset)], size);

	memset(to, 0, used_from);
	memcpy(to + used_from, mqd + PAGE_SIZE + used_from, size - used_from);
}

/**
 * kfd_criu_mqd_save - copy a queue's MQDs and control stacks
 * @q: the queue, evicted
 * @mqd: number and sizes from kfd_criu_mqd_describe(); returns data, to be
 *	freed with kvfree()
 *
 * Return: 0; -EBUSY if the queue is on the hardware; -ENOMEM.
 */
int kfd_criu_mqd_save(const struct queue *q, struct kfd_criu_mqd *mqd)
{
	struct device_queue_manager *dqm = q->device->dqm;
	struct queue_properties qp = q->properties;
	unsigned int xcc;
	u64 stride = 0;
	int r = 0;

	mqd->data = kvmalloc(kfd_criu_mqd_bytes(mqd), GFP_KERNEL_ACCOUNT);
	if (!mqd->data)
		return -ENOMEM;
	if (mqd->n_xcc > 1) {
		struct mqd_manager *mm =
			kfd_criu_mqd_get_manager(q->device, qp.type);

		stride = mm->mqd_stride(mm, &qp);
	}
	dqm_lock(dqm);
	if (q->properties.is_active) {
		r = -EBUSY;
		goto out;
	}
	for (xcc = 0; xcc < mqd->n_xcc; xcc++) {
		const void *from = q->mqd + xcc * stride;

		memcpy(kfd_criu_mqd_image(mqd, xcc), from, mqd->mqd_size);
		if (mqd->ctl_stack_size)
			kfd_criu_mqd_copy_ctl_stack(kfd_criu_mqd_image_ctl_stack(mqd, xcc),
						    from, mqd->ctl_stack_size);
	}
out:
	dqm_unlock(dqm);
	if (r) {
		kvfree(mqd->data);
		mqd->data = NULL;
	}
	return r;
}

/*
 * In the save area the control stack grows down from ctl_stack_size, the wave
 * data up.
 */
static bool kfd_criu_mqd_offsets_valid(const struct kfd_criu_mqd_layout *layout,
				       const struct queue_properties *qp,
				       const u32 *words)
{
	u32 stack = words[layout->stack_offset];
	u32 waves = words[layout->wave_offset];

	return stack <= qp->ctl_stack_size && IS_ALIGNED(stack, sizeof(u32)) &&
	       waves >= qp->ctl_stack_size &&
	       waves <= qp->ctx_save_restore_area_size &&
	       IS_ALIGNED(waves, sizeof(u32));
}

/* On a device with several XCCs each MQD has the number of its XCC. */
static bool kfd_criu_mqd_xcc_id_valid(const void *mqd, unsigned int n_xcc)
{
	const struct v9_mqd *m = mqd;

	return n_xcc == 1 || m->compute_current_logic_xcc_id < n_xcc;
}

/*
 * A dispatch was active when the MQD was saved, or saved waves have to be
 * restored.
 */
static bool kfd_criu_mqd_dispatch_active(const void *mqd)
{
	const struct v9_mqd *m = mqd;

	return m->cp_hqd_persistent_state &
	       (DISPATCH_PROGRESS | RESTORE_PROGRESS);
}

static bool kfd_criu_mqd_saves_waves(const struct kfd_criu_mqd_layout *layout,
				     const struct kfd_node *node,
				     const struct queue_properties *qp)
{
	return layout->stack_offset && node->kfd->cwsr_enabled &&
	       qp->ctx_save_restore_area_address;
}

/*
 * The image has saved waves, which this GPU (no CWSR) would never restore. If
 * there are none, the offset is 0 or ctl_stack_size.
 */
static bool
kfd_criu_mqd_has_stray_waves(const struct kfd_criu_mqd_layout *layout,
			     const struct queue_properties *qp,
			     const u32 *words)
{
	return layout->stack_offset && qp->ctx_save_restore_area_address &&
	       words[layout->stack_offset] &&
	       words[layout->stack_offset] != qp->ctl_stack_size;
}

/**
 * kfd_criu_mqd_check - check that saved MQDs can be used on a device
 * @node: device on which the queue is to be restored
 * @qp: properties of the queue, validated and completed from the device
 * @mqd: MQDs from an image
 *
 * An image with the MQD of one XCC is accepted for a device with several XCCs
 * if no dispatch was active. Older kernels wrote such images; they do not say
 * how far the other XCCs had got with a dispatch. Saved waves are accepted only
 * if the device restores them.
 *
 * Return: 0; -EOPNOTSUPP if the generation is unknown; -EINVAL if a size or an
 * offset is wrong.
 */
int kfd_criu_mqd_check(const struct kfd_node *node,
		       const struct queue_properties *qp,
		       const struct kfd_criu_mqd *mqd)
{
	const struct kfd_criu_mqd_layout *layout =
		kfd_criu_mqd_get_layout(node, qp->type);
	struct kfd_criu_mqd device_mqd;
	unsigned int xcc;
	bool saves;
	int r;

	r = kfd_criu_mqd_describe(node, qp, &device_mqd);
	if (r)
		return r;
	saves = kfd_criu_mqd_saves_waves(layout, node, qp);
	if (mqd->mqd_size != device_mqd.mqd_size ||
	    mqd->ctl_stack_size != device_mqd.ctl_stack_size ||
	    (mqd->n_xcc != device_mqd.n_xcc && mqd->n_xcc != 1))
		return -EINVAL;
	for (xcc = 0; xcc < mqd->n_xcc; xcc++) {
		const u32 *words = kfd_criu_mqd_image(mqd, xcc);

		if (!kfd_criu_mqd_xcc_id_valid(words, device_mqd.n_xcc))
			return -EINVAL;
		if (saves ? !kfd_criu_mqd_offsets_valid(layout, qp, words) :
			    kfd_criu_mqd_has_stray_waves(layout, qp, words))
			return -EINVAL;
		if (mqd->n_xcc == device_mqd.n_xcc)
			continue;
		if (kfd_criu_mqd_dispatch_active(words) ||
		    (saves &&
		     words[layout->stack_offset] != qp->ctl_stack_size))
			return -EINVAL;
	}
	return 0;
}

static void kfd_criu_mqd_merge_ranges(const struct kfd_criu_mqd_layout *layout,
				      u32 *to, const u32 *from, bool with_waves)
{
	unsigned int i, word;

	for (i = 0; i < layout->num_ranges; i++) {
		const struct kfd_criu_mqd_range *range = &layout->ranges[i];

		if (range->saved_waves && !with_waves)
			continue;
		if (range->mask) {
			to[range->first] = (to[range->first] & ~range->mask) |
					   (from[range->first] & range->mask);
			continue;
		}
		for (word = range->first; word <= range->last; word++) {
			if (!with_waves && layout->stack_offset &&
			    (word == layout->stack_offset ||
			     word == layout->wave_offset))
				continue;
			to[word] = from[word];
		}
	}
}

/*
 * Every XCC gets the pointers of the only XCC in the image, but keeps its own
 * number.
 */
static void
kfd_criu_mqd_merge_first_xcc(const struct kfd_criu_mqd_layout *layout, u32 *to,
			     const u32 *from)
{
	struct v9_mqd *m = (struct v9_mqd *)to;
	u32 id = m->compute_current_logic_xcc_id;

	kfd_criu_mqd_merge_ranges(layout, to, from, false);
	m->compute_current_logic_xcc_id = id;
}

static void kfd_criu_mqd_merge_all(struct mqd_manager *mm, struct queue *q,
				   const struct kfd_criu_mqd *mqd)
{
	const struct kfd_criu_mqd_layout *layout =
		kfd_criu_mqd_get_layout(mm->dev, q->properties.type);
	bool waves = kfd_criu_mqd_saves_waves(layout, mm->dev, &q->properties);
	struct kfd_criu_mqd device_mqd;
	unsigned int xcc;
	u64 stride = 0;

	kfd_criu_mqd_describe(mm->dev, &q->properties, &device_mqd);
	if (device_mqd.n_xcc > 1)
		stride = mm->mqd_stride(mm, &q->properties);
	for (xcc = 0; xcc < device_mqd.n_xcc; xcc++) {
		void *to = q->mqd + xcc * stride;

		if (mqd->n_xcc != device_mqd.n_xcc) {
			kfd_criu_mqd_merge_first_xcc(layout, to,
						     kfd_criu_mqd_image(mqd, 0));
			continue;
		}
		kfd_criu_mqd_merge_ranges(layout, to,
					  kfd_criu_mqd_image(mqd, xcc), waves);
		memcpy(to + PAGE_SIZE, kfd_criu_mqd_image_ctl_stack(mqd, xcc),
		       mqd->ctl_stack_size);
	}
}

/**
 * kfd_criu_mqd_restore - initialise the MQDs of a restored queue
 * @mm: MQD manager of the queue's device and type
 * @q: queue with memory for its MQDs, and with its final properties
 * @mqd: MQDs from an image that kfd_criu_mqd_check() has passed
 */
void kfd_criu_mqd_restore(struct mqd_manager *mm, struct queue *q,
			  const struct kfd_criu_mqd *mqd)
{
	mm->init_mqd(mm, &q->mqd, q->mqd_mem_obj, &q->gart_mqd_addr,
		     &q->properties);
	kfd_criu_mqd_merge_all(mm, q, mqd);
}

/**
 * kfd_criu_mqd_merge - merge the image again after a restored queue was updated
 * @q: queue that has not run since kfd_criu_mqd_restore()
 * @mqd: the MQDs that were passed to kfd_criu_mqd_restore()
 *
 * An update overwrites whole registers, including the fields that the hardware
 * wrote.
 */
void kfd_criu_mqd_merge(struct queue *q, const struct kfd_criu_mqd *mqd)
{
	struct device_queue_manager *dqm = q->device->dqm;

	dqm_lock(dqm);
	kfd_criu_mqd_merge_all(kfd_criu_mqd_get_manager(q->device,
							q->properties.type),
			       q, mqd);
	dqm_unlock(dqm);
}

/**
 * kfd_criu_mqd_target_xcc - find out which XCC executes a queue's PM4 packets
 * @node: the device
 * @qp: properties of the queue
 * @mqd: saved MQDs; images of version 1 have this number only there
 *
 * Return: the number that was passed to AMDKFD_IOC_CREATE_QUEUE; 0 if there is
 * no choice.
 */
u32 kfd_criu_mqd_target_xcc(const struct kfd_node *node,
			    const struct queue_properties *qp,
			    const struct kfd_criu_mqd *mqd)
{
	const struct v9_mqd *m = mqd->data;

	if (qp->type != KFD_QUEUE_TYPE_COMPUTE ||
	    qp->format != KFD_QUEUE_FORMAT_PM4 ||
	    kfd_criu_gfx_generation(node) != 9 || NUM_XCC(node->xcc_mask) == 1)
		return 0;
	return m->pm4_target_xcc_in_xcp & U8_MAX;
}
