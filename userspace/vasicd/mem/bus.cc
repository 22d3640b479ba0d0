// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Bus address decoding.
#include "vasicd/mem/bus.h"

#include <algorithm>
#include <utility>

#include "vasic/vasic_abi.h"

namespace vasicd {
namespace {
constexpr std::uint64_t kBusLimit = std::uint64_t{1} << 48;
}

Bus::Bus(GuestRam ram, std::vector<Bar> bars) : ram_(ram), bars_(std::move(bars)) {
  if (bars_.size() > kMaxGpus) bars_.resize(kMaxGpus);
}

std::span<std::byte> Bus::resolve(std::uint64_t address, std::uint64_t limit) const {
  if (const auto run = ram_.at(address, limit); !run.empty()) return run;
  for (std::size_t gpu = 0; gpu < bars_.size(); ++gpu) {
    const std::uint64_t base = bases_[gpu].load(std::memory_order_relaxed);
    if (base == kDetached || address < base) continue;
    const std::uint64_t offset = address - base;
    // VRAM, doorbells and registers are reachable, because a process may map their pages for its GPUs; the mailbox in
    // front of them never is.
    static_assert(VASIC_OFF_MMIO + VASIC_MMIO_SIZE == VASIC_OFF_DOORBELL);
    const Bar& bar = bars_[gpu];
    const std::uint64_t end = std::min<std::uint64_t>(bar.reach, bar.bytes.size());
    if (offset < VASIC_OFF_MMIO || offset >= end) continue;
    const auto run = bar.bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(end - offset));
    return run.first(static_cast<std::size_t>(std::min<std::uint64_t>(run.size(), limit)));
  }
  return {};
}

bool Bus::attach(unsigned gpu, std::uint64_t base) {
  if (gpu >= bars_.size()) return false;
  const std::uint64_t size = bars_[gpu].bytes.size();
  if (base == kDetached || base % size != 0 || base >= kBusLimit || size > kBusLimit - base) return false;
  if (ram_.overlaps(base, size)) return false;
  const std::lock_guard lock(attach_mutex_);
  for (std::size_t other = 0; other < bars_.size(); ++other) {
    const std::uint64_t other_base = bases_[other].load(std::memory_order_relaxed);
    if (other == gpu || other_base == kDetached) continue;
    if (base < other_base + bars_[other].bytes.size() && other_base < base + size) return false;
  }
  bases_[gpu].store(base, std::memory_order_relaxed);
  return true;
}

void Bus::detach(unsigned gpu) {
  if (gpu >= bars_.size()) return;
  const std::lock_guard lock(attach_mutex_);
  bases_[gpu].store(kDetached, std::memory_order_relaxed);
}

}  // namespace vasicd
