// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Through libhsakmt, as a ROCm program goes. It does not know chips newer than itself.
#pragma once

#include <memory>

#include "kfdtest-criu/harness/driver.h"

namespace kfdtest {

class ThunkDriver final : public Driver {
 public:
  static base::Result<std::unique_ptr<Driver>> open();
  ~ThunkDriver() override;

  base::Result<Block> allocate(const Gpu& gpu, MemoryKind kind, std::size_t size, MemoryUse use) override;
  base::Result<Block> adopt(const Gpu& gpu, std::span<std::byte> pages) override;
  base::Status map(Block& block, std::span<const Gpu* const> gpus) override;
  void release(Block& block) override;
  base::Result<std::unique_ptr<DriverQueue>> create_queue(const Gpu& gpu, const QueueSpec& spec) override;
  base::Result<std::unique_ptr<DriverEvent>> create_event(const Gpu& gpu, EventKind kind, ResetMode reset) override;
  base::Result<WaitOutcome> wait(std::span<DriverEvent* const> events, bool all,
                                 std::chrono::milliseconds limit) override;

 private:
  explicit ThunkDriver(bool alone) : alone_(alone) {}
  bool alone_;  // false: a HIP runtime shares the topology snapshot, which libhsakmt does not count
};

}  // namespace kfdtest
