// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// An SDMA engine for benchmarks: a thread executes the packets of one submission after the other on memory of this
// process, and takes as long as a link of a given rate would. What it executes is what a GPU gets, but packets are not
// checked. Copies from a BO get a number in each MiB, because a dump stores equal contents once. Memory is made once,
// outside of what is measured: first accesses to new pages are slow on virtual machines.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "packets/sdma.h"
#include "plugin/bench/rate.h"
#include "plugin/copy/copier.h"
#include "plugin/copy/sdma_engine.h"

namespace plugin::bench {

class LinkEngine final : public copy::SdmaEngine {
 public:
  // All BOs have the memory `bo`. `link`, `bo` and `staging`, which has a slice for each slot, are borrowed. Numbers of
  // MiBs begin behind `copies`.
  LinkEngine(Rate& link, std::span<std::byte> bo, std::span<std::byte> staging, std::uint64_t copies);
  ~LinkEngine() override;

  base::Result<std::unique_ptr<copy::GpuMemory>> import(int dmabuf, std::uint64_t size) override;
  [[nodiscard]] std::span<std::byte> staging(std::size_t slot) const override { return slots_[slot].staging; }
  [[nodiscard]] std::uint64_t staging_va(std::size_t slot) const override {
    return reinterpret_cast<std::uintptr_t>(slots_[slot].staging.data());
  }
  base::Status submit(std::size_t slot, packets::WordView words, std::span<const copy::GpuMemory* const> bos) override;
  base::Status wait(std::size_t slot) override;
  [[nodiscard]] bool hung() const override { return false; }

 private:
  struct Slot {
    std::span<std::byte> staging;
    packets::Words words;
    bool under_way = false;
  };

  void serve(const std::stop_token& stop);
  void execute(packets::WordView words);
  void number(std::span<std::byte> copy);

  Rate& link_;
  std::span<std::byte> bo_;
  std::uint64_t copies_;  // the last number that was given
  std::array<Slot, copy::kSlots> slots_;
  std::mutex mutex_;  // guards queue_ and Slot::under_way
  std::condition_variable_any changed_;
  std::deque<std::size_t> queue_;
  std::jthread thread_;  // last: everything above exists while it runs
};

}  // namespace plugin::bench
