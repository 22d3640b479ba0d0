// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Fetching dwords, around the end of a ring.
#include "vasicd/blocks/queue/word_source.h"

#include <algorithm>

namespace vasicd {

MemoryResult<void> fetch_words(Memory& memory, const WordSource& source, std::uint64_t pos,
                               std::span<std::uint32_t> out) {
  while (!out.empty()) {
    std::size_t n = out.size();
    if (source.mask != WordSource::kLinear) {
      const std::uint64_t to_end = source.ring_dwords() - (pos & source.mask);
      n = static_cast<std::size_t>(std::min<std::uint64_t>(n, to_end));
    }
    TRY(memory.read(source.vmid, source.address(pos), std::as_writable_bytes(out.first(n))));
    out = out.subspan(n);
    pos += n;
  }
  return {};
}

}  // namespace vasicd
