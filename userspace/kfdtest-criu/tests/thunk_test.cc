// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Debian's unmodified libhsakmt as the way to KFD: the workloads, and its view of the topology. In a process of its
// own, because this one speaks to KFD itself.
#include "kfdtest-criu/tests/scenario_process.h"
#include "kfdtest-criu/tests/test_listener.h"

namespace kfdtest {
namespace {

class ThunkTest : public GpuTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(GpuTest::SetUp());
    // libhsakmt 5.2 computes the sizes of a queue's buffers itself, and does not know these later chips.
    const std::uint64_t version = gpu().gfx_target_version;
    if (version >= 110000 || version / 100 == 904) GTEST_SKIP() << "libhsakmt 5.2 does not know this chip";
  }
};

TEST_F(ThunkTest, libhsakmt_and_sysfs_list_the_same_gpus) { EXPECT_OK(spawn_scenario("thunk_topology")); }

TEST_F(ThunkTest, every_workload_runs_through_libhsakmt) { EXPECT_OK(spawn_scenario("thunk_workloads")); }

}  // namespace
}  // namespace kfdtest
