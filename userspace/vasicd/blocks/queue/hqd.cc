// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Reading, checking and writing back of queue descriptors.
#include "vasicd/blocks/queue/hqd.h"

#include <cerrno>

namespace vasicd {
namespace {

namespace mqd_facts = packets::mqd;
using mqd_facts::ComputeMqdLayout;
using mqd_facts::SdmaMqdLayout;

constexpr unsigned kMaxSizeLog2 = 28;  // kMaxRingDwords
constexpr unsigned kMinSizeLog2 = 4;   // kMinRingDwords

base::Result<std::uint64_t> ring_size(unsigned log2) {
  if (log2 < kMinSizeLog2 || log2 > kMaxSizeLog2) return base::Error(EINVAL, "ring size is out of range");
  return std::uint64_t{1} << log2;
}

// Refuses an IB whose current packet lies behind its end.
base::Result<std::optional<ActiveIb>> checked_ib(GpuAddr base, std::uint32_t dwords, std::uint32_t offset) {
  if (offset > dwords) return base::Error(EINVAL, "saved indirect buffer position is behind its end");
  return std::optional(ActiveIb{0, base, dwords, offset});
}

// A descriptor holds an error as a number above 0; 0 means none.
std::uint32_t error_number(std::optional<QueueError::Kind> error) {
  return error.has_value() ? static_cast<std::uint32_t>(*error) + 1 : 0;
}
std::optional<QueueError::Kind> error_of(std::uint32_t number) {
  constexpr auto kLast = static_cast<std::uint32_t>(QueueError::Kind::kBadDispatch);
  if (number == 0) return std::nullopt;
  return number > kLast + 1 ? QueueError::Kind::kBadPacket : static_cast<QueueError::Kind>(number - 1);
}

bool is_aql(const ComputeMqdLayout& layout, const Mqd& mqd) {
  return mqd_facts::kAqlEnable.get(mqd.get(layout.aql_enable())) != 0 ||
         layout.slot_based_wptr.get(mqd.get(layout.cp_hqd_pq_control)) == mqd_facts::kSlotBasedWptrAql;
}

MemoryResult<void> write_compute_error(const ComputeMqdLayout& layout, Mqd& mqd, const ComputeHqd& q) {
  TRY(mqd.put_field(layout.error(), layout.error_code, error_number(q.error)));
  if (layout.cp_hqd_error == mqd_facts::kNone) return {};
  const bool memory = q.error == QueueError::Kind::kMemory;
  const bool gfx8 = layout.cp_hqd_aql_control == mqd_facts::kNone;
  if (gfx8) return mqd.put_field(layout.error(), mqd_facts::kErrorSua, memory ? 1 : 0);
  TRY(mqd.put_field(layout.error(), mqd_facts::kErrorTcUtcl1, memory ? 1 : 0));
  const bool packet = q.error == QueueError::Kind::kBadPacket || q.error == QueueError::Kind::kBadOpcode;
  return mqd.put_field(layout.error(), mqd_facts::kErrorAql, q.aql && packet ? 1 : 0);
}

}  // namespace

base::Result<Mqd> compute_mqd_at(const EngineContext& context, GpuAddr addr) {
  return Mqd::at(context.memory, addr, mqd_facts::compute_layout(context.info.gfx_level).dwords);
}

base::Result<Mqd> sdma_mqd_at(const EngineContext& context, GpuAddr addr) {
  return Mqd::at(context.memory, addr, mqd_facts::sdma_layout(context.info.gfx_level).dwords);
}

base::Result<ComputeHqd> read_compute_mqd(const ComputeMqdLayout& layout, const Mqd& mqd) {
  ComputeHqd q;
  q.aql = is_aql(layout, mqd);
  q.vmid = mqd.get(layout.cp_hqd_vmid) & 0xfu;
  q.base = mqd.get64(layout.cp_hqd_pq_base_lo, layout.cp_hqd_pq_base_hi) << 8;
  ASSIGN_OR_RETURN(q.ring_dwords, ring_size(mqd_facts::kPqQueueSize.get(mqd.get(layout.cp_hqd_pq_control)) + 1));
  q.rptr_report = mqd.get64(layout.cp_hqd_pq_rptr_report_addr_lo, layout.cp_hqd_pq_rptr_report_addr_hi);
  q.wptr_poll = mqd.get64(layout.cp_hqd_pq_wptr_poll_addr_lo, layout.cp_hqd_pq_wptr_poll_addr_hi);
  q.doorbell = layout.doorbell_offset.get(mqd.get(layout.cp_hqd_pq_doorbell_control));
  q.priority = mqd.get(layout.cp_hqd_queue_priority) & mqd_facts::kQueuePriorityMax;
  q.rptr = mqd.get(layout.cp_hqd_pq_rptr) & static_cast<std::uint32_t>(q.ring_dwords - 1);
  q.wptr = layout.wptr_is_32_bits() ? mqd.get(layout.cp_hqd_pq_wptr)
                                    : mqd.get64(layout.cp_hqd_pq_wptr_lo, layout.cp_hqd_pq_wptr_hi);
  q.read_index = mqd.get64(layout.cp_mqd_readindex_lo, layout.cp_mqd_readindex_hi);
  q.error = error_of(layout.error_code.get(mqd.get(layout.error())));
  const std::uint32_t ib_control = mqd.get(layout.cp_hqd_ib_control);
  const bool processing = mqd_facts::kIbProcessing.get(ib_control) != 0;
  const std::uint32_t size = mqd_facts::kIbSize.get(processing ? ib_control : mqd.get(layout.ib_size()));
  if (processing || size != 0) {
    const GpuAddr ib_base = mqd.get64(layout.cp_hqd_ib_base_addr_lo, layout.cp_hqd_ib_base_addr_hi) & ~GpuAddr{3};
    ASSIGN_OR_RETURN(q.ib, checked_ib(ib_base, size, mqd.get(layout.cp_hqd_ib_rptr)));
  }
  q.waves = {.area = mqd.get64(layout.cp_hqd_ctx_save_base_addr_lo, layout.cp_hqd_ctx_save_base_addr_hi),
             .area_bytes = mqd.get(layout.cp_hqd_ctx_save_size),
             .stack_bytes = mqd.get(layout.cp_hqd_cntl_stack_size),
             .stack_offset = mqd.get(layout.cp_hqd_cntl_stack_offset),
             .wave_end = mqd.get(layout.cp_hqd_wg_state_offset)};
  return q;
}

base::Result<std::uint64_t> mqd_stride(const ComputeMqdLayout& layout, const Mqd& mqd, unsigned xccs) {
  const std::uint32_t stride = xccs > 1 ? mqd.get(layout.cp_mqd_stride_size) : 0;
  if (stride == 0) return std::uint64_t{0};
  if (stride % sizeof(std::uint32_t) != 0) return base::Error(EINVAL, "MQD stride is not a multiple of a dword");
  if (stride < layout.dwords * sizeof(std::uint32_t)) return base::Error(EINVAL, "MQDs of the XCCs overlap");
  return std::uint64_t{stride};
}

MemoryResult<void> write_compute_mqd(const ComputeMqdLayout& layout, Mqd& mqd, const ComputeHqd& q) {
  const ActiveIb ib = q.ib.value_or(ActiveIb{});
  TRY(mqd.put(layout.cp_hqd_pq_rptr, q.rptr));
  TRY(mqd.put(layout.cp_hqd_pq_wptr, packets::lo32(q.wptr)));
  TRY(mqd.put64(layout.cp_hqd_pq_wptr_lo, layout.cp_hqd_pq_wptr_hi, q.wptr));
  TRY(mqd.put64(layout.cp_mqd_readindex_lo, layout.cp_mqd_readindex_hi, q.read_index));
  TRY(mqd.put64(layout.cp_hqd_ib_base_addr_lo, layout.cp_hqd_ib_base_addr_hi, ib.base));
  TRY(mqd.put(layout.cp_hqd_ib_rptr, ib.offset));
  TRY(mqd.put_field(layout.cp_hqd_ib_control, mqd_facts::kIbSize, ib.dwords));
  TRY(mqd.put_field(layout.cp_hqd_ib_control, mqd_facts::kIbProcessing, q.ib.has_value() ? 1 : 0));
  TRY(mqd.put(layout.ib_size(), ib.dwords));
  TRY(write_compute_error(layout, mqd, q));
  TRY(mqd.put(layout.cp_hqd_cntl_stack_offset, q.waves.stack_offset));
  return mqd.put(layout.cp_hqd_wg_state_offset, q.waves.wave_end);
}

base::Result<SdmaHqd> read_sdma_mqd(const SdmaMqdLayout& layout, const Mqd& mqd) {
  const std::uint32_t control = mqd.get(layout.rb_cntl);
  constexpr std::uint64_t kDwordAligned = ~std::uint64_t{3};
  SdmaHqd q;
  q.vmid = mqd_facts::kRbVmid.get(control);
  q.base = mqd.get64(layout.rb_base, layout.rb_base_hi) << 8;
  ASSIGN_OR_RETURN(q.ring_dwords, ring_size(layout.rb_size.get(control)));
  q.rptr_report = mqd.get64(layout.rb_rptr_addr_lo, layout.rb_rptr_addr_hi);
  q.wptr_poll = mqd.get64(layout.rb_wptr_poll_addr_lo, layout.rb_wptr_poll_addr_hi);
  q.doorbell = layout.doorbell_field().get(mqd.get(layout.doorbell_index()));
  q.rptr = mqd.get64(layout.rb_rptr, layout.rb_rptr_hi) & kDwordAligned;
  q.wptr = mqd.get64(layout.rb_wptr, layout.rb_wptr_hi) & kDwordAligned;
  q.skip = layout.skip_count.get(mqd.get(layout.skip()));
  q.error = error_of(mqd_facts::kSdmaException.get(mqd.get(layout.exception())));
  if (mqd_facts::kSdmaIbEnable.get(mqd.get(layout.ib_cntl)) != 0) {
    const GpuAddr ib_base = mqd.get64(layout.ib_base_lo, layout.ib_base_hi);
    ASSIGN_OR_RETURN(q.ib, checked_ib(ib_base, mqd_facts::kSdmaIbSize.get(mqd.get(layout.ib_size)),
                                      mqd_facts::kSdmaIbOffset.get(mqd.get(layout.ib_offset))));
  }
  return q;
}

MemoryResult<void> write_sdma_mqd(const SdmaMqdLayout& layout, Mqd& mqd, const SdmaHqd& q) {
  const ActiveIb ib = q.ib.value_or(ActiveIb{});
  TRY(mqd.put64(layout.rb_rptr, layout.rb_rptr_hi, q.rptr));
  TRY(mqd.put64(layout.rb_wptr, layout.rb_wptr_hi, q.wptr));
  TRY(mqd.put_field(layout.ib_cntl, mqd_facts::kSdmaIbEnable, q.ib.has_value() ? 1 : 0));
  TRY(mqd.put_field(layout.ib_rptr, mqd_facts::kSdmaIbOffset, ib.offset));
  TRY(mqd.put_field(layout.ib_offset, mqd_facts::kSdmaIbOffset, ib.offset));
  TRY(mqd.put64(layout.ib_base_lo, layout.ib_base_hi, ib.base));
  TRY(mqd.put_field(layout.ib_size, mqd_facts::kSdmaIbSize, ib.dwords));
  TRY(mqd.put_field(layout.exception(), mqd_facts::kSdmaException, error_number(q.error)));
  return mqd.put_field(layout.skip(), layout.skip_count, q.skip);
}

}  // namespace vasicd
