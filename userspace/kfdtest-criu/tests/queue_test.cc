// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Queues: life and death, ring wrap, sharing of an engine, being off and on the hardware.
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/tests/test_listener.h"

namespace kfdtest {
namespace {

constexpr std::size_t kGate = 0;
constexpr std::size_t kFence = 64;
constexpr std::size_t kCounter = 128;
constexpr std::uint32_t kMany = 8;

class QueueTest : public GpuTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(GpuTest::SetUp());
    ASSERT_OK_AND_ASSIGN(GpuMemory words, GpuMemory::allocate(gpu(), MemoryKind::kGtt, kPageSize));
    std::fill(words.bytes().begin(), words.bytes().end(), std::byte{0});
    words_.emplace(std::move(words));
  }
  [[nodiscard]] GpuMemory& words() { return *words_; }
  [[nodiscard]] std::uint64_t at(std::size_t offset) const { return words_->gpu_address(offset); }

  // A queue of `kind` that has just stored `value` at the fence.
  base::Status prove_alive(RingQueue& queue, QueueKind kind, std::uint32_t value) {
    TRY(kind == QueueKind::kPm4 ? queue.submit(Pm4Commands(gpu()).fence(at(kFence), value).dwords())
                                : queue.submit(SdmaCommands(gpu()).fence(at(kFence), value).dwords()));
    return wait_for_word(words(), kFence, value);
  }

 private:
  std::optional<GpuMemory> words_;
};

class RingQueueTest : public QueueTest, public testing::WithParamInterface<QueueKind> {};

TEST_P(RingQueueTest, is_created_used_and_destroyed_many_times) {
  for (std::uint32_t round = 1; round <= 40; ++round) {
    ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), GetParam()));
    ASSERT_OK(prove_alive(queue, GetParam(), round));
  }
}

TEST_P(RingQueueTest, wraps_its_ring_several_times) {
  constexpr std::uint32_t kRounds = 700;  // each at least 8 dwords, in a ring of 1024: it wraps more than five times
  ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), GetParam(), {.ring_size = kPageSize}));
  for (std::uint32_t i = 0; i < kRounds; ++i) {
    if (GetParam() == QueueKind::kPm4)
      ASSERT_OK(queue.submit(Pm4Commands(gpu()).atomic_add32(at(kCounter), 1).dwords()));
    else
      ASSERT_OK(queue.submit(SdmaCommands(gpu()).atomic_add64(at(kCounter), 1).dwords()));
  }
  ASSERT_OK(queue.wait_idle());
  EXPECT_GT(queue.written(), 5 * queue.ring_dwords());
  EXPECT_OK(wait_for_word(words(), kCounter, kRounds));
}

TEST_P(RingQueueTest, waits_for_as_long_as_its_gate_is_closed) {
  ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), GetParam()));
  if (GetParam() == QueueKind::kPm4)
    ASSERT_OK(queue.submit(Pm4Commands(gpu()).wait_equal(at(kGate), 7).fence(at(kFence), 1).dwords()));
  else
    ASSERT_OK(queue.submit(SdmaCommands(gpu()).wait_equal(at(kGate), 7).fence(at(kFence), 1).dwords()));
  EXPECT_TRUE(stays([this] { return words().load32(kFence) == 0; }));
  words().store32(kGate, 6);  // another value does not open it
  EXPECT_TRUE(stays([this] { return words().load32(kFence) == 0; }));
  words().store32(kGate, 7);
  EXPECT_OK(wait_for_word(words(), kFence, 1));
}

TEST_P(RingQueueTest, is_destroyed_while_a_packet_waits) {
  for (std::uint32_t round = 1; round <= 4; ++round) {
    ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), GetParam()));
    if (GetParam() == QueueKind::kPm4)
      ASSERT_OK(queue.submit(Pm4Commands(gpu()).wait_equal(at(kGate), round).fence(at(kFence), 1).dwords()));
    else
      ASSERT_OK(queue.submit(SdmaCommands(gpu()).wait_equal(at(kGate), round).fence(at(kFence), 1).dwords()));
  }
  EXPECT_EQ(words().load32(kFence), 0U);
  ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), GetParam()));
  EXPECT_OK(prove_alive(queue, GetParam(), 99));
}

TEST_P(RingQueueTest, many_queues_of_one_process_all_run) {
  std::vector<RingQueue> queues;
  const Gpu& has = gpu();
  const std::uint32_t room = GetParam() == QueueKind::kSdma
                                 ? static_cast<std::uint32_t>(has.sdma_engines * has.sdma_queues_per_engine)
                                 : kMany;
  ASSERT_GT(room, 1U);
  for (std::uint32_t i = 0; i < std::min(room, kMany); ++i) {
    ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), GetParam(), {.ring_size = kPageSize}));
    queues.push_back(std::move(queue));
  }
  for (std::uint32_t i = 0; i < queues.size(); ++i) EXPECT_OK(prove_alive(queues[i], GetParam(), 100 + i));
}

TEST_P(RingQueueTest, one_waiting_queue_does_not_hold_up_another) {
  ASSERT_OK_AND_ASSIGN(RingQueue waiting, RingQueue::create(gpu(), GetParam()));
  ASSERT_OK_AND_ASSIGN(RingQueue running, RingQueue::create(gpu(), GetParam()));
  if (GetParam() == QueueKind::kPm4)
    ASSERT_OK(waiting.submit(Pm4Commands(gpu()).wait_equal(at(kGate), 1).fence(at(kCounter), 1).dwords()));
  else
    ASSERT_OK(waiting.submit(SdmaCommands(gpu()).wait_equal(at(kGate), 1).fence(at(kCounter), 1).dwords()));
  EXPECT_OK(prove_alive(running, GetParam(), 2));
  EXPECT_EQ(words().load32(kCounter), 0U);
  words().store32(kGate, 1);
  EXPECT_OK(wait_for_word(words(), kCounter, 1));
}

TEST_P(RingQueueTest, keeps_its_place_while_other_queues_come_and_go) {
  ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), GetParam()));
  for (std::uint32_t round = 1; round <= 6; ++round) {
    if (GetParam() == QueueKind::kPm4)
      ASSERT_OK(queue.submit(Pm4Commands(gpu()).wait_equal(at(kGate), round).fence(at(kCounter), round).dwords()));
    else
      ASSERT_OK(queue.submit(SdmaCommands(gpu()).wait_equal(at(kGate), round).fence(at(kCounter), round).dwords()));
    // A new queue makes KFD take every queue of the process off the hardware and put it back.
    ASSERT_OK_AND_ASSIGN(RingQueue other, RingQueue::create(gpu(), GetParam()));
    EXPECT_OK(prove_alive(other, GetParam(), 1000 + round));
    EXPECT_EQ(words().load32(kCounter), round - 1);
    words().store32(kGate, round);
    EXPECT_OK(wait_for_word(words(), kCounter, round));
  }
}

TEST_P(RingQueueTest, does_nothing_at_percentage_0_and_goes_on_at_100) {
  ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), GetParam()));
  ASSERT_OK(prove_alive(queue, GetParam(), 1));
  ASSERT_OK(queue.set_percentage(kStopped));
  if (GetParam() == QueueKind::kPm4)
    ASSERT_OK(queue.submit(Pm4Commands(gpu()).fence(at(kFence), 2).dwords()));
  else
    ASSERT_OK(queue.submit(SdmaCommands(gpu()).fence(at(kFence), 2).dwords()));
  EXPECT_TRUE(stays([this] { return words().load32(kFence) == 1; }));
  ASSERT_OK(queue.set_percentage(kFullPercentage));
  EXPECT_OK(wait_for_word(words(), kFence, 2));
}

TEST_P(RingQueueTest, a_pending_wait_survives_percentage_0) {
  ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), GetParam()));
  if (GetParam() == QueueKind::kPm4)
    ASSERT_OK(queue.submit(Pm4Commands(gpu()).wait_equal(at(kGate), 5).fence(at(kFence), 5).dwords()));
  else
    ASSERT_OK(queue.submit(SdmaCommands(gpu()).wait_equal(at(kGate), 5).fence(at(kFence), 5).dwords()));
  ASSERT_OK(queue.set_percentage(kStopped));
  words().store32(kGate, 5);
  EXPECT_TRUE(stays([this] { return words().load32(kFence) == 0; }));
  ASSERT_OK(queue.set_percentage(kFullPercentage));
  EXPECT_OK(wait_for_word(words(), kFence, 5));
}

std::string ring_name(const testing::TestParamInfo<QueueKind>& kind) {
  return kind.param == QueueKind::kPm4 ? "pm4" : "sdma";
}
INSTANTIATE_TEST_SUITE_P(kinds, RingQueueTest, testing::Values(QueueKind::kPm4, QueueKind::kSdma), ring_name);

class Pm4Test : public QueueTest {};

TEST_F(Pm4Test, an_indirect_buffer_runs_and_returns) {
  ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), QueueKind::kPm4));
  ASSERT_OK_AND_ASSIGN(GpuMemory buffer, GpuMemory::allocate(gpu(), MemoryKind::kGtt, kPageSize, MemoryUse::kRing));
  Pm4Commands inner(gpu());
  for (int i = 0; i < 10; ++i) inner.atomic_add32(at(kCounter), 3);
  std::memcpy(buffer.data(), inner.dwords().data(), inner.dwords().size_bytes());
  ASSERT_OK(queue.submit(Pm4Commands(gpu())
                             .indirect(buffer.gpu_address(), inner.dwords().size())
                             .copy32(at(kCounter + 8), at(kCounter))
                             .fence(at(kFence), 1)
                             .dwords()));
  ASSERT_OK(wait_for_word(words(), kFence, 1));
  EXPECT_EQ(words().load32(kCounter + 8), 30U);
}

TEST_F(Pm4Test, write_data_stores_all_its_words) {
  constexpr std::uint32_t kData[] = {0x11111111, 0x22222222, 0x33333333, 0x44444444, 0x55555555};
  ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), QueueKind::kPm4));
  ASSERT_OK(queue.submit(Pm4Commands(gpu()).write(at(kCounter), kData).fence(at(kFence), 1).dwords()));
  ASSERT_OK(wait_for_word(words(), kFence, 1));
  EXPECT_EQ(std::memcmp(words().data() + kCounter, kData, sizeof(kData)), 0);
  EXPECT_EQ(words().load32(kCounter + sizeof(kData)), 0U);
}

TEST_F(Pm4Test, a_nop_of_any_length_is_skipped_whole) {
  ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), QueueKind::kPm4));
  for (std::uint32_t dwords = 1; dwords <= 64; ++dwords)
    ASSERT_OK(queue.submit(Pm4Commands(gpu()).nop(dwords).atomic_add32(at(kCounter), 1).dwords()));
  ASSERT_OK(queue.wait_idle());
  EXPECT_OK(wait_for_word(words(), kCounter, 64));
}

TEST_F(Pm4Test, release_mem_interrupts_after_it_has_written) {
  ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), QueueKind::kPm4));
  ASSERT_OK_AND_ASSIGN(KfdEvent event, KfdEvent::create(gpu()));
  ASSERT_OK(queue.submit(Pm4Commands(gpu()).fence(at(kFence), 0x1'0000'0002).signal(event).dwords()));
  ASSERT_OK_AND_ASSIGN(const WaitOutcome outcome, event.wait(std::chrono::seconds(20)));
  EXPECT_EQ(outcome, WaitOutcome::kSignaled);
  EXPECT_EQ(words().load64(kFence), 0x1'0000'0002U);
}

TEST_F(Pm4Test, pm4_and_sdma_queues_wait_for_each_other) {
  ASSERT_OK_AND_ASSIGN(RingQueue pm4, RingQueue::create(gpu(), QueueKind::kPm4));
  ASSERT_OK_AND_ASSIGN(RingQueue sdma, RingQueue::create(gpu(), QueueKind::kSdma));
  ASSERT_OK(pm4.submit(Pm4Commands(gpu()).wait_equal(at(kFence), 1).fence(at(kFence + 8), 1).dwords()));
  ASSERT_OK(sdma.submit(SdmaCommands(gpu()).wait_equal(at(kFence + 8), 1).fence(at(kFence + 16), 1).dwords()));
  ASSERT_OK(sdma.submit(SdmaCommands(gpu()).fence(at(kFence + 24), 1).dwords()));
  EXPECT_TRUE(stays([this] { return words().load32(kFence + 24) == 0; }));
  words().store32(kFence, 1);
  EXPECT_OK(wait_for_word(words(), kFence + 24, 1));
}

}  // namespace
}  // namespace kfdtest
