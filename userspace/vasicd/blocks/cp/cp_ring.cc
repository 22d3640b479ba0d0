// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Compute rings: loading, pointers, the step to the next packet, errors.
#include "vasicd/blocks/cp/cp_ring.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cinttypes>

#include "packets/ih.h"
#include "vasicd/blocks/queue/hqd.h"
#include "vasicd/blocks/queue/trace_line.h"

namespace vasicd {

namespace ih = packets::ih;
namespace pm4 = packets::pm4;

namespace {

constexpr unsigned kMec = 1;  // "me" of the compute engine in ring ids
constexpr std::uint32_t kIndirectHeader = pm4::header(pm4::kIndirectBuffer, pm4::kIndirectBufferDwords);

// amdgpu puts its rings on pipe after pipe.
std::uint8_t eop_ring_id(const vasic_info& info, unsigned instance) {
  const unsigned pipes = std::max(info.pipes_per_mec, 1u);
  return ih::eop_ring_id(kMec, instance % pipes, instance / pipes);
}

}  // namespace

ComputeRing::ComputeRing(EngineContext context, const KernelRing& ring, std::uint64_t rptr, std::uint64_t wptr)
    : PacketQueue(context, "compute" + std::to_string(ring.instance), Mqd{}),
      ring_{0, ring.base, ring.size / 4 - 1},
      rptr_addr_(ring.rptr_addr),
      doorbell_(ring.doorbell),
      rptr_(rptr),
      wptr_(wptr),
      executor_(context, name_, Pm4Client::kKernel, eop_ring_id(context.info, ring.instance)) {}

base::Result<std::unique_ptr<ComputeRing>> ComputeRing::load(EngineContext context, const KernelRing& ring) {
  if (ring.size < kMinRingDwords * 4 || ring.size > kMaxRingDwords * 4 || !std::has_single_bit(ring.size)) {
    return base::Error(EINVAL, "compute ring size is not a power of two in range");
  }
  if (!context.doorbells.in_range(ring.doorbell)) return base::Error(EINVAL, "compute ring doorbell is out of range");
  context.doorbells.take(ring.doorbell);
  auto wptr = context.memory.load64(0, ring.wptr_addr);
  auto rptr = context.memory.load64(0, ring.rptr_addr);
  if (!wptr.ok() || !rptr.ok()) return base::Error(EFAULT, "compute ring pointer words are not readable");
  // The driver may have started the ring again and left the old read pointer in memory.
  const bool stale = *wptr - *rptr > ring.size / 4;
  return std::unique_ptr<ComputeRing>(new ComputeRing(context, ring, stale ? *wptr : *rptr, *wptr));
}

void ComputeRing::take_doorbell() {
  const auto rung = context_.doorbells.take(doorbell_);
  if (!rung.has_value() || halted_) return;
  std::uint64_t ahead = *rung - rptr_;
  if (context_.info.doorbell_size == sizeof(std::uint32_t)) {
    ahead = static_cast<std::uint32_t>(ahead);  // a 32-bit doorbell carries the low half
  }
  if (ahead <= ring_.ring_dwords()) {
    wptr_ = rptr_ + ahead;
  } else {
    trace_line(context_.trace, name_, "bad write pointer wptr=0x%" PRIx64 " ignored", *rung);
  }
}

void ComputeRing::report_rptr() {
  if (reported_ == rptr_ || rptr_addr_ == 0) return;
  reported_ = rptr_;
  auto stored = context_.memory.store64(0, rptr_addr_, rptr_);
  if (stored.ok()) return;
  report_error(memory_error(stored.error()));
  rptr_addr_ = 0;
}

QueueResult<PacketStatus> ComputeRing::execute_next(Budget& budget) {
  if (ib_.has_value()) return execute_ib(budget);
  if (rptr_ == wptr_) return PacketStatus::kWait;
  ASSIGN_OR_RETURN(const PacketStatus status, execute_at(ring_, rptr_, wptr_ - rptr_, budget));
  if (status == PacketStatus::kDone) rptr_ += executor_.packet_dwords();
  if (status == PacketStatus::kEnterIb) {
    const pm4::IndirectBuffer& next = executor_.next_ib();
    ib_ = ActiveIb{next.vmid, next.addr, next.dwords, 0};
  }
  return status;
}

QueueResult<PacketStatus> ComputeRing::execute_ib(Budget& budget) {
  if (ib_->offset == ib_->dwords) {
    ib_.reset();
    // The doorbell may have moved the write pointer back over the packet.
    rptr_ += std::min<std::uint64_t>(pm4::kIndirectBufferDwords, wptr_ - rptr_);
    return PacketStatus::kDone;
  }
  ASSIGN_OR_RETURN(const PacketStatus status,
                   execute_at(ib_->source(), ib_->offset, ib_->dwords - ib_->offset, budget));
  if (status == PacketStatus::kDone) ib_->offset += static_cast<std::uint32_t>(executor_.packet_dwords());
  if (status == PacketStatus::kEnterIb) {
    const pm4::IndirectBuffer& next = executor_.next_ib();
    if (!next.chain) return QueueError{QueueError::Kind::kBadPacket, {}, kIndirectHeader};
    ib_ = ActiveIb{ib_->vmid, next.addr, next.dwords, 0};
  }
  return status;
}

QueueResult<PacketStatus> ComputeRing::execute_at(const WordSource& source, std::uint64_t pos, std::uint64_t available,
                                                  Budget& budget) {
  if (auto injected = injected_fault(source.vmid, source.address(pos)); !injected.ok()) {
    // fail() skips packet_dwords(), which is still the length of the packet before this one until look_at() is called.
    TRY(executor_.look_at(source, pos));
    return injected.error();
  }
  return executor_.execute_at(source, pos, available, budget);
}

void ComputeRing::fail(const QueueError& error) {
  report_error(error);
  executor_.abandon_packet();
  const std::uint64_t dwords = executor_.packet_dwords();
  if (ib_.has_value()) {
    // Without a length the rest of the buffer cannot be read, or has no meaning.
    const std::uint32_t left = ib_->dwords - ib_->offset;
    ib_->offset += dwords == 0 ? left : static_cast<std::uint32_t>(std::min<std::uint64_t>(dwords, left));
  } else if (dwords != 0) {
    rptr_ += std::min(dwords, wptr_ - rptr_);
  } else {
    halted_ = true;
  }
}

void ComputeRing::report_error(const QueueError& error) {
  Interrupt interrupt;
  interrupt.vmid = static_cast<std::uint8_t>(vmid());
  switch (error.kind) {
    case QueueError::Kind::kMemory:
      trace_line(context_.trace, name_, "fault vmid=%u va=0x%" PRIx64 " skipped", error.fault.vmid, error.fault.va);
      context_.interrupts.raise_fault(error.fault, {});
      return;
    case QueueError::Kind::kIllegalInstruction:
      trace_line(context_.trace, name_, "dispatch illegal-instruction skipped");
      interrupt.kind = InterruptKind::kSqError;
      interrupt.data[0] = static_cast<std::uint32_t>(SqError::kIllegalInstruction);
      break;
    case QueueError::Kind::kPrivilege:
      trace_line(context_.trace, name_, "refused reg=0x%x skipped", error.word);
      interrupt.kind = InterruptKind::kCpPrivilegedRegister;
      interrupt.data[0] = error.word;
      break;
    default:
      trace_line(context_.trace, name_, "bad packet header=0x%08x skipped", error.word);
      interrupt.kind = InterruptKind::kCpBadOpcode;
      interrupt.data[1] = ih::kEcodePacketUnsupported;
      break;
  }
  context_.interrupts.raise(interrupt);
}

}  // namespace vasicd
