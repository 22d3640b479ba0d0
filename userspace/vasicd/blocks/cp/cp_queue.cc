// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Compute queues: loading and saving, pointers, the loop over packets, errors. AQL packets are in aql_queue.cc.
#include "vasicd/blocks/cp/cp_queue.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>

#include "packets/ih.h"
#include "vasicd/blocks/queue/trace_line.h"

namespace vasicd {

namespace aql = packets::aql;
namespace ih = packets::ih;
namespace pm4 = packets::pm4;

namespace {

constexpr unsigned kMec = 1;  // "me" of the compute engine in ring ids
constexpr std::uint32_t kDoorbellIdDwords = 2;
constexpr std::uint32_t kIndirectHeader = pm4::header(pm4::kIndirectBuffer, pm4::kIndirectBufferDwords);

// The index nearest to `near` with these low bits.
std::uint64_t extend_index(std::uint64_t near, std::uint32_t low) {
  const auto ahead = static_cast<std::int32_t>(low - static_cast<std::uint32_t>(near));
  return near + static_cast<std::uint64_t>(std::int64_t{ahead});
}

// Exception codes for the debugger.
std::uint32_t dispatch_error_code(LaunchError::Kind kind) {
  switch (kind) {
    case LaunchError::Kind::kDimensions:
      return ih::kEcodeDispatchDimensions;
    case LaunchError::Kind::kGroupSize:
      return ih::kEcodeDispatchGroupSize;
    case LaunchError::Kind::kGroupMemory:
      return ih::kEcodeDispatchGroupMemory;
    case LaunchError::Kind::kCode:
      return ih::kEcodeDispatchCode;
    case LaunchError::Kind::kRegisters:
    case LaunchError::Kind::kScratch:
      break;
  }
  return ih::kEcodeDispatchRegisters;
}

}  // namespace

ComputeQueue::ComputeQueue(EngineContext context, std::string name, ComputeSlot slot, unsigned vmid, const Mqd& mqd,
                           const ComputeHqd& hqd)
    : PacketQueue(context, std::move(name), mqd),
      layout_(packets::mqd::compute_layout(context.info.gfx_level)),
      hqd_(hqd),
      ring_{vmid, hqd.base, hqd.ring_dwords - 1},
      executor_(context, name_, Pm4Client::kUser, ih::eop_ring_id(kMec, slot.pipe, slot.queue)),
      ib_(hqd.ib),
      waves_(context, name_, vmid, mqd.addr(), hqd.waves) {
  if (ib_.has_value()) ib_->vmid = vmid;
  halted_ = hqd.error.has_value();
  load_registers();
}

// A gfx9 descriptor begins with its header and the COMPUTE_* registers.
void ComputeQueue::load_registers() {
  if (!waves_.isa().has_value()) return;
  for (std::size_t i = 0; i < executor_.registers().size(); ++i) executor_.registers()[i] = mqd_.get(i + 1);
}

MemoryResult<void> ComputeQueue::save_registers(Mqd& mqd) {
  if (!waves_.isa().has_value() || hqd_.aql) return {};
  for (std::size_t i = 0; i < executor_.registers().size(); ++i) {
    if (mqd.get(i + 1) != executor_.registers()[i]) TRY(mqd.put(i + 1, executor_.registers()[i]));
  }
  return {};
}

base::Result<std::unique_ptr<ComputeQueue>> ComputeQueue::load(EngineContext context, std::string name,
                                                               ComputeSlot slot, unsigned vmid, const Mqd& mqd,
                                                               GpuAddr wptr_addr) {
  const auto& layout = packets::mqd::compute_layout(context.info.gfx_level);
  ASSIGN_OR_RETURN(const ComputeHqd hqd, read_compute_mqd(layout, mqd));
  if (!context.doorbells.in_range(hqd.doorbell)) return base::Error(EINVAL, "compute doorbell is out of range");
  if (vmid == 0) vmid = hqd.vmid;
  ASSIGN_OR_RETURN(const std::uint64_t stride, mqd_stride(layout, mqd, context.info.xcc_count));
  std::unique_ptr<ComputeQueue> queue(new ComputeQueue(context, std::move(name), slot, vmid, mqd, hqd));
  queue->mqd_stride_ = stride;
  queue->wptr_addr_ = wptr_addr != 0 ? wptr_addr : hqd.wptr_poll;
  queue->connect();
  return queue;
}

// Reads how far the program has written when the queue is mapped.
void ComputeQueue::connect() {
  // The doorbell is emptied before memory is read: a pointer that is written later comes with a new doorbell value.
  const auto rung = context_.doorbells.take(hqd_.doorbell);
  auto wptr = wptr_in_memory();
  if (!wptr.ok()) return fail(wptr.error());
  if (hqd_.aql) {
    if (auto resumed = resume_aql(*wptr); !resumed.ok()) return fail(resumed.error());
  } else if (wptr->has_value()) {
    hqd_.wptr = **wptr;
  }
  // The doorbell may have been written while the queue was not mapped, so only memory says how far the queue goes.
  if (!wptr->has_value() && rung.has_value()) accept_doorbell(*rung);
  if (halted_) return;
  if (auto resumed = waves_.resume(); !resumed.ok()) fail(resumed.error());
}

QueueResult<std::optional<std::uint64_t>> ComputeQueue::wptr_in_memory() {
  if (wptr_addr_ == 0) return std::optional<std::uint64_t>{};
  if (layout_.wptr_is_32_bits()) {
    ASSIGN_OR_RETURN(const std::uint32_t wptr, lift(context_.memory.load32(ring_.vmid, wptr_addr_)));
    return std::optional<std::uint64_t>{wptr};
  }
  ASSIGN_OR_RETURN(const std::uint64_t wptr, lift(context_.memory.load64(ring_.vmid, wptr_addr_)));
  return std::optional<std::uint64_t>{wptr};
}

QueueResult<void> ComputeQueue::resume_aql(std::optional<std::uint64_t> wptr) {
  // Every implementation saves the position in the ring; only vasicd also saves the 64-bit read index, for which older
  // descriptors have no space (there the index that was reported to memory is used). If index and position disagree,
  // the position counts, and the index is derived from the write index that it must be behind.
  const bool saved = layout_.cp_mqd_readindex_lo != packets::mqd::kNone;
  if (!saved && hqd_.rptr_report != 0) {
    ASSIGN_OR_RETURN(hqd_.read_index, lift(context_.memory.load64(ring_.vmid, hqd_.rptr_report)));
  }
  const std::uint64_t slot = hqd_.rptr / aql::kPacketDwords;
  if ((hqd_.read_index & (aql_packets() - 1)) != slot) {
    const std::uint64_t end = wptr.value_or(hqd_.read_index);
    hqd_.read_index = (end & ~(aql_packets() - 1)) + slot;
    if (hqd_.read_index > end) hqd_.read_index -= aql_packets();
  }
  const std::uint64_t position = hqd_.wptr;
  hqd_.wptr = hqd_.read_index;
  if (wptr.has_value()) {
    limit_aql(layout_.wptr_is_32_bits() ? extend_index(hqd_.read_index, static_cast<std::uint32_t>(*wptr)) : *wptr);
  } else if (!saved) {
    limit_aql(hqd_.read_index + ((position / aql::kPacketDwords - slot) & (aql_packets() - 1)));
  }
  return {};
}

void ComputeQueue::take_doorbell() {
  const auto rung = context_.doorbells.take(hqd_.doorbell);
  if (rung.has_value() && !halted_) accept_doorbell(*rung);
}

void ComputeQueue::accept_doorbell(std::uint64_t value) {
  if (!hqd_.aql) {
    hqd_.wptr = value;
    return;
  }
  const auto low = static_cast<std::uint32_t>(value);
  switch (layout_.aql_doorbell) {
    case packets::mqd::AqlDoorbell::kDwords:
      // A full ring looks like an empty one, which is why programs map it twice and use half of it.
      return limit_aql(hqd_.read_index + ((low / aql::kPacketDwords - hqd_.read_index) & (aql_packets() - 1)));
    case packets::mqd::AqlDoorbell::kCount32:
      return limit_aql(extend_index(hqd_.read_index, low));
    case packets::mqd::AqlDoorbell::kIndex64:
      break;
  }
  // The value is the index of a packet that is ready, and not always the last one: producers race to the doorbell. Some
  // programs write a count instead, so the write index bounds the value.
  std::uint64_t limit = value + 1;
  if (wptr_addr_ != 0) {
    if (auto wptr = context_.memory.load64(ring_.vmid, wptr_addr_); wptr.ok()) limit = std::min(limit, *wptr);
  }
  limit_aql(limit);
}

void ComputeQueue::limit_aql(std::uint64_t limit) {
  const std::uint64_t ahead = limit - hqd_.read_index;
  // A value behind the reader is an old doorbell value. One that is further ahead than the ring is long cannot be
  // right, so the packets in the ring decide.
  if (ahead > std::uint64_t{1} << 63) return;
  const std::uint64_t clamped = hqd_.read_index + std::min(ahead, aql_packets());
  if (clamped - hqd_.read_index > hqd_.wptr - hqd_.read_index) hqd_.wptr = clamped;
}

bool ComputeQueue::ring_empty() const {
  if (hqd_.aql) return hqd_.wptr == hqd_.read_index;
  return ((hqd_.wptr - hqd_.rptr) & ring_.mask) == 0;
}

std::uint32_t ComputeQueue::ring_rptr() const {
  if (!hqd_.aql) return hqd_.rptr;
  return static_cast<std::uint32_t>((hqd_.read_index * aql::kPacketDwords) & ring_.mask);
}

void ComputeQueue::report_rptr() {
  const std::uint64_t now = hqd_.aql ? hqd_.read_index : hqd_.rptr;
  if (reported_ == now || hqd_.rptr_report == 0) return;
  reported_ = now;
  auto stored = hqd_.aql ? context_.memory.store64(ring_.vmid, hqd_.rptr_report, now)
                         : context_.memory.store32(ring_.vmid, hqd_.rptr_report, hqd_.rptr);
  if (stored.ok()) return;
  hqd_.rptr_report = 0;
  if (!halted_) fail(memory_error(stored.error()));
}

QueueResult<PacketStatus> ComputeQueue::execute_next(Budget& budget) {
  if (waves_.busy()) return execute_waves(budget);
  if (ib_.has_value()) return execute_ib(budget);
  if (ring_empty()) return PacketStatus::kWait;
  return hqd_.aql ? execute_aql() : execute_pm4(budget);
}

QueueResult<PacketStatus> ComputeQueue::execute_waves(Budget& budget) {
  packet_start_ = waves_.start_ticks();
  ASSIGN_OR_RETURN(const PacketStatus status, waves_.step(budget));
  if (status == PacketStatus::kDone) TRY(leave_dispatch());
  return status;
}

QueueResult<void> ComputeQueue::begin_pm4_dispatch() {
  const pm4::DispatchDirect& packet = executor_.next_dispatch();
  auto launch = launch_of(*waves_.isa(), executor_.registers(), packet.dims, packet.initiator);
  if (!launch.ok()) return launch_error(launch.error());
  return waves_.begin(*launch);
}

// Moves the read pointer behind the packet that began the dispatch.
QueueResult<void> ComputeQueue::leave_dispatch() {
  if (ib_.has_value()) {
    TRY(executor_.look_at(ib_->source(), ib_->offset));
    ib_->offset +=
        static_cast<std::uint32_t>(std::min<std::size_t>(executor_.packet_dwords(), ib_->dwords - ib_->offset));
    return {};
  }
  if (hqd_.aql) {
    aql::Slot slot;
    TRY(lift(fetch_words(context_.memory, ring_, hqd_.read_index * aql::kPacketDwords, std::span(slot))));
    return complete_aql(aql::from_slot<aql::KernelDispatch>(slot).completion_signal);
  }
  TRY(executor_.look_at(ring_, hqd_.rptr));
  hqd_.rptr = static_cast<std::uint32_t>((hqd_.rptr + executor_.packet_dwords()) & ring_.mask);
  return {};
}

QueueResult<PacketStatus> ComputeQueue::execute_ib(Budget& budget) {
  if (ib_->offset == ib_->dwords) {
    TRY(leave_ib());
    return PacketStatus::kDone;
  }
  const WordSource source = ib_->source();
  TRY(injected_fault(source.vmid, source.address(ib_->offset)));
  ASSIGN_OR_RETURN(const PacketStatus status,
                   executor_.execute_at(source, ib_->offset, ib_->dwords - ib_->offset, budget));
  if (status == PacketStatus::kDone) ib_->offset += static_cast<std::uint32_t>(executor_.packet_dwords());
  if (status == PacketStatus::kEnterIb) {
    const pm4::IndirectBuffer& next = executor_.next_ib();
    if (!next.chain) return QueueError{QueueError::Kind::kBadPacket, {}, kIndirectHeader};
    ib_ = ActiveIb{ring_.vmid, next.addr, next.dwords, 0};
  }
  if (status == PacketStatus::kDispatch) TRY(begin_pm4_dispatch());
  return status;
}

QueueResult<PacketStatus> ComputeQueue::execute_pm4(Budget& budget) {
  const std::uint64_t available = (hqd_.wptr - hqd_.rptr) & ring_.mask;
  TRY(injected_fault(ring_.vmid, ring_.address(hqd_.rptr)));
  ASSIGN_OR_RETURN(const PacketStatus status, executor_.execute_at(ring_, hqd_.rptr, available, budget));
  if (status == PacketStatus::kDone) {
    hqd_.rptr = static_cast<std::uint32_t>((hqd_.rptr + executor_.packet_dwords()) & ring_.mask);
  }
  if (status == PacketStatus::kEnterIb) {
    ib_ = ActiveIb{ring_.vmid, executor_.next_ib().addr, executor_.next_ib().dwords, 0};
  }
  if (status == PacketStatus::kDispatch) TRY(begin_pm4_dispatch());
  return status;
}

QueueResult<void> ComputeQueue::leave_ib() {
  if (hqd_.aql) {
    aql::Slot slot;
    TRY(lift(fetch_words(context_.memory, ring_, hqd_.read_index * aql::kPacketDwords, std::span(slot))));
    TRY(complete_aql(aql::from_slot<aql::VendorPm4Ib>(slot).completion_signal));
  } else {
    hqd_.rptr = static_cast<std::uint32_t>((hqd_.rptr + pm4::kIndirectBufferDwords) & ring_.mask);
  }
  ib_.reset();
  return {};
}

void ComputeQueue::fail(const QueueError& error) {
  halted_ = true;
  hqd_.error = error.kind;
  if (hqd_.aql) report_inactive(error);
  report_to_driver(error);
  report_trap(error);
}

// Sends the message that the runtime's trap handler sends when it halts a wave. amdkfd passes it on to the runtime if
// that is enabled, or to the debugger.
void ComputeQueue::report_trap(const QueueError& error) {
  constexpr std::uint32_t kTrapAbort = 2;  // LLVM's llvm.trap
  Interrupt interrupt{.kind = InterruptKind::kSqTrap,
                      .vmid = static_cast<std::uint8_t>(ring_.vmid),
                      .data = {hqd_.doorbell / kDoorbellIdDwords}};
  switch (error.kind) {
    case QueueError::Kind::kIllegalInstruction:
      interrupt.data[1] = ih::kTrapIllegalInstruction;
      break;
    case QueueError::Kind::kMemoryViolation:
      interrupt.data[1] = ih::kTrapApertureViolation;
      break;
    case QueueError::Kind::kTrap:
      interrupt.data[1] = error.word == kTrapAbort ? ih::kTrapWaveAbort : ih::kTrapWaveTrap;
      break;
    default:
      return;
  }
  if (context_.info.gfx_level >= 9) context_.interrupts.raise(interrupt);
}

void ComputeQueue::report_to_driver(const QueueError& error) {
  Interrupt interrupt;
  interrupt.vmid = static_cast<std::uint8_t>(ring_.vmid);
  switch (error.kind) {
    case QueueError::Kind::kMemory:
      trace_line(context_.trace, name_, "fault vmid=%u va=0x%" PRIx64 " stopped", error.fault.vmid, error.fault.va);
      context_.interrupts.raise_fault(error.fault, fault_client());
      return;
    case QueueError::Kind::kIllegalInstruction:
      trace_line(context_.trace, name_, "dispatch illegal-instruction stopped");
      interrupt.kind = InterruptKind::kSqError;
      interrupt.data[0] = static_cast<std::uint32_t>(SqError::kIllegalInstruction);
      break;
    case QueueError::Kind::kMemoryViolation:
      trace_line(context_.trace, name_, "dispatch memory-violation stopped");
      interrupt.kind = InterruptKind::kSqError;
      interrupt.data[0] = static_cast<std::uint32_t>(SqError::kMemoryViolation);
      break;
    case QueueError::Kind::kTrap:
      // The trap handler alone reports this.
      trace_line(context_.trace, name_, "dispatch trap stopped id=%u", error.word);
      return;
    case QueueError::Kind::kBadDispatch:
      trace_line(context_.trace, name_, "dispatch bad %s stopped",
                 vasicd::name(static_cast<LaunchError::Kind>(error.word)));
      interrupt.kind = InterruptKind::kCpBadOpcode;
      interrupt.data[0] = hqd_.doorbell / kDoorbellIdDwords;
      interrupt.data[1] = dispatch_error_code(static_cast<LaunchError::Kind>(error.word));
      break;
    case QueueError::Kind::kPrivilege:
      trace_line(context_.trace, name_, "refused reg=0x%x stopped", error.word);
      interrupt.kind = InterruptKind::kCpPrivilegedRegister;
      interrupt.data[0] = error.word;
      break;
    default:
      trace_line(context_.trace, name_, "bad packet header=0x%08x stopped", error.word);
      interrupt.kind = InterruptKind::kCpBadOpcode;
      interrupt.data[0] = hqd_.doorbell / kDoorbellIdDwords;
      interrupt.data[1] = hqd_.aql ? aql_error_code(error.word) : ih::kEcodePacketUnsupported;
      break;
  }
  context_.interrupts.raise(interrupt);
}

MemoryResult<void> ComputeQueue::save() {
  ComputeHqd saved = hqd_;
  saved.rptr = ring_rptr();
  saved.ib = ib_;
  saved.waves.stack_offset = saved.waves.wave_end = saved.waves.stack_bytes;
  if (auto waves = waves_.save(); waves.ok()) {
    saved.waves = *waves;
  } else {
    trace_line(context_.trace, name_, "waves cannot be saved");
    saved.error = waves.error().kind;
  }
  TRY(save_registers(mqd_));
  if (hqd_.aql && layout_.wptr_is_32_bits()) saved.wptr = (hqd_.wptr * aql::kPacketDwords) & ring_.mask;
  TRY(write_compute_mqd(layout_, mqd_, saved));
  // XCCs share the work of a queue, and each has its own descriptor of the queue.
  for (std::uint32_t xcc = 1; mqd_stride_ != 0 && xcc < context_.info.xcc_count; ++xcc) {
    const GpuAddr at = mqd_.addr() + xcc * mqd_stride_;
    auto other = Mqd::at(context_.memory, at, layout_.dwords);
    if (!other.ok()) return MemoryFault{0, at, Access::kWrite, FaultKind::kNotPresent};
    TRY(write_compute_mqd(layout_, *other, saved));
  }
  return {};
}

}  // namespace vasicd
