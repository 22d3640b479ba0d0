// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Memory queue descriptors of every generation: dword indices of the members of the structs in amd/include/{cik,vi,v9,
// v10,v11,v12}_structs.h, under the kernel's names, and the fields of their registers (asic_reg/gca, gc, oss, sdma0:
// *_sh_mask.h). What amdkfd writes into them: amdkfd/kfd_mqd_manager_{cik,vi,v9,v10,v11,v12}.c. Only what the project
// uses.
#pragma once

#include <cstddef>

#include "packets/words.h"

namespace packets::mqd {

// The struct has no such member.
inline constexpr std::size_t kNone = ~std::size_t{0};
inline constexpr std::size_t kMaxDwords = 512;
inline constexpr std::uint32_t kHeaderValue = 0xc0310800;

// What a store to the doorbell of an AQL queue means.
enum class AqlDoorbell : std::uint8_t {
  kDwords,   // where the next packet will lie in the ring, dwords
  kCount32,  // how many packets were ever written, low half
  kIndex64,  // index of a packet that is ready
};

struct ComputeMqdLayout {
  const char* struct_name;
  std::size_t dwords;
  std::size_t header = kNone;
  std::size_t compute_resource_limits = kNone;
  std::size_t compute_static_thread_mgmt_se0 = kNone;
  std::size_t compute_static_thread_mgmt_se4 = kNone;
  std::size_t compute_current_logic_xcc_id = kNone;
  std::size_t compute_tg_chunk_size = kNone;
  std::size_t cp_mqd_readindex_lo = kNone;
  std::size_t cp_mqd_readindex_hi = kNone;
  std::size_t cp_mqd_base_addr_lo = kNone;
  std::size_t cp_mqd_base_addr_hi = kNone;
  std::size_t cp_hqd_active = kNone;
  std::size_t cp_hqd_vmid = kNone;
  std::size_t cp_hqd_persistent_state = kNone;
  std::size_t cp_hqd_pipe_priority = kNone;
  std::size_t cp_hqd_queue_priority = kNone;
  std::size_t cp_hqd_quantum = kNone;
  std::size_t cp_hqd_pq_base_lo = kNone;
  std::size_t cp_hqd_pq_base_hi = kNone;
  std::size_t cp_hqd_pq_rptr = kNone;
  std::size_t cp_hqd_pq_rptr_report_addr_lo = kNone;
  std::size_t cp_hqd_pq_rptr_report_addr_hi = kNone;
  std::size_t cp_hqd_pq_wptr_poll_addr_lo = kNone;
  std::size_t cp_hqd_pq_wptr_poll_addr_hi = kNone;
  std::size_t cp_hqd_pq_doorbell_control = kNone;
  std::size_t cp_hqd_pq_wptr = kNone;
  std::size_t cp_hqd_pq_control = kNone;
  std::size_t cp_hqd_ib_base_addr_lo = kNone;
  std::size_t cp_hqd_ib_base_addr_hi = kNone;
  std::size_t cp_hqd_ib_rptr = kNone;
  std::size_t cp_hqd_ib_control = kNone;
  std::size_t cp_hqd_iq_rptr = kNone;
  std::size_t cp_hqd_hq_status0 = kNone;
  std::size_t cp_mqd_control = kNone;
  std::size_t cp_hqd_eop_base_addr_lo = kNone;
  std::size_t cp_hqd_eop_base_addr_hi = kNone;
  std::size_t cp_hqd_eop_control = kNone;
  std::size_t cp_hqd_ctx_save_base_addr_lo = kNone;
  std::size_t cp_hqd_ctx_save_base_addr_hi = kNone;
  std::size_t cp_hqd_cntl_stack_offset = kNone;
  std::size_t cp_hqd_cntl_stack_size = kNone;
  std::size_t cp_hqd_wg_state_offset = kNone;
  std::size_t cp_hqd_ctx_save_size = kNone;
  std::size_t cp_hqd_error = kNone;
  std::size_t cp_hqd_aql_control = kNone;
  std::size_t cp_hqd_pq_wptr_lo = kNone;
  std::size_t cp_hqd_pq_wptr_hi = kNone;
  std::size_t pm4_target_xcc_in_xcp = kNone;
  std::size_t cp_mqd_stride_size = kNone;
  std::size_t iqtimer_pkt_dw0 = kNone;
  std::size_t queue_doorbell_id0 = kNone;

  Field doorbell_offset{2, 26};  // in cp_hqd_pq_doorbell_control: dword index in the doorbell aperture
  Field slot_based_wptr{18, 2};  // in cp_hqd_pq_control; width 0: no such field
  Field error_code{0, 4};        // in error(): EDC_ERROR_ID; other bits of cp_hqd_error have details
  AqlDoorbell aql_doorbell = AqlDoorbell::kIndex64;

  // The PM4 write pointer is 32 bits wide, in registers and in memory.
  [[nodiscard]] constexpr bool wptr_is_32_bits() const { return cp_hqd_pq_wptr_lo == kNone; }
  // Non-zero in AQL queues.
  [[nodiscard]] constexpr std::size_t aql_enable() const {
    return cp_hqd_aql_control != kNone ? cp_hqd_aql_control : cp_hqd_iq_rptr;
  }
  // Size of the indirect buffer that a stopped queue is in. It is in cp_hqd_ib_control too, but amdkfd overwrites that
  // register whenever it updates a queue; the firmware keeps in this one what it continues with.
  [[nodiscard]] constexpr std::size_t ib_size() const { return iqtimer_pkt_dw0; }
  // The member that says on which error a queue stopped. GFX7 has no error register, so unused bits of another are
  // taken.
  [[nodiscard]] constexpr std::size_t error() const { return cp_hqd_error != kNone ? cp_hqd_error : cp_hqd_hq_status0; }
};

// cp_hqd_pq_control; the ring has 2 << QUEUE_SIZE dwords.
inline constexpr Field kPqQueueSize{0, 6};
inline constexpr Field kPqNoUpdateRptr{27, 1};
inline constexpr Field kPqPrivState{30, 1};
inline constexpr Field kPqKmdQueue{31, 1};
inline constexpr std::uint32_t kSlotBasedWptrAql = 2;
// cp_hqd_pq_doorbell_control
inline constexpr Field kDoorbellEn{30, 1};
// cp_hqd_ib_control
inline constexpr Field kIbSize{0, 20};
inline constexpr Field kIbMinAvailSize{20, 2};
inline constexpr Field kIbExeDisable{23, 1};
inline constexpr Field kIbProcessing{31, 1};
// cp_hqd_queue_priority; amdkfd takes it from the program (KFD_MAX_QUEUE_PRIORITY).
inline constexpr std::uint32_t kQueuePriorityMax = 15;
// The bits of cp_hqd_aql_control (CONTROL0) or cp_hqd_iq_rptr that amdkfd sets.
inline constexpr Field kAqlEnable{0, 6};
// cp_hqd_error of GFX8 and later
inline constexpr Field kErrorSua{4, 1};
// cp_hqd_error of GFX9 and later
inline constexpr Field kErrorAql{5, 1};
inline constexpr Field kErrorPqUtcl1{8, 1};
inline constexpr Field kErrorTcUtcl1{19, 1};

// A layout that differs from `base` in what `change` sets.
template <typename Layout, typename Change>
constexpr Layout derive(Layout base, Change change) {
  change(base);
  return base;
}

inline constexpr ComputeMqdLayout kComputeGfx7{
    .struct_name = "cik_mqd",
    .dwords = 128,
    .header = 0,
    .compute_resource_limits = 22,
    .compute_static_thread_mgmt_se0 = 23,
    .cp_mqd_base_addr_lo = 51,
    .cp_mqd_base_addr_hi = 52,
    .cp_hqd_active = 53,
    .cp_hqd_vmid = 54,
    .cp_hqd_persistent_state = 55,
    .cp_hqd_pipe_priority = 56,
    .cp_hqd_queue_priority = 57,
    .cp_hqd_quantum = 58,
    .cp_hqd_pq_base_lo = 59,
    .cp_hqd_pq_base_hi = 60,
    .cp_hqd_pq_rptr = 61,
    .cp_hqd_pq_rptr_report_addr_lo = 62,
    .cp_hqd_pq_rptr_report_addr_hi = 63,
    .cp_hqd_pq_wptr_poll_addr_lo = 64,
    .cp_hqd_pq_wptr_poll_addr_hi = 65,
    .cp_hqd_pq_doorbell_control = 66,
    .cp_hqd_pq_wptr = 67,
    .cp_hqd_pq_control = 68,
    .cp_hqd_ib_base_addr_lo = 69,
    .cp_hqd_ib_base_addr_hi = 70,
    .cp_hqd_ib_rptr = 71,
    .cp_hqd_ib_control = 72,
    .cp_hqd_iq_rptr = 74,
    .cp_hqd_hq_status0 = 83,
    .cp_mqd_control = 85,
    .iqtimer_pkt_dw0 = 101,
    .queue_doorbell_id0 = 112,
    .doorbell_offset = {2, 21},
    .slot_based_wptr = {0, 0},
    .error_code = {28, 4},
    .aql_doorbell = AqlDoorbell::kDwords,
};
inline constexpr ComputeMqdLayout kComputeGfx8{
    .struct_name = "vi_mqd",
    .dwords = 512,
    .header = 0,
    .compute_resource_limits = 22,
    .compute_static_thread_mgmt_se0 = 23,
    .cp_mqd_base_addr_lo = 128,
    .cp_mqd_base_addr_hi = 129,
    .cp_hqd_active = 130,
    .cp_hqd_vmid = 131,
    .cp_hqd_persistent_state = 132,
    .cp_hqd_pipe_priority = 133,
    .cp_hqd_queue_priority = 134,
    .cp_hqd_quantum = 135,
    .cp_hqd_pq_base_lo = 136,
    .cp_hqd_pq_base_hi = 137,
    .cp_hqd_pq_rptr = 138,
    .cp_hqd_pq_rptr_report_addr_lo = 139,
    .cp_hqd_pq_rptr_report_addr_hi = 140,
    .cp_hqd_pq_wptr_poll_addr_lo = 141,
    .cp_hqd_pq_wptr_poll_addr_hi = 142,
    .cp_hqd_pq_doorbell_control = 143,
    .cp_hqd_pq_wptr = 144,
    .cp_hqd_pq_control = 145,
    .cp_hqd_ib_base_addr_lo = 146,
    .cp_hqd_ib_base_addr_hi = 147,
    .cp_hqd_ib_rptr = 148,
    .cp_hqd_ib_control = 149,
    .cp_hqd_iq_rptr = 151,
    .cp_mqd_control = 162,
    .cp_hqd_eop_base_addr_lo = 165,
    .cp_hqd_eop_base_addr_hi = 166,
    .cp_hqd_eop_control = 167,
    .cp_hqd_ctx_save_base_addr_lo = 171,
    .cp_hqd_ctx_save_base_addr_hi = 172,
    .cp_hqd_cntl_stack_offset = 174,
    .cp_hqd_cntl_stack_size = 175,
    .cp_hqd_wg_state_offset = 176,
    .cp_hqd_ctx_save_size = 177,
    .cp_hqd_error = 179,
    .iqtimer_pkt_dw0 = 193,
    .queue_doorbell_id0 = 240,
    .doorbell_offset = {2, 21},
    .slot_based_wptr = {25, 2},
    .aql_doorbell = AqlDoorbell::kCount32,
};
inline constexpr ComputeMqdLayout kComputeGfx10{
    .struct_name = "v10_compute_mqd",
    .dwords = 512,
    .header = 0,
    .compute_resource_limits = 22,
    .compute_static_thread_mgmt_se0 = 23,
    .cp_mqd_readindex_lo = 96,
    .cp_mqd_readindex_hi = 97,
    .cp_mqd_base_addr_lo = 128,
    .cp_mqd_base_addr_hi = 129,
    .cp_hqd_active = 130,
    .cp_hqd_vmid = 131,
    .cp_hqd_persistent_state = 132,
    .cp_hqd_pipe_priority = 133,
    .cp_hqd_queue_priority = 134,
    .cp_hqd_quantum = 135,
    .cp_hqd_pq_base_lo = 136,
    .cp_hqd_pq_base_hi = 137,
    .cp_hqd_pq_rptr = 138,
    .cp_hqd_pq_rptr_report_addr_lo = 139,
    .cp_hqd_pq_rptr_report_addr_hi = 140,
    .cp_hqd_pq_wptr_poll_addr_lo = 141,
    .cp_hqd_pq_wptr_poll_addr_hi = 142,
    .cp_hqd_pq_doorbell_control = 143,
    .cp_hqd_pq_control = 145,
    .cp_hqd_ib_base_addr_lo = 146,
    .cp_hqd_ib_base_addr_hi = 147,
    .cp_hqd_ib_rptr = 148,
    .cp_hqd_ib_control = 149,
    .cp_hqd_iq_rptr = 151,
    .cp_mqd_control = 162,
    .cp_hqd_eop_base_addr_lo = 165,
    .cp_hqd_eop_base_addr_hi = 166,
    .cp_hqd_eop_control = 167,
    .cp_hqd_ctx_save_base_addr_lo = 171,
    .cp_hqd_ctx_save_base_addr_hi = 172,
    .cp_hqd_cntl_stack_offset = 174,
    .cp_hqd_cntl_stack_size = 175,
    .cp_hqd_wg_state_offset = 176,
    .cp_hqd_ctx_save_size = 177,
    .cp_hqd_error = 179,
    .cp_hqd_aql_control = 181,
    .cp_hqd_pq_wptr_lo = 182,
    .cp_hqd_pq_wptr_hi = 183,
    .iqtimer_pkt_dw0 = 193,
    .queue_doorbell_id0 = 240,
};
inline constexpr ComputeMqdLayout kComputeGfx9 = derive(kComputeGfx10, [](ComputeMqdLayout& m) {
  m.struct_name = "v9_mqd";
  m.compute_static_thread_mgmt_se4 = 39;
  m.compute_current_logic_xcc_id = 39;
  m.compute_tg_chunk_size = 41;
  m.pm4_target_xcc_in_xcp = 225;
  m.cp_mqd_stride_size = 226;
  m.slot_based_wptr = {25, 2};
});
inline constexpr ComputeMqdLayout kComputeGfx11 = derive(kComputeGfx10, [](ComputeMqdLayout& m) {
  m.struct_name = "v11_compute_mqd";
  m.compute_static_thread_mgmt_se4 = 44;
});
inline constexpr ComputeMqdLayout kComputeGfx12 = derive(kComputeGfx10, [](ComputeMqdLayout& m) {
  m.struct_name = "v12_compute_mqd";
  m.compute_static_thread_mgmt_se4 = 44;
});

// `gfx_level` as in vasic_info: 7..12.
constexpr const ComputeMqdLayout& compute_layout(unsigned gfx_level) {
  switch (gfx_level) {
    case 7:
      return kComputeGfx7;
    case 8:
      return kComputeGfx8;
    case 10:
      return kComputeGfx10;
    case 11:
      return kComputeGfx11;
    case 12:
      return kComputeGfx12;
    default:
      return kComputeGfx9;
  }
}

// Every member under its name in the kernel (SDMA: without its prefix), for tests that compare both.
struct ComputeMember {
  const char* name;
  std::size_t ComputeMqdLayout::*index;
};
inline constexpr ComputeMember kComputeMembers[] = {
    {"header", &ComputeMqdLayout::header},
    {"compute_resource_limits", &ComputeMqdLayout::compute_resource_limits},
    {"compute_static_thread_mgmt_se0", &ComputeMqdLayout::compute_static_thread_mgmt_se0},
    {"compute_static_thread_mgmt_se4", &ComputeMqdLayout::compute_static_thread_mgmt_se4},
    {"compute_current_logic_xcc_id", &ComputeMqdLayout::compute_current_logic_xcc_id},
    {"compute_tg_chunk_size", &ComputeMqdLayout::compute_tg_chunk_size},
    {"cp_mqd_readindex_lo", &ComputeMqdLayout::cp_mqd_readindex_lo},
    {"cp_mqd_readindex_hi", &ComputeMqdLayout::cp_mqd_readindex_hi},
    {"cp_mqd_base_addr_lo", &ComputeMqdLayout::cp_mqd_base_addr_lo},
    {"cp_mqd_base_addr_hi", &ComputeMqdLayout::cp_mqd_base_addr_hi},
    {"cp_hqd_active", &ComputeMqdLayout::cp_hqd_active},
    {"cp_hqd_vmid", &ComputeMqdLayout::cp_hqd_vmid},
    {"cp_hqd_persistent_state", &ComputeMqdLayout::cp_hqd_persistent_state},
    {"cp_hqd_pipe_priority", &ComputeMqdLayout::cp_hqd_pipe_priority},
    {"cp_hqd_queue_priority", &ComputeMqdLayout::cp_hqd_queue_priority},
    {"cp_hqd_quantum", &ComputeMqdLayout::cp_hqd_quantum},
    {"cp_hqd_pq_base_lo", &ComputeMqdLayout::cp_hqd_pq_base_lo},
    {"cp_hqd_pq_base_hi", &ComputeMqdLayout::cp_hqd_pq_base_hi},
    {"cp_hqd_pq_rptr", &ComputeMqdLayout::cp_hqd_pq_rptr},
    {"cp_hqd_pq_rptr_report_addr_lo", &ComputeMqdLayout::cp_hqd_pq_rptr_report_addr_lo},
    {"cp_hqd_pq_rptr_report_addr_hi", &ComputeMqdLayout::cp_hqd_pq_rptr_report_addr_hi},
    {"cp_hqd_pq_wptr_poll_addr_lo", &ComputeMqdLayout::cp_hqd_pq_wptr_poll_addr_lo},
    {"cp_hqd_pq_wptr_poll_addr_hi", &ComputeMqdLayout::cp_hqd_pq_wptr_poll_addr_hi},
    {"cp_hqd_pq_doorbell_control", &ComputeMqdLayout::cp_hqd_pq_doorbell_control},
    {"cp_hqd_pq_wptr", &ComputeMqdLayout::cp_hqd_pq_wptr},
    {"cp_hqd_pq_control", &ComputeMqdLayout::cp_hqd_pq_control},
    {"cp_hqd_ib_base_addr_lo", &ComputeMqdLayout::cp_hqd_ib_base_addr_lo},
    {"cp_hqd_ib_base_addr_hi", &ComputeMqdLayout::cp_hqd_ib_base_addr_hi},
    {"cp_hqd_ib_rptr", &ComputeMqdLayout::cp_hqd_ib_rptr},
    {"cp_hqd_ib_control", &ComputeMqdLayout::cp_hqd_ib_control},
    {"cp_hqd_iq_rptr", &ComputeMqdLayout::cp_hqd_iq_rptr},
    {"cp_hqd_hq_status0", &ComputeMqdLayout::cp_hqd_hq_status0},
    {"cp_mqd_control", &ComputeMqdLayout::cp_mqd_control},
    {"cp_hqd_eop_base_addr_lo", &ComputeMqdLayout::cp_hqd_eop_base_addr_lo},
    {"cp_hqd_eop_base_addr_hi", &ComputeMqdLayout::cp_hqd_eop_base_addr_hi},
    {"cp_hqd_eop_control", &ComputeMqdLayout::cp_hqd_eop_control},
    {"cp_hqd_ctx_save_base_addr_lo", &ComputeMqdLayout::cp_hqd_ctx_save_base_addr_lo},
    {"cp_hqd_ctx_save_base_addr_hi", &ComputeMqdLayout::cp_hqd_ctx_save_base_addr_hi},
    {"cp_hqd_cntl_stack_offset", &ComputeMqdLayout::cp_hqd_cntl_stack_offset},
    {"cp_hqd_cntl_stack_size", &ComputeMqdLayout::cp_hqd_cntl_stack_size},
    {"cp_hqd_wg_state_offset", &ComputeMqdLayout::cp_hqd_wg_state_offset},
    {"cp_hqd_ctx_save_size", &ComputeMqdLayout::cp_hqd_ctx_save_size},
    {"cp_hqd_error", &ComputeMqdLayout::cp_hqd_error},
    {"cp_hqd_aql_control", &ComputeMqdLayout::cp_hqd_aql_control},
    {"cp_hqd_pq_wptr_lo", &ComputeMqdLayout::cp_hqd_pq_wptr_lo},
    {"cp_hqd_pq_wptr_hi", &ComputeMqdLayout::cp_hqd_pq_wptr_hi},
    {"iqtimer_pkt_dw0", &ComputeMqdLayout::iqtimer_pkt_dw0},
    {"pm4_target_xcc_in_xcp", &ComputeMqdLayout::pm4_target_xcc_in_xcp},
    {"cp_mqd_stride_size", &ComputeMqdLayout::cp_mqd_stride_size},
    {"queue_doorbell_id0", &ComputeMqdLayout::queue_doorbell_id0},
};

}  // namespace packets::mqd
