// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// SDMA queues: loading, pointers, the loop over packets, errors. What a packet does is in sdma_exec.cc.
#include "vasicd/blocks/sdma/sdma_queue.h"

#include <algorithm>
#include <cerrno>
#include <cinttypes>

#include "vasicd/blocks/queue/trace_line.h"

namespace vasicd {

namespace sdma = packets::sdma;

namespace {

// The longest part of a packet that is decoded; data that follow it are executed in pieces.
constexpr std::size_t kMaxDecodedDwords = sdma::kCopyWindowDwords;

}  // namespace

SdmaQueue::SdmaQueue(EngineContext context, std::string name, unsigned engine, bool kernel, const Mqd& mqd,
                     const SdmaHqd& hqd)
    : PacketQueue(context, std::move(name), mqd),
      engine_(engine),
      kernel_(kernel),
      error_(hqd.error),
      layout_(packets::mqd::sdma_layout(context.info.gfx_level)),
      format_(sdma::format(context.info.sdma_format)),
      ring_{hqd.vmid, hqd.base, hqd.ring_dwords - 1},
      rptr_addr_(hqd.rptr_report),
      doorbell_(hqd.doorbell),
      pos_(hqd.rptr / 4),
      wptr_(hqd.wptr / 4),
      ib_(hqd.ib),
      skip_(hqd.skip) {
  if (ib_.has_value()) ib_->vmid = hqd.vmid;
  halted_ = error_.has_value();
}

base::Result<std::unique_ptr<SdmaQueue>> SdmaQueue::load_ring(EngineContext context, const KernelRing& ring) {
  if (ring.size < kMinRingDwords * 4 || ring.size > kMaxRingDwords * 4 || (ring.size & (ring.size - 1)) != 0) {
    return base::Error(EINVAL, "SDMA ring size is not a power of two in range");
  }
  if (!context.doorbells.in_range(ring.doorbell)) return base::Error(EINVAL, "SDMA ring doorbell is out of range");
  SdmaHqd hqd;
  hqd.base = ring.base;
  hqd.ring_dwords = ring.size / 4;
  hqd.rptr_report = ring.rptr_addr;
  hqd.doorbell = ring.doorbell;
  context.doorbells.take(ring.doorbell);
  auto wptr = context.memory.load64(0, ring.wptr_addr);
  auto rptr = context.memory.load64(0, ring.rptr_addr);
  if (!wptr.ok() || !rptr.ok()) return base::Error(EFAULT, "SDMA ring pointer words are not readable");
  hqd.wptr = wptr.value() & ~std::uint64_t{3};
  hqd.rptr = rptr.value() & ~std::uint64_t{3};
  // The driver may have started the ring again and left the old read pointer in memory.
  if (hqd.wptr - hqd.rptr > ring.size) hqd.rptr = hqd.wptr;
  return std::unique_ptr<SdmaQueue>(
      new SdmaQueue(context, "sdma" + std::to_string(ring.instance), ring.instance, true, Mqd{}, hqd));
}

base::Result<std::unique_ptr<SdmaQueue>> SdmaQueue::load_user(EngineContext context, std::string name, unsigned engine,
                                                              unsigned vmid, const Mqd& mqd, GpuAddr wptr_addr) {
  const auto& layout = packets::mqd::sdma_layout(context.info.gfx_level);
  ASSIGN_OR_RETURN(SdmaHqd hqd, read_sdma_mqd(layout, mqd));
  if (vmid != 0) hqd.vmid = vmid;
  if (!context.doorbells.in_range(hqd.doorbell)) return base::Error(EINVAL, "SDMA doorbell is out of range");
  std::unique_ptr<SdmaQueue> queue(new SdmaQueue(context, std::move(name), engine, false, mqd, hqd));
  if (auto connected = queue->connect(wptr_addr != 0 ? wptr_addr : hqd.wptr_poll); !connected.ok()) {
    queue->fail(connected.error());
  }
  return queue;
}

// Reads how far the program has written when the queue is mapped. The doorbell is emptied before memory is read: a
// pointer that is written later comes with a new doorbell value.
QueueResult<void> SdmaQueue::connect(GpuAddr wptr_addr) {
  const auto rung = context_.doorbells.take(doorbell_);
  std::uint64_t wptr = rung.value_or(wptr_ * 4);
  if (wptr_addr != 0 && layout_.pointers_are_32_bits()) {
    ASSIGN_OR_RETURN(wptr, lift(context_.memory.load32(ring_.vmid, wptr_addr)));
  } else if (wptr_addr != 0) {
    ASSIGN_OR_RETURN(wptr, lift(context_.memory.load64(ring_.vmid, wptr_addr)));
  }
  if (!set_wptr(wptr)) return QueueError{QueueError::Kind::kWritePointer, {}, 0};
  return {};
}

bool SdmaQueue::set_wptr(std::uint64_t bytes) {
  if (!kernel_ && layout_.pointers_are_32_bits()) {
    wptr_ = pos_ + ((bytes / 4 - pos_) & ring_.mask);
    return true;
  }
  // A pointer in bytes holds 62 bits of a pointer in dwords, so the comparison wraps at 62 bits.
  std::uint64_t ahead = bytes / 4 - pos_;
  if (kernel_ && context_.info.doorbell_size == sizeof(std::uint32_t)) {
    ahead = static_cast<std::uint32_t>(bytes - pos_ * 4) / 4;  // a 32-bit doorbell carries the low half
  }
  if (ahead > ring_.ring_dwords()) return false;
  wptr_ = pos_ + ahead;
  return true;
}

void SdmaQueue::take_doorbell() {
  const auto rung = context_.doorbells.take(doorbell_);
  if (!rung.has_value() || halted_ || set_wptr(*rung)) return;
  if (kernel_) {
    trace_line(context_.trace, name_, "bad write pointer wptr=0x%" PRIx64 " ignored", *rung);
  } else {
    fail({QueueError::Kind::kWritePointer, {}, 0});
  }
}

std::uint64_t SdmaQueue::available() const {
  if (ib_.has_value()) return ib_->dwords - ib_->offset;
  return wptr_ - pos_;
}

void SdmaQueue::advance(std::uint64_t dwords) {
  if (ib_.has_value()) {
    ib_->offset += static_cast<std::uint32_t>(dwords);
  } else {
    pos_ += dwords;
  }
  packet_dwords_ = 0;
  progress_ = 0;
  window_row_ = 0;
}

void SdmaQueue::report_rptr() {
  if (reported_ == pos_ || rptr_addr_ == 0) return;
  reported_ = pos_;
  const bool wraps = !kernel_ && layout_.pointers_are_32_bits();
  auto stored = wraps ? context_.memory.store32(ring_.vmid, rptr_addr_, packets::lo32((pos_ & ring_.mask) * 4))
                      : context_.memory.store64(ring_.vmid, rptr_addr_, pos_ * 4);
  if (stored.ok()) return;
  report_error(memory_error(stored.error()));
  rptr_addr_ = 0;
  if (!kernel_) {
    halted_ = true;
    error_ = QueueError::Kind::kMemory;
  }
}

QueueResult<PacketStatus> SdmaQueue::execute_next(Budget& budget) {
  if (ib_.has_value() && available() == 0) {
    ib_.reset();
    advance(format_.indirect_dwords);
    return PacketStatus::kDone;
  }
  const std::uint64_t there = available();
  if (there == 0) return PacketStatus::kWait;
  // The program moved the write pointer back over the packet of an indirect buffer.
  if (!ib_.has_value() && there > ring_.ring_dwords()) return QueueError{QueueError::Kind::kWritePointer, {}, 0};
  if (skip_ > 0) {
    const std::uint64_t n = std::min(skip_, there);
    skip_ -= n;
    advance(n);
    return PacketStatus::kDone;
  }
  std::array<std::uint32_t, kMaxDecodedDwords> words{};
  packet_dwords_ = 0;
  TRY(lift(fetch_words(context_.memory, source(), position(), std::span(words).first(1))));
  const auto head = head_dwords(words[0]);
  if (!head.has_value()) return QueueError{QueueError::Kind::kBadOpcode, {}, words[0]};
  std::size_t whole = *head;
  if (*head <= there) {
    TRY(lift(fetch_words(context_.memory, source(), position(), std::span(words).first(*head))));
    whole += tail_dwords(packets::WordView(words).first(*head));
  }
  if (whole > there) {
    // The rest of a packet may still be written to a ring, but not to an IB, nor if the packet is longer than the ring.
    if (ib_.has_value() || whole > ring_.ring_dwords()) return QueueError{QueueError::Kind::kBadPacket, {}, words[0]};
    return PacketStatus::kWait;
  }
  packet_dwords_ = whole;
  TRY(injected_fault(vmid(), source().address(position())));
  ASSIGN_OR_RETURN(const PacketStatus status, execute(packets::WordView(words).first(*head), budget));
  if (status == PacketStatus::kDone) advance(whole);
  return status;
}

void SdmaQueue::fail(const QueueError& error) {
  report_error(error);
  if (!kernel_) {
    error_ = error.kind;
    halted_ = true;
    return;
  }
  if (packet_dwords_ != 0) {
    advance(packet_dwords_);
  } else if (ib_.has_value()) {
    ib_->offset = ib_->dwords;  // the rest of the buffer cannot be read or is invalid
    progress_ = 0;
    window_row_ = 0;
  } else {
    halted_ = true;
  }
}

Interrupt SdmaQueue::interrupt(InterruptKind kind, unsigned vmid, std::uint32_t data) const {
  return {.kind = kind,
          .instance = static_cast<std::uint8_t>(engine_),
          .ring_id = static_cast<std::uint8_t>(kernel_ ? 0 : 1),
          .vmid = static_cast<std::uint8_t>(vmid),
          .data = {data}};
}

void SdmaQueue::report_error(const QueueError& error) {
  const char* const then = kernel_ ? "skipped" : "stopped";
  const FaultClient client = fault_client();
  switch (error.kind) {
    case QueueError::Kind::kMemory:
      trace_line(context_.trace, name_, "fault vmid=%u va=0x%" PRIx64 " %s", error.fault.vmid, error.fault.va, then);
      context_.interrupts.raise_fault(error.fault, client);
      return;
    case QueueError::Kind::kPrivilege:
      trace_line(context_.trace, name_, "srbm_write reg=0x%x refused %s", error.word, then);
      context_.interrupts.raise(interrupt(InterruptKind::kSdmaPrivilegedRegister, vmid(), error.word));
      return;
    case QueueError::Kind::kWritePointer:
      trace_line(context_.trace, name_, "bad write pointer %s", then);
      break;
    default:
      trace_line(context_.trace, name_, "bad packet header=0x%08x %s", error.word, then);
      break;
  }
  // SDMA has no interrupt for invalid packets, so a fault at the ring's address is raised, which makes the driver evict
  // the process.
  const GpuAddr at = source().address(position());
  context_.interrupts.raise_fault({vmid(), at, Access::kRead, FaultKind::kBadTable}, client);
}

MemoryResult<void> SdmaQueue::save() {
  const std::uint64_t mask = layout_.pointers_are_32_bits() ? ring_.mask : ~std::uint64_t{0};
  SdmaHqd hqd;
  hqd.rptr = (pos_ & mask) * 4;
  hqd.wptr = (wptr_ & mask) * 4;
  hqd.ib = ib_;
  hqd.skip = static_cast<std::uint32_t>(skip_);
  hqd.error = error_;
  return write_sdma_mqd(layout_, mqd_, hqd);
}

}  // namespace vasicd
