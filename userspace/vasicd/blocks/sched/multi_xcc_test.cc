// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// GC 9.4.3: several XCCs work on one queue, and each has a descriptor of it (amdkfd/kfd_mqd_manager_v9.c, the functions
// named v9_4_3). And queues that the driver loads by hand, on any chip.
#include <gtest/gtest.h>

#include <cerrno>

#include "vasicd/blocks/fakes/fake_driver.h"

namespace vasicd::multi_xcc_test {

namespace aql = packets::aql;
namespace pm4 = packets::pm4;
namespace sdma = packets::sdma;
using packets::Words;

constexpr GpuAddr kDst = FakeDriver::kData;
constexpr unsigned kXccs = 6;
constexpr std::uint64_t kStride = 0x2000;

class MultiXcc : public ::testing::Test {
 protected:
  MultiXcc() {
    driver.info.gc_ip = VASIC_IP_VERSION(9u, 4u, 3u);
    driver.info.xcc_count = kXccs;
    driver.replace_device();
  }
  // As init_mqd_v9_4_3(): one descriptor for each XCC, behind each other.
  GuestQueue spread(GuestQueue q) {
    const auto& at = driver.compute_layout();
    driver.mqd_word(q, at.cp_mqd_stride_size, kStride);
    const GpuAddr all = driver.alloc(kXccs * kStride);
    for (unsigned xcc = 0; xcc < kXccs; ++xcc) {
      for (std::size_t i = 0; i < at.dwords; ++i) driver.memory.put(all + xcc * kStride + i * 4, driver.mqd_word(q, i));
    }
    q.mqd = all;
    return q;
  }
  std::uint32_t mqd_word(const GuestQueue& q, unsigned xcc, std::size_t index) {
    return driver.memory.get<std::uint32_t>(q.mqd + xcc * kStride + index * 4);
  }
  int load(const GuestQueue& q, unsigned xcc) {
    const auto status = driver.engines->load_hqd({QueueKind::kCompute, 1, 2, xcc}, q.mqd + xcc * kStride, 9);
    return status.ok() ? 0 : status.error().code();
  }
  int unload(unsigned xcc, UnloadMode mode = UnloadMode::kSave) {
    const auto status = driver.engines->unload_hqd({QueueKind::kCompute, 1, 2, xcc}, mode);
    return status.ok() ? 0 : status.error().code();
  }
  std::uint32_t at(GpuAddr va) { return driver.memory.get<std::uint32_t>(va); }
  FakeDriver driver;
};

TEST_F(MultiXcc, packets_are_executed_once_and_every_xcc_saves_where_it_stopped) {
  driver.load_hiq();
  GuestQueue q = spread(driver.make_aql(0x404));
  const GpuAddr list = driver.alloc(4096);
  Words words;
  pm4::map_process(words, {.pasid = 1, .page_directory = 0x1000}, pm4::HwsFormat::kAldebaran);
  pm4::map_queues(words, FakeDriver::map_of(q), pm4::HwsFormat::kAldebaran);
  for (std::size_t i = 0; i < words.size(); ++i) driver.memory.put(list + i * 4, words[i]);
  Words run;
  pm4::run_list(run, {.ib = list, .dwords = static_cast<std::uint32_t>(words.size())});
  driver.hiq_submit(run);
  driver.memory.put<std::int64_t>(kDst + offsetof(aql::Signal, value), 5);
  aql::Barrier barrier{};
  barrier.header = aql::header(aql::kBarrierAnd);
  barrier.completion_signal = kDst;
  for (int i = 0; i < 3; ++i) driver.submit_aql(q, barrier);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::int64_t>(kDst + offsetof(aql::Signal, value)), 2);
  driver.unmap_all();
  for (unsigned xcc = 0; xcc < kXccs; ++xcc) {
    EXPECT_EQ(mqd_word(q, xcc, driver.compute_layout().cp_hqd_pq_rptr), 3 * aql::kPacketDwords) << xcc;
    EXPECT_EQ(mqd_word(q, xcc, driver.compute_layout().cp_hqd_pq_wptr_lo),
              mqd_word(q, 0, driver.compute_layout().cp_hqd_pq_wptr_lo))
        << xcc;
  }
}

TEST_F(MultiXcc, a_stride_into_nowhere_harms_nobody) {
  driver.load_hiq();
  GuestQueue q = spread(driver.make_compute(0x404));
  driver.mqd_word(q, driver.compute_layout().cp_mqd_stride_size, 0xfffffffc);
  driver.map({&q});
  driver.unmap_all();
  EXPECT_FALSE(driver.engines->user_queues_mapped());
}

// Descriptors that overlap are refused: saving one would overwrite the next, which could not be loaded again.
TEST_F(MultiXcc, descriptors_that_lie_over_each_other_are_refused) {
  GuestQueue q = spread(driver.make_compute(0x404));
  const auto& layout = driver.compute_layout();
  const auto bytes = static_cast<std::uint32_t>(layout.dwords * sizeof(std::uint32_t));
  for (const std::uint32_t stride : {1u, 4u, bytes - 4, bytes + 2}) {
    driver.mqd_word(q, layout.cp_mqd_stride_size, stride);
    EXPECT_EQ(load(q, 0), EINVAL) << stride;
  }
  for (const std::uint32_t stride : {0u, bytes}) {
    driver.mqd_word(q, layout.cp_mqd_stride_size, stride);
    EXPECT_EQ(load(q, 0), 0) << stride;
    EXPECT_EQ(unload(0), 0) << stride;
    EXPECT_EQ(load(q, 0), 0) << stride;
    EXPECT_EQ(unload(0, UnloadMode::kReset), 0) << stride;
  }
}

TEST_F(MultiXcc, the_driver_loads_and_unloads_a_queue_xcc_by_xcc) {
  GuestQueue q = spread(driver.make_compute(0x404));
  for (unsigned xcc = 0; xcc < kXccs; ++xcc) EXPECT_EQ(load(q, xcc), 0) << xcc;
  EXPECT_EQ(load(q, 3), EBUSY);
  Words w;
  pm4::write_data(w, kDst, 5);
  driver.submit(q, w);
  driver.run();
  EXPECT_EQ(at(kDst), 5u);
  for (unsigned xcc = 0; xcc < kXccs; ++xcc) {
    EXPECT_EQ(driver.engines->query_hqd({QueueKind::kCompute, 1, 2, xcc}).value().pq_base, q.ring) << xcc;
    EXPECT_EQ(unload(xcc), 0) << xcc;
    EXPECT_FALSE(driver.engines->query_hqd({QueueKind::kCompute, 1, 2, xcc}).value().occupied) << xcc;
    EXPECT_EQ(mqd_word(q, xcc, driver.compute_layout().cp_hqd_pq_rptr), q.wptr) << xcc;
  }
  EXPECT_EQ(unload(0), EBUSY);
  EXPECT_FALSE(driver.engines->anything_mapped());
}

TEST_F(MultiXcc, only_descriptors_of_the_same_queue_go_together) {
  GuestQueue a = spread(driver.make_compute(0x404));
  GuestQueue b = spread(driver.make_compute(0x500));
  EXPECT_EQ(load(a, 1), EINVAL);
  EXPECT_EQ(load(a, 0), 0);
  EXPECT_EQ(load(b, 1), EINVAL);
  EXPECT_EQ(load(a, 1), 0);
}

TEST_F(MultiXcc, a_hung_queue_is_unloaded_by_reset_only) {
  GuestQueue q = spread(driver.make_compute(0x404));
  for (unsigned xcc = 0; xcc < 2; ++xcc) ASSERT_EQ(load(q, xcc), 0);
  driver.controls.hang("cp.p1.q2");
  EXPECT_EQ(unload(0), ETIME);
  EXPECT_EQ(unload(0, UnloadMode::kReset), 0);
  EXPECT_EQ(unload(1), 0);
}

class NoScheduler : public ::testing::TestWithParam<unsigned> {
 protected:
  NoScheduler() : driver(GetParam()) {}
  static constexpr HqdSlot kSlot{QueueKind::kSdma, 1, 1, 0};
  packets::Words words_of(const GuestQueue& q) {
    packets::Words words(driver.sdma_layout().dwords);
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = driver.mqd_word(q, i);
    return words;
  }
  FakeDriver driver;
};

// As create, evict and restore without a scheduler do it: the descriptor comes back, and is loaded again.
TEST_P(NoScheduler, sdma_queues_go_by_value) {
  GuestQueue q = driver.make_sdma(0x404);
  driver.mqd_word(q, driver.sdma_layout().rb_cntl,
                  driver.mqd_word(q, driver.sdma_layout().rb_cntl) | packets::mqd::kRbVmid.put(5));
  Words mqd = words_of(q);
  for (unsigned round = 1; round <= 3; ++round) {
    ASSERT_TRUE(driver.engines->load_hqd_value(kSlot, mqd).ok());
    EXPECT_EQ(driver.engines->load_hqd_value(kSlot, mqd).error().code(), EBUSY);
    Words w;
    sdma::fence(w, kDst, round);
    driver.submit(q, w);
    driver.run();
    EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), round);
    EXPECT_TRUE(driver.memory.vmids_used.contains(5));
    auto saved = driver.engines->unload_hqd_value(kSlot, UnloadMode::kSave);
    ASSERT_TRUE(saved.ok());
    mqd = *saved;
  }
  EXPECT_EQ(driver.engines->unload_hqd_value(kSlot, UnloadMode::kSave).error().code(), EBUSY);
}

TEST_P(NoScheduler, a_bell_rung_before_it_was_prepared_is_not_for_this_queue) {
  GuestQueue q = driver.make_sdma(0x404);
  driver.doorbells.rung[0x404] = 64;
  ASSERT_TRUE(driver.engines->prepare_hqd_value(kSlot, words_of(q)).ok());
  ASSERT_TRUE(driver.engines->load_hqd_value(kSlot, words_of(q)).ok());
  driver.run();
  EXPECT_TRUE(driver.engines->queues().at(0).state == QueueStatus::State::kIdle);
}

TEST_P(NoScheduler, values_that_make_no_sense_are_refused) {
  EXPECT_EQ(driver.engines->prepare_hqd_value(kSlot, Words(1024, 0xffffffff)).error().code(), EINVAL);
  EXPECT_EQ(driver.engines->prepare_hqd_value({QueueKind::kCompute, 0, 0, 0}, Words(512)).error().code(), EINVAL);
  EXPECT_EQ(driver.engines->load_hqd_value(kSlot, {}).error().code(), EINVAL);
  EXPECT_EQ(driver.engines->load_hqd_value(kSlot, Words(1024, 0xffffffff)).error().code(), EINVAL);
  EXPECT_EQ(driver.engines->load_hqd_value({QueueKind::kCompute, 0, 0, 0}, Words(512)).error().code(), EINVAL);
  EXPECT_EQ(driver.engines->load_hqd_value({QueueKind::kSdma, 9, 0, 0}, Words(512)).error().code(), EINVAL);
}

TEST_P(NoScheduler, a_hung_sdma_queue_is_unloaded_by_reset_only) {
  GuestQueue q = driver.make_sdma(0x404);
  ASSERT_TRUE(driver.engines->load_hqd_value(kSlot, words_of(q)).ok());
  driver.controls.hang("sdma1.q1");
  EXPECT_EQ(driver.engines->unload_hqd_value(kSlot, UnloadMode::kSave).error().code(), ETIME);
  EXPECT_TRUE(driver.engines->unload_hqd_value(kSlot, UnloadMode::kReset).ok());
}

INSTANTIATE_TEST_SUITE_P(Generations, NoScheduler, ::testing::Values(7u, 8u, 9u, 10u));

}  // namespace vasicd::multi_xcc_test
