// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Time sharing: more processes than VMIDs, more queues than slots, quantums; and run lists of hostile size.
#include <gtest/gtest.h>

#include "vasicd/blocks/sched/scheduler_fixture.h"

namespace vasicd::hws_share_test {

namespace pm4 = packets::pm4;
using packets::Words;

constexpr GpuAddr kDst = FakeDriver::kData;

class HwsShareTest : public SchedulerTest {
 protected:
  HwsShareTest() { driver.load_hiq(); }
  // Submits work for a long time.
  GuestQueue make_busy(std::uint32_t doorbell) {
    GuestQueue q = driver.make_compute(doorbell, 65536);
    Words w;
    for (int i = 0; i < 13000; ++i) pm4::write_data(w, kDst + 0x1000, 1);
    driver.submit(q, w);
    return q;
  }
  // Advances the clock and steps once.
  void step_after_ms(std::uint64_t ms) {
    driver.clock.now += ms * 1'000'000;
    driver.engines->step();
  }
};

TEST_F(HwsShareTest, more_processes_than_vmids_share_the_time) {
  driver.set_resources(0x0300, ~0ull);
  std::vector<GuestQueue> queues;
  for (std::uint32_t i = 0; i < 5; ++i) queues.push_back(driver.make_compute(0x400 + 2 * i));
  std::vector<FakeDriver::GuestProcess> processes;
  for (std::uint32_t i = 0; i < 5; ++i) processes.push_back({i + 1, {&queues[i]}});
  for (std::uint32_t i = 0; i < 5; ++i) write(queues[i], kDst + 4 * i, i + 1);
  driver.run_list(processes);
  EXPECT_LE(driver.registers.bound.size(), 2u);
  driver.share_time(1);
  for (std::uint32_t i = 0; i < 5; ++i) EXPECT_EQ(at(kDst + 4 * i), i + 1) << i;
}

TEST_F(HwsShareTest, a_busy_process_keeps_its_vmid_for_its_quantum) {
  driver.set_resources(0x0100, ~0ull);
  GuestQueue a = make_busy(0x404);
  GuestQueue b = make_busy(0x500);
  Words list;
  pm4::map_process(list, {.pasid = 1, .quantum = 30, .page_directory = 0x1000});
  pm4::map_queues(list, FakeDriver::map_of(a));
  pm4::map_process(list, {.pasid = 2, .quantum = 5, .page_directory = 0x2000});
  pm4::map_queues(list, FakeDriver::map_of(b));
  driver.run_list_words(list);
  step_after_ms(29);
  EXPECT_EQ(driver.registers.pasid(8), 1u);
  step_after_ms(2);
  EXPECT_EQ(driver.registers.pasid(8), 2u);
  step_after_ms(4);
  EXPECT_EQ(driver.registers.pasid(8), 2u);
  step_after_ms(2);
  EXPECT_EQ(driver.registers.pasid(8), 1u);
}

TEST_F(HwsShareTest, the_driver_says_how_many_processes_run_at_a_time) {
  GuestQueue a = make_busy(0x404);
  GuestQueue b = make_busy(0x500);
  Words list;
  for (std::uint32_t pasid = 1; pasid <= 2; ++pasid) {
    pm4::map_process(list, {.pasid = pasid, .page_directory = 0x1000});
    pm4::map_queues(list, FakeDriver::map_of(pasid == 1 ? a : b));
  }
  const GpuAddr ib = driver.put_words(list);
  Words w;
  pm4::run_list(w, {.ib = ib, .dwords = static_cast<std::uint32_t>(list.size()), .processes = 1});
  driver.hiq_submit(w);
  EXPECT_EQ(driver.registers.bound.size(), 1u);
  step_after_ms(11);
  EXPECT_EQ(driver.registers.bound.size(), 1u);
  EXPECT_EQ(driver.registers.pasid(8), 2u);
}

TEST_F(HwsShareTest, more_queues_than_slots_share_the_time) {
  driver.set_resources(0xff00, 0x3);
  std::vector<GuestQueue> queues;
  for (std::uint32_t i = 0; i < 7; ++i) queues.push_back(driver.make_compute(0x400 + 2 * i));
  std::vector<GuestQueue*> all;
  for (GuestQueue& q : queues) all.push_back(&q);
  for (std::uint32_t i = 0; i < 7; ++i) write(queues[i], kDst + 4 * i, i + 1);
  driver.map(all);
  driver.share_time(3);
  for (std::uint32_t i = 0; i < 7; ++i) EXPECT_EQ(at(kDst + 4 * i), i + 1) << i;
}

TEST_F(HwsShareTest, busy_queues_take_turns_on_a_slot) {
  driver.set_resources(0xff00, 0x1);
  GuestQueue a = make_busy(0x404);
  GuestQueue b = make_busy(0x500);
  driver.map({&a, &b});
  const auto sits = [&] { return driver.engines->query_hqd({QueueKind::kCompute, 0, 0, 0}).value().pq_base; };
  step_after_ms(9);
  EXPECT_EQ(sits(), a.ring);
  step_after_ms(2);
  EXPECT_EQ(sits(), b.ring);
  step_after_ms(11);
  EXPECT_EQ(sits(), a.ring);
}

TEST_F(HwsShareTest, a_static_queue_keeps_its_slot) {
  driver.set_resources(0xff00, 0x3);
  GuestQueue a = make_busy(0x404);
  GuestQueue b = make_busy(0x500);
  GuestQueue c = make_busy(0x600);
  Words list;
  pm4::map_process(list, {.pasid = 1, .page_directory = 0x1000});
  pm4::MapQueues fixed = FakeDriver::map_of(a);
  fixed.queue_type = pm4::kQueueTypeStatic;
  pm4::map_queues(list, fixed);
  pm4::map_queues(list, FakeDriver::map_of(b));
  pm4::map_queues(list, FakeDriver::map_of(c));
  driver.run_list_words(list);
  step_after_ms(11);
  EXPECT_EQ(driver.engines->query_hqd({QueueKind::kCompute, 0, 0, 0}).value().pq_base, a.ring);
  EXPECT_EQ(driver.engines->query_hqd({QueueKind::kCompute, 0, 1, 0}).value().pq_base, c.ring);
}

TEST_F(HwsShareTest, idle_queues_that_take_turns_are_not_work) {
  driver.set_resources(0xff00, 0x1);
  GuestQueue a = driver.make_compute(0x404);
  GuestQueue b = driver.make_compute(0x500);
  driver.map({&a, &b});
  driver.run();
  driver.trace.lines.clear();
  for (int i = 0; i < 100; ++i) {
    driver.clock.now += 1'000'000;
    EXPECT_FALSE(driver.engines->step());
  }
  EXPECT_GT(driver.trace.count("map_queue"), 5u);
  EXPECT_LT(driver.trace.count("map_queue"), 20u);
}

TEST_F(HwsShareTest, a_thousand_processes_all_get_their_turn) {
  driver.trace.on = false;
  constexpr std::uint32_t kProcesses = 500;
  std::vector<GuestQueue> queues;
  for (std::uint32_t i = 0; i < kProcesses; ++i) queues.push_back(driver.make_compute(0x400 + 2 * i, 64));
  std::vector<FakeDriver::GuestProcess> processes;
  for (std::uint32_t i = 0; i < kProcesses; ++i) {
    write(queues[i], kDst + 4 * i, i + 1);
    processes.push_back({i + 1, {&queues[i]}});
  }
  driver.run_list(processes);
  driver.share_time(10);
  for (std::uint32_t i = 0; i < kProcesses; ++i) ASSERT_EQ(at(kDst + 4 * i), i + 1) << i;
}

TEST_F(HwsShareTest, run_lists_have_a_bounded_size) {
  Words list;
  for (std::uint32_t i = 0; i < 2000; ++i) pm4::map_process(list, {.pasid = i + 1, .page_directory = 0x1000});
  driver.run_list_words(list);
  EXPECT_TRUE(driver.trace.contains("run_list malformed: too many processes"));
  list.clear();
  pm4::map_process(list, {.pasid = 1, .page_directory = 0x1000});
  for (std::uint32_t i = 0; i < 5000; ++i) pm4::map_queues(list, {.doorbell = 0x400, .mqd = (1ull << 40) + 4096 * i});
  driver.run_list_words(list);
  EXPECT_TRUE(driver.trace.contains("run_list malformed: too many queues"));
}

TEST_F(HwsShareTest, chains_of_run_lists_end) {
  constexpr unsigned kBuffers = 40;
  const GpuAddr first = driver.alloc(kBuffers * 4096);
  for (unsigned i = 0; i < kBuffers; ++i) {
    Words list;
    pm4::map_process(list, {.pasid = i + 1, .page_directory = 0x1000});
    pm4::run_list(list, {.ib = first + (i + 1) * 4096, .dwords = 20, .chain = true});
    for (std::size_t k = 0; k < list.size(); ++k) driver.memory.put(first + i * 4096 + k * 4, list[k]);
  }
  Words w;
  pm4::run_list(w, {.ib = first, .dwords = 20});
  driver.hiq_submit(w);
  EXPECT_TRUE(driver.trace.contains("run_list malformed: too many chained buffers"));
}

TEST_F(HwsShareTest, queues_that_no_firmware_would_map_are_refused) {
  GuestQueue q = driver.make_compute(0x404);
  const auto refused = [&](const pm4::MapQueues& map, const char* why) {
    Words list;
    pm4::map_process(list, {.pasid = 1, .page_directory = 0x1000});
    pm4::map_queues(list, map);
    driver.run_list_words(list);
    return driver.trace.contains(std::string("run_list malformed: ") + why) && !driver.engines->user_queues_mapped();
  };
  pm4::MapQueues map = FakeDriver::map_of(q);
  map.num_queues = 2;
  EXPECT_TRUE(refused(map, "not one queue"));
  map = FakeDriver::map_of(q);
  map.queue_sel = 0;
  EXPECT_TRUE(refused(map, "queue for a slot of the driver's choice"));
  map = FakeDriver::map_of(q);
  map.engine = static_cast<pm4::QueueEngine>(5);
  EXPECT_TRUE(refused(map, "queue for an engine that does not exist"));
}

}  // namespace vasicd::hws_share_test
