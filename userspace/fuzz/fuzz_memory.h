// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Memory where each VMID has bytes of its own, a heap block of exactly their size, so that AddressSanitizer sees every
// access outside. Counts the bytes that engines ask for, so that the work of a step is bounded by counting, not by
// time.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <set>

#include "fuzz/input.h"
#include "vasic/vasic_abi.h"
#include "vasicd/mem/memory.h"

namespace fuzz {

class FuzzMemory final : public vasicd::Memory {
 public:
  static constexpr std::uint64_t kPage = 4096;
  // Where each VMID's bytes begin.
  static constexpr vasicd::GpuAddr kBase = 0x100000;

  // `pages` of memory for a VMID.
  void give(unsigned vmid, std::size_t pages) {
    sizes_[vmid] = pages * kPage;
    blocks_[vmid] = std::make_unique<std::byte[]>(sizes_[vmid]);
  }
  [[nodiscard]] std::size_t size(unsigned vmid) const { return sizes_[vmid]; }

  vasicd::MemoryResult<std::span<std::byte>> map(unsigned vmid, vasicd::GpuAddr va, std::size_t limit,
                                                 vasicd::Access access) override {
    ++maps;
    check(limit > 0, "map() is asked for at least one byte");
    if (vmid >= blocks_.size() || va < kBase || va - kBase >= sizes_[vmid] || bad_pages.contains({vmid, va / kPage}))
      return vasicd::MemoryFault{vmid, va, access, vasicd::FaultKind::kNotPresent};
    const std::uint64_t at = va - kBase;
    const std::uint64_t run = std::min<std::uint64_t>(limit, kPage - at % kPage);
    bytes += run;
    return std::span(blocks_[vmid].get() + at, static_cast<std::size_t>(run));
  }

  // The bytes of [va, va + n), for the guest's side, which never asks for unmapped ones.
  [[nodiscard]] std::span<std::byte> guest(unsigned vmid, vasicd::GpuAddr va, std::size_t n) const {
    check(va >= kBase && va - kBase + n <= sizes_[vmid], "the fuzzer stays in its own memory");
    return {blocks_[vmid].get() + (va - kBase), n};
  }
  template <typename T>
  void put(unsigned vmid, vasicd::GpuAddr va, T value) {
    std::memcpy(guest(vmid, va, sizeof(T)).data(), &value, sizeof(T));
  }
  template <typename T>
  [[nodiscard]] T get(unsigned vmid, vasicd::GpuAddr va) const {
    T value;
    std::memcpy(&value, guest(vmid, va, sizeof(T)).data(), sizeof(T));
    return value;
  }

  std::set<std::pair<unsigned, std::uint64_t>> bad_pages;
  std::uint64_t maps = 0;
  std::uint64_t bytes = 0;

 private:
  std::array<std::unique_ptr<std::byte[]>, VASIC_MAX_VMID> blocks_;
  std::array<std::size_t, VASIC_MAX_VMID> sizes_{};
};

}  // namespace fuzz
