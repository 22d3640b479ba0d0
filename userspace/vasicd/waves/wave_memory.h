// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What the waves of one worker see of a VMID's memory: the device's Memory behind a small cache of translations. The
// cache lives for one turn, because no translation is dropped during a turn. Several workers share one Memory, which is
// not thread safe, so they use it under a lock.
#pragma once

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>

#include "gcn/isa/memory.h"
#include "vasicd/mem/memory.h"

namespace vasicd {

// The Memory of a turn.
struct TurnMemory {
  Memory& memory;
  unsigned vmid = 0;
  std::mutex lock = {};
};

class WaveMemory final : public gcn::Memory {
 public:
  explicit WaveMemory(TurnMemory& shared) : shared_(shared) {}

  std::span<std::byte> map(gcn::Address address, std::size_t limit, gcn::Access access) override {
    const std::uint64_t page = address / kPage;
    const Entry& entry = entries_[static_cast<unsigned>(access)][page % kEntries];
    if (entry.page == page) {
      const std::size_t offset = address % kPage;
      return {entry.bytes + offset, std::min(limit, entry.size - offset)};
    }
    return miss(address, limit, access);
  }
  // The fault of the last map() that found nothing.
  [[nodiscard]] const std::optional<MemoryFault>& fault() const { return fault_; }

 private:
  static constexpr std::uint64_t kPage = 4096;
  static constexpr std::size_t kEntries = 256;
  struct Entry {
    std::uint64_t page = ~std::uint64_t{0};
    std::byte* bytes = nullptr;
    std::size_t size = 0;  // at least the page
  };

  std::span<std::byte> miss(gcn::Address address, std::size_t limit, gcn::Access access);

  TurnMemory& shared_;
  std::array<std::array<Entry, kEntries>, 2> entries_;
  std::optional<MemoryFault> fault_;
};

}  // namespace vasicd
