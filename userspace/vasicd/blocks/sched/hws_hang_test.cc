// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Queues that hang, requests that fail, and what the driver's recovery does about them (amdkfd's unmap_queues_cpsch and
// reset_queues_on_hws_hang).
#include <gtest/gtest.h>

#include "vasicd/blocks/sched/scheduler_fixture.h"

namespace vasicd::hws_hang_test {

namespace pm4 = packets::pm4;
using packets::Words;

constexpr GpuAddr kDst = FakeDriver::kData;
constexpr std::uint32_t kLatency = 40;  // 4 s
constexpr std::uint64_t kSecond = 1'000'000'000;

class HwsHangTest : public SchedulerTest {
 protected:
  HwsHangTest() {
    driver.load_hiq();
    driver.set_resources(0xff00, ~0ull, kLatency);
  }
  // As unmap_queues_cpsch(): the fence at kDst says that it is done.
  void send_unmap(pm4::UnmapAction action = pm4::UnmapAction::kPreempt) {
    Words w;
    pm4::unmap_queues(w, {.action = action, .select = pm4::UnmapSelect::kAllNonStatic});
    pm4::query_status(w, {.addr = kDst, .data = 100});
    driver.hiq_submit(w);
  }
  bool fence() { return at(kDst) == 100; }
  std::uint32_t logged() { return driver.mqd_word(driver.hiq, driver.compute_layout().queue_doorbell_id0); }
};

TEST_F(HwsHangTest, a_hung_queue_is_logged_and_left_when_its_time_is_over) {
  GuestQueue hung = driver.make_compute(0x404);
  GuestQueue good = driver.make_compute(0x500);
  driver.map({&hung, &good});
  driver.controls.hang("cp.p0.q0");
  write(hung, kDst + 4, 1);
  send_unmap();
  driver.clock.now += 4 * kSecond - 1;
  driver.run();
  EXPECT_FALSE(fence());
  EXPECT_FALSE(driver.engines->query_hqd({QueueKind::kCompute, 1, 0, 0}).value().occupied);
  driver.clock.now += 1;
  driver.run();
  EXPECT_TRUE(fence());
  EXPECT_EQ(logged(), 0x404u);
  EXPECT_EQ(at(kDst + 4), 0u);
  EXPECT_EQ(driver.engines->query_hqd({QueueKind::kCompute, 0, 0, 0}).value().pq_base, hung.ring);
}

TEST_F(HwsHangTest, reset_of_its_slot_cures_a_queue) {
  GuestQueue hung = driver.make_compute(0x404);
  GuestQueue good = driver.make_compute(0x500);
  driver.map({&hung, &good});
  driver.controls.hang("cp.p0.q0");
  const HqdSlot slot{QueueKind::kCompute, 0, 0, 0};
  EXPECT_EQ(driver.engines->unload_hqd(slot, UnloadMode::kSave).error().code(), ETIME);
  ASSERT_TRUE(driver.engines->unload_hqd(slot, UnloadMode::kReset).ok());
  EXPECT_FALSE(driver.engines->query_hqd(slot).value().occupied);
  EXPECT_EQ(driver.engines->unload_hqd(slot, UnloadMode::kReset).error().code(), EBUSY);
  send_unmap();
  EXPECT_TRUE(fence());
  EXPECT_EQ(logged(), 0u);
  driver.map({&good});
  write(good, kDst + 4, 2);
  driver.run();
  EXPECT_EQ(at(kDst + 4), 2u);
}

TEST_F(HwsHangTest, a_queue_that_recovers_in_time_is_unmapped) {
  GuestQueue q = driver.make_compute(0x404);
  driver.map({&q});
  driver.controls.hang("cp.p0.q0");
  write(q, kDst + 4, 1);
  send_unmap();
  driver.controls.cure("cp.p0.q0");
  driver.run();
  EXPECT_TRUE(fence());
  EXPECT_EQ(logged(), 0u);
  EXPECT_FALSE(driver.engines->user_queues_mapped());
}

TEST_F(HwsHangTest, unmapping_with_reset_cures) {
  GuestQueue q = driver.make_compute(0x404);
  driver.map({&q});
  driver.controls.hang("cp.p0.q0");
  send_unmap(pm4::UnmapAction::kReset);
  EXPECT_TRUE(fence());
  EXPECT_FALSE(driver.controls.hung("cp.p0.q0"));
}

TEST_F(HwsHangTest, a_run_list_without_the_hung_queue_is_abandoned) {
  GuestQueue hung = driver.make_compute(0x404);
  GuestQueue other = driver.make_compute(0x500);
  driver.map({&hung});
  driver.controls.hang("cp.p0.q0");
  driver.map({&other});
  EXPECT_EQ(driver.trace.count("map_queue"), 1u);
  driver.clock.now += 4 * kSecond;
  driver.run();
  EXPECT_EQ(logged(), 0x404u);
  EXPECT_EQ(driver.engines->query_hqd({QueueKind::kCompute, 0, 0, 0}).value().pq_base, hung.ring);
}

TEST_F(HwsHangTest, a_hung_queue_that_stays_on_the_list_disturbs_nobody) {
  GuestQueue hung = driver.make_compute(0x404);
  GuestQueue other = driver.make_compute(0x500);
  driver.map({&hung});
  driver.controls.hang("cp.p0.q0");
  driver.map({&hung, &other});
  write(other, kDst + 4, 2);
  driver.run();
  EXPECT_EQ(at(kDst + 4), 2u);
}

TEST_F(HwsHangTest, others_share_the_time_around_a_hung_process) {
  driver.set_resources(0x0300, ~0ull, kLatency);
  std::vector<GuestQueue> queues;
  for (std::uint32_t i = 0; i < 4; ++i) queues.push_back(driver.make_compute(0x404 + 2 * i));
  driver.run_list({{1, {&queues[0]}}, {2, {&queues[1]}}, {3, {&queues[2]}}, {4, {&queues[3]}}});
  driver.controls.hang("cp.p0.q0");
  for (std::uint32_t i = 0; i < 4; ++i) write(queues[i], kDst + 4 + 4 * i, i + 1);
  driver.share_time(3);
  EXPECT_EQ(at(kDst + 4), 0u);
  for (std::uint32_t i = 1; i < 4; ++i) EXPECT_EQ(at(kDst + 4 + 4 * i), i + 1) << i;
  EXPECT_EQ(driver.registers.pasid(8), 1u);
}

TEST_F(HwsHangTest, an_unmap_that_is_to_fail_is_never_answered) {
  GuestQueue q = driver.make_compute(0x404);
  driver.map({&q});
  driver.controls.fail_unmaps(1);
  send_unmap();
  driver.clock.now += 60 * kSecond;
  driver.run();
  EXPECT_FALSE(fence());
  write(q, kDst + 4, 1);
  driver.run();
  EXPECT_EQ(at(kDst + 4), 1u);
  const HqdSlot hiq{QueueKind::kHiq, 0, 0, 0};
  EXPECT_EQ(driver.engines->unload_hqd(hiq, UnloadMode::kDrain).error().code(), ETIME);
  ASSERT_TRUE(driver.engines->unload_hqd(hiq, UnloadMode::kReset).ok());
  driver.load_hiq();
  send_unmap();
  EXPECT_TRUE(fence());
}

TEST_F(HwsHangTest, what_is_no_packet_hangs_the_scheduler) {
  const Words garbage(7, 0x55555555);  // amdkfd's debugfs file hang_hws
  driver.hiq_submit(garbage);
  send_unmap();
  EXPECT_FALSE(fence());
  driver.engines->reset();
  driver.load_hiq();
  send_unmap();
  EXPECT_TRUE(fence());
}

TEST_F(HwsHangTest, a_hung_hws_is_cured_by_reset_only) {
  driver.controls.hang("hws");
  send_unmap();
  EXPECT_FALSE(fence());
  const HqdSlot hiq{QueueKind::kHiq, 0, 0, 0};
  EXPECT_EQ(driver.engines->unload_hqd(hiq, UnloadMode::kDrain).error().code(), ETIME);
  EXPECT_TRUE(driver.engines->unload_hqd(hiq, UnloadMode::kReset).ok());
  EXPECT_FALSE(driver.controls.hung("hws"));
}

TEST_F(HwsHangTest, the_driver_resets_a_hung_queue_xcc_by_xcc) {
  driver.info.xcc_count = 6;
  driver.replace_device();
  driver.load_hiq();
  GuestQueue hung = driver.make_compute(0x404);
  GuestQueue good = driver.make_compute(0x500);
  driver.map({&hung, &good});
  driver.controls.hang("cp.p0.q0");
  send_unmap();
  EXPECT_TRUE(fence());
  for (unsigned xcc = 0; xcc < 6; ++xcc) {
    const HqdSlot slot{QueueKind::kCompute, 0, 0, xcc};
    EXPECT_EQ(driver.engines->query_hqd(slot).value().pq_base, hung.ring) << xcc;
    EXPECT_TRUE(driver.engines->unload_hqd(slot, UnloadMode::kReset).ok()) << xcc;
    EXPECT_FALSE(driver.engines->query_hqd(slot).value().occupied) << xcc;
  }
  EXPECT_FALSE(driver.engines->user_queues_mapped());
  EXPECT_TRUE(driver.registers.bound.empty());
}

}  // namespace vasicd::hws_hang_test
