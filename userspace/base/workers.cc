// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "base/workers.h"

#include <csignal>
#include <utility>

#include "base/os.h"

namespace base {

Workers::Workers(int threads) {
  threads_.reserve(static_cast<std::size_t>(threads));
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  // A thread begins with its maker's mask.
  if (os::pthread_sigmask(SIG_SETMASK, &all, &old) != 0) return;
  for (int i = 0; i < threads; ++i) {
    pthread_t thread{};
    if (os::pthread_create(&thread, serve, this) != 0) break;
    threads_.push_back(thread);
  }
  (void)os::pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  added_.notify_all();
  for (const pthread_t thread : threads_) (void)os::pthread_join(thread);
}

void Workers::add(std::function<void()> task) {
  if (threads_.empty()) {
    task();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  added_.notify_one();
}

bool Workers::run_one() {
  std::function<void()> task;
  {
    const std::lock_guard lock(mutex_);
    if (tasks_.empty()) return false;
    task = std::move(tasks_.front());
    tasks_.pop_front();
  }
  task();
  return true;
}

void* Workers::serve(void* self) {
  auto& workers = *static_cast<Workers*>(self);
  for (;;) {
    {
      std::unique_lock lock(workers.mutex_);
      workers.added_.wait(lock, [&workers] { return workers.ending_ || !workers.tasks_.empty(); });
      if (workers.tasks_.empty()) return nullptr;
    }
    workers.run_one();
  }
}

}  // namespace base
