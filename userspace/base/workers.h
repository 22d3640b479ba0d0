// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Threads that carry out tasks, which begin in the order in which they were given. Signals are left to the threads that
// were there before: a handler of CRIU's belongs in CRIU's own thread.
#pragma once

#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

namespace base {

class Workers {
 public:
  // Starts up to `threads` threads; if the system gives none, a task is carried out by add(). Fewer threads are slower,
  // never an error.
  explicit Workers(int threads);
  // Carries out all tasks that were added, and ends the threads.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  [[nodiscard]] std::size_t threads() const { return threads_.size(); }

  void add(std::function<void()> task);
  // Carries out the next task that no thread has begun. False: there is none.
  bool run_one();

 private:
  static void* serve(void* self);

  std::mutex mutex_;  // guards tasks_ and ending_
  std::condition_variable added_;
  std::deque<std::function<void()>> tasks_;
  bool ending_ = false;
  std::vector<pthread_t> threads_;
};

}  // namespace base
