// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Host threads that execute waves while the device's thread waits for them. One pool serves all GPUs of a process: a
// device's thread that finds it in use works alone.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace vasicd {

class WorkerPool {
 public:
  // `workers` counts the caller; 0: as many as the host has processors. Threads are started when first needed.
  explicit WorkerPool(unsigned workers = 0);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // The most workers that a run may have.
  [[nodiscard]] unsigned workers() const { return workers_; }

  // Calls `work(n)` once for each worker n that takes part: 0, the caller, always, the others unless the pool is in use
  // or `wanted` is less. Returns when all have returned.
  void run(unsigned wanted, const std::function<void(unsigned)>& work);

 private:
  void start();
  void serve(unsigned worker, const std::stop_token& stop);

  unsigned workers_;
  std::mutex in_use_;  // held for a run
  std::mutex mutex_;   // guards the members below
  std::condition_variable_any begin_;
  std::condition_variable end_;
  const std::function<void(unsigned)>* work_ = nullptr;
  unsigned wanted_ = 0;
  unsigned long run_ = 0;
  unsigned busy_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace vasicd
