// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// GoogleTest glue: opens the KFD session once for the whole run, hands GPUs to tests, and turns a kernel splat into a
// failure of the test during which it appeared.
#pragma once

#include <gtest/gtest.h>

#include "base/assert_ok.h"
#include "kfdtest-criu/harness/gpu.h"

namespace kfdtest {

// Adds the environment and the listener to GoogleTest; called by main() before RUN_ALL_TESTS().
void install_environment();

// Precondition: install_environment() and a running test.
[[nodiscard]] const std::vector<Gpu>& test_gpus();

// The reason why a test that reads VRAM by the CPU is skipped.
inline constexpr const char* kSmallBar = "/dev/kfd maps no VRAM for the CPU behind a small BAR";

// A fixture with a first GPU; a machine without one fails rather than skips.
class GpuTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_FALSE(test_gpus().empty()) << "no KFD GPU in this machine"; }
  [[nodiscard]] static const Gpu& gpu() { return test_gpus().front(); }
};

}  // namespace kfdtest
