// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// One SDMA queue: a kernel ring (VMID 0, runs IBs in any VMID, may write registers) or a user queue (RLC; one VMID, one
// MQD). Executes packets in order; a packet that waits leaves the queue at it. Kernel rings skip a packet that faults,
// user queues stop at it until they are unloaded.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "packets/sdma.h"
#include "vasicd/blocks/queue/hqd.h"
#include "vasicd/blocks/queue/packet_queue.h"
#include "vasicd/blocks/queue/packet_step.h"
#include "vasicd/blocks/queue/queue_error.h"
#include "vasicd/blocks/queue/queue_types.h"
#include "vasicd/blocks/queue/word_source.h"
#include "vasicd/context/context.h"

namespace vasicd {

class SdmaQueue final : public PacketQueue {
 public:
  static base::Result<std::unique_ptr<SdmaQueue>> load_ring(EngineContext context, const KernelRing& ring);
  // The scheduler passes `vmid` and `wptr_addr`; 0: the value in the MQD is used.
  static base::Result<std::unique_ptr<SdmaQueue>> load_user(EngineContext context, std::string name, unsigned engine,
                                                            unsigned vmid, const Mqd& mqd, GpuAddr wptr_addr);

  [[nodiscard]] GpuAddr pq_base() const override { return ring_.base; }
  [[nodiscard]] unsigned priority() const override { return kernel_ ? kKernelPriority : kUserPriority; }
  [[nodiscard]] unsigned ring_vmid() const override { return ring_.vmid; }

 private:
  static constexpr unsigned kUserPriority =
      7;  // amdkfd sets no priority for SDMA queues: that of a normal compute queue

  SdmaQueue(EngineContext context, std::string name, unsigned engine, bool kernel, const Mqd& mqd, const SdmaHqd& hqd);

  // Pointers.
  [[nodiscard]] Pointers pointers() const override { return {pos_ * 4, wptr_ * 4}; }
  [[nodiscard]] const char* packets() const override { return "sdma"; }
  [[nodiscard]] bool empty() const override { return !ib_.has_value() && wptr_ == pos_; }
  [[nodiscard]] FaultClient fault_client() const override {
    return {.unit = FaultClient::Unit::kSdma, .instance = static_cast<std::uint8_t>(engine_)};
  }
  [[nodiscard]] bool in_progress() const override { return progress_ > 0; }
  MemoryResult<void> save() override;
  void take_doorbell() override;
  bool set_wptr(std::uint64_t bytes);
  QueueResult<void> connect(GpuAddr wptr_addr);
  [[nodiscard]] std::uint64_t available() const;
  [[nodiscard]] WordSource source() const { return ib_.has_value() ? ib_->source() : ring_; }
  [[nodiscard]] std::uint64_t position() const { return ib_.has_value() ? ib_->offset : pos_; }
  [[nodiscard]] unsigned vmid() const { return ib_.has_value() ? ib_->vmid : ring_.vmid; }
  void advance(std::uint64_t dwords);
  void report_rptr() override;

  // Length of the part of a packet that is decoded (nothing: no such packet), and of the data behind it.
  [[nodiscard]] std::optional<std::size_t> head_dwords(std::uint32_t header) const;
  [[nodiscard]] std::size_t tail_dwords(packets::WordView head) const;

  // Execution.
  QueueResult<PacketStatus> execute_next(Budget& budget) override;
  QueueResult<PacketStatus> execute(packets::WordView packet, Budget& budget);
  QueueResult<PacketStatus> execute_control(packets::WordView packet);
  QueueResult<PacketStatus> copy(packets::WordView packet, Budget& budget);
  QueueResult<PacketStatus> copy_window(packets::WordView packet, Budget& budget);
  QueueResult<PacketStatus> fence(packets::WordView packet);
  QueueResult<PacketStatus> invalidate(packets::WordView packet);
  QueueResult<PacketStatus> fill(packets::WordView packet, Budget& budget);
  QueueResult<PacketStatus> write(packets::WordView packet, Budget& budget);
  QueueResult<PacketStatus> pte(packets::WordView packet, Budget& budget);
  QueueResult<PacketStatus> indirect(packets::WordView packet);
  QueueResult<PacketStatus> poll(packets::WordView packet);
  QueueResult<PacketStatus> atomic(packets::WordView packet);
  QueueResult<PacketStatus> srbm_write(packets::WordView packet);
  QueueResult<PacketStatus> trap(packets::WordView packet);
  QueueResult<PacketStatus> timestamp(packets::WordView packet);
  void fail(const QueueError& error) override;
  void report_error(const QueueError& error);
  [[nodiscard]] Interrupt interrupt(InterruptKind kind, unsigned vmid, std::uint32_t data) const;

  unsigned engine_;
  bool kernel_;
  std::optional<QueueError::Kind> error_;
  const packets::mqd::SdmaMqdLayout& layout_;
  const packets::sdma::Format& format_;
  WordSource ring_;
  GpuAddr rptr_addr_;
  std::uint32_t doorbell_;
  std::uint64_t pos_;   // ring position of the current packet, dwords, never masked
  std::uint64_t wptr_;  // ring position of the end of the last packet, dwords, never masked
  std::uint64_t reported_ = ~std::uint64_t{0};
  std::optional<ActiveIb> ib_;
  std::uint64_t skip_;
  std::uint64_t packet_dwords_ = 0;  // length of the current packet; 0: not known yet
  std::uint64_t progress_ = 0;       // bytes of the current packet that are done
  std::uint64_t window_row_ = 0;     // rows of the current packet that are done; they may be done again
  std::uint64_t clock_base_ = 0;     // TIMESTAMP_SET
};

}  // namespace vasicd
