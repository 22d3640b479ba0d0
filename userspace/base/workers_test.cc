// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "base/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <latch>
#include <numeric>

#include "base/os_failing.h"

namespace base {
namespace {

TEST(WorkersTest, tasks_begin_in_their_order_and_all_end_before_the_threads_do) {
  constexpr int kTasks = 2000;
  std::vector<int> begun;
  std::mutex mutex;
  {
    Workers workers(1);
    ASSERT_EQ(workers.threads(), 1U);
    for (int i = 0; i < kTasks; ++i)
      workers.add([&begun, &mutex, i] {
        const std::lock_guard lock(mutex);
        begun.push_back(i);
      });
  }
  std::vector<int> expected(kTasks);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(begun, expected);
}

TEST(WorkersTest, tasks_of_several_threads_run_at_once) {
  std::latch all(3);
  Workers workers(3);
  ASSERT_EQ(workers.threads(), 3U);
  // Each waits for the others: with fewer threads the test would not end.
  for (int i = 0; i < 3; ++i) workers.add([&all] { all.arrive_and_wait(); });
  all.wait();
}

TEST(WorkersTest, the_caller_can_take_part) {
  std::atomic<int> done = 0;
  std::latch begun(1);
  std::latch end(1);
  Workers workers(1);
  workers.add([&] {
    begun.count_down();
    end.wait();
  });
  begun.wait();
  workers.add([&done] { ++done; });
  EXPECT_TRUE(workers.run_one());
  EXPECT_EQ(done, 1);
  EXPECT_FALSE(workers.run_one());
  end.count_down();
}

TEST(WorkersTest, without_threads_a_task_is_carried_out_at_once) {
  os::fail_call(1, EAGAIN);
  Workers workers(4);
  EXPECT_EQ(os::failed_call(), "pthread_create");
  os::fail_call(0, 0);
  EXPECT_EQ(workers.threads(), 0U);
  bool done = false;
  workers.add([&done] { done = true; });
  EXPECT_TRUE(done);
}

TEST(WorkersTest, a_signal_is_not_delivered_to_a_thread) {
  sigset_t mask;
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &mask), 0);
  std::atomic<bool> blocked = false;
  {
    Workers workers(1);
    workers.add([&blocked] {
      sigset_t own;
      ::pthread_sigmask(SIG_SETMASK, nullptr, &own);
      blocked = sigismember(&own, SIGCHLD) == 1 && sigismember(&own, SIGALRM) == 1;
    });
  }
  EXPECT_TRUE(blocked);
  sigset_t after;
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &after), 0);
  for (const int signal : {SIGCHLD, SIGALRM, SIGTERM})
    EXPECT_EQ(sigismember(&after, signal), sigismember(&mask, signal)) << signal;
}

}  // namespace
}  // namespace base
