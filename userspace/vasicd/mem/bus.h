// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What a bus address means to any GPU of one VM: guest RAM, or registers, doorbells and visible VRAM of a GPU's BAR2
// (peer to peer).
// Shared by all GPU threads. Reads are lock-free; the mutex only makes attach's overlap check and its store one step.
// A span stays valid for the life of the process, whatever is attached or detached later.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "vasicd/mem/guest_ram.h"

namespace vasicd {

inline constexpr unsigned kMaxGpus = 64;

// A GPU's BAR2. Behind a small BAR only `reach` bytes of it are on the bus, whatever is mapped here.
struct Bar {
  std::span<std::byte> bytes;
  std::uint64_t reach = bytes.size();
};

class Bus {
 public:
  // `bars` is indexed by GPU; at most kMaxGpus.
  Bus(GuestRam ram, std::vector<Bar> bars);

  [[nodiscard]] const GuestRam& ram() const { return ram_; }

  // The longest run of bytes behind `address`, at most `limit`; empty if nothing is there.
  [[nodiscard]] std::span<std::byte> resolve(std::uint64_t address, std::uint64_t limit) const;

  // Places BAR2 of GPU `gpu` at bus address `base`. False, and nothing changed, if the address is not naturally
  // aligned, is zero, exceeds 48 bits, or overlaps RAM or another GPU.
  bool attach(unsigned gpu, std::uint64_t base);
  void detach(unsigned gpu);

 private:
  static constexpr std::uint64_t kDetached = 0;

  GuestRam ram_;
  std::vector<Bar> bars_;
  std::mutex attach_mutex_;
  std::array<std::atomic<std::uint64_t>, kMaxGpus> bases_{};
};

}  // namespace vasicd
