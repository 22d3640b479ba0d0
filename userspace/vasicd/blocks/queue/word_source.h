// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Where the dwords of packets come from: a ring or an indirect buffer in GPU memory.
#pragma once

#include <cstdint>
#include <span>

#include "vasicd/mem/memory.h"

namespace vasicd {

// Dwords in GPU memory; a ring of mask + 1 dwords, or a linear buffer (mask of all ones).
struct WordSource {
  static constexpr std::uint64_t kLinear = ~std::uint64_t{0};
  unsigned vmid = 0;
  GpuAddr base = 0;
  std::uint64_t mask = kLinear;

  [[nodiscard]] std::uint64_t ring_dwords() const { return mask + 1; }
  [[nodiscard]] GpuAddr address(std::uint64_t pos) const { return base + (pos & mask) * 4; }
};

// Copies dwords from position `pos`; a ring wraps.
MemoryResult<void> fetch_words(Memory& memory, const WordSource& source, std::uint64_t pos,
                               std::span<std::uint32_t> out);

// An indirect buffer that is being executed.
struct ActiveIb {
  unsigned vmid = 0;
  GpuAddr base = 0;
  std::uint32_t dwords = 0;
  std::uint32_t offset = 0;  // dwords from the start to the current packet

  [[nodiscard]] WordSource source() const { return {vmid, base, WordSource::kLinear}; }
};

}  // namespace vasicd
