/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Copyright (c) 2026 The amdkfd-criu authors
 *
 * Which words of an MQD an image decides, for each generation of devices. The
 * tables are data of kfd_criu_mqd.c and of no other file. Every word that is not
 * listed is set by the driver when it restores a queue.
 */
#ifndef KFD_CRIU_MQD_WORDS_H_INCLUDED
#define KFD_CRIU_MQD_WORDS_H_INCLUDED

#include <linux/bits.h>
#include <linux/stddef.h>
#include <linux/types.h>
#include "kfd_criu.h"
#include "cik_structs.h"
#include "vi_structs.h"
#include "v9_structs.h"
#include "v10_structs.h"
#include "v11_structs.h"
#include "v12_structs.h"

/*
 * Words that are taken from an image: words @first to @last of the MQD, or only
 * @first if @last is 0, and of each of them
 *  - the bits of @mask in any case,
 *  - those of @wave_mask only if CWSR saves the waves of the queue,
 *  - those of @gws_mask only if the queue has the global wave sync.
 * A table has them in the order of the words. The records of the extensible ABI
 * have one run for each, so a change of a table changes the images.
 */
struct kfd_criu_mqd_range {
	u16 first;
	u16 last;
	u32 mask;
	u32 wave_mask;
	u32 gws_mask;
};

/* Words of an MQD that a restore reads; 0: this generation has no such word. */
struct kfd_criu_mqd_layout {
	enum kfd_criu_mqd_layout_id id;
	const struct kfd_criu_mqd_range *ranges;
	unsigned int num_ranges;
	/* Words of the CWSR stack and wave pointers. */
	u16 stack_offset;
	u16 wave_offset;
	/*
	 * The first of three words: another pair of such pointers, and between
	 * them the size of that stack in dwords.
	 */
	u16 suspend_offset;
	u16 gds_resource_state;
	/* Each XCC of the device has an MQD of its own. */
	bool per_xcc;
	/* The control stack follows the MQD in kernel memory. */
	bool has_ctl_stack;
	/* The driver checks everything that an image decides. */
	bool validated;
};

#define DWORD(type, member) (offsetof(struct type, member) / sizeof(u32))
#define SPAN(type, from, to) .first = DWORD(type, from), .last = DWORD(type, to)
#define RANGE(type, from, to) { SPAN(type, from, to), .mask = ~0U }
#define BITS(type, member, bits) { .first = DWORD(type, member), .mask = (bits) }
#define WAVE_RANGE(type, from, to) { SPAN(type, from, to), .wave_mask = ~0U }
#define WAVE_BITS(type, member, bits) \
	{ .first = DWORD(type, member), .wave_mask = (bits) }
#define GWS_RANGE(type, from, to) { SPAN(type, from, to), .gws_mask = ~0U }
#define GWS_BITS(type, member, bits) \
	{ .first = DWORD(type, member), .gws_mask = (bits) }
/*
 * CP_HQD_PERSISTENT_STATE: DISP_ACTIVE; RELAUNCH_WAVES and RESTORE_ACTIVE, on
 * generations with CWSR.
 */
#define DISPATCH_PROGRESS	BIT(31)
#define RESTORE_PROGRESS	(BIT(29) | BIT(28))
#define PERSISTENT_STATE(type) \
	{ .first = DWORD(type, cp_hqd_persistent_state), \
	  .mask = DISPATCH_PROGRESS, .wave_mask = RESTORE_PROGRESS }
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
/*
 * CP_HQD_EOP_CONTROL: PEND_SIG_SEM, SIG_SEM_RESULT, PROCESSING_EOPIB,
 * PROCESSING_EOP.
 */
#define EOP_PROGRESS		(GENMASK(31, 29) | BIT(13) | BIT(8))
#define EOP_PROGRESS_GFX12	(BIT(13) | BIT(8))
/* CP_HQD_HQ_STATUS0: TCL2_DIRTY, SAVE_STATUS, CWSR. */
#define SAVED_STATE		(BIT(8) | BIT(1) | BIT(0))
/*
 * CP_HQD_GDS_RESOURCE_STATE: GWS_SIZE and GWS_PNTR. The ordered append units of
 * the other bits are never given to a process of amdkfd.
 */
#define GWS_SIZE		GENMASK(9, 4)
#define GWS_POINTER		GENMASK(17, 12)
/*
 * SDMA: IB_CNTL.IB_ENABLE. The VMID of the IB in this register is the driver's.
 */
#define SDMA_IB_ENABLE		BIT(0)

/*
 * The structs of gfx9 and gfx10 have no names for some registers of a dispatch,
 * whose words are in the order of the registers. gfx9: RESTART_X2, _Y2 and _Z2
 * (gfx90a), SHADER_CHKSUM and PGM_RSRC3 (gfx90a and gfx94x) follow
 * STATIC_THREAD_MGMT_SE7. gfx10: REQ_CTRL, USER_ACCUM_0 to _3, PGM_RSRC3,
 * DDID_INDEX, SHADER_CHKSUM, RELAUNCH, WAVE_RESTORE_ADDR and RELAUNCH2 follow
 * THREADGROUP_ID.
 */
#define COMPUTE_RESTART_X2_GFX9		reserved_43
#define COMPUTE_PGM_RSRC3_GFX9		reserved_47
#define COMPUTE_RELAUNCH2_GFX10		reserved_47
/*
 * SDMA 4.4 and 5.2 have two more midcmd_data registers (state of an interrupted
 * command), so that midcmd_cntl is where the structs have reserved_43.
 */
#define MIDCMD_CNTL_SDMA_4_4		reserved_43

/*
 * Words of a compute queue's MQD that the hardware writes:
 *
 *  - the dispatch registers without the VMID and the trap handler's addresses.
 *    A program sets these registers with SET_SH_REG, so they give an image no
 *    additional privileges. The trap handler's addresses are there up to gfx8
 *    only: on gfx9 and gfx10 the structs still call the registers of a
 *    dispatch's packet and scratch addresses compute_tba_* and compute_tma_*;
 *  - the position of the CP in the ring, in an indirect buffer and in packets
 *    that take time. iqtimer_pkt_dw0 is among these, because the timer that
 *    sends that packet is off;
 *  - whether a dispatch is active;
 *  - the pointers into the EOP ring;
 *  - how much of the control stack and save area is in use, see
 *    kfd_criu_mqd_offsets_valid();
 *  - how much of the global wave sync is in use, see kfd_criu_mqd_gws_valid().
 *
 * All addresses among them are addresses of the program. An image must not have
 * addresses of the driver: they would tell the owner of the image where the
 * GART of the machine has its MQDs.
 */
static const struct kfd_criu_mqd_range cik_cp_ranges[] = {
	RANGE(cik_mqd, compute_dispatch_initiator, compute_pgm_hi),
	RANGE(cik_mqd, compute_pgm_rsrc1, compute_pgm_rsrc1),
	BITS(cik_mqd, compute_pgm_rsrc2, NOT_TRAP_PRESENT),
	RANGE(cik_mqd, compute_resource_limits, compute_thread_trace_enable),
	RANGE(cik_mqd, compute_user_data_0, cp_compute_csinvoc_count_hi),
	BITS(cik_mqd, cp_hqd_persistent_state, DISPATCH_PROGRESS),
	RANGE(cik_mqd, cp_hqd_pq_rptr, cp_hqd_pq_rptr),
	RANGE(cik_mqd, cp_hqd_pq_wptr, cp_hqd_pq_wptr),
	RANGE(cik_mqd, cp_hqd_ib_base_addr_lo, cp_hqd_ib_rptr),
	BITS(cik_mqd, cp_hqd_ib_control, IB_PROGRESS),
	RANGE(cik_mqd, cp_hqd_sema_cmd, cp_hqd_atomic1_preop_hi),
	RANGE(cik_mqd, iqtimer_pkt_dw0, iqtimer_pkt_dw0),
};

static const struct kfd_criu_mqd_range vi_cp_ranges[] = {
	RANGE(vi_mqd, compute_dispatch_initiator, compute_pgm_hi),
	RANGE(vi_mqd, compute_pgm_rsrc1, compute_pgm_rsrc1),
	BITS(vi_mqd, compute_pgm_rsrc2, NOT_TRAP_PRESENT),
	RANGE(vi_mqd, compute_resource_limits, compute_wave_restore_control),
	RANGE(vi_mqd, compute_user_data_0, cp_compute_csinvoc_count_hi),
	RANGE(vi_mqd, gds_cs_ctxsw_cnt0, gds_cs_ctxsw_cnt3),
	RANGE(vi_mqd, cp_pq_exe_status_lo, cp_packet_exe_status_hi),
	PERSISTENT_STATE(vi_mqd),
	RANGE(vi_mqd, cp_hqd_pq_rptr, cp_hqd_pq_rptr),
	RANGE(vi_mqd, cp_hqd_pq_wptr, cp_hqd_pq_wptr),
	RANGE(vi_mqd, cp_hqd_ib_base_addr_lo, cp_hqd_ib_rptr),
	BITS(vi_mqd, cp_hqd_ib_control, IB_PROGRESS),
	RANGE(vi_mqd, cp_hqd_sema_cmd, cp_hqd_atomic1_preop_hi),
	BITS(vi_mqd, cp_hqd_eop_control, EOP_PROGRESS),
	RANGE(vi_mqd, cp_hqd_eop_rptr, cp_hqd_eop_done_events),
	WAVE_RANGE(vi_mqd, cp_hqd_cntl_stack_offset, cp_hqd_cntl_stack_offset),
	WAVE_RANGE(vi_mqd, cp_hqd_wg_state_offset, cp_hqd_wg_state_offset),
	GWS_BITS(vi_mqd, cp_hqd_gds_resource_state, GWS_SIZE | GWS_POINTER),
	RANGE(vi_mqd, cp_hqd_error, cp_hqd_eop_dones),
	RANGE(vi_mqd, iqtimer_pkt_dw0, iqtimer_pkt_dw0),
};

static const struct kfd_criu_mqd_range v9_cp_ranges[] = {
	RANGE(v9_mqd, compute_dispatch_initiator, compute_pgm_rsrc1),
	BITS(v9_mqd, compute_pgm_rsrc2, NOT_TRAP_PRESENT),
	/*
	 * With several XCCs these include the part of a dispatch that each XCC
	 * executes.
	 */
	RANGE(v9_mqd, compute_resource_limits, compute_restore_tg_chunk_size),
	RANGE(v9_mqd, COMPUTE_RESTART_X2_GFX9, COMPUTE_PGM_RSRC3_GFX9),
	RANGE(v9_mqd, compute_user_data_0, cp_compute_csinvoc_count_hi),
	RANGE(v9_mqd, cp_mqd_readindex_lo, cp_mqd_readindex_hi),
	RANGE(v9_mqd, gds_cs_ctxsw_cnt0, gds_cs_ctxsw_cnt3),
	RANGE(v9_mqd, cp_pq_exe_status_lo, cp_packet_exe_status_hi),
	PERSISTENT_STATE(v9_mqd),
	RANGE(v9_mqd, cp_hqd_pq_rptr, cp_hqd_pq_rptr),
	RANGE(v9_mqd, cp_hqd_ib_base_addr_lo, cp_hqd_ib_rptr),
	BITS(v9_mqd, cp_hqd_ib_control, IB_PROGRESS),
	RANGE(v9_mqd, cp_hqd_sema_cmd, cp_hqd_atomic1_preop_hi),
	BITS(v9_mqd, cp_hqd_eop_control, EOP_PROGRESS),
	RANGE(v9_mqd, cp_hqd_eop_rptr, cp_hqd_eop_done_events),
	WAVE_RANGE(v9_mqd, cp_hqd_cntl_stack_offset, cp_hqd_cntl_stack_offset),
	WAVE_RANGE(v9_mqd, cp_hqd_wg_state_offset, cp_hqd_wg_state_offset),
	GWS_BITS(v9_mqd, cp_hqd_gds_resource_state, GWS_SIZE | GWS_POINTER),
	RANGE(v9_mqd, cp_hqd_error, cp_hqd_eop_wptr_mem),
	RANGE(v9_mqd, cp_hqd_pq_wptr_lo, cp_hqd_pq_wptr_hi),
	RANGE(v9_mqd, iqtimer_pkt_dw0, iqtimer_pkt_dw0),
};

static const struct kfd_criu_mqd_range v10_cp_ranges[] = {
	RANGE(v10_compute_mqd, compute_dispatch_initiator, compute_pgm_rsrc2),
	RANGE(v10_compute_mqd, compute_resource_limits, COMPUTE_RELAUNCH2_GFX10),
	RANGE(v10_compute_mqd, compute_user_data_0,
	      cp_compute_csinvoc_count_hi),
	RANGE(v10_compute_mqd, cp_mqd_readindex_lo, cp_mqd_readindex_hi),
	RANGE(v10_compute_mqd, gds_cs_ctxsw_cnt0, gds_cs_ctxsw_cnt3),
	RANGE(v10_compute_mqd, cp_pq_exe_status_lo, cp_packet_exe_status_hi),
	PERSISTENT_STATE(v10_compute_mqd),
	RANGE(v10_compute_mqd, cp_hqd_pq_rptr, cp_hqd_pq_rptr),
	RANGE(v10_compute_mqd, cp_hqd_ib_base_addr_lo, cp_hqd_ib_rptr),
	BITS(v10_compute_mqd, cp_hqd_ib_control, IB_PROGRESS),
	RANGE(v10_compute_mqd, cp_hqd_sema_cmd, cp_hqd_atomic1_preop_hi),
	BITS(v10_compute_mqd, cp_hqd_eop_control, EOP_PROGRESS),
	RANGE(v10_compute_mqd, cp_hqd_eop_rptr, cp_hqd_eop_done_events),
	WAVE_RANGE(v10_compute_mqd, cp_hqd_cntl_stack_offset,
		   cp_hqd_cntl_stack_offset),
	WAVE_RANGE(v10_compute_mqd, cp_hqd_wg_state_offset,
		   cp_hqd_wg_state_offset),
	GWS_BITS(v10_compute_mqd, cp_hqd_gds_resource_state,
		 GWS_SIZE | GWS_POINTER),
	RANGE(v10_compute_mqd, cp_hqd_error, cp_hqd_eop_wptr_mem),
	RANGE(v10_compute_mqd, cp_hqd_pq_wptr_lo, cp_hqd_pq_wptr_hi),
	WAVE_RANGE(v10_compute_mqd, cp_hqd_suspend_cntl_stack_offset,
		   cp_hqd_suspend_wg_state_offset),
	RANGE(v10_compute_mqd, iqtimer_pkt_dw0, iqtimer_pkt_dw0),
};

static const struct kfd_criu_mqd_range v11_cp_ranges[] = {
	RANGE(v11_compute_mqd, compute_dispatch_initiator, compute_pgm_rsrc2),
	RANGE(v11_compute_mqd, compute_resource_limits, compute_req_ctrl),
	RANGE(v11_compute_mqd, compute_user_accum_0,
	      compute_wave_restore_control),
	RANGE(v11_compute_mqd, compute_user_data_0,
	      cp_compute_csinvoc_count_hi),
	RANGE(v11_compute_mqd, cp_mqd_readindex_lo, cp_mqd_readindex_hi),
	RANGE(v11_compute_mqd, gds_cs_ctxsw_cnt0, gds_cs_ctxsw_cnt3),
	RANGE(v11_compute_mqd, cp_pq_exe_status_lo, cp_packet_exe_status_hi),
	PERSISTENT_STATE(v11_compute_mqd),
	RANGE(v11_compute_mqd, cp_hqd_pq_rptr, cp_hqd_pq_rptr),
	RANGE(v11_compute_mqd, cp_hqd_ib_base_addr_lo, cp_hqd_ib_rptr),
	BITS(v11_compute_mqd, cp_hqd_ib_control, IB_PROGRESS),
	RANGE(v11_compute_mqd, cp_hqd_sema_cmd, cp_hqd_atomic1_preop_hi),
	WAVE_BITS(v11_compute_mqd, cp_hqd_hq_status0, SAVED_STATE),
	BITS(v11_compute_mqd, cp_hqd_eop_control, EOP_PROGRESS),
	RANGE(v11_compute_mqd, cp_hqd_eop_rptr, cp_hqd_eop_done_events),
	WAVE_RANGE(v11_compute_mqd, cp_hqd_cntl_stack_offset,
		   cp_hqd_cntl_stack_offset),
	WAVE_RANGE(v11_compute_mqd, cp_hqd_wg_state_offset,
		   cp_hqd_wg_state_offset),
	GWS_BITS(v11_compute_mqd, cp_hqd_gds_resource_state,
		 GWS_SIZE | GWS_POINTER),
	RANGE(v11_compute_mqd, cp_hqd_error, cp_hqd_eop_wptr_mem),
	RANGE(v11_compute_mqd, cp_hqd_pq_wptr_lo, cp_hqd_pq_wptr_hi),
	RANGE(v11_compute_mqd, iqtimer_pkt_dw0, iqtimer_pkt_dw0),
	GWS_RANGE(v11_compute_mqd, gws_0_val, gws_63_val),
};

static const struct kfd_criu_mqd_range v12_cp_ranges[] = {
	RANGE(v12_compute_mqd, compute_dispatch_initiator, compute_pgm_rsrc2),
	RANGE(v12_compute_mqd, compute_resource_limits, compute_req_ctrl),
	RANGE(v12_compute_mqd, compute_user_accum_0,
	      compute_wave_restore_control),
	RANGE(v12_compute_mqd, compute_static_thread_mgmt_se8,
	      compute_static_thread_mgmt_se8),
	RANGE(v12_compute_mqd, compute_user_data_0,
	      cp_compute_csinvoc_count_hi),
	RANGE(v12_compute_mqd, cp_mqd_readindex_lo, cp_mqd_readindex_hi),
	RANGE(v12_compute_mqd, cp_pq_exe_status_lo, cp_packet_exe_status_hi),
	PERSISTENT_STATE(v12_compute_mqd),
	RANGE(v12_compute_mqd, cp_hqd_pq_rptr, cp_hqd_pq_rptr),
	RANGE(v12_compute_mqd, cp_hqd_ib_base_addr_lo, cp_hqd_ib_rptr),
	BITS(v12_compute_mqd, cp_hqd_ib_control, IB_PROGRESS),
	RANGE(v12_compute_mqd, cp_hqd_sema_cmd, cp_hqd_atomic1_preop_hi),
	WAVE_BITS(v12_compute_mqd, cp_hqd_hq_status0, SAVED_STATE),
	BITS(v12_compute_mqd, cp_hqd_eop_control, EOP_PROGRESS_GFX12),
	RANGE(v12_compute_mqd, cp_hqd_eop_rptr, cp_hqd_eop_done_events),
	WAVE_RANGE(v12_compute_mqd, cp_hqd_cntl_stack_offset,
		   cp_hqd_cntl_stack_offset),
	WAVE_RANGE(v12_compute_mqd, cp_hqd_wg_state_offset,
		   cp_hqd_wg_state_offset),
	RANGE(v12_compute_mqd, cp_hqd_error, cp_hqd_eop_wptr_mem),
	RANGE(v12_compute_mqd, cp_hqd_pq_wptr_lo, cp_hqd_pq_wptr_hi),
	RANGE(v12_compute_mqd, iqtimer_pkt_dw0, iqtimer_pkt_dw0),
	GWS_RANGE(v12_compute_mqd, gws_0_val, gws_63_val),
};

/*
 * Words of an SDMA queue's MQD that the hardware writes: its position in the ring
 * and in an indirect buffer, whether it has work, and the state of a command that
 * was interrupted.
 */
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

static const struct kfd_criu_mqd_range v9_sdma_ranges[] = {
	RANGE(v9_sdma_mqd, sdmax_rlcx_rb_rptr, sdmax_rlcx_rb_wptr_hi),
	BITS(v9_sdma_mqd, sdmax_rlcx_ib_cntl, SDMA_IB_ENABLE),
	RANGE(v9_sdma_mqd, sdmax_rlcx_ib_rptr, sdmax_rlcx_context_status),
	RANGE(v9_sdma_mqd, sdmax_rlcx_ib_sub_remain, sdmax_rlcx_ib_sub_remain),
	RANGE(v9_sdma_mqd, sdmax_rlcx_midcmd_data0, MIDCMD_CNTL_SDMA_4_4),
};

static const struct kfd_criu_mqd_range v10_sdma_ranges[] = {
	RANGE(v10_sdma_mqd, sdmax_rlcx_rb_rptr, sdmax_rlcx_rb_wptr_hi),
	BITS(v10_sdma_mqd, sdmax_rlcx_ib_cntl, SDMA_IB_ENABLE),
	RANGE(v10_sdma_mqd, sdmax_rlcx_ib_rptr, sdmax_rlcx_context_status),
	RANGE(v10_sdma_mqd, sdmax_rlcx_ib_sub_remain, sdmax_rlcx_ib_sub_remain),
	RANGE(v10_sdma_mqd, sdmax_rlcx_midcmd_data0, MIDCMD_CNTL_SDMA_4_4),
};

static const struct kfd_criu_mqd_range v11_sdma_ranges[] = {
	RANGE(v11_sdma_mqd, sdmax_rlcx_rb_rptr, sdmax_rlcx_rb_wptr_hi),
	BITS(v11_sdma_mqd, sdmax_rlcx_ib_cntl, SDMA_IB_ENABLE),
	RANGE(v11_sdma_mqd, sdmax_rlcx_ib_rptr, sdmax_rlcx_context_status),
	RANGE(v11_sdma_mqd, sdmax_rlcx_ib_sub_remain, sdmax_rlcx_ib_sub_remain),
	RANGE(v11_sdma_mqd, sdmax_rlcx_midcmd_data0, sdmax_rlcx_midcmd_cntl),
};

static const struct kfd_criu_mqd_range v12_sdma_ranges[] = {
	RANGE(v12_sdma_mqd, sdmax_rlcx_rb_rptr, sdmax_rlcx_rb_wptr_hi),
	BITS(v12_sdma_mqd, sdmax_rlcx_ib_cntl, SDMA_IB_ENABLE),
	RANGE(v12_sdma_mqd, sdmax_rlcx_ib_rptr, sdmax_rlcx_ib_size),
	RANGE(v12_sdma_mqd, sdmax_rlcx_ib_sub_remain, sdmax_rlcx_ib_sub_remain),
	RANGE(v12_sdma_mqd, sdmax_rlcx_context_switch_status,
	      sdmax_rlcx_midcmd_data10),
};

/*
 * No layout is validated: to set that member, its author has to know what
 * the firmware does with each value of each word:
 *
 *  - compute queues: the driver bounds the pointers into the save area and the
 *    share of the global wave sync, but not the contents of the control stack
 *    (on gfx9 it is in kernel memory), nor the state of a packet that takes time
 *    (cp_hqd_sema_cmd to cp_hqd_atomic1_preop_hi, iqtimer_pkt_dw0), nor the
 *    pointers into the EOP ring, and the words of a dispatch are not checked for
 *    agreement with each other as a packet is;
 *  - SDMA queues: the read and write pointers need not be in the ring, and the
 *    status of the queue and the state of an interrupted command (from gfx9 on)
 *    are not documented.
 *
 * All memory accesses of a queue use the VMID that the driver gives it, so what
 * is known to be at stake is the queue engine, and not the memory of others.
 */
#define CP_LAYOUT(name, type) \
	.id = KFD_CRIU_LAYOUT_##name, \
	.ranges = type##_cp_ranges, .num_ranges = ARRAY_SIZE(type##_cp_ranges), \
	.validated = false
#define CWSR_WORDS(type) \
	.stack_offset = DWORD(type, cp_hqd_cntl_stack_offset), \
	.wave_offset = DWORD(type, cp_hqd_wg_state_offset)
#define GDS_WORD(type) \
	.gds_resource_state = DWORD(type, cp_hqd_gds_resource_state)
#define SDMA_LAYOUT(name, type) { \
	.id = KFD_CRIU_LAYOUT_##name##_SDMA, \
	.ranges = type##_sdma_ranges, \
	.num_ranges = ARRAY_SIZE(type##_sdma_ranges), \
	.validated = false, \
}

/* Layouts of compute and SDMA queues that occur on the same devices. */
struct kfd_criu_mqd_generation {
	struct kfd_criu_mqd_layout cp;
	struct kfd_criu_mqd_layout sdma;
};

static const struct kfd_criu_mqd_generation cik_generation = {
	.cp = { CP_LAYOUT(CIK, cik) },
	.sdma = SDMA_LAYOUT(CIK, cik),
};

static const struct kfd_criu_mqd_generation vi_generation = {
	.cp = { CP_LAYOUT(VI, vi), CWSR_WORDS(vi_mqd), GDS_WORD(vi_mqd) },
	.sdma = SDMA_LAYOUT(VI, vi),
};

static const struct kfd_criu_mqd_generation v9_generation = {
	.cp = {
		CP_LAYOUT(V9, v9), CWSR_WORDS(v9_mqd), GDS_WORD(v9_mqd),
		.per_xcc = true,
		.has_ctl_stack = true,
	},
	.sdma = SDMA_LAYOUT(V9, v9),
};

static const struct kfd_criu_mqd_generation v10_generation = {
	.cp = {
		CP_LAYOUT(V10, v10), CWSR_WORDS(v10_compute_mqd),
		GDS_WORD(v10_compute_mqd),
		.suspend_offset = DWORD(v10_compute_mqd,
					cp_hqd_suspend_cntl_stack_offset),
	},
	.sdma = SDMA_LAYOUT(V10, v10),
};

static const struct kfd_criu_mqd_generation v11_generation = {
	.cp = {
		CP_LAYOUT(V11, v11), CWSR_WORDS(v11_compute_mqd),
		GDS_WORD(v11_compute_mqd),
	},
	.sdma = SDMA_LAYOUT(V11, v11),
};

static const struct kfd_criu_mqd_generation v12_generation = {
	.cp = { CP_LAYOUT(V12, v12), CWSR_WORDS(v12_compute_mqd) },
	.sdma = SDMA_LAYOUT(V12, v12),
};

#endif /* KFD_CRIU_MQD_WORDS_H_INCLUDED */
