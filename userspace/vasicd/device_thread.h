// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The thread of one device: polls it, and sleeps as long as the device allows when there is nothing to do. The device
// and all it owns are touched by this thread only.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "vasicd/device.h"

namespace vasicd {

class SteadyClock final : public Clock {
 public:
  [[nodiscard]] std::uint64_t now_ns() const override;
};

class DeviceThread {
 public:
  // `kick` is a non-blocking eventfd that outlives this object. The thread runs until destruction, which ends with the
  // host state GONE.
  DeviceThread(DeviceSlot slot, EngineFactory make_engines, int kick);
  ~DeviceThread();

  // Device::power_cycle() on the device's thread; returns when it is done.
  base::Status power_cycle();

  // Queues `task` for execution on the device's thread between two rounds. False, and nothing is queued, while
  // kMaxTasks wait. Never blocks. Tasks that still wait when this object is destroyed are dropped.
  using Task = std::function<void(Device&)>;
  static constexpr std::size_t kMaxTasks = 64;
  [[nodiscard]] bool post(Task task);

 private:
  void run_device(Device& device, const Clock& clock, const std::stop_token& stop);
  void serve_request(Device& device);
  void execute_tasks(Device& device);
  void wake() const;

  const int kick_;

  std::mutex mutex_;
  std::condition_variable served_;
  bool requested_ = false;       // guarded by mutex_
  base::Status request_result_;  // guarded by mutex_
  std::vector<Task> tasks_;      // guarded by mutex_

  std::jthread thread_;  // last: everything above exists while it runs
};

}  // namespace vasicd
