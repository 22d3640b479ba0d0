// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What Linux 6.12's own checkpoint/restore does not do, each in a process of its own.
#include "kfdtest-criu/tests/defect_scenarios.h"
#include "kfdtest-criu/tests/scenario_process.h"
#include "kfdtest-criu/tests/test_listener.h"

namespace kfdtest {
namespace {

class DefectTest : public GpuTest, public testing::WithParamInterface<std::string> {};

TEST_P(DefectTest, holds) { EXPECT_OK(spawn_scenario(defect_scenario(GetParam()))); }

std::string own_name(const testing::TestParamInfo<std::string>& defect) { return defect.param; }
INSTANTIATE_TEST_SUITE_P(all, DefectTest, testing::ValuesIn(defect_names()), own_name);

}  // namespace
}  // namespace kfdtest
