// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Every workload on every GPU, undisturbed: the control of all checkpoint tests.
#include "kfdtest-criu/harness/workload.h"

#include "kfdtest-criu/tests/test_listener.h"

namespace kfdtest {
namespace {

class WorkloadTest : public GpuTest, public testing::WithParamInterface<std::string> {};

TEST_P(WorkloadTest, runs_undisturbed_on_every_gpu) {
  for (const Gpu& gpu : test_gpus()) {
    const auto workload = make_workload(GetParam());
    NoCheckpointer undisturbed;
    EXPECT_OK(run(*workload, gpu, undisturbed));
  }
}

// Negative control: a stage that never ran must not verify.
TEST_P(WorkloadTest, fails_to_verify_without_its_stages) {
  const auto workload = make_workload(GetParam());
  ASSERT_OK(workload->setup(gpu()));
  ASSERT_OK(workload->advance(0));
  EXPECT_OK(workload->advance(1));
  workload->set_limit(2 * kQuietPeriod);
  EXPECT_FALSE(workload->verify().ok());
}

std::string own_name(const testing::TestParamInfo<std::string>& workload) { return workload.param; }
INSTANTIATE_TEST_SUITE_P(all, WorkloadTest, testing::ValuesIn(workloads_of_this_machine()), own_name);

}  // namespace
}  // namespace kfdtest
