// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What each SDMA packet does, and how long it is.
#include <algorithm>
#include <cinttypes>
#include <vector>

#include "vasic/vasic_abi.h"
#include "vasicd/blocks/queue/gpu_ops.h"
#include "vasicd/blocks/queue/trace_line.h"
#include "vasicd/blocks/sdma/sdma_queue.h"

namespace vasicd {

namespace sdma = packets::sdma;
using packets::WordView;

namespace {

std::optional<std::size_t> only_if(bool known, std::size_t dwords) {
  return known ? std::optional(dwords) : std::nullopt;
}

std::optional<std::size_t> copy_dwords(std::uint32_t header, const sdma::Format& format) {
  switch (sdma::sub_op_of(header)) {
    case sdma::kCopyLinear:
      return sdma::kCopyBroadcast.get(header) != 0 ? sdma::kCopyBroadcastDwords : format.copy_linear_dwords;
    case sdma::kCopyLinearBc:
      return only_if(format.generation >= 5, sdma::kCopyLinearDwords);
    case sdma::kCopyLinearSubWindow:
      return only_if(format.generation < 7, sdma::kCopyWindowDwords);
    default:
      return std::nullopt;  // tiled images
  }
}

// Operations that came, or changed, with a generation.
std::optional<std::size_t> newer_dwords(std::uint32_t header, const sdma::Format& format) {
  const unsigned generation = format.generation;
  switch (sdma::op_of(header)) {
    case sdma::kGpuvmInv:
      if (generation == 4) return sdma::kTrapDwords;  // DUMMY_TRAP
      return only_if(generation >= 5, sdma::kGpuvmInvDwords);
    case sdma::kGcrReq:
      return only_if(generation >= 5, sdma::kGcrReqDwords);
    case sdma::kDummyTrap:
      return only_if(generation >= 5, sdma::kTrapDwords);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<std::size_t> SdmaQueue::head_dwords(std::uint32_t word) const {
  const std::uint32_t sub = sdma::sub_op_of(word);
  const unsigned generation = format_.generation;
  switch (sdma::op_of(word)) {
    case sdma::kNop:
      return 1;
    case sdma::kCopy:
      return copy_dwords(word, format_);
    case sdma::kWrite:
      return only_if(sub == sdma::kWriteLinear, sdma::kWriteHeadDwords);
    case sdma::kIndirect:
      return format_.indirect_dwords;
    case sdma::kFence:
      if (sub == sdma::kMemIncr) return only_if(generation >= 6, sdma::kMemIncrDwords);
      return sdma::kFenceDwords;
    case sdma::kTrap:
      return kernel_ && generation == 2 ? sdma::kTrapShortDwords : sdma::kTrapDwords;
    case sdma::kPollRegmem:
      if (sub == sdma::kPollVmInvalidation) return only_if(generation >= 6, sdma::kVmInvalidationDwords);
      return only_if(sub == sdma::kPollRegmemPlain, sdma::kPollDwords);
    case sdma::kCondExe:
      return sdma::kCondExeDwords;
    case sdma::kAtomic:
      return sdma::kAtomicDwords;
    case sdma::kConstFill:
      return only_if(sub == 0, sdma::kConstFillDwords);
    case sdma::kPtePde:
      if (sub == sdma::kPtePdeGen) return sdma::kPteGenDwords;
      return only_if(sub == sdma::kPtePdeCopy && generation >= 4, sdma::kPteCopyDwords);
    case sdma::kTimestamp:
      return sdma::kTimestampDwords;
    case sdma::kSrbmWrite:
      return only_if(sub == 0, sdma::kSrbmWriteDwords);
    case sdma::kPreExe:
      return sdma::kPreExeDwords;
    default:
      return newer_dwords(word, format_);
  }
}

std::size_t SdmaQueue::tail_dwords(WordView head) const {
  if (sdma::op_of(head[0]) == sdma::kNop) return sdma::kNopCount.get(head[0]);
  if (sdma::op_of(head[0]) == sdma::kWrite) return sdma::decode_write(head, format_)->dwords;
  return 0;
}

QueueResult<PacketStatus> SdmaQueue::execute(WordView packet, Budget& budget) {
  switch (sdma::op_of(packet[0])) {
    case sdma::kNop:
    case sdma::kGcrReq:  // memory is coherent here
    case sdma::kDummyTrap:
      return PacketStatus::kDone;
    case sdma::kCopy:
      return sdma::sub_op_of(packet[0]) == sdma::kCopyLinearSubWindow ? copy_window(packet, budget)
                                                                      : copy(packet, budget);
    case sdma::kWrite:
      return write(packet, budget);
    case sdma::kConstFill:
      return fill(packet, budget);
    case sdma::kPtePde:
      return pte(packet, budget);
    case sdma::kIndirect:
      return indirect(packet);
    case sdma::kPollRegmem:
      return sdma::sub_op_of(packet[0]) == sdma::kPollVmInvalidation ? invalidate(packet) : poll(packet);
    case sdma::kGpuvmInv:
      return format_.generation == 4 ? QueueResult<PacketStatus>(PacketStatus::kDone) : invalidate(packet);
    case sdma::kAtomic:
      return atomic(packet);
    case sdma::kTimestamp:
      return timestamp(packet);
    case sdma::kSrbmWrite:
      return srbm_write(packet);
    case sdma::kTrap:
      return trap(packet);
    default:
      return execute_control(packet);
  }
}

QueueResult<PacketStatus> SdmaQueue::execute_control(WordView packet) {
  switch (sdma::op_of(packet[0])) {
    case sdma::kFence:
      return fence(packet);
    case sdma::kCondExe: {
      const auto p = sdma::decode_cond_exe(packet);
      ASSIGN_OR_RETURN(const std::uint32_t value, lift(context_.memory.load32(vmid(), p->addr)));
      if (value != p->reference) skip_ = p->dwords;
      trace_line(context_.trace, name_, "cond_exe addr=0x%" PRIx64 " skip=%" PRIu64, p->addr, skip_);
      return PacketStatus::kDone;
    }
    case sdma::kPreExe: {
      const auto p = sdma::decode_pre_exe(packet);
      constexpr std::uint32_t kThisDevice = 1;  // the only device of its group
      if ((p->devices & kThisDevice) == 0) skip_ = p->dwords;
      trace_line(context_.trace, name_, "pre_exe devices=0x%x skip=%" PRIu64, p->devices, skip_);
      return PacketStatus::kDone;
    }
    default:
      return QueueError{QueueError::Kind::kBadOpcode, {}, packet[0]};
  }
}

QueueResult<PacketStatus> SdmaQueue::fence(WordView packet) {
  if (sdma::sub_op_of(packet[0]) == sdma::kMemIncr) {
    const auto addr = sdma::decode_mem_incr(packet);
    trace_line(context_.trace, name_, "mem_incr addr=0x%" PRIx64, *addr);
    TRY(lift(context_.memory.fetch_add32(vmid(), *addr, 1)));
    return PacketStatus::kDone;
  }
  const auto p = sdma::decode_fence(packet);
  trace_line(context_.trace, name_, "fence addr=0x%" PRIx64 " data=0x%x", p->addr, p->data);
  TRY(lift(context_.memory.store32(vmid(), p->addr, p->data)));
  return PacketStatus::kDone;
}

// Nothing to do: the device drops translations before the next step in any case.
QueueResult<PacketStatus> SdmaQueue::invalidate(WordView packet) {
  if (!kernel_ || vmid() != 0) return QueueError{QueueError::Kind::kPrivilege, {}, packet[1]};
  trace_line(context_.trace, name_, "gpuvm_inv");
  return PacketStatus::kDone;
}

QueueResult<PacketStatus> SdmaQueue::copy_window(WordView packet, Budget& budget) {
  constexpr std::uint64_t kRowCost = 256;  // a row costs at least so many bytes of the budget
  const auto p = sdma::decode_copy_window(packet, format_);
  if (!p.has_value()) return QueueError{QueueError::Kind::kBadPacket, {}, packet[0]};
  if (window_row_ == 0) {
    trace_line(context_.trace, name_, "copy_window src=0x%" PRIx64 " dst=0x%" PRIx64 " element=%u size=%ux%ux%u",
               p->src.addr, p->dst.addr, 1u << p->element_log2, p->width, p->height, p->depth);
  }
  const std::uint64_t rows = std::uint64_t{p->height} * p->depth;
  const std::uint64_t row_bytes = std::uint64_t{p->width} << p->element_log2;
  const auto row_addr = [&](const sdma::WindowSide& side, std::uint64_t row) {
    const std::uint64_t y = side.y + row % p->height;
    const std::uint64_t z = side.z + row / p->height;
    return side.addr + ((z * side.slice_pitch + y * side.pitch + side.x) << p->element_log2);
  };
  for (; window_row_ < rows && budget.bytes > 0; ++window_row_) {
    const GpuAddr from = row_addr(p->src, window_row_);
    TRY(lift(copy_all(context_, vmid(), row_addr(p->dst, window_row_), from, row_bytes)));
    budget.spend_bytes(std::max(row_bytes, kRowCost));
  }
  return window_row_ < rows ? PacketStatus::kMore : PacketStatus::kDone;
}

QueueResult<PacketStatus> SdmaQueue::copy(WordView packet, Budget& budget) {
  const auto p = sdma::decode_copy(packet, format_);
  if (!p.has_value()) return QueueError{QueueError::Kind::kBadPacket, {}, packet[0]};
  if (progress_ == 0) {
    trace_line(context_.trace, name_, "copy src=0x%" PRIx64 " dst=0x%" PRIx64 " bytes=%u", p->src, p->dst, p->bytes);
  }
  const std::uint64_t left = bytes_left(p->bytes, progress_);
  ASSIGN_OR_RETURN(const std::uint64_t n,
                   lift(copy_some(context_, vmid(), p->dst + progress_, p->src + progress_, left, budget)));
  if (p->second_dst.has_value()) {
    TRY(lift(copy_all(context_, vmid(), *p->second_dst + progress_, p->src + progress_, n)));
  }
  progress_ += n;
  if (n == 0 && left > 0) return PacketStatus::kLink;
  return progress_ >= p->bytes ? PacketStatus::kDone : PacketStatus::kMore;
}

QueueResult<PacketStatus> SdmaQueue::fill(WordView packet, Budget& budget) {
  const auto p = sdma::decode_const_fill(packet, format_);
  if (!p.has_value()) return QueueError{QueueError::Kind::kBadPacket, {}, packet[0]};
  std::uint32_t pattern = p->data;
  if (p->size == sdma::FillSize::kByte) pattern = (pattern & 0xffu) * 0x01010101u;
  if (p->size == sdma::FillSize::kHalf) pattern = (pattern & 0xffffu) * 0x00010001u;
  if (progress_ == 0) {
    trace_line(context_.trace, name_, "fill dst=0x%" PRIx64 " data=0x%08x bytes=%u", p->dst, pattern, p->bytes);
  }
  ASSIGN_OR_RETURN(const std::uint64_t n, lift(fill_some(context_.memory, vmid(), p->dst + progress_, pattern,
                                                         progress_, bytes_left(p->bytes, progress_), budget)));
  progress_ += n;
  return progress_ >= p->bytes ? PacketStatus::kDone : PacketStatus::kMore;
}

QueueResult<PacketStatus> SdmaQueue::write(WordView packet, Budget& budget) {
  const auto p = sdma::decode_write(packet, format_);
  if (!p.has_value()) return QueueError{QueueError::Kind::kBadPacket, {}, packet[0]};
  trace_line(context_.trace, name_, "write dst=0x%" PRIx64 " dwords=%u", p->dst, p->dwords);
  constexpr std::size_t kChunk = 1024;
  std::array<std::uint32_t, kChunk> chunk;
  for (std::uint64_t done = 0; done < p->dwords;) {
    const auto part = std::span(chunk).first(std::min<std::size_t>(kChunk, p->dwords - static_cast<std::size_t>(done)));
    TRY(lift(fetch_words(context_.memory, source(), position() + sdma::kWriteHeadDwords + done, part)));
    TRY(lift(context_.memory.write(vmid(), p->dst + done * 4, std::as_bytes(part))));
    done += part.size();
  }
  budget.spend_bytes(std::uint64_t{p->dwords} * 4);
  return PacketStatus::kDone;
}

QueueResult<PacketStatus> SdmaQueue::pte(WordView packet, Budget& budget) {
  constexpr std::uint64_t kEntry = 8;
  if (sdma::sub_op_of(packet[0]) == sdma::kPtePdeGen) {
    const auto p = sdma::decode_pte_gen(packet, format_);
    trace_line(context_.trace, name_, "pte_gen dst=0x%" PRIx64 " init=0x%" PRIx64 " count=%u", p->dst, p->init,
               p->count);
    for (std::uint64_t i = 0; i < p->count; ++i) {
      TRY(lift(context_.memory.store64(vmid(), p->dst + i * kEntry, (p->init + i * p->increment) | p->mask)));
    }
    budget.spend_bytes(p->count * kEntry);
    return PacketStatus::kDone;
  }
  const auto p = sdma::decode_pte_copy(packet);
  trace_line(context_.trace, name_, "pte_copy src=0x%" PRIx64 " dst=0x%" PRIx64 " count=%u", p->src, p->dst, p->count);
  for (std::uint64_t i = 0; i < p->count; ++i) {
    ASSIGN_OR_RETURN(const std::uint64_t entry, lift(context_.memory.load64(vmid(), p->src + i * kEntry)));
    TRY(lift(context_.memory.store64(vmid(), p->dst + i * kEntry, entry & p->mask)));
  }
  budget.spend_bytes(p->count * kEntry);
  return PacketStatus::kDone;
}

QueueResult<PacketStatus> SdmaQueue::indirect(WordView packet) {
  const auto p = sdma::decode_indirect(packet);
  if (ib_.has_value()) return QueueError{QueueError::Kind::kBadPacket, {}, packet[0]};  // hardware has one level
  const unsigned ib_vmid = kernel_ ? p->vmid : ring_.vmid;
  trace_line(context_.trace, name_, "indirect vmid=%u addr=0x%" PRIx64 " dwords=%u", ib_vmid, p->addr, p->dwords);
  ib_ = ActiveIb{ib_vmid, p->addr, p->dwords, 0};
  return PacketStatus::kEnterIb;
}

QueueResult<PacketStatus> SdmaQueue::poll(WordView packet) {
  const auto p = sdma::decode_poll_regmem(packet);
  if (!p.has_value()) return QueueError{QueueError::Kind::kBadPacket, {}, packet[0]};
  if (p->hdp_flush) return PacketStatus::kDone;  // memory is coherent here
  if (!p->memory) {
    // Register writes take effect before the next packet, so there is nothing to wait for. ROCr polls a register to
    // flush the HDP, which is not needed either.
    if (p->function == packets::Compare::kAlways) return PacketStatus::kDone;
    if (p->addr == std::uint64_t{VASIC_REG_TLB_INVALIDATE} * 4) return PacketStatus::kDone;
    return QueueError{QueueError::Kind::kBadPacket, {}, packet[0]};
  }
  ASSIGN_OR_RETURN(const std::uint32_t value, lift(context_.memory.load32(vmid(), p->addr)));
  if (!compare_holds(p->function, value & p->mask, p->reference)) return PacketStatus::kWait;
  trace_line(context_.trace, name_, "poll addr=0x%" PRIx64 " value=0x%x", p->addr, value);
  return PacketStatus::kDone;
}

QueueResult<PacketStatus> SdmaQueue::atomic(WordView packet) {
  const auto p = sdma::decode_atomic(packet);
  ASSIGN_OR_RETURN(const bool stored,
                   apply_atomic(context_.memory, vmid(), p->addr, p->code, p->src, p->compare, packet[0]));
  if (!stored && p->loop) return PacketStatus::kWait;
  trace_line(context_.trace, name_, "atomic code=0x%x addr=0x%" PRIx64, p->code, p->addr);
  return PacketStatus::kDone;
}

QueueResult<PacketStatus> SdmaQueue::timestamp(WordView packet) {
  const auto value = sdma::decode_timestamp(packet);
  if (!value.has_value()) return QueueError{QueueError::Kind::kBadPacket, {}, packet[0]};
  const std::uint64_t now = context_.ticks();
  switch (sdma::sub_op_of(packet[0])) {
    case sdma::kTimestampSet:
      clock_base_ = *value - now;
      break;
    case sdma::kTimestampGet:
      TRY(lift(context_.memory.store64(vmid(), *value, now + clock_base_)));
      break;
    default:
      TRY(lift(context_.memory.store64(vmid(), *value, now)));
      break;
  }
  trace_line(context_.trace, name_, "timestamp addr=0x%" PRIx64, *value);
  return PacketStatus::kDone;
}

QueueResult<PacketStatus> SdmaQueue::srbm_write(WordView packet) {
  const auto p = sdma::decode_srbm_write(packet, format_);
  if (!kernel_ || vmid() != 0) return QueueError{QueueError::Kind::kPrivilege, {}, p->reg};
  const bool known = context_.registers.write(p->reg, p->value);
  trace_line(context_.trace, name_, "srbm_write reg=0x%x value=0x%x%s", p->reg, p->value, known ? "" : " unknown");
  return PacketStatus::kDone;
}

QueueResult<PacketStatus> SdmaQueue::trap(WordView packet) {
  const auto context_id = packet.size() < sdma::kTrapDwords ? 0 : sdma::decode_trap(packet);
  trace_line(context_.trace, name_, "trap context=0x%x", *context_id);
  context_.interrupts.raise(interrupt(InterruptKind::kSdmaTrap, kernel_ ? 0 : ring_.vmid, *context_id));
  return PacketStatus::kDone;
}

}  // namespace vasicd
