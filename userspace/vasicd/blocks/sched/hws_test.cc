// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The scheduler: what each HIQ packet does, time sharing, and hostile run lists.
#include <gtest/gtest.h>

#include <array>

#include "vasicd/blocks/sched/scheduler_fixture.h"

namespace vasicd::hws_test {

namespace pm4 = packets::pm4;
using packets::Words;

constexpr GpuAddr kDst = FakeDriver::kData;

class HwsTest : public SchedulerTest {
 protected:
  HwsTest() { driver.load_hiq(); }
};

TEST_F(HwsTest, hiq_is_loaded_once_and_reports_its_read_pointer) {
  EXPECT_TRUE(driver.hiq_loaded);
  EXPECT_EQ(driver.engines->load_hqd({QueueKind::kHiq, 0, 0, 0}, driver.hiq.mqd, 0).error().code(), EBUSY);
  EXPECT_EQ(at(driver.hiq.rptr_word), driver.hiq.wptr);
  EXPECT_TRUE(driver.engines->anything_mapped());
  EXPECT_FALSE(driver.engines->user_queues_mapped());
  EXPECT_TRUE(driver.engines->query_hqd({QueueKind::kHiq, 0, 0, 0}).value().occupied);
}

TEST_F(HwsTest, a_process_gets_a_vmid_of_the_mask_with_its_page_directory) {
  GuestQueue q = driver.make_compute(0x404);
  driver.map({&q});
  ASSERT_EQ(driver.registers.bound.count(FakeDriver::kVmid), 1u);
  EXPECT_EQ(driver.registers.bound[FakeDriver::kVmid].first, 0x1000u * FakeDriver::kPasid);
  EXPECT_EQ(driver.registers.pasid(FakeDriver::kVmid), FakeDriver::kPasid);
  EXPECT_TRUE(driver.trace.contains("hws: map_queue pasid=32769 vmid=8 doorbell=0x404"));
  EXPECT_TRUE(driver.engines->user_queues_mapped());
}

TEST_F(HwsTest, query_status_writes_its_fence_after_the_unmap_before_it) {
  GuestQueue q = driver.make_compute(0x404);
  driver.map({&q});
  Words w;
  pm4::unmap_queues(w, {.select = pm4::UnmapSelect::kPasid, .pasid = FakeDriver::kPasid});
  pm4::query_status(w, {.addr = kDst, .data = 0x1'0000'0001});
  driver.hiq_submit(w);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 0x1'0000'0001u);
  EXPECT_FALSE(driver.engines->user_queues_mapped());
  EXPECT_TRUE(driver.registers.bound.empty());
}

TEST_F(HwsTest, unmapping_one_process_leaves_the_others) {
  GuestQueue a = driver.make_compute(0x404);
  GuestQueue b = driver.make_compute(0x500);
  driver.run_list({{1, {&a}}, {2, {&b}}});
  Words w;
  pm4::unmap_queues(w, {.select = pm4::UnmapSelect::kPasid, .pasid = 1});
  driver.hiq_submit(w);
  write(a, kDst, 1);
  write(b, kDst + 4, 2);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 0x2'0000'0000u);
}

TEST_F(HwsTest, unmapping_by_doorbell_takes_that_queue) {
  GuestQueue a = driver.make_compute(0x404);
  GuestQueue b = driver.make_sdma(0x500);
  driver.map({&a, &b});
  Words w;
  pm4::unmap_queues(w, {.select = pm4::UnmapSelect::kDoorbells, .num_doorbells = 1, .doorbells = {0x500}});
  driver.hiq_submit(w);
  write(a, kDst, 1);
  driver.run();
  EXPECT_EQ(at(kDst), 1u);
  EXPECT_TRUE(driver.trace.contains("sdma0.q0: unload"));
  EXPECT_FALSE(driver.trace.contains("cp.p0.q0: unload"));
}

TEST_F(HwsTest, static_queues_survive_unmapping_the_non_static) {
  GuestQueue a = driver.make_compute(0x404);
  Words list;
  pm4::map_process(list, {.pasid = 1, .page_directory = 0x1000});
  pm4::MapQueues map = FakeDriver::map_of(a);
  map.queue_type = pm4::kQueueTypeStatic;
  pm4::map_queues(list, map);
  driver.run_list_words(list);
  Words w;
  pm4::unmap_queues(w, {.select = pm4::UnmapSelect::kAllNonStatic});
  driver.hiq_submit(w);
  EXPECT_TRUE(driver.engines->user_queues_mapped());
}

TEST_F(HwsTest, reset_writes_nothing_back) {
  GuestQueue q = driver.make_compute(0x404);
  driver.map({&q});
  write(q, kDst, 1);
  driver.run();
  driver.unmap_all(pm4::UnmapAction::kReset);
  EXPECT_EQ(driver.mqd_word(q, driver.compute_layout().cp_hqd_pq_rptr), 0u);
  EXPECT_FALSE(driver.engines->user_queues_mapped());
}

TEST_F(HwsTest, a_new_run_list_keeps_common_queues_mapped) {
  GuestQueue a = driver.make_compute(0x404);
  GuestQueue b = driver.make_compute(0x500);
  GuestQueue c = driver.make_compute(0x600);
  driver.map({&a, &b});
  driver.trace.lines.clear();
  driver.map({&b, &c});
  EXPECT_TRUE(driver.trace.contains("cp.p0.q0: unload"));
  EXPECT_FALSE(driver.trace.contains("cp.p1.q0: unload"));
  write(a, kDst, 1);
  write(b, kDst + 4, 2);
  write(c, kDst + 8, 3);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 0x2'0000'0000u);
  EXPECT_EQ(at(kDst + 8), 3u);
}

TEST_F(HwsTest, a_process_with_another_page_directory_is_mapped_anew) {
  GuestQueue a = driver.make_compute(0x404);
  driver.map({&a});
  Words list;
  pm4::map_process(list, {.pasid = FakeDriver::kPasid, .page_directory = 0xabc000});
  pm4::map_queues(list, FakeDriver::map_of(a));
  driver.run_list_words(list);
  EXPECT_EQ(driver.registers.bound[FakeDriver::kVmid].first, 0xabc000u);
  write(a, kDst, 1);
  driver.run();
  EXPECT_EQ(at(kDst), 1u);
}

TEST_F(HwsTest, the_drivers_oversubscription_loop_is_understood) {
  GuestQueue q = driver.make_compute(0x404);
  const GpuAddr list_at = driver.alloc(4096);
  Words list;
  pm4::map_process(list, {.pasid = 1, .page_directory = 0x1000});
  pm4::map_queues(list, FakeDriver::map_of(q));
  pm4::run_list(list, {.ib = list_at, .dwords = 27, .chain = true});
  for (std::size_t i = 0; i < list.size(); ++i) driver.memory.put(list_at + i * 4, list[i]);
  Words w;
  pm4::run_list(w, {.ib = list_at, .dwords = static_cast<std::uint32_t>(list.size())});
  driver.hiq_submit(w);
  EXPECT_TRUE(driver.engines->user_queues_mapped());
  EXPECT_FALSE(driver.trace.contains("malformed"));
}

TEST_F(HwsTest, the_rest_of_a_malformed_run_list_is_empty) {
  GuestQueue a = driver.make_compute(0x404);
  GuestQueue b = driver.make_compute(0x500);
  Words list;
  pm4::map_process(list, {.pasid = 1, .page_directory = 0x1000});
  pm4::map_queues(list, FakeDriver::map_of(a));
  list.push_back(0xc000ff00);
  list.push_back(0);
  pm4::map_queues(list, FakeDriver::map_of(b));
  driver.run_list_words(list);
  EXPECT_TRUE(driver.trace.contains("run_list malformed: unknown packet"));
  write(a, kDst, 1);
  write(b, kDst + 4, 1);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst), 1u);
}

TEST_F(HwsTest, a_queue_listed_twice_is_mapped_once) {
  GuestQueue a = driver.make_compute(0x404);
  driver.map({&a, &a});
  EXPECT_TRUE(driver.trace.contains("run_list malformed: queue listed twice"));
  EXPECT_TRUE(driver.engines->user_queues_mapped());
}

TEST_F(HwsTest, an_mqd_that_makes_no_sense_is_not_mapped_and_stops_nobody) {
  GuestQueue bad = driver.make_compute(0x404);
  driver.mqd_word(bad, driver.compute_layout().cp_hqd_pq_control, 0x3f);
  GuestQueue gone = driver.make_compute(0x600);
  gone.mqd = 1ull << 40;
  GuestQueue good = driver.make_compute(0x500);
  driver.map({&bad, &gone, &good});
  EXPECT_TRUE(driver.trace.contains("failed: ring size is out of range"));
  EXPECT_TRUE(driver.trace.contains("failed: MQD is not readable"));
  write(good, kDst, 1);
  driver.run();
  EXPECT_EQ(at(kDst), 1u);
}

TEST_F(HwsTest, register_writes_and_fillers_on_the_hiq_are_ignored) {
  Words w;
  pm4::write_data(w, 0x1000, Words{1}, pm4::WriteDst::kRegister);
  pm4::nop(w);
  w.push_back(0xc0007700);
  w.push_back(0);
  pm4::query_status(w, {.addr = kDst, .data = 1});
  driver.hiq_submit(w);
  EXPECT_EQ(at(kDst), 1u);
  EXPECT_TRUE(driver.registers.written.empty());
}

TEST_F(HwsTest, unloading_the_hiq_unmaps_everything) {
  GuestQueue q = driver.make_compute(0x404);
  driver.map({&q});
  ASSERT_TRUE(driver.engines->unload_hqd({QueueKind::kHiq, 0, 0, 0}, UnloadMode::kDrain).ok());
  EXPECT_FALSE(driver.engines->anything_mapped());
  EXPECT_EQ(driver.engines->unload_hqd({QueueKind::kHiq, 0, 0, 0}, UnloadMode::kDrain).error().code(), EBUSY);
}

TEST_F(HwsTest, queues_sit_where_the_driver_can_see_them) {
  GuestQueue a = driver.make_compute(0x404);
  GuestQueue b = driver.make_compute(0x500);
  GuestQueue c = driver.make_sdma(0x600, 1);
  driver.map({&a, &b, &c});
  EXPECT_EQ(driver.engines->query_hqd({QueueKind::kCompute, 0, 0, 0}).value().pq_base, a.ring);
  EXPECT_EQ(driver.engines->query_hqd({QueueKind::kCompute, 1, 0, 0}).value().pq_base, b.ring);
  EXPECT_EQ(driver.engines->query_hqd({QueueKind::kSdma, 1, 0, 0}).value().pq_base, c.ring);
  EXPECT_FALSE(driver.engines->query_hqd({QueueKind::kCompute, 2, 0, 0}).value().occupied);
  EXPECT_EQ(driver.engines->load_hqd({QueueKind::kCompute, 1, 0, 0}, a.mqd, 9).error().code(), EBUSY);
}

TEST_F(HwsTest, queues_are_put_only_on_slots_of_the_mask) {
  driver.set_resources(0xff00, 0x0000'0000'0800'0004);  // pipe 0 slot 2, pipe 3 slot 3
  GuestQueue a = driver.make_compute(0x404);
  GuestQueue b = driver.make_compute(0x500);
  GuestQueue c = driver.make_compute(0x600);
  driver.map({&a, &b, &c});
  EXPECT_EQ(driver.engines->query_hqd({QueueKind::kCompute, 0, 2, 0}).value().pq_base, a.ring);
  EXPECT_EQ(driver.engines->query_hqd({QueueKind::kCompute, 3, 3, 0}).value().pq_base, b.ring);
  EXPECT_EQ(driver.trace.count("queue=cp."), 2u);
}

TEST_F(HwsTest, queues_leave_slots_that_are_taken_from_the_scheduler) {
  GuestQueue a = driver.make_compute(0x404);
  driver.map({&a});
  driver.set_resources(0xff00, 0x2);
  EXPECT_FALSE(driver.engines->query_hqd({QueueKind::kCompute, 0, 0, 0}).value().occupied);
  EXPECT_EQ(driver.engines->query_hqd({QueueKind::kCompute, 0, 1, 0}).value().pq_base, a.ring);
}

TEST_F(HwsTest, preempting_without_unmapping_writes_the_state_and_goes_on) {
  GuestQueue q = driver.make_compute(0x404);
  driver.map({&q});
  write(q, kDst, 1);
  driver.run();
  Words w;
  pm4::unmap_queues(w, {.action = pm4::UnmapAction::kPreemptNoUnmap, .select = pm4::UnmapSelect::kAll});
  driver.hiq_submit(w);
  EXPECT_EQ(driver.mqd_word(q, driver.compute_layout().cp_hqd_pq_rptr), q.wptr);
  write(q, kDst + 4, 2);
  driver.run();
  EXPECT_EQ(at(kDst + 4), 2u);
}

TEST_F(HwsTest, query_status_interrupts_if_asked_to) {
  Words w;
  pm4::query_status(w, {.context_id = 7, .command = pm4::QueryCommand::kFenceAndInterrupt, .addr = kDst, .data = 1});
  pm4::query_status(w, {.context_id = 8, .command = pm4::QueryCommand::kInterruptOnly, .addr = kDst, .data = 2});
  pm4::query_status(w, {.context_id = 9, .command = pm4::QueryCommand::kFence, .addr = kDst + 8, .data = 3});
  driver.hiq_submit(w);
  ASSERT_EQ(driver.interrupts.raised.size(), 2u);
  EXPECT_EQ(driver.interrupts.raised[0].data[0], 7u);
  EXPECT_EQ(driver.interrupts.raised[1].data[0], 8u);
  EXPECT_EQ(at(kDst), 1u);
  EXPECT_EQ(at(kDst + 8), 3u);
}

TEST_F(HwsTest, one_gws_queue_is_mapped_at_a_time) {
  GuestQueue a = driver.make_compute(0x404);
  GuestQueue b = driver.make_compute(0x500);
  Words list;
  for (std::uint32_t pasid = 1; pasid <= 2; ++pasid) {
    pm4::map_process(list, {.pasid = pasid, .page_directory = 0x1000, .num_gws = 64});
    pm4::MapQueues map = FakeDriver::map_of(pasid == 1 ? a : b);
    map.gws = true;
    pm4::map_queues(list, map);
  }
  driver.run_list_words(list);
  write(a, kDst, 1);
  write(b, kDst + 4, 2);
  driver.run();
  EXPECT_EQ(at(kDst + 4), 0u);
  driver.share_time(3);
  EXPECT_EQ(at(kDst), 1u);
  EXPECT_EQ(at(kDst + 4), 2u);
}

TEST_F(HwsTest, sdma_engines_beyond_the_second_have_extended_numbers) {
  GuestQueue q = driver.make_sdma(0x404, 1);
  Words list;
  pm4::map_process(list, {.pasid = 1, .page_directory = 0x1000});
  pm4::MapQueues map = FakeDriver::map_of(q);
  map.engine = static_cast<pm4::QueueEngine>(1);
  map.extended_engine = pm4::kExtendedSdma0To7;
  pm4::map_queues(list, map);
  map.mqd += 4096;
  map.engine = static_cast<pm4::QueueEngine>(7);
  map.extended_engine = pm4::kExtendedSdma8To15;
  pm4::map_queues(list, map);
  driver.run_list_words(list);
  EXPECT_TRUE(driver.trace.contains("queue=sdma1.q0"));
  EXPECT_TRUE(driver.trace.contains("failed: no such SDMA engine"));
}

TEST_F(HwsTest, every_xcc_has_the_hiq_loaded_and_one_executes_it) {
  driver.info.xcc_count = 6;
  driver.replace_device();
  driver.load_hiq();
  for (unsigned xcc = 1; xcc < 6; ++xcc) {
    EXPECT_TRUE(driver.engines->load_hqd({QueueKind::kHiq, 0, 0, xcc}, driver.hiq.mqd, 0).ok());
  }
  EXPECT_EQ(driver.engines->load_hqd({QueueKind::kHiq, 0, 0, 5}, driver.hiq.mqd, 0).error().code(), EBUSY);
  EXPECT_EQ(driver.engines->load_hqd({QueueKind::kHiq, 0, 0, 6}, driver.hiq.mqd, 0).error().code(), EINVAL);
  driver.trace.lines.clear();
  Words w;
  pm4::query_status(w, {.addr = kDst, .data = 1});
  driver.hiq_submit(w);
  EXPECT_EQ(driver.trace.count("query_status"), 1u);
  for (unsigned xcc = 0; xcc < 6; ++xcc) {
    EXPECT_TRUE(driver.engines->unload_hqd({QueueKind::kHiq, 0, 0, xcc}, UnloadMode::kDrain).ok());
  }
  EXPECT_FALSE(driver.engines->query_hqd({QueueKind::kHiq, 0, 0, 5}).value().occupied);
}

}  // namespace vasicd::hws_test
