// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The loop of every queue.
#include "vasicd/blocks/queue/packet_queue.h"

#include <cinttypes>

#include "vasicd/blocks/queue/trace_line.h"

namespace vasicd {

bool PacketQueue::step(Budget& budget) {
  if (hung()) return false;
  take_doorbell();
  waiting_ = false;
  bool advanced = false;
  while (!halted_ && budget.left()) {
    auto status = execute_next(budget);
    if (!status.ok() && waits_for_page(status.error())) {
      waiting_ = true;
      break;
    }
    if (!status.ok()) {
      fail(status.error());
    } else if (*status == PacketStatus::kWait || *status == PacketStatus::kLink) {
      waiting_ = *status == PacketStatus::kWait;
      break;
    }
    advanced = true;
    --budget.packets;
  }
  report_rptr();
  return advanced;
}

bool PacketQueue::waits_for_page(const QueueError& error) {
  if (error.kind != QueueError::Kind::kMemory || !error.fault.retry) return false;
  context_.interrupts.raise_fault(error.fault, fault_client());
  return true;
}

void PacketQueue::unload(UnloadMode mode) {
  if (!halted_) take_doorbell();  // the next queue with this doorbell must not see the value
  if (mode == UnloadMode::kReset) {
    context_.controls.cure(name_);
  } else {
    Budget budget = Budget::whole_packet();
    if (in_progress() && !halted_) step(budget);
    if (!save().ok()) trace_line(context_.trace, name_, "MQD is not writable");
  }
  const Pointers at = pointers();
  trace_line(context_.trace, name_, "unload rptr=0x%" PRIx64 " wptr=0x%" PRIx64, at.rptr, at.wptr);
}

QueueStatus PacketQueue::status() const {
  using State = QueueStatus::State;
  State state = waiting_ ? State::kWaiting : State::kBusy;
  if (empty()) state = State::kIdle;
  if (halted_) state = State::kStopped;
  if (hung()) state = State::kHung;
  const Pointers at = pointers();
  return {.name = name_, .packets = packets(), .vmid = ring_vmid(), .rptr = at.rptr, .wptr = at.wptr, .state = state};
}

QueueResult<void> PacketQueue::injected_fault(unsigned vmid, GpuAddr packet) {
  const auto at = context_.controls.take_fault(name_, packet);
  if (!at) return {};
  return memory_error({.vmid = vmid,
                       .va = *at,
                       .access = Access::kRead,
                       .kind = FaultKind::kNotPresent,
                       .retry = context_.memory.retries(vmid)});
}

}  // namespace vasicd
