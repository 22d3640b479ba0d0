// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A compute ring of the driver (VASIC_RING_COMPUTE): PM4 packets in VMID 0, which run the buffers of DRM clients in any
// VMID. Pointers are 64 bits wide, count dwords and never wrap. A packet that faults or is invalid is reported and
// skipped.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "vasicd/blocks/cp/pm4_exec.h"
#include "vasicd/blocks/queue/packet_queue.h"
#include "vasicd/blocks/queue/packet_step.h"
#include "vasicd/blocks/queue/queue_error.h"
#include "vasicd/blocks/queue/queue_types.h"
#include "vasicd/blocks/queue/word_source.h"
#include "vasicd/context/context.h"

namespace vasicd {

class ComputeRing final : public PacketQueue {
 public:
  static base::Result<std::unique_ptr<ComputeRing>> load(EngineContext context, const KernelRing& ring);

  [[nodiscard]] GpuAddr pq_base() const override { return ring_.base; }
  [[nodiscard]] unsigned ring_vmid() const override { return 0; }

 private:
  ComputeRing(EngineContext context, const KernelRing& ring, std::uint64_t rptr, std::uint64_t wptr);

  [[nodiscard]] Pointers pointers() const override { return {rptr_, wptr_}; }
  [[nodiscard]] const char* packets() const override { return "pm4"; }
  [[nodiscard]] bool empty() const override { return !ib_.has_value() && rptr_ == wptr_; }
  [[nodiscard]] FaultClient fault_client() const override { return {}; }
  [[nodiscard]] bool in_progress() const override { return executor_.in_progress(); }
  MemoryResult<void> save() override { return {}; }
  void take_doorbell() override;
  void report_rptr() override;
  QueueResult<PacketStatus> execute_next(Budget& budget) override;
  QueueResult<PacketStatus> execute_ib(Budget& budget);
  QueueResult<PacketStatus> execute_at(const WordSource& source, std::uint64_t pos, std::uint64_t available,
                                       Budget& budget);
  void fail(const QueueError& error) override;
  void report_error(const QueueError& error);
  [[nodiscard]] unsigned vmid() const { return ib_.has_value() ? ib_->vmid : 0; }

  WordSource ring_;
  GpuAddr rptr_addr_;
  std::uint32_t doorbell_;
  std::uint64_t rptr_;
  std::uint64_t wptr_;
  std::uint64_t reported_ = ~std::uint64_t{0};
  std::optional<ActiveIb> ib_;
  Pm4Executor executor_;
};

}  // namespace vasicd
