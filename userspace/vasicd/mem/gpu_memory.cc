// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Address decoding and permission checks.
#include "vasicd/mem/gpu_memory.h"

#include <algorithm>

namespace vasicd {
namespace {

constexpr std::uint64_t kMcLimit = std::uint64_t{1} << kVaBits;

bool range_ok(std::uint64_t base, std::uint64_t size) {
  return size != 0 && ((base | size) & kGpuPageMask) == 0 && base < kMcLimit && size <= kMcLimit - base;
}

}  // namespace

MemoryResult<std::span<std::byte>> GpuMemory::part(const Translation& run, MemoryFault fault, std::uint64_t limit) {
  if (fault.access == Access::kRead && !run.readable) {
    fault.kind = FaultKind::kNotReadable;
    return fault;
  }
  if (fault.access == Access::kWrite && !run.writable) {
    fault.kind = FaultKind::kNotWritable;
    return fault;
  }
  const std::uint64_t offset = fault.va & kGpuPageMask;
  const std::uint64_t size = std::min(run.size - offset, limit);
  if (run.host == nullptr) return prt_bytes(fault.access, size);
  return std::span(run.host, static_cast<std::size_t>(run.size))
      .subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

// A caller that maps for writing could read what an earlier write left, so the bytes are cleared first.
std::span<std::byte> GpuMemory::prt_bytes(Access access, std::uint64_t size) {
  auto& bytes = access == Access::kRead ? prt_zeros_ : prt_sink_;
  bytes.resize(kPrtBytes);
  const auto run = std::span(bytes).first(static_cast<std::size_t>(std::min<std::uint64_t>(size, kPrtBytes)));
  if (access == Access::kWrite) std::ranges::fill(run, std::byte{0});
  return run;
}

MemoryResult<std::span<std::byte>> GpuMemory::map(unsigned vmid, GpuAddr va, std::size_t limit, Access access) {
  if (vmid == 0) return map_mc(va, limit, access);
  MemoryFault fault{.vmid = vmid, .va = va, .access = access, .kind = FaultKind::kNotPresent};
  if (vmid >= contexts_.size()) return fault;

  Context& context = contexts_[vmid];
  const std::uint64_t page = (va & kVaMask) >> kGpuPageShift;
  if (page >= va_pages_) return fault;
  const std::uint64_t want = limit < kMcLimit ? (va & kGpuPageMask) + limit : kMcLimit;
  const Translation* run = context.cache.find(page);
  if (run == nullptr || (!run->complete && run->size < want)) {
    const auto walked = walker_.walk(context.pd, va, want);
    if (!walked.ok()) {
      fault.kind = walked.error();
      fault.retry = context.retry && fault.kind == FaultKind::kNotPresent;
      return fault;
    }
    context.cache.insert(page, *walked);
    run = context.cache.find(page);
  }
  return part(*run, fault, limit);
}

MemoryResult<std::span<std::byte>> GpuMemory::map_mc(GpuAddr va, std::uint64_t limit, Access access) {
  MemoryFault fault{.vmid = 0, .va = va, .access = access, .kind = FaultKind::kNotPresent};
  if (!mc_ready_) return fault;
  if (const auto run = vram_.resolve(va - mc_.vram_base + vram_.own_offset(), limit); !run.empty()) return run;
  if (va < mc_.gart_base || va - mc_.gart_base >= mc_.gart_size) return fault;

  const std::uint64_t pages = mc_.gart_size >> kGpuPageShift;
  const auto table = vram_.own().subspan(static_cast<std::size_t>(mc_.gart_table),
                                         static_cast<std::size_t>(pages * sizeof(std::uint64_t)));
  const std::uint64_t want = (va & kGpuPageMask) + std::min(limit, mc_.gart_size);
  const auto run = walker_.walk_flat(table, (va - mc_.gart_base) >> kGpuPageShift, want);
  if (!run.ok()) {
    fault.kind = run.error();
    return fault;
  }
  return part(*run, fault, limit);
}

bool GpuMemory::set_mc(const McLayout& layout) {
  const std::uint64_t vram_size = vram_.own().size();
  if (!range_ok(layout.vram_base, vram_size) || !range_ok(layout.gart_base, layout.gart_size)) return false;
  if (layout.vram_base < layout.gart_base + layout.gart_size && layout.gart_base < layout.vram_base + vram_size)
    return false;
  const std::uint64_t table_size = (layout.gart_size >> kGpuPageShift) * sizeof(std::uint64_t);
  if ((layout.gart_table & kGpuPageMask) != 0 || layout.gart_table > vram_size ||
      table_size > vram_size - layout.gart_table)
    return false;
  const std::uint64_t most_pages = std::uint64_t{1} << (walker_.format().va_bits - kGpuPageShift);
  const bool is_fixed = walker_.format().levels > 1;
  if (layout.table_bits < PageWalker::kMinTableBits ||
      layout.table_bits > (is_fixed ? PageWalker::kMinTableBits : PageWalker::kMaxTableBits) ||
      layout.va_pages > most_pages)
    return false;
  mc_ = layout;
  va_pages_ = layout.va_pages != 0 ? layout.va_pages : most_pages;
  walker_.set_layout(layout.vram_base, layout.table_bits);
  mc_ready_ = true;
  return true;
}

void GpuMemory::set_page_directory(unsigned vmid, std::uint64_t pd) {
  if (vmid == 0 || vmid >= contexts_.size()) return;
  contexts_[vmid].pd = pd;
  contexts_[vmid].retry = false;
  contexts_[vmid].cache.drop();
}

void GpuMemory::set_retry(unsigned vmid, bool retry) {
  if (vmid != 0 && vmid < contexts_.size()) contexts_[vmid].retry = retry;
}

void GpuMemory::invalidate(std::uint32_t vmid_mask) {
  for (unsigned vmid = 1; vmid < contexts_.size(); ++vmid)
    if ((vmid_mask >> vmid & 1u) != 0) contexts_[vmid].cache.drop();
}

void GpuMemory::reset() {
  mc_ready_ = false;
  mc_ = {};
  va_pages_ = kAllPages;
  for (unsigned vmid = 1; vmid < contexts_.size(); ++vmid) set_page_directory(vmid, 0);
}

}  // namespace vasicd
