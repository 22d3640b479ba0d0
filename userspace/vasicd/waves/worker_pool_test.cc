// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Every wanted worker is called once, also when several callers want the pool at the same time.
#include "vasicd/waves/worker_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

namespace vasicd::worker_pool_test {

TEST(WorkerPool, calls_each_wanted_worker_once) {
  WorkerPool pool(4);
  for (unsigned wanted = 1; wanted <= 5; ++wanted) {
    std::array<std::atomic<int>, 4> calls{};
    pool.run(wanted, [&](unsigned worker) { ++calls[worker]; });
    for (unsigned i = 0; i < calls.size(); ++i) EXPECT_EQ(calls[i], i < wanted ? 1 : 0);
  }
}

TEST(WorkerPool, who_finds_it_in_use_works_alone) {
  WorkerPool pool(4);
  std::atomic<int> first{0};
  std::vector<std::jthread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int n = 0; n < 500; ++n) {
        std::array<std::atomic<int>, 4> calls{};
        pool.run(4, [&](unsigned worker) { ++calls[worker]; });
        if (calls[0] == 1) ++first;
      }
    });
  }
  callers.clear();
  EXPECT_EQ(first, 2000);
}

TEST(WorkerPool, zero_workers_are_as_many_as_processors) { EXPECT_GE(WorkerPool().workers(), 1u); }

}  // namespace vasicd::worker_pool_test
