// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Comparing, atomics, copies and fills.
#include "vasicd/blocks/queue/gpu_ops.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

#include "packets/atomic.h"
#include "vasicd/blocks/queue/copy_run.h"

namespace vasicd {

bool compare_holds(packets::Compare function, std::uint32_t value, std::uint32_t reference) {
  using packets::Compare;
  switch (function) {
    case Compare::kAlways:
      return true;
    case Compare::kLess:
      return value < reference;
    case Compare::kLessEqual:
      return value <= reference;
    case Compare::kEqual:
      return value == reference;
    case Compare::kNotEqual:
      return value != reference;
    case Compare::kGreaterEqual:
      return value >= reference;
    case Compare::kGreater:
      return value > reference;
  }
  return false;
}

namespace {

using packets::AtomicOp;

template <typename Word>
std::optional<Word> atomic_result(AtomicOp op, Word old, Word src, Word compare) {
  using Signed = std::make_signed_t<Word>;
  const auto s_old = static_cast<Signed>(old);
  const auto s_src = static_cast<Signed>(src);
  switch (op) {
    case AtomicOp::kSwap:
      return src;
    case AtomicOp::kCompareSwap:
      return old == compare ? src : old;
    case AtomicOp::kAdd:
      return static_cast<Word>(old + src);
    case AtomicOp::kSub:
      return static_cast<Word>(old - src);
    case AtomicOp::kSignedMin:
      return s_src < s_old ? src : old;
    case AtomicOp::kSignedMax:
      return s_src > s_old ? src : old;
    case AtomicOp::kUnsignedMin:
      return std::min(old, src);
    case AtomicOp::kUnsignedMax:
      return std::max(old, src);
    case AtomicOp::kAnd:
      return static_cast<Word>(old & src);
    case AtomicOp::kOr:
      return static_cast<Word>(old | src);
    case AtomicOp::kXor:
      return static_cast<Word>(old ^ src);
    case AtomicOp::kIncrement:
      return old >= src ? Word{0} : static_cast<Word>(old + 1);
    case AtomicOp::kDecrement:
      return old == 0 || old > src ? src : static_cast<Word>(old - 1);
  }
  return std::nullopt;
}

template <typename Word>
QueueResult<bool> apply_atomic_word(Memory& memory, unsigned vmid, GpuAddr addr, AtomicOp op, Word src, Word compare,
                                    std::uint32_t header) {
  addr &= ~static_cast<GpuAddr>(sizeof(Word) - 1);
  ASSIGN_OR_RETURN(auto run, lift(memory.map(vmid, addr, sizeof(Word), Access::kWrite)));
  if (run.size() < sizeof(Word)) return QueueError{QueueError::Kind::kBadPacket, {}, header};
  std::atomic_ref<Word> word(*reinterpret_cast<Word*>(run.data()));
  Word old = word.load(std::memory_order_acquire);
  for (;;) {
    const std::optional<Word> fresh = atomic_result(op, old, src, compare);
    if (!fresh.has_value()) return QueueError{QueueError::Kind::kBadOpcode, {}, header};
    if (op == AtomicOp::kCompareSwap && old != compare) return false;
    if (word.compare_exchange_weak(old, *fresh)) return true;
  }
}

}  // namespace

QueueResult<bool> apply_atomic(Memory& memory, unsigned vmid, GpuAddr addr, std::uint32_t code, std::uint64_t src,
                               std::uint64_t compare, std::uint32_t header) {
  const auto op = static_cast<AtomicOp>(code & ~(packets::kAtomic64 | packets::kAtomicNoReturn));
  if ((code & packets::kAtomic64) != 0) return apply_atomic_word(memory, vmid, addr, op, src, compare, header);
  return apply_atomic_word(memory, vmid, addr, op, static_cast<std::uint32_t>(src), static_cast<std::uint32_t>(compare),
                           header);
}

MemoryResult<std::uint64_t> copy_bytes(Memory& memory, unsigned vmid, GpuAddr dst, GpuAddr src, std::uint64_t bytes) {
  std::uint64_t crossed = 0;
  std::span<std::byte> from;
  std::span<std::byte> to;
  while (bytes > 0) {
    if (from.empty()) {
      ASSIGN_OR_RETURN(from, memory.map(vmid, src, static_cast<std::size_t>(bytes), Access::kRead));
    }
    if (to.empty()) {
      ASSIGN_OR_RETURN(to, memory.map(vmid, dst, static_cast<std::size_t>(bytes), Access::kWrite));
    }
    const std::size_t n = std::min({from.size(), to.size(), static_cast<std::size_t>(bytes)});
    if (!memory.is_local(from.data()) || !memory.is_local(to.data())) crossed += n;
    copy_run(to.data(), from.data(), n);  // two GPU ranges may share bytes
    from = from.subspan(n);
    to = to.subspan(n);
    src += n;
    dst += n;
    bytes -= n;
  }
  return crossed;
}

MemoryResult<std::uint64_t> copy_some(const EngineContext& context, unsigned vmid, GpuAddr dst, GpuAddr src,
                                      std::uint64_t bytes, Budget& budget) {
  Link& link = context.controls.link();
  std::uint64_t n = std::min(bytes, budget.bytes);
  if (link.limited() && budget.obeys_link() && n > 0) {
    ASSIGN_OR_RETURN(const auto from, context.memory.map(vmid, src, 1, Access::kRead));
    ASSIGN_OR_RETURN(const auto to, context.memory.map(vmid, dst, 1, Access::kWrite));
    if (!context.memory.is_local(from.data()) || !context.memory.is_local(to.data())) {
      if (!link.ready(context.clock.now_ns())) return std::uint64_t{0};
      n = std::min(n, link.quantum());
    }
  }
  TRY(copy_all(context, vmid, dst, src, n));
  budget.spend_bytes(n);
  return n;
}

MemoryResult<void> copy_all(const EngineContext& context, unsigned vmid, GpuAddr dst, GpuAddr src,
                            std::uint64_t bytes) {
  Link& link = context.controls.link();
  ASSIGN_OR_RETURN(const std::uint64_t crossed, copy_bytes(context.memory, vmid, dst, src, bytes));
  if (crossed > 0) link.spend(crossed, link.limited() ? context.clock.now_ns() : 0);
  return {};
}

MemoryResult<void> fill_bytes(Memory& memory, unsigned vmid, GpuAddr dst, std::uint32_t pattern, std::uint64_t phase,
                              std::uint64_t bytes) {
  constexpr std::size_t kChunk = 4096;
  std::array<std::byte, kChunk + sizeof(pattern)> block;
  for (std::size_t i = 0; i < block.size(); i += sizeof(pattern)) {
    std::memcpy(block.data() + i, &pattern, sizeof(pattern));
  }
  while (bytes > 0) {
    const std::size_t want = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, std::uint64_t{1} << 30));
    ASSIGN_OR_RETURN(auto run, memory.map(vmid, dst, want, Access::kWrite));
    run = run.first(std::min(run.size(), want));
    dst += run.size();
    bytes -= run.size();
    while (!run.empty()) {
      const std::size_t n = std::min(run.size(), kChunk);
      std::memcpy(run.data(), block.data() + phase % sizeof(pattern), n);
      phase += n;
      run = run.subspan(n);
    }
  }
  return {};
}

MemoryResult<std::uint64_t> fill_some(Memory& memory, unsigned vmid, GpuAddr dst, std::uint32_t pattern,
                                      std::uint64_t phase, std::uint64_t bytes, Budget& budget) {
  const std::uint64_t n = std::min(bytes, budget.bytes);
  TRY(fill_bytes(memory, vmid, dst, pattern, phase, n));
  budget.spend_bytes(n);
  return n;
}

}  // namespace vasicd
