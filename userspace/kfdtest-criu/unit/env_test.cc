// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include <gtest/gtest.h>

#include "kfdtest-criu/env/deadline.h"
#include "kfdtest-criu/env/kernel_log.h"

namespace kfdtest {
namespace {

using std::chrono::milliseconds;

TEST(KernelLogTest, reports_of_kernel_bugs_are_splats_and_ordinary_lines_are_not) {
  EXPECT_TRUE(is_splat("WARNING: CPU: 0 PID: 1 at drivers/gpu/drm/amd/amdkfd/kfd_events.c:667"));
  EXPECT_TRUE(is_splat("BUG: kernel NULL pointer dereference, address: 0000000000000008"));
  EXPECT_TRUE(is_splat("BUG: KASAN: slab-use-after-free in kfd_process"));
  EXPECT_TRUE(is_splat("INFO: task kfdtest:300 blocked for more than 120 seconds."));
  EXPECT_TRUE(is_splat("Oops: 0000 [#1] SMP"));
  EXPECT_FALSE(is_splat("amdgpu 0000:00:05.0: amdgpu: added device 1002:66af"));
  EXPECT_FALSE(is_splat("kfd kfd: amdgpu: Allocated 3969056 bytes on gart"));
}

TEST(KernelLogTest, the_text_of_a_record_is_between_header_and_continuation) {
  EXPECT_EQ(kmsg_text("4,1234,567890,-;WARNING: here\n SUBSYSTEM=pci\n"), "WARNING: here");
  EXPECT_EQ(kmsg_text("6,1,2,-;a;b\n"), "a;b");
  EXPECT_EQ(kmsg_text("garbage"), "");
}

TEST(DeadlineTest, a_condition_that_holds_costs_no_time) {
  EXPECT_TRUE(wait_until([] { return true; }, milliseconds(0)));
}

TEST(DeadlineTest, a_condition_that_never_holds_ends_with_its_deadline) {
  const std::uint64_t start = monotonic_ns();
  EXPECT_FALSE(wait_until([] { return false; }, milliseconds(5)));
  EXPECT_GE(monotonic_ns() - start, 5'000'000U);
}

TEST(DeadlineTest, stays_is_false_after_one_change) {
  int calls = 0;
  EXPECT_FALSE(stays([&] { return ++calls < 3; }));
  EXPECT_EQ(calls, 3);
  EXPECT_TRUE(stays([] { return true; }, milliseconds(2)));
}

}  // namespace
}  // namespace kfdtest
