// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// One user compute queue on a hardware slot: a ring of PM4 packets or of AQL packets, and at most one indirect buffer
// below it (which may chain to others, but not nest: MEC has one level), and at most one dispatch in flight. The ring's
// read pointer stays at the packet that entered an indirect buffer, or began a dispatch, until that is done. Stops at
// its first error, until it is unloaded.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "packets/aql.h"
#include "vasicd/blocks/cp/pm4_exec.h"
#include "vasicd/blocks/cp/queue_waves.h"
#include "vasicd/blocks/queue/hqd.h"
#include "vasicd/blocks/queue/packet_queue.h"
#include "vasicd/blocks/queue/packet_step.h"
#include "vasicd/blocks/queue/queue_error.h"
#include "vasicd/blocks/queue/word_source.h"
#include "vasicd/context/context.h"

namespace vasicd {

// Where a compute queue sits; part of its interrupts.
struct ComputeSlot {
  unsigned pipe = 0;
  unsigned queue = 0;
};

class ComputeQueue final : public PacketQueue {
 public:
  // The scheduler passes `vmid` and `wptr_addr`; 0: the value in the MQD is used.
  static base::Result<std::unique_ptr<ComputeQueue>> load(EngineContext context, std::string name, ComputeSlot slot,
                                                          unsigned vmid, const Mqd& mqd, GpuAddr wptr_addr);

  [[nodiscard]] GpuAddr pq_base() const override { return ring_.base; }
  [[nodiscard]] unsigned priority() const override { return hqd_.priority; }
  [[nodiscard]] unsigned ring_vmid() const override { return ring_.vmid; }

 private:
  ComputeQueue(EngineContext context, std::string name, ComputeSlot slot, unsigned vmid, const Mqd& mqd,
               const ComputeHqd& hqd);

  void connect();
  QueueResult<std::optional<std::uint64_t>> wptr_in_memory();
  QueueResult<void> resume_aql(std::optional<std::uint64_t> wptr);
  void accept_doorbell(std::uint64_t value);
  [[nodiscard]] std::uint64_t aql_packets() const { return hqd_.ring_dwords / packets::aql::kPacketDwords; }
  [[nodiscard]] Pointers pointers() const override { return {hqd_.aql ? hqd_.read_index : hqd_.rptr, hqd_.wptr}; }
  [[nodiscard]] const char* packets() const override { return hqd_.aql ? "aql" : "pm4"; }
  [[nodiscard]] bool empty() const override { return !ib_.has_value() && !waves_.busy() && ring_empty(); }
  [[nodiscard]] FaultClient fault_client() const override { return {}; }
  [[nodiscard]] bool in_progress() const override { return executor_.in_progress(); }
  MemoryResult<void> save() override;
  void take_doorbell() override;
  void report_rptr() override;
  void limit_aql(std::uint64_t limit);
  [[nodiscard]] bool ring_empty() const;
  [[nodiscard]] std::uint32_t ring_rptr() const;

  QueueResult<PacketStatus> execute_next(Budget& budget) override;
  QueueResult<PacketStatus> execute_ib(Budget& budget);
  QueueResult<PacketStatus> execute_pm4(Budget& budget);
  QueueResult<PacketStatus> execute_waves(Budget& budget);
  QueueResult<void> begin_pm4_dispatch();
  QueueResult<PacketStatus> execute_aql();
  QueueResult<PacketStatus> execute_dispatch(const packets::aql::Slot& slot, std::uint32_t header);
  QueueResult<PacketStatus> wait_for_scratch(std::uint32_t header);
  QueueScratch runtime_scratch();
  QueueResult<PacketStatus> execute_barrier(const packets::aql::Barrier& barrier, packets::aql::Type type);
  QueueResult<PacketStatus> execute_vendor(const packets::aql::Slot& slot, std::uint32_t header);
  QueueResult<PacketStatus> execute_pm4_ib(const packets::aql::VendorPm4Ib& packet, std::uint32_t header);
  QueueResult<PacketStatus> execute_barrier_value(const packets::aql::BarrierValue& barrier, std::uint32_t header);
  QueueResult<void> complete_aql(std::uint64_t completion_signal);
  QueueResult<void> notify(std::uint64_t signal);
  GpuAddr runtime_queue();
  QueueResult<void> stamp_signal(std::uint64_t signal);
  [[nodiscard]] bool runtime_reads_exceptions() const;
  void report_inactive(const QueueError& error);
  void report_to_driver(const QueueError& error);
  void report_trap(const QueueError& error);
  QueueResult<void> leave_ib();
  QueueResult<void> leave_dispatch();
  void load_registers();
  MemoryResult<void> save_registers(Mqd& mqd);
  // The exception code of a bad AQL packet for the debugger, by its header.
  static std::uint32_t aql_error_code(std::uint32_t header);
  void fail(const QueueError& error) override;

  const packets::mqd::ComputeMqdLayout& layout_;
  ComputeHqd hqd_;  // pointers in it are live
  WordSource ring_;
  GpuAddr wptr_addr_ = 0;
  std::uint64_t mqd_stride_ = 0;  // 0: one descriptor for all XCCs
  Pm4Executor executor_;
  std::optional<ActiveIb> ib_;
  QueueWaves waves_;
  std::uint64_t packet_start_ = 0;  // ticks when the AQL packet began
  std::uint64_t reported_ = ~std::uint64_t{0};
};

}  // namespace vasicd
