// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Reads the page tables that amdgpu_vm (two or four levels, page_format.h) and amdgpu_gart (one flat table) wrote, in
// VRAM or in system memory, and returns the host bytes of a page. Every walk reads the tables again.
// Does not cache (translation_cache.h) and does not check permissions (gpu_memory.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "vasicd/mem/bus.h"
#include "vasicd/mem/memory.h"
#include "vasicd/mem/page_format.h"
#include "vasicd/mem/vram_space.h"

namespace vasicd {

inline constexpr std::uint64_t kGpuPageShift = 12;
inline constexpr std::uint64_t kGpuPageSize = std::uint64_t{1} << kGpuPageShift;
inline constexpr std::uint64_t kGpuPageMask = kGpuPageSize - 1;
inline constexpr unsigned kVaBits = 48;
inline constexpr std::uint64_t kVaMask = (std::uint64_t{1} << kVaBits) - 1;

// A run of pages that is contiguous in host memory and has equal permissions. Starts at a page boundary.
struct Translation {
  std::byte* host = nullptr;  // null: partially resident (PRT); reads give zeros, writes go nowhere
  std::uint64_t size = 0;     // multiple of the page size, not 0
  bool readable = false;
  bool writable = false;
  bool complete = false;  // the run cannot be longer; false: the walk looked no further
};

class PageWalker {
 public:
  using Result = base::Expected<Translation, FaultKind>;

  static constexpr unsigned kMinTableBits = 9;
  static constexpr unsigned kMaxTableBits = 24;

  PageWalker(VramSpace vram, const Bus& bus, const PageFormat& format = {})
      : vram_(std::move(vram)), bus_(bus), format_(format) {}

  // Sets, for a format with MC addresses in its directories, the address of VRAM and log2 of the entries of a table.
  void set_layout(GpuAddr vram_base, unsigned table_bits) {
    vram_base_ = vram_base;
    table_bits_ = table_bits;
  }

  // The run that starts at the page of `va` in the table at `pd` (amdgpu_gmc_pd_addr() form; 0: there is none). Looks
  // for contiguous pages only as far as `want` bytes.
  [[nodiscard]] Result walk(std::uint64_t pd, GpuAddr va, std::uint64_t want) const;

  // The run that starts at entry `index` of a flat table of 8-byte PTEs.
  [[nodiscard]] Result walk_flat(std::span<std::byte> table, std::uint64_t index, std::uint64_t want) const;

  [[nodiscard]] const PageFormat& format() const { return format_; }
  [[nodiscard]] const VramSpace& vram() const { return vram_; }

 private:
  // Bytes behind a VRAM offset or, with kSystem in `entry`, behind a bus address.
  [[nodiscard]] std::span<std::byte> target(std::uint64_t entry, std::uint64_t offset, std::uint64_t limit) const;
  // The table behind a directory entry: `size` bytes, or none.
  [[nodiscard]] std::span<std::byte> table(std::uint64_t entry, std::uint64_t size) const;
  [[nodiscard]] Result leaf(std::uint64_t entry, std::uint64_t offset, std::uint64_t size, bool complete) const;
  // What an entry that is no directory and no valid leaf means.
  [[nodiscard]] Result absent(std::uint64_t entry, std::uint64_t size, bool complete) const;
  [[nodiscard]] bool is_valid(std::uint64_t entry) const {
    return (entry & pte::kValid) != 0 && (entry & format_.prt) == 0;
  }

  VramSpace vram_;
  const Bus& bus_;
  PageFormat format_;
  GpuAddr vram_base_ = 0;
  unsigned table_bits_ = kMinTableBits;
};

}  // namespace vasicd
