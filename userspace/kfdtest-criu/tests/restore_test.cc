// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Every workload without threads restored in a fresh process before each stage, by the raw ioctls: on the GPUs it had,
// and on others.
#include <unistd.h>

#include <cerrno>

#include "kfd/kfd.h"
#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/tests/evictors.h"
#include "kfdtest-criu/tests/restore_scenarios.h"
#include "kfdtest-criu/tests/scenario_process.h"
#include "kfdtest-criu/tests/shared_scenarios.h"
#include "kfdtest-criu/tests/test_listener.h"

namespace kfdtest {
namespace {

class RestoreTest : public GpuTest, public testing::WithParamInterface<std::tuple<std::string, CriuAbi>> {
 protected:
  // Each process of a chain passes the contents of VRAM on by the CPU.
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(GpuTest::SetUp());
    for (const Gpu& gpu : test_gpus())
      if (!gpu.vram_cpu_visible) GTEST_SKIP() << kSmallBar;
  }
  static std::string scenario(GpuOrder order) {
    return restore_scenario(std::get<0>(GetParam()), order, std::get<1>(GetParam()));
  }
};

// The restore is on other GPUs if there are any, which is the harder case.
TEST_P(RestoreTest, goes_on_in_a_fresh_process) {
  EXPECT_OK(spawn_scenario(scenario(test_gpus().size() > 1 ? GpuOrder::kRotated : GpuOrder::kSame)));
}

class RestoreSlowTest : public RestoreTest {};

TEST_P(RestoreSlowTest, goes_on_with_its_own_gpus) { EXPECT_OK(spawn_scenario(scenario(GpuOrder::kSame))); }

std::vector<std::string> without_threads() {
  std::vector<std::string> names = workloads_of_this_machine();
  std::erase_if(names, [](const std::string& name) { return make_workload(name)->has_threads(); });
  return names;
}

std::string cell_name(const testing::TestParamInfo<std::tuple<std::string, CriuAbi>>& cell) {
  return std::get<0>(cell.param) + (std::get<1>(cell.param) == CriuAbi::kReleased ? "_released" : "_extensible");
}
const auto kCells =
    testing::Combine(testing::ValuesIn(without_threads()), testing::Values(CriuAbi::kReleased, CriuAbi::kExtensible));
INSTANTIATE_TEST_SUITE_P(all, RestoreTest, kCells, cell_name);
INSTANTIATE_TEST_SUITE_P(all, RestoreSlowTest, kCells, cell_name);

// Processes that share memory, each restored beside the others: what one writes all see, after two generations.
class SharedRestoreTest : public GpuTest, public testing::WithParamInterface<std::string> {};

TEST_P(SharedRestoreTest, each_sees_what_the_others_write) {
  if (test_gpus().size() < gpus_of_shape(GetParam())) GTEST_SKIP() << "needs two GPUs";
  if (!gpu().vram_cpu_visible) GTEST_SKIP() << kSmallBar;
  EXPECT_OK(spawn_scenario(shared_scenario(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(all, SharedRestoreTest, testing::ValuesIn(shared_shapes()),
                         [](const auto& each) { return each.param; });

class StrayRestoreTest : public GpuTest {};

// If the process counted as restored afterwards, its queues would run on when its pages move.
TEST_F(StrayRestoreTest, a_resume_that_nobody_waits_for_changes_nothing) {
  kfd::RealKfd kfd;
  const base::Status resumed = kfd.resume(ioctls_of(gpu()).client().fd(), ::getpid());
  ASSERT_FALSE(resumed.ok());
  EXPECT_EQ(resumed.error().code(), EINVAL);
  const auto evictor = make_evictor("userptr");
  ASSERT_OK(evictor->prepare(gpu()));
  ASSERT_OK_AND_ASSIGN(StepQueue queue, StepQueue::create(gpu(), QueueKind::kPm4));
  ASSERT_OK(queue.submit(2));
  queue.open(1);
  ASSERT_OK(queue.wait_done(1));
  ASSERT_OK(evictor->evict(queue));
  ASSERT_OK(evictor->resume(queue));
  queue.open(2);
  EXPECT_OK(queue.expect_done(2));
  EXPECT_OK(evictor->verify());
}

}  // namespace
}  // namespace kfdtest
