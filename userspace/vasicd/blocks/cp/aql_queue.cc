// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// AQL packets of compute queues: barriers, dispatches, signals, AMD's own packets.
#include <array>
#include <cinttypes>
#include <cstddef>
#include <optional>

#include "packets/ih.h"
#include "vasicd/blocks/cp/cp_queue.h"
#include "vasicd/blocks/queue/trace_line.h"

namespace vasicd {

namespace aql = packets::aql;
namespace ih = packets::ih;
namespace pm4 = packets::pm4;

namespace {

// Returns nothing if there is no such condition.
std::optional<bool> holds(std::int64_t value, aql::Condition condition, std::int64_t reference) {
  switch (condition) {
    case aql::Condition::kEqual:
      return value == reference;
    case aql::Condition::kNotEqual:
      return value != reference;
    case aql::Condition::kLess:
      return value < reference;
    case aql::Condition::kGreaterEqual:
      return value >= reference;
  }
  return std::nullopt;
}

}  // namespace

std::uint32_t ComputeQueue::aql_error_code(std::uint32_t header) {
  switch (aql::kHeaderType.get(header)) {
    case aql::kVendorSpecific:
      return ih::kEcodeVendorUnsupported;
    case aql::kAgentDispatch:
      return ih::kEcodePacketUnsupported;
    default:
      return ih::kEcodePacketReserved;
  }
}

QueueResult<PacketStatus> ComputeQueue::execute_aql() {
  const std::uint64_t pos = hqd_.read_index * aql::kPacketDwords;
  // The program publishes the header last, so it is read first, with acquire order.
  ASSIGN_OR_RETURN(const std::uint32_t header, lift(context_.memory.load32(ring_.vmid, ring_.address(pos))));
  const auto type = static_cast<aql::Type>(aql::kHeaderType.get(header));
  if (type == aql::kInvalid) return PacketStatus::kWait;
  aql::Slot slot;
  TRY(lift(fetch_words(context_.memory, ring_, pos, std::span(slot))));
  TRY(injected_fault(ring_.vmid, ring_.address(pos)));
  packet_start_ = context_.ticks();
  // The barrier bit asks to wait for all earlier packets. They are done: packets are executed in order, to the end.
  switch (type) {
    case aql::kBarrierAnd:
    case aql::kBarrierOr:
      return execute_barrier(aql::from_slot<aql::Barrier>(slot), type);
    case aql::kVendorSpecific:
      return execute_vendor(slot, header);
    case aql::kKernelDispatch:
      return execute_dispatch(slot, header);
    default:
      return QueueError{QueueError::Kind::kBadPacket, {}, header};
  }
}

QueueResult<PacketStatus> ComputeQueue::execute_dispatch(const aql::Slot& slot, std::uint32_t header) {
  if (!waves_.isa().has_value()) return QueueError{QueueError::Kind::kIllegalInstruction, {}, header};
  const auto packet = aql::from_slot<aql::KernelDispatch>(slot);
  constexpr std::uint64_t kDescriptorAlign = 64;
  packets::compute::KernelDescriptor kernel;
  if (packet.kernel_object == 0 || packet.kernel_object % kDescriptorAlign != 0) {
    return launch_error({LaunchError::Kind::kCode});
  }
  TRY(lift(context_.memory.read(ring_.vmid, packet.kernel_object, std::as_writable_bytes(std::span(&kernel, 1)))));
  auto launch = launch_of(*waves_.isa(), packet, kernel, runtime_scratch(),
                          ring_.address(hqd_.read_index * aql::kPacketDwords), hqd_.read_index);
  if (!launch.ok() && launch.error().kind == LaunchError::Kind::kScratch && runtime_queue() != 0) {
    return wait_for_scratch(header);
  }
  if (!launch.ok()) return launch_error(launch.error());
  TRY(waves_.begin(*launch));
  return PacketStatus::kDispatch;
}

QueueScratch ComputeQueue::runtime_scratch() {
  const GpuAddr queue = runtime_queue();
  if (queue == 0) return {};
  QueueScratch scratch;
  scratch.queue = queue - aql::kQueueBaseOffsetValue;
  const auto descriptor = std::as_writable_bytes(std::span(scratch.descriptor));
  auto size = context_.memory.load32(ring_.vmid, queue + aql::kQueueTmpringSize);
  auto location = context_.memory.load64(ring_.vmid, queue + aql::kQueueScratchLocation);
  if (!size.ok() || !location.ok()) return {};
  if (!context_.memory.read(ring_.vmid, queue + aql::kQueueScratchDescriptor, descriptor).ok()) return {};
  scratch.tmpring_size = *size;
  scratch.location = *location;
  return scratch;
}

// Asks the runtime for more scratch, once, by the inactive signal. When the runtime has cleared the signal the packet
// is tried again.
QueueResult<PacketStatus> ComputeQueue::wait_for_scratch(std::uint32_t header) {
  ASSIGN_OR_RETURN(const std::uint64_t signal,
                   lift(context_.memory.load64(ring_.vmid, runtime_queue() + aql::kQueueInactiveSignal)));
  if (signal == 0) return QueueError{QueueError::Kind::kBadPacket, {}, header};
  ASSIGN_OR_RETURN(const std::uint64_t value,
                   lift(context_.memory.load64(ring_.vmid, signal + offsetof(aql::Signal, value))));
  if (value != 0) return PacketStatus::kWait;
  report_rptr();  // the runtime finds the packet by the read pointer
  TRY(lift(context_.memory.store64(ring_.vmid, signal + offsetof(aql::Signal, value), aql::kInactiveScratch)));
  TRY(notify(signal));
  trace_line(context_.trace, name_, "dispatch waits for scratch");
  return PacketStatus::kWait;
}

QueueResult<PacketStatus> ComputeQueue::execute_barrier(const aql::Barrier& barrier, aql::Type type) {
  // AND holds if every signal of the packet is zero, OR if some signal is zero or the packet has no signal.
  bool all = true;
  bool any = false;
  bool none = true;
  for (const std::uint64_t handle : barrier.dep_signal) {
    if (handle == 0) continue;
    ASSIGN_OR_RETURN(const std::uint64_t value,
                     lift(context_.memory.load64(ring_.vmid, handle + offsetof(aql::Signal, value))));
    none = false;
    all = all && value == 0;
    any = any || value == 0;
  }
  if (type == aql::kBarrierAnd ? !all : !(any || none)) return PacketStatus::kWait;
  trace_line(context_.trace, name_, "barrier_%s index=%" PRIu64, type == aql::kBarrierAnd ? "and" : "or",
             hqd_.read_index);
  TRY(complete_aql(barrier.completion_signal));
  return PacketStatus::kDone;
}

QueueResult<PacketStatus> ComputeQueue::execute_vendor(const aql::Slot& slot, std::uint32_t header) {
  switch (aql::kHeaderVendorFormat.get(slot[0])) {
    case aql::kVendorPm4Ib:
      return execute_pm4_ib(aql::from_slot<aql::VendorPm4Ib>(slot), header);
    case aql::kVendorBarrierValue:
      return execute_barrier_value(aql::from_slot<aql::BarrierValue>(slot), header);
    default:
      return QueueError{QueueError::Kind::kBadPacket, {}, header};
  }
}

QueueResult<PacketStatus> ComputeQueue::execute_barrier_value(const aql::BarrierValue& barrier, std::uint32_t header) {
  std::uint64_t value = 0;
  if (barrier.signal != 0) {
    ASSIGN_OR_RETURN(value, lift(context_.memory.load64(ring_.vmid, barrier.signal + offsetof(aql::Signal, value))));
  }
  const std::int64_t masked = static_cast<std::int64_t>(value) & barrier.mask;
  const std::optional<bool> is_met = holds(masked, barrier.condition, barrier.value);
  if (!is_met.has_value()) return QueueError{QueueError::Kind::kBadPacket, {}, header};
  if (barrier.signal != 0 && !*is_met) return PacketStatus::kWait;
  trace_line(context_.trace, name_, "barrier_value index=%" PRIu64 " value=%" PRId64, hqd_.read_index, masked);
  TRY(complete_aql(barrier.completion_signal));
  return PacketStatus::kDone;
}

QueueResult<PacketStatus> ComputeQueue::execute_pm4_ib(const aql::VendorPm4Ib& packet, std::uint32_t header) {
  const pm4::Header ib_header = pm4::decode_header(packet.ib[0]);
  const bool is_ib = ib_header.type == pm4::kType3 && ib_header.opcode == pm4::kIndirectBuffer &&
                     ib_header.dwords == pm4::kIndirectBufferDwords;
  if (!is_ib) return QueueError{QueueError::Kind::kBadPacket, {}, header};
  const auto ib = pm4::decode_indirect_buffer(packet.ib);
  trace_line(context_.trace, name_, "pm4_ib index=%" PRIu64 " addr=0x%" PRIx64 " dwords=%u", hqd_.read_index, ib->addr,
             ib->dwords);
  ib_ = ActiveIb{ring_.vmid, ib->addr, ib->dwords, 0};
  return PacketStatus::kEnterIb;
}

// Raises the event of a signal, for programs that sleep until its value changes.
QueueResult<void> ComputeQueue::notify(std::uint64_t signal) {
  ASSIGN_OR_RETURN(const std::uint64_t mailbox,
                   lift(context_.memory.load64(ring_.vmid, signal + offsetof(aql::Signal, event_mailbox_ptr))));
  if (mailbox == 0) return {};
  ASSIGN_OR_RETURN(const std::uint32_t event_id,
                   lift(context_.memory.load32(ring_.vmid, signal + offsetof(aql::Signal, event_id))));
  TRY(lift(context_.memory.store64(ring_.vmid, mailbox, event_id)));
  executor_.raise_eop(ring_.vmid, event_id);
  return {};
}

// Address of the runtime's queue object counted from its read index; 0: there is none.
GpuAddr ComputeQueue::runtime_queue() {
  if (hqd_.rptr_report == 0) return 0;
  auto offset = context_.memory.load32(ring_.vmid, hqd_.rptr_report + aql::kQueueBaseOffset);
  return offset.ok() && *offset == aql::kQueueBaseOffsetValue ? hqd_.rptr_report : 0;
}

QueueResult<void> ComputeQueue::stamp_signal(std::uint64_t signal) {
  const GpuAddr queue = runtime_queue();
  if (queue == 0) return {};
  ASSIGN_OR_RETURN(const std::uint32_t properties,
                   lift(context_.memory.load32(ring_.vmid, queue + aql::kQueueProperties)));
  if (aql::kQueueProfiling.get(properties) == 0) return {};
  TRY(lift(context_.memory.store64(ring_.vmid, signal + offsetof(aql::Signal, start_ts), packet_start_)));
  return lift(context_.memory.store64(ring_.vmid, signal + offsetof(aql::Signal, end_ts), context_.ticks()));
}

// The runtime of ROCm 5 reads errors of waves from the inactive signal, where its trap handler writes them. That of
// ROCm 6 wants amdkfd to set a word instead, and ignores the signal.
bool ComputeQueue::runtime_reads_exceptions() const {
  if (hqd_.waves.area == 0) return false;
  const auto payload = context_.memory.load64(ring_.vmid, hqd_.waves.area + aql::kSaveAreaErrorPayload);
  return payload.ok() && *payload != 0;
}

// Reports an error through the inactive signal. Failures are ignored, because the queue has stopped already.
void ComputeQueue::report_inactive(const QueueError& error) {
  const GpuAddr queue = runtime_queue();
  if (queue == 0 || error.kind == QueueError::Kind::kMemory) return;
  auto signal = context_.memory.load64(ring_.vmid, queue + aql::kQueueInactiveSignal);
  if (!signal.ok() || *signal == 0) return;
  std::uint64_t code = aql::kInactivePacketFormat;
  switch (error.kind) {
    case QueueError::Kind::kIllegalInstruction:
      if (runtime_reads_exceptions()) return;
      code = aql::kInactiveIllegalInstruction;
      break;
    case QueueError::Kind::kMemoryViolation:
      if (runtime_reads_exceptions()) return;
      code = aql::kInactiveMemoryViolation;
      break;
    case QueueError::Kind::kTrap:
      if (runtime_reads_exceptions()) return;
      code = aql::kInactiveTrap;
      break;
    case QueueError::Kind::kBadDispatch:
      code = inactive_code(static_cast<LaunchError::Kind>(error.word));
      break;
    default:
      if (aql::kHeaderType.get(error.word) == aql::kVendorSpecific) code = aql::kInactiveVendorFormat;
      break;
  }
  if (!context_.memory.store64(ring_.vmid, *signal + offsetof(aql::Signal, value), code).ok()) return;
  if (notify(*signal).ok()) trace_line(context_.trace, name_, "inactive code=0x%" PRIx64, code);
}

QueueResult<void> ComputeQueue::complete_aql(std::uint64_t completion_signal) {
  if (completion_signal != 0) {
    TRY(stamp_signal(completion_signal));
    constexpr std::uint64_t kMinusOne = ~std::uint64_t{0};
    TRY(lift(context_.memory.fetch_add64(ring_.vmid, completion_signal + offsetof(aql::Signal, value), kMinusOne)));
    TRY(notify(completion_signal));
    trace_line(context_.trace, name_, "signal handle=0x%" PRIx64, completion_signal);
  }
  const std::uint16_t free_slot = aql::kInvalid;
  const GpuAddr header = ring_.address(hqd_.read_index * aql::kPacketDwords);
  TRY(lift(context_.memory.write(ring_.vmid, header, std::as_bytes(std::span(&free_slot, 1)))));
  ++hqd_.read_index;
  return {};
}

}  // namespace vasicd
