// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Engines as a whole: queue slots loaded by the driver, fairness, reset, and garbage everywhere.
#include "vasicd/blocks/engines.h"

#include <gtest/gtest.h>

#include <random>

#include "vasicd/blocks/fakes/fake_driver.h"

namespace vasicd::engines_test {

namespace m = packets::mqd;
namespace pm4 = packets::pm4;
namespace sdma = packets::sdma;
using packets::Words;

constexpr GpuAddr kDst = FakeDriver::kData;

TEST(EnginesSlots, compute_queue_runs_in_a_slot_without_a_scheduler) {
  FakeDriver driver;
  GuestQueue q = driver.make_compute(0x404);
  const HqdSlot slot{QueueKind::kCompute, 1, 2, 0};
  EXPECT_FALSE(driver.engines->query_hqd(slot).value().occupied);
  ASSERT_TRUE(driver.engines->load_hqd(slot, q.mqd, 9).ok());
  EXPECT_EQ(driver.engines->load_hqd(slot, q.mqd, 9).error().code(), EBUSY);
  EXPECT_EQ(driver.engines->query_hqd(slot).value().pq_base, q.ring);
  Words w;
  pm4::write_data(w, kDst, 5);
  driver.submit(q, w);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 5u);
  EXPECT_TRUE(driver.memory.vmids_used.contains(9));
  ASSERT_TRUE(driver.engines->unload_hqd(slot, UnloadMode::kDrain).ok());
  EXPECT_EQ(driver.mqd_word(q, driver.compute_layout().cp_hqd_pq_rptr), q.wptr);
  EXPECT_EQ(driver.engines->unload_hqd(slot, UnloadMode::kDrain).error().code(), EBUSY);
}

TEST(EnginesSlots, sdma_queue_takes_its_vmid_from_the_mqd) {
  FakeDriver driver;
  GuestQueue q = driver.make_sdma(0x404);
  driver.mqd_word(q, driver.sdma_layout().rb_cntl,
                  driver.mqd_word(q, driver.sdma_layout().rb_cntl) | m::kRbVmid.put(5));
  ASSERT_TRUE(driver.engines->load_hqd({QueueKind::kSdma, 1, 7, 0}, q.mqd, 0).ok());
  Words w;
  sdma::fence(w, kDst, 5);
  driver.submit(q, w);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 5u);
  EXPECT_TRUE(driver.memory.vmids_used.contains(5));
}

TEST(EnginesSlots, slots_outside_the_chip_are_refused) {
  FakeDriver driver;
  GuestQueue q = driver.make_compute(0x404);
  EXPECT_EQ(driver.engines->prepare_hqd({QueueKind::kCompute, 8, 0, 0}, q.mqd).error().code(), EINVAL);
  EXPECT_EQ(driver.engines->prepare_hqd({QueueKind::kHiq, 0, 0, 0}, q.mqd).error().code(), EINVAL);
  EXPECT_EQ(driver.engines->prepare_hqd({QueueKind::kCompute, 0, 0, 0}, 1ull << 50).error().code(), EFAULT);
  EXPECT_EQ(driver.engines->load_hqd({QueueKind::kCompute, 8, 0, 0}, q.mqd, 9).error().code(), EINVAL);
  EXPECT_EQ(driver.engines->load_hqd({QueueKind::kCompute, 0, 8, 0}, q.mqd, 9).error().code(), EINVAL);
  EXPECT_EQ(driver.engines->load_hqd({QueueKind::kCompute, 0, 0, 1}, q.mqd, 9).error().code(), EINVAL);
  EXPECT_EQ(driver.engines->load_hqd({QueueKind::kSdma, 2, 0, 0}, q.mqd, 9).error().code(), EINVAL);
  EXPECT_EQ(driver.engines->load_hqd({QueueKind::kCompute, 0, 0, 0}, q.mqd, 16).error().code(), EINVAL);
  EXPECT_EQ(driver.engines->load_hqd({QueueKind::kCompute, 0, 0, 0}, 1ull << 50, 9).error().code(), EFAULT);
}

TEST(EnginesAll, a_queue_that_copies_forever_does_not_starve_the_others) {
  FakeDriver driver;
  driver.load_hiq();
  GuestQueue hog = driver.make_sdma(0x404);
  GuestQueue quick = driver.make_sdma(0x500, 1);
  driver.map({&hog, &quick});
  Words copies;
  for (int i = 0; i < 50; ++i) sdma::copy_linear(copies, kDst + 0x400000, kDst, 4u << 20);
  driver.submit(hog, copies);
  Words fence;
  sdma::fence(fence, kDst, 1);
  driver.submit(quick, fence);
  driver.engines->step();
  driver.engines->step();
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 1u);
  EXPECT_NE(driver.memory.get<std::uint64_t>(hog.rptr_word), hog.wptr);
}

TEST(EnginesAll, reset_forgets_everything) {
  FakeDriver driver;
  driver.load_kernel_ring();
  driver.load_hiq();
  GuestQueue q = driver.make_compute(0x404);
  driver.map({&q});
  driver.engines->reset();
  EXPECT_FALSE(driver.engines->anything_mapped());
  EXPECT_TRUE(driver.registers.bound.empty());
  EXPECT_FALSE(driver.engines->step());
}

// --- Garbage. The sanitizers find bad accesses, and each run must end.
class Garbage : public ::testing::TestWithParam<unsigned> {
 protected:
  std::uint32_t word() { return static_cast<std::uint32_t>(random_()); }
  // Mostly plausible: small numbers and headers of packets that exist.
  std::uint32_t plausible(bool pm4_queue) {
    static constexpr std::uint8_t kOps[] = {0x10, 0x15, 0x1e, 0x37, 0x3c, 0x3f, 0x40, 0x46, 0x49, 0x50,
                                            0x58, 0x76, 0x79, 0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5};
    switch (word() % 4) {
      case 0:
        return pm4_queue ? pm4::kHeaderType.put(3) | pm4::kHeaderCount.put(word() % 20) |
                               pm4::kHeaderOpcode.put(kOps[word() % std::size(kOps)])
                         : sdma::kHeaderOp.put(word() % 17) | sdma::kHeaderSubOp.put(word() % 3);
      case 1:
        return static_cast<std::uint32_t>(FakeDriver::kMemory / 2 + word() % FakeDriver::kMemory);
      case 2:
        return word() % 8;
      default:
        return word();
    }
  }
  std::mt19937_64 random_{GetParam()};
};

TEST_P(Garbage, rings_never_hurt) {
  for (int round = 0; round < 40; ++round) {
    FakeDriver driver;
    driver.trace.on = round % 2 == 0;
    GuestQueue kernel = driver.load_kernel_ring();
    driver.load_hiq();
    GuestQueue compute = driver.make_compute(0x404);
    GuestQueue user = driver.make_sdma(0x406);
    GuestQueue aql = driver.make_aql(0x408);
    driver.map({&compute, &user, &aql});
    for (GuestQueue* q : {&kernel, &compute, &user, &aql, &driver.hiq}) {
      const bool is_pm4 = q->engine == pm4::QueueEngine::kCompute;
      Words w;
      for (int i = 0; i < 200; ++i) w.push_back(plausible(is_pm4));
      for (std::size_t i = 0; i < w.size(); ++i) driver.memory.put(q->ring + (q->wptr + i) % q->ring_dwords * 4, w[i]);
      driver.doorbells.rung[q->doorbell] = word() % 3 == 0 ? random_() : q->wptr + (is_pm4 ? 200 : 800);
    }
    driver.run(30);
    driver.unmap_all();
    driver.engines->reset();
  }
}

TEST_P(Garbage, mqds_never_hurt) {
  for (int round = 0; round < 40; ++round) {
    FakeDriver driver;
    driver.load_hiq();
    GuestQueue compute = driver.make_compute(0x404);
    GuestQueue user = driver.make_sdma(0x406);
    GuestQueue aql = driver.make_aql(0x408);
    for (GuestQueue* q : {&compute, &user, &aql}) {
      for (int i = 0; i < 12; ++i) driver.mqd_word(*q, word() % (word() % 2 == 0 ? 42 : 188), plausible(true));
    }
    driver.map({&compute, &user, &aql});
    driver.run(20);
    driver.unmap_all();
    driver.map({&compute, &user, &aql});
    driver.run(20);
  }
}

TEST_P(Garbage, run_lists_never_hurt) {
  FakeDriver driver;
  driver.load_hiq();
  GuestQueue a = driver.make_compute(0x404);
  GuestQueue b = driver.make_sdma(0x406);
  for (int round = 0; round < 60; ++round) {
    Words list;
    pm4::map_process(list, {.pasid = word() % 3, .page_directory = word()});
    pm4::map_queues(list, FakeDriver::map_of(a));
    pm4::map_process(list, {.pasid = word() % 3, .page_directory = word()});
    pm4::map_queues(list, FakeDriver::map_of(b));
    for (int i = 0; i < 3; ++i) list[word() % list.size()] = plausible(true);
    driver.run_list_words(list);
    driver.clock.now += word() % 20'000'000;
    driver.run(5);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Garbage, ::testing::Range(1u, 26u));

TEST(EnginesFairness, urgent_queues_come_first_and_others_do_not_starve) {
  FakeDriver driver;
  GuestQueue low = driver.make_compute(0x404);
  GuestQueue high = driver.make_compute(0x408);
  driver.mqd_word(low, driver.compute_layout().cp_hqd_queue_priority, 0);
  driver.mqd_word(high, driver.compute_layout().cp_hqd_queue_priority, 15);
  ASSERT_TRUE(driver.engines->load_hqd({QueueKind::kCompute, 0, 0, 0}, low.mqd, 8).ok());
  ASSERT_TRUE(driver.engines->load_hqd({QueueKind::kCompute, 0, 1, 0}, high.mqd, 8).ok());
  // Each copy takes a step's bytes, so one queue runs in each step.
  constexpr std::uint32_t kBytes = 4u << 20;
  for (GuestQueue* q : {&low, &high}) {
    Words w;
    for (int i = 0; i < 40; ++i) pm4::dma_data(w, {.src = kDst, .dst = kDst + 0x400000 - kBytes, .bytes = kBytes});
    driver.submit(*q, w);
  }
  for (int i = 0; i < 24; ++i) driver.engines->step();
  const auto done = [&](const GuestQueue& q) { return driver.memory.get<std::uint32_t>(q.rptr_word) / 7; };
  EXPECT_GE(done(high), 18u);
  EXPECT_GE(done(low), 1u);
}

}  // namespace vasicd::engines_test
