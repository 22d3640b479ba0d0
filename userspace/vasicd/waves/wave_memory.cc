// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Filling the cache.
#include "vasicd/waves/wave_memory.h"

namespace vasicd {

std::span<std::byte> WaveMemory::miss(gcn::Address address, std::size_t limit, gcn::Access access) {
  constexpr std::size_t kRun = 64 * kPage;  // contiguous pages behind the page cost no further lookup
  const Access kind = access == gcn::Access::kRead ? Access::kRead : Access::kWrite;
  const std::lock_guard lock(shared_.lock);
  const gcn::Address begin = address & ~(kPage - 1);
  auto run = shared_.memory.map(shared_.vmid, begin, kRun, kind);
  if (!run.ok() || run->size() < kPage) {
    // The run is shorter than a page, or there is none: return only the bytes that were asked for.
    run = shared_.memory.map(shared_.vmid, address, limit, kind);
    if (run.ok()) return *run;
    fault_ = run.error();
    return {};
  }
  entries_[static_cast<unsigned>(access)][begin / kPage % kEntries] = {begin / kPage, run->data(), run->size()};
  return run->subspan(static_cast<std::size_t>(address - begin))
      .first(std::min(limit, run->size() - static_cast<std::size_t>(address - begin)));
}

}  // namespace vasicd
