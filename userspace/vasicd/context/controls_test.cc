// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Faults that are to be injected, and the schedule of the link.
#include "vasicd/context/controls.h"

#include <gtest/gtest.h>

namespace vasicd::controls_test {

constexpr std::uint64_t kMillisecond = 1'000'000;

TEST(Controls, faults_are_consumed_once) {
  Controls controls;
  controls.fault("sdma0.q2", 0x5000);
  EXPECT_EQ(controls.take_fault("sdma0.q1", 0x1000), std::nullopt);
  EXPECT_EQ(controls.take_fault("sdma0.q2", 0x1000), 0x5000u);
  EXPECT_EQ(controls.take_fault("sdma0.q2", 0x1000), std::nullopt);
  controls.fault("sdma0.q2", std::nullopt);
  EXPECT_EQ(controls.take_fault("sdma0.q2", 0x1000), 0x1000u);
}

TEST(Controls, only_interrupts_of_the_kind_are_dropped) {
  Controls controls;
  controls.drop_interrupts(1, InterruptClass::kTrap);
  EXPECT_FALSE(controls.take_dropped_interrupt(InterruptClass::kEndOfPipe));
  EXPECT_TRUE(controls.take_dropped_interrupt(InterruptClass::kTrap));
  EXPECT_FALSE(controls.take_dropped_interrupt(InterruptClass::kTrap));
  controls.drop_interrupts(2, std::nullopt);
  EXPECT_TRUE(controls.take_dropped_interrupt(InterruptClass::kFault));
  EXPECT_TRUE(controls.take_dropped_interrupt(InterruptClass::kEndOfPipe));
  EXPECT_FALSE(controls.take_dropped_interrupt(InterruptClass::kFault));
}

TEST(Controls, a_device_reset_cures_and_leaves_the_rest) {
  Controls controls;
  controls.hang("sdma0");
  controls.fail_unmaps(1);
  controls.device_reset();
  EXPECT_FALSE(controls.hung("sdma0"));
  EXPECT_TRUE(controls.take_failing_unmap());
}

// Bytes that cross in `duration` when a copy asks every `interval`.
std::uint64_t crossed(Link& link, std::uint64_t& now, std::uint64_t duration, std::uint64_t interval) {
  const std::uint64_t before = link.crossed();
  for (const std::uint64_t end = now + duration; now < end; now += interval) {
    while (link.ready(now)) link.spend(link.quantum(), now);
  }
  return link.crossed() - before;
}

TEST(Link, speed_is_right_within_5_percent_over_100_ms_however_often_it_is_asked) {
  for (const std::uint64_t megabytes : {10U, 100U, 1000U, 10000U}) {
    for (const std::uint64_t interval : {20'000U, 400'000U, 2'000'000U, 20'000'000U}) {
      Link link;
      link.limit(megabytes * 1'000'000);
      std::uint64_t now = 5'000 * kMillisecond;
      crossed(link, now, 100 * kMillisecond, interval);
      const auto want = static_cast<double>(megabytes) * 1e6 / 10;
      EXPECT_NEAR(static_cast<double>(crossed(link, now, 100 * kMillisecond, interval)), want, want / 20)
          << megabytes << " MB/s asked every " << interval << " ns";
    }
  }
}

TEST(Link, an_idle_link_does_not_save_up) {
  Link link;
  link.limit(100'000'000);
  std::uint64_t now = 0;
  crossed(link, now, 10 * kMillisecond, 100'000);
  now += 10'000 * kMillisecond;
  EXPECT_LE(crossed(link, now, 100 * kMillisecond, 100'000), 10'500'000u);
}

TEST(Link, without_a_limit_all_may_cross) {
  Link link;
  EXPECT_TRUE(link.ready(0));
  link.spend(std::uint64_t{1} << 40, 0);
  EXPECT_TRUE(link.ready(0));
  EXPECT_EQ(link.crossed(), std::uint64_t{1} << 40);
}

}  // namespace vasicd::controls_test
