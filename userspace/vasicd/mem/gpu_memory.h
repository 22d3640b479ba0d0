// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The Memory of a device: VMID 0 is the MC address space (VRAM aperture, GART aperture, nothing else), VMIDs 1-15
// walk the page directory bound to them, through a translation cache each. Pages that are partially resident (PRT) read
// as zeros and swallow writes. Used on the device's thread, or by one at a time of the workers that this thread waits
// for.
// Does not know who binds VMIDs (blocks/gmc.h) or when caches must be dropped (device.h).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "vasic/vasic_abi.h"
#include "vasicd/mem/memory.h"
#include "vasicd/mem/page_walker.h"
#include "vasicd/mem/translation_cache.h"

namespace vasicd {

// Where the guest put things in the MC address space (VASIC_CMD_MC_SETUP).
struct McLayout {
  GpuAddr vram_base = 0;
  GpuAddr gart_base = 0;
  std::uint64_t gart_size = 0;
  std::uint64_t gart_table = 0;                     // offset in its own VRAM
  unsigned table_bits = PageWalker::kMinTableBits;  // log2 of the entries of a page table
  std::uint64_t va_pages = 0;                       // pages of an address space; 0: as the format allows
};

class GpuMemory final : public Memory {
 public:
  GpuMemory(const VramSpace& vram, const Bus& bus, const PageFormat& format = {})
      : vram_(vram), walker_(vram, bus, format) {}

  MemoryResult<std::span<std::byte>> map(unsigned vmid, GpuAddr va, std::size_t limit, Access access) override;

  // Whether map() gave out `run` for pages that are partially resident.
  [[nodiscard]] bool is_prt(std::span<const std::byte> run) const {
    return run.data() == prt_zeros_.data() || run.data() == prt_sink_.data();
  }
  [[nodiscard]] bool is_local(const std::byte* byte) const override {
    // The addresses are compared as numbers, because the byte may be part of another object.
    const auto address = reinterpret_cast<std::uintptr_t>(byte);
    return address - reinterpret_cast<std::uintptr_t>(vram_.own().data()) < vram_.own().size();
  }

  // False, and nothing changed, if the apertures overlap, leave 48 bits, are not page aligned, or the GART table is
  // not inside VRAM.
  bool set_mc(const McLayout& layout);
  [[nodiscard]] bool mc_ready() const { return mc_ready_; }
  // Binds a VMID (1..15) to a page directory, drops its translations, and clears its set_retry().
  void set_page_directory(unsigned vmid, std::uint64_t pd);
  // Whether faults on pages that are not present are to be retried.
  void set_retry(unsigned vmid, bool retry);
  [[nodiscard]] bool retries(unsigned vmid) const override { return vmid < contexts_.size() && contexts_[vmid].retry; }
  // Drops the translations of these VMIDs; bit n of the mask is VMID n.
  void invalidate(std::uint32_t vmid_mask);
  void reset();

 private:
  static constexpr std::uint64_t kAllPages = std::uint64_t{1} << (kVaBits - kGpuPageShift);
  static constexpr std::size_t kPrtBytes = 65536;

  MemoryResult<std::span<std::byte>> map_mc(GpuAddr va, std::uint64_t limit, Access access);
  // The part [va, va + limit) of a run that starts at va's page.
  MemoryResult<std::span<std::byte>> part(const Translation& run, MemoryFault fault, std::uint64_t limit);
  std::span<std::byte> prt_bytes(Access access, std::uint64_t size);

  struct Context {
    std::uint64_t pd = 0;
    bool retry = false;
    TranslationCache cache;
  };

  VramSpace vram_;
  PageWalker walker_;
  bool mc_ready_ = false;
  McLayout mc_;
  std::uint64_t va_pages_ = kAllPages;
  std::array<Context, VASIC_MAX_VMID> contexts_;
  std::vector<std::byte> prt_zeros_;  // both are empty until a page is partially resident
  std::vector<std::byte> prt_sink_;
};

}  // namespace vasicd
