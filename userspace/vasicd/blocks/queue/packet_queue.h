// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// One mapped queue or kernel ring: the loop over its packets, and how it stops. What a packet is, and where queue
// pointers lie, is known to the kinds of queues derived from it (cp/, sdma/).
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "vasicd/blocks/queue/mqd.h"
#include "vasicd/blocks/queue/packet_step.h"
#include "vasicd/blocks/queue/queue_error.h"
#include "vasicd/blocks/queue/queue_types.h"
#include "vasicd/context/context.h"

namespace vasicd {

class PacketQueue {
 public:
  virtual ~PacketQueue() = default;
  PacketQueue(const PacketQueue&) = delete;
  PacketQueue& operator=(const PacketQueue&) = delete;

  // Reads the doorbell and executes packets; true if anything advanced. Bytes and packets are taken from `budget`.
  bool step(Budget& budget);
  // Stops at a packet boundary; unless `mode` is kReset, the state is written to the MQD (if there is one).
  // Precondition: the queue is not hung, or `mode` is kReset, which ends the hang.
  void unload(UnloadMode mode);
  // Whether there is nothing to execute. A queue that waits, or has stopped on an error, is idle too.
  [[nodiscard]] bool idle() const { return halted_ || waiting_ || empty(); }
  // Its name in the trace and in Controls.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool hung() const { return context_.controls.hung(name_); }
  [[nodiscard]] virtual GpuAddr pq_base() const = 0;
  // The descriptor as unload() left it.
  [[nodiscard]] const Mqd& mqd() const { return mqd_; }
  // VMID of the ring; 0: a kernel ring.
  [[nodiscard]] virtual unsigned ring_vmid() const = 0;
  [[nodiscard]] QueueStatus status() const;
  // Queues of higher priority have their turn first.
  [[nodiscard]] virtual unsigned priority() const { return kKernelPriority; }
  static constexpr unsigned kKernelPriority = 16;  // above cp_hqd_queue_priority

 protected:
  PacketQueue(EngineContext context, std::string name, Mqd mqd)
      : context_(context), name_(std::move(name)), mqd_(mqd) {}

  struct Pointers {
    std::uint64_t rptr = 0;
    std::uint64_t wptr = 0;
  };
  // Units: bytes for SDMA, dwords for PM4, packets for AQL.
  [[nodiscard]] virtual Pointers pointers() const = 0;
  // The kind of packets: "sdma", "pm4" or "aql".
  [[nodiscard]] virtual const char* packets() const = 0;
  [[nodiscard]] virtual bool empty() const = 0;
  virtual void take_doorbell() = 0;
  virtual void report_rptr() = 0;
  virtual QueueResult<PacketStatus> execute_next(Budget& budget) = 0;
  // Reports the error, and either halts or skips the packet.
  virtual void fail(const QueueError& error) = 0;
  // Whether a packet is done in part, which no MQD can describe. The rest of the packet is bounded.
  [[nodiscard]] virtual bool in_progress() const = 0;
  // The unit that is named in faults of this queue.
  [[nodiscard]] virtual FaultClient fault_client() const = 0;
  virtual MemoryResult<void> save() = 0;

  // Returns the fault that Controls wants injected, if any, when the packet at `packet` is the next one.
  QueueResult<void> injected_fault(unsigned vmid, GpuAddr packet);

  // If the error is a fault that is to be retried: reports it and returns true, and the packet stays the next one.
  bool waits_for_page(const QueueError& error);

  EngineContext context_;
  std::string name_;
  Mqd mqd_;  // empty: a kernel ring
  bool halted_ = false;
  bool waiting_ = false;
};

}  // namespace vasicd
