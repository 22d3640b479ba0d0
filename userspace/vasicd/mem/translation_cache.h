// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Remembers the last translations of one VMID: direct-mapped by page, each entry a whole run of pages, so that a large
// copy costs one lookup per run. The device decides when it must be dropped (vasic_host_words.walk_epoch).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vasicd/mem/page_walker.h"

namespace vasicd {

class TranslationCache {
 public:
  // The run that starts at the page with number `page`, or null.
  [[nodiscard]] const Translation* find(std::uint64_t page) const {
    const Entry& entry = entries_[slot(page)];
    return entry.generation == generation_ && entry.page == page ? &entry.run : nullptr;
  }
  void insert(std::uint64_t page, const Translation& run) { entries_[slot(page)] = {generation_, page, run}; }
  // Drops all translations, in constant time.
  void drop() { ++generation_; }

 private:
  static constexpr std::size_t kEntries = 512;

  struct Entry {
    std::uint64_t generation = 0;
    std::uint64_t page = 0;
    Translation run;
  };
  // Large pages step by 512; mixing in higher bits keeps their neighbours out of one slot.
  static std::size_t slot(std::uint64_t page) { return static_cast<std::size_t>((page ^ (page >> 9)) % kEntries); }

  std::uint64_t generation_ = 1;
  std::vector<Entry> entries_ = std::vector<Entry>(kEntries);
};

}  // namespace vasicd
