// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Starting the workers of a run, and waiting for them.
#include "vasicd/waves/worker_pool.h"

#include <algorithm>

namespace vasicd {

namespace {

constexpr unsigned kMaxWorkers = 32;

}  // namespace

WorkerPool::WorkerPool(unsigned workers)
    : workers_(std::clamp(workers != 0 ? workers : std::thread::hardware_concurrency(), 1u, kMaxWorkers)) {}

WorkerPool::~WorkerPool() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

void WorkerPool::start() {
  if (!threads_.empty()) return;
  for (unsigned worker = 1; worker < workers_; ++worker) {
    threads_.emplace_back([this, worker](const std::stop_token& stop) { serve(worker, stop); });
  }
}

void WorkerPool::run(unsigned wanted, const std::function<void(unsigned)>& work) {
  wanted = std::min(wanted, workers_);
  std::unique_lock mine(in_use_, std::defer_lock);
  if (wanted <= 1 || !mine.try_lock()) return work(0);
  {
    const std::lock_guard lock(mutex_);
    start();
    work_ = &work;
    wanted_ = wanted;
    busy_ = wanted - 1;
    ++run_;
  }
  begin_.notify_all();
  work(0);
  std::unique_lock lock(mutex_);
  end_.wait(lock, [this] { return busy_ == 0; });
  work_ = nullptr;
}

void WorkerPool::serve(unsigned worker, const std::stop_token& stop) {
  unsigned long seen = 0;
  for (;;) {
    const std::function<void(unsigned)>* work = nullptr;
    {
      std::unique_lock lock(mutex_);
      if (!begin_.wait(lock, stop, [&] { return run_ != seen; })) return;
      seen = run_;
      if (worker >= wanted_) continue;
      work = work_;
    }
    (*work)(worker);
    const std::lock_guard lock(mutex_);
    if (--busy_ == 0) end_.notify_one();
  }
}

}  // namespace vasicd
