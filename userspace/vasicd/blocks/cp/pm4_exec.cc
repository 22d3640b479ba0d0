// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What each PM4 packet does.
#include "vasicd/blocks/cp/pm4_exec.h"

#include <algorithm>
#include <cinttypes>

#include "vasicd/blocks/queue/gpu_ops.h"
#include "vasicd/blocks/queue/trace_line.h"

namespace vasicd {

namespace pm4 = packets::pm4;
using packets::WordView;

namespace {

QueueError bad_packet(WordView packet) { return {QueueError::Kind::kBadPacket, {}, packet[0]}; }

}  // namespace

QueueResult<void> Pm4Executor::look_at(const WordSource& source, std::uint64_t pos) {
  packet_dwords_ = 0;
  packet_.resize(1);
  TRY(lift(fetch_words(context_.memory, source, pos, std::span(packet_).first(1))));
  packet_dwords_ = pm4::decode_header(packet_.front()).dwords;
  return {};
}

QueueResult<PacketStatus> Pm4Executor::execute_at(const WordSource& source, std::uint64_t pos, std::uint64_t available,
                                                  Budget& budget) {
  vmid_ = source.vmid;
  TRY(look_at(source, pos));
  const std::uint32_t header = packet_.front();
  const std::size_t dwords = packet_dwords_;
  // The rest of a packet may still be written to a ring, but not to an IB, nor if the packet is longer than the ring.
  const bool final = source.mask == WordSource::kLinear;
  if (dwords > available) {
    if (final || dwords > source.mask) return QueueError{QueueError::Kind::kBadPacket, {}, header};
    return PacketStatus::kWait;
  }
  packet_.resize(dwords);
  TRY(lift(fetch_words(context_.memory, source, pos + 1, std::span(packet_).subspan(1))));
  ASSIGN_OR_RETURN(const PacketStatus status, execute(packet_, budget));
  if (packet_dwords_ <= available) return status;
  // COND_EXEC skips more dwords than the buffer has.
  if (final || packet_dwords_ > source.mask) return QueueError{QueueError::Kind::kBadPacket, {}, header};
  return PacketStatus::kWait;
}

QueueResult<PacketStatus> Pm4Executor::execute(WordView packet, Budget& budget) {
  const pm4::Header header = pm4::decode_header(packet[0]);
  if (header.type == pm4::kType2) return PacketStatus::kDone;
  if (header.type != pm4::kType3) return QueueError{QueueError::Kind::kBadOpcode, {}, packet[0]};
  switch (header.opcode) {
    case pm4::kWriteData:
      return write_data(packet);
    case pm4::kReleaseMem: {
      const auto p = pm4::decode_release_mem(packet, level_);
      return p.has_value() ? end_of_pipe(*p, packet[0]) : bad_packet(packet);
    }
    case pm4::kWaitRegMem:
      return wait_reg_mem(packet);
    case pm4::kIndirectBuffer:
      return indirect_buffer(packet);
    case pm4::kCopyData:
      return copy_data(packet);
    case pm4::kAtomicMem:
      return atomic_mem(packet);
    case pm4::kDmaData:
      return dma_data(packet, budget);
    case pm4::kCondExec:
      return cond_exec(packet);
    case pm4::kDispatchDirect:
    case pm4::kDispatchIndirect:
      return dispatch(packet);
    default:
      return execute_state(packet);
  }
}

// Packets that set up state, caches and events. Memory is coherent here, so that only register writes have an effect.
QueueResult<PacketStatus> Pm4Executor::execute_state(WordView packet) {
  const std::uint8_t opcode = pm4::decode_header(packet[0]).opcode;
  switch (opcode) {
    case pm4::kNop:
    case pm4::kClearState:
    case pm4::kSetBase:
    case pm4::kContextControl:
    case pm4::kPfpSyncMe:
    case pm4::kEventWrite:
    case pm4::kAcquireMem:
    case pm4::kHdpFlush:
      return PacketStatus::kDone;
    case pm4::kSetConfigReg:
      return set_registers(packet, pm4::kConfigRegBase, pm4::kConfigRegEnd);
    case pm4::kSetContextReg:
      return set_registers(packet, pm4::kContextRegBase, pm4::kContextRegEnd);
    case pm4::kSetShReg:
      return set_registers(packet, pm4::kShRegBase, pm4::kShRegEnd);
    case pm4::kSetUconfigReg:
      return set_registers(packet, pm4::kUconfigRegBase, pm4::kUconfigRegEnd);
    default:
      break;
  }
  const bool before_gfx9 = level_ < 9;
  if (opcode == pm4::kSurfaceSync && before_gfx9) return PacketStatus::kDone;
  if (opcode == pm4::kEventWriteEop && before_gfx9) {
    const auto p = pm4::decode_event_write_eop(packet);
    return p.has_value() ? end_of_pipe(*p, packet[0]) : bad_packet(packet);
  }
  if (opcode == pm4::kInvalidateTlbs && privileged()) return PacketStatus::kDone;
  return QueueError{QueueError::Kind::kBadOpcode, {}, packet[0]};
}

void Pm4Executor::raise_eop(unsigned vmid, std::uint32_t context_id) {
  context_.interrupts.raise({.kind = InterruptKind::kCpEndOfPipe,
                             .ring_id = ring_id_,
                             .vmid = static_cast<std::uint8_t>(vmid),
                             .data = {context_id}});
}

QueueResult<PacketStatus> Pm4Executor::write_data(WordView packet) {
  const auto p = pm4::decode_write_data(packet);
  if (!p.has_value()) return bad_packet(packet);
  switch (p->dst) {
    case pm4::WriteDst::kMemory:
    case pm4::WriteDst::kMemorySync:
    case pm4::WriteDst::kL2:
      break;
    case pm4::WriteDst::kRegister:
      return write_registers(*p);
    default:
      return bad_packet(packet);
  }
  trace_line(context_.trace, name_, "write_data addr=0x%" PRIx64 " dwords=%zu", p->addr, p->data.size());
  if (p->one_addr || p->data.size() == 1) {
    TRY(lift(context_.memory.store32(vmid_, p->addr, p->data.back())));
  } else {
    TRY(lift(context_.memory.write(vmid_, p->addr & ~GpuAddr{3}, std::as_bytes(p->data))));
  }
  return PacketStatus::kDone;
}

QueueResult<PacketStatus> Pm4Executor::write_registers(const pm4::WriteData& p) {
  auto reg = packets::lo32(p.addr);
  if (!privileged()) return QueueError{QueueError::Kind::kPrivilege, {}, reg};
  for (const std::uint32_t value : p.data) {
    const bool known = context_.registers.write(reg, value);
    trace_line(context_.trace, name_, "write_reg reg=0x%x value=0x%x%s", reg, value, known ? "" : " unknown");
    if (!p.one_addr) ++reg;
  }
  return PacketStatus::kDone;
}

QueueResult<bool> Pm4Executor::memory_equals(const pm4::ReleaseMem& p) {
  if (p.int_sel == pm4::ReleaseInt::kIfEqual32) {
    ASSIGN_OR_RETURN(const std::uint32_t word, lift(context_.memory.load32(vmid_, p.addr)));
    return word == packets::lo32(p.data);
  }
  ASSIGN_OR_RETURN(const std::uint64_t word, lift(context_.memory.load64(vmid_, p.addr)));
  return word == p.data;
}

QueueResult<PacketStatus> Pm4Executor::end_of_pipe(const pm4::ReleaseMem& p, std::uint32_t header) {
  if (p.int_sel > pm4::release_int_max(level_)) return QueueError{QueueError::Kind::kBadPacket, {}, header};
  trace_line(context_.trace, name_,
             "release_mem addr=0x%" PRIx64 " data=0x%" PRIx64 " data_sel=%u int_sel=%u ctxid=0x%x", p.addr, p.data,
             static_cast<unsigned>(p.data_sel), static_cast<unsigned>(p.int_sel), p.int_ctxid);
  switch (p.data_sel) {
    case pm4::ReleaseData::kNone:
      break;
    case pm4::ReleaseData::kLow32:
      TRY(lift(context_.memory.store32(vmid_, p.addr, packets::lo32(p.data))));
      break;
    case pm4::ReleaseData::k64:
      TRY(lift(context_.memory.store64(vmid_, p.addr, p.data)));
      break;
    case pm4::ReleaseData::kGpuClock:
    case pm4::ReleaseData::kSystemClock:
      TRY(lift(context_.memory.store64(vmid_, p.addr, context_.ticks())));
      break;
    default:
      return QueueError{QueueError::Kind::kBadPacket, {}, header};
  }
  bool interrupt = p.int_sel != pm4::ReleaseInt::kNone && p.int_sel != pm4::ReleaseInt::kDataAfterConfirm;
  if (p.int_sel == pm4::ReleaseInt::kIfEqual32 || p.int_sel == pm4::ReleaseInt::kIfEqual64) {
    ASSIGN_OR_RETURN(interrupt, memory_equals(p));
  }
  if (interrupt) raise_eop(vmid_, p.int_ctxid);
  return PacketStatus::kDone;
}

// Registers are written before the next packet, and caches need no flush, so the condition that the kernel waits for
// holds already.
QueueResult<PacketStatus> Pm4Executor::wait_register(const pm4::WaitRegMem& p, std::uint32_t header) {
  constexpr std::uint32_t kWriteWaitWrite = 1;
  if (!privileged()) return QueueError{QueueError::Kind::kPrivilege, {}, packets::lo32(p.addr)};
  const bool known = p.operation == kWriteWaitWrite || p.function == packets::Compare::kAlways ||
                     packets::lo32(p.addr) == VASIC_REG_TLB_INVALIDATE;
  if (!known) return QueueError{QueueError::Kind::kBadPacket, {}, header};
  return PacketStatus::kDone;
}

QueueResult<PacketStatus> Pm4Executor::wait_reg_mem(WordView packet) {
  const auto p = pm4::decode_wait_reg_mem(packet);
  if (!p.has_value()) return bad_packet(packet);
  if (!p->memory || p->operation != 0) return wait_register(*p, packet[0]);
  ASSIGN_OR_RETURN(const std::uint32_t value, lift(context_.memory.load32(vmid_, p->addr)));
  if (!compare_holds(p->function, value & p->mask, p->reference)) return PacketStatus::kWait;
  trace_line(context_.trace, name_, "wait_reg_mem addr=0x%" PRIx64 " value=0x%x", p->addr, value);
  return PacketStatus::kDone;
}

QueueResult<PacketStatus> Pm4Executor::cond_exec(WordView packet) {
  const auto p = pm4::decode_cond_exec(packet);
  if (!p.has_value()) return bad_packet(packet);
  ASSIGN_OR_RETURN(const std::uint32_t value, lift(context_.memory.load32(vmid_, p->addr)));
  if (value == 0) packet_dwords_ += p->dwords;
  trace_line(context_.trace, name_, "cond_exec addr=0x%" PRIx64 " skip=%u", p->addr, value == 0 ? p->dwords : 0);
  return PacketStatus::kDone;
}

QueueResult<PacketStatus> Pm4Executor::indirect_buffer(WordView packet) {
  const auto p = pm4::decode_indirect_buffer(packet);
  if (!p.has_value()) return bad_packet(packet);
  trace_line(context_.trace, name_, "indirect_buffer addr=0x%" PRIx64 " dwords=%u%s", p->addr, p->dwords,
             p->chain ? " chain" : "");
  next_ib_ = *p;
  return PacketStatus::kEnterIb;
}

QueueResult<std::uint64_t> Pm4Executor::copy_data_source(const pm4::CopyData& p, std::uint32_t header) {
  switch (p.src_sel) {
    case pm4::CopySrc::kImmediate:
      return p.src;
    case pm4::CopySrc::kGpuClock:
      return context_.ticks();
    case pm4::CopySrc::kMemory:
    case pm4::CopySrc::kL2: {
      if (p.wide) return lift(context_.memory.load64(vmid_, p.src));
      ASSIGN_OR_RETURN(const std::uint32_t word, lift(context_.memory.load32(vmid_, p.src)));
      return std::uint64_t{word};
    }
    case pm4::CopySrc::kRegister:
      return QueueError{QueueError::Kind::kPrivilege, {}, packets::lo32(p.src)};
    default:
      return QueueError{QueueError::Kind::kBadPacket, {}, header};
  }
}

QueueResult<PacketStatus> Pm4Executor::copy_data(WordView packet) {
  const auto p = pm4::decode_copy_data(packet);
  if (!p.has_value()) return bad_packet(packet);
  ASSIGN_OR_RETURN(const std::uint64_t value, copy_data_source(*p, packet[0]));
  if (p->dst_sel == pm4::CopyDst::kRegister) {
    return QueueError{QueueError::Kind::kPrivilege, {}, packets::lo32(p->dst)};
  }
  if (p->dst_sel != pm4::CopyDst::kMemory && p->dst_sel != pm4::CopyDst::kL2 &&
      p->dst_sel != pm4::CopyDst::kMemorySync) {
    return bad_packet(packet);
  }
  trace_line(context_.trace, name_, "copy_data dst=0x%" PRIx64 " value=0x%" PRIx64, p->dst, value);
  if (p->wide) {
    TRY(lift(context_.memory.store64(vmid_, p->dst, value)));
  } else {
    TRY(lift(context_.memory.store32(vmid_, p->dst, packets::lo32(value))));
  }
  return PacketStatus::kDone;
}

QueueResult<PacketStatus> Pm4Executor::atomic_mem(WordView packet) {
  const auto p = pm4::decode_atomic_mem(packet);
  if (!p.has_value()) return bad_packet(packet);
  ASSIGN_OR_RETURN(const bool stored,
                   apply_atomic(context_.memory, vmid_, p->addr, p->code, p->src, p->compare, packet[0]));
  if (!stored && p->loop) return PacketStatus::kWait;
  trace_line(context_.trace, name_, "atomic_mem code=0x%x addr=0x%" PRIx64, p->code, p->addr);
  return PacketStatus::kDone;
}

QueueResult<PacketStatus> Pm4Executor::dma_data(WordView packet, Budget& budget) {
  const auto p = pm4::decode_dma_data(packet, level_);
  if (!p.has_value() || p->registers || p->src_sel == pm4::DmaSrc::kGds || (p->dst_sel != 0 && p->dst_sel != 3)) {
    return bad_packet(packet);
  }
  if (progress_ == 0) {
    trace_line(context_.trace, name_, "dma_data src=0x%" PRIx64 " dst=0x%" PRIx64 " bytes=%u", p->src, p->dst,
               p->bytes);
  }
  const std::uint64_t left = bytes_left(p->bytes, progress_);
  auto moved =
      p->src_sel == pm4::DmaSrc::kData
          ? fill_some(context_.memory, vmid_, p->dst + progress_, packets::lo32(p->src), progress_, left, budget)
          : copy_some(context_, vmid_, p->dst + progress_, p->src + progress_, left, budget);
  if (!moved.ok()) {
    progress_ = 0;
    return memory_error(moved.error());
  }
  progress_ += *moved;
  if (*moved == 0 && left > 0) return PacketStatus::kLink;
  if (progress_ < p->bytes) return PacketStatus::kMore;
  progress_ = 0;
  return PacketStatus::kDone;
}

QueueResult<PacketStatus> Pm4Executor::set_registers(WordView packet, std::uint32_t base, std::uint32_t end) {
  const auto p = pm4::decode_set_reg(packet);
  if (!p.has_value() || p->offset + p->values.size() > end - base) return bad_packet(packet);
  trace_line(context_.trace, name_, "set_reg index=0x%x count=%zu", base + p->offset, p->values.size());
  // Only the registers of a dispatch have an effect here.
  std::uint32_t index = base + p->offset - packets::compute::kDispatchInitiator;
  for (const std::uint32_t value : p->values) {
    if (index < registers_.size()) registers_[index] = value;
    ++index;
  }
  return PacketStatus::kDone;
}

QueueResult<PacketStatus> Pm4Executor::dispatch(WordView packet) {
  if (client_ != Pm4Client::kUser || !isa_of(context_.info).has_value()) {
    return QueueError{QueueError::Kind::kIllegalInstruction, {}, packet[0]};
  }
  if (const auto direct = pm4::decode_dispatch_direct(packet); direct.has_value()) {
    next_dispatch_ = *direct;
    return PacketStatus::kDispatch;
  }
  const auto indirect = pm4::decode_dispatch_indirect(packet);
  if (!indirect.has_value()) return bad_packet(packet);
  std::array<std::uint32_t, 3> dims{};
  TRY(lift(context_.memory.read(vmid_, indirect->addr, std::as_writable_bytes(std::span(dims)))));
  next_dispatch_ = {dims, indirect->initiator};
  return PacketStatus::kDispatch;
}

}  // namespace vasicd
