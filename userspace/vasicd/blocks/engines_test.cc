// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Engines as a whole: queue slots loaded by the driver, fairness, reset, and garbage everywhere.
#include "vasicd/blocks/engines.h"

#include <gtest/gtest.h>

#include <random>

#include "vasicd/blocks/fakes/fake_rig.h"

namespace vasicd::engines_test {

namespace m = packets::mqd;
namespace pm4 = packets::pm4;
namespace sdma = packets::sdma;
using packets::Words;

constexpr GpuAddr kDst = FakeRig::kData;

TEST(EnginesSlots, compute_queue_runs_in_a_slot_without_a_scheduler) {
  FakeRig rig;
  GuestQueue q = rig.make_compute(0x404);
  const HqdSlot slot{QueueKind::kCompute, 1, 2, 0};
  EXPECT_FALSE(rig.engines->query_hqd(slot).value().occupied);
  ASSERT_TRUE(rig.engines->load_hqd(slot, q.mqd, 9).ok());
  EXPECT_EQ(rig.engines->load_hqd(slot, q.mqd, 9).error().code(), EBUSY);
  EXPECT_EQ(rig.engines->query_hqd(slot).value().pq_base, q.ring);
  Words w;
  pm4::write_data(w, kDst, 5);
  rig.submit(q, w);
  rig.run();
  EXPECT_EQ(rig.memory.get<std::uint32_t>(kDst), 5u);
  EXPECT_TRUE(rig.memory.vmids_used.contains(9));
  ASSERT_TRUE(rig.engines->unload_hqd(slot, UnloadMode::kDrain).ok());
  EXPECT_EQ(rig.mqd_word(q, rig.compute_layout().cp_hqd_pq_rptr), q.wptr);
  EXPECT_EQ(rig.engines->unload_hqd(slot, UnloadMode::kDrain).error().code(), EBUSY);
}

TEST(EnginesSlots, sdma_queue_takes_its_vmid_from_the_mqd) {
  FakeRig rig;
  GuestQueue q = rig.make_sdma(0x404);
  rig.mqd_word(q, rig.sdma_layout().rb_cntl, rig.mqd_word(q, rig.sdma_layout().rb_cntl) | m::kRbVmid.put(5));
  ASSERT_TRUE(rig.engines->load_hqd({QueueKind::kSdma, 1, 7, 0}, q.mqd, 0).ok());
  Words w;
  sdma::fence(w, kDst, 5);
  rig.submit(q, w);
  rig.run();
  EXPECT_EQ(rig.memory.get<std::uint32_t>(kDst), 5u);
  EXPECT_TRUE(rig.memory.vmids_used.contains(5));
}

TEST(EnginesSlots, slots_outside_the_chip_are_refused) {
  FakeRig rig;
  GuestQueue q = rig.make_compute(0x404);
  EXPECT_EQ(rig.engines->prepare_hqd({QueueKind::kCompute, 8, 0, 0}, q.mqd).error().code(), EINVAL);
  EXPECT_EQ(rig.engines->prepare_hqd({QueueKind::kHiq, 0, 0, 0}, q.mqd).error().code(), EINVAL);
  EXPECT_EQ(rig.engines->prepare_hqd({QueueKind::kCompute, 0, 0, 0}, 1ull << 50).error().code(), EFAULT);
  EXPECT_EQ(rig.engines->load_hqd({QueueKind::kCompute, 8, 0, 0}, q.mqd, 9).error().code(), EINVAL);
  EXPECT_EQ(rig.engines->load_hqd({QueueKind::kCompute, 0, 8, 0}, q.mqd, 9).error().code(), EINVAL);
  EXPECT_EQ(rig.engines->load_hqd({QueueKind::kCompute, 0, 0, 1}, q.mqd, 9).error().code(), EINVAL);
  EXPECT_EQ(rig.engines->load_hqd({QueueKind::kSdma, 2, 0, 0}, q.mqd, 9).error().code(), EINVAL);
  EXPECT_EQ(rig.engines->load_hqd({QueueKind::kCompute, 0, 0, 0}, q.mqd, 16).error().code(), EINVAL);
  EXPECT_EQ(rig.engines->load_hqd({QueueKind::kCompute, 0, 0, 0}, 1ull << 50, 9).error().code(), EFAULT);
}

TEST(EnginesAll, a_queue_that_copies_forever_does_not_starve_the_others) {
  FakeRig rig;
  rig.load_hiq();
  GuestQueue hog = rig.make_sdma(0x404);
  GuestQueue quick = rig.make_sdma(0x500, 1);
  rig.map({&hog, &quick});
  Words copies;
  for (int i = 0; i < 50; ++i) sdma::copy_linear(copies, kDst + 0x400000, kDst, 4u << 20);
  rig.submit(hog, copies);
  Words fence;
  sdma::fence(fence, kDst, 1);
  rig.submit(quick, fence);
  rig.engines->step();
  rig.engines->step();
  EXPECT_EQ(rig.memory.get<std::uint32_t>(kDst), 1u);
  EXPECT_NE(rig.memory.get<std::uint64_t>(hog.rptr_word), hog.wptr);
}

TEST(EnginesAll, reset_forgets_everything) {
  FakeRig rig;
  rig.load_kernel_ring();
  rig.load_hiq();
  GuestQueue q = rig.make_compute(0x404);
  rig.map({&q});
  rig.engines->reset();
  EXPECT_FALSE(rig.engines->anything_mapped());
  EXPECT_TRUE(rig.registers.bound.empty());
  EXPECT_FALSE(rig.engines->step());
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
        return static_cast<std::uint32_t>(FakeRig::kMemory / 2 + word() % FakeRig::kMemory);
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
    FakeRig rig;
    rig.trace.on = round % 2 == 0;
    GuestQueue kernel = rig.load_kernel_ring();
    rig.load_hiq();
    GuestQueue compute = rig.make_compute(0x404);
    GuestQueue user = rig.make_sdma(0x406);
    GuestQueue aql = rig.make_aql(0x408);
    rig.map({&compute, &user, &aql});
    for (GuestQueue* q : {&kernel, &compute, &user, &aql, &rig.hiq}) {
      const bool is_pm4 = q->engine == pm4::QueueEngine::kCompute;
      Words w;
      for (int i = 0; i < 200; ++i) w.push_back(plausible(is_pm4));
      for (std::size_t i = 0; i < w.size(); ++i) rig.memory.put(q->ring + (q->wptr + i) % q->ring_dwords * 4, w[i]);
      rig.doorbells.rung[q->doorbell] = word() % 3 == 0 ? random_() : q->wptr + (is_pm4 ? 200 : 800);
    }
    rig.run(30);
    rig.unmap_all();
    rig.engines->reset();
  }
}

TEST_P(Garbage, mqds_never_hurt) {
  for (int round = 0; round < 40; ++round) {
    FakeRig rig;
    rig.load_hiq();
    GuestQueue compute = rig.make_compute(0x404);
    GuestQueue user = rig.make_sdma(0x406);
    GuestQueue aql = rig.make_aql(0x408);
    for (GuestQueue* q : {&compute, &user, &aql}) {
      for (int i = 0; i < 12; ++i) rig.mqd_word(*q, word() % (word() % 2 == 0 ? 42 : 188), plausible(true));
    }
    rig.map({&compute, &user, &aql});
    rig.run(20);
    rig.unmap_all();
    rig.map({&compute, &user, &aql});
    rig.run(20);
  }
}

TEST_P(Garbage, run_lists_never_hurt) {
  FakeRig rig;
  rig.load_hiq();
  GuestQueue a = rig.make_compute(0x404);
  GuestQueue b = rig.make_sdma(0x406);
  for (int round = 0; round < 60; ++round) {
    Words list;
    pm4::map_process(list, {.pasid = word() % 3, .page_directory = word()});
    pm4::map_queues(list, FakeRig::map_of(a));
    pm4::map_process(list, {.pasid = word() % 3, .page_directory = word()});
    pm4::map_queues(list, FakeRig::map_of(b));
    for (int i = 0; i < 3; ++i) list[word() % list.size()] = plausible(true);
    rig.run_list_words(list);
    rig.clock.now += word() % 20'000'000;
    rig.run(5);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Garbage, ::testing::Range(1u, 26u));

TEST(EnginesFairness, urgent_queues_come_first_and_others_do_not_starve) {
  FakeRig rig;
  GuestQueue low = rig.make_compute(0x404);
  GuestQueue high = rig.make_compute(0x408);
  rig.mqd_word(low, rig.compute_layout().cp_hqd_queue_priority, 0);
  rig.mqd_word(high, rig.compute_layout().cp_hqd_queue_priority, 15);
  ASSERT_TRUE(rig.engines->load_hqd({QueueKind::kCompute, 0, 0, 0}, low.mqd, 8).ok());
  ASSERT_TRUE(rig.engines->load_hqd({QueueKind::kCompute, 0, 1, 0}, high.mqd, 8).ok());
  // Each copy takes a step's bytes, so one queue runs in each step.
  constexpr std::uint32_t kBytes = 4u << 20;
  for (GuestQueue* q : {&low, &high}) {
    Words w;
    for (int i = 0; i < 40; ++i) pm4::dma_data(w, {.src = kDst, .dst = kDst + 0x400000 - kBytes, .bytes = kBytes});
    rig.submit(*q, w);
  }
  for (int i = 0; i < 24; ++i) rig.engines->step();
  const auto done = [&](const GuestQueue& q) { return rig.memory.get<std::uint32_t>(q.rptr_word) / 7; };
  EXPECT_GE(done(high), 18u);
  EXPECT_GE(done(low), 1u);
}

}  // namespace vasicd::engines_test
