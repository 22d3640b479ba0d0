// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// AQL queues: barriers, signals, AMD's own packets, more packets than the ring has slots.
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/tests/test_listener.h"

namespace kfdtest {
namespace {

class AqlTest : public GpuTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(GpuTest::SetUp());
    ASSERT_OK_AND_ASSIGN(GpuMemory memory, GpuMemory::allocate(gpu(), MemoryKind::kGtt, kPageSize));
    std::fill(memory.bytes().begin(), memory.bytes().end(), std::byte{0});
    memory_.emplace(std::move(memory));
  }
  AqlSignal signal(std::int64_t value, const KfdEvent* event = nullptr) {
    return {*memory_, AqlSignal::kSize * used_++, value, event};
  }

 private:
  std::optional<GpuMemory> memory_;
  std::size_t used_ = 0;
};

TEST_F(AqlTest, a_barrier_without_dependencies_completes_at_once) {
  ASSERT_OK_AND_ASSIGN(AqlQueue queue, AqlQueue::create(gpu()));
  const AqlSignal done = signal(1);
  ASSERT_OK(queue.submit(aql_barrier_and({}, &done)));
  EXPECT_TRUE(wait_until([&] { return done.value() == 0; }));
  EXPECT_OK(queue.wait_idle());
}

TEST_F(AqlTest, a_barrier_waits_for_all_of_its_dependencies) {
  ASSERT_OK_AND_ASSIGN(AqlQueue queue, AqlQueue::create(gpu()));
  const AqlSignal first = signal(1);
  const AqlSignal second = signal(1);
  const AqlSignal done = signal(1);
  const AqlSignal* const dependencies[] = {&first, &second};
  ASSERT_OK(queue.submit(aql_barrier_and(dependencies, &done)));
  first.store(0);
  EXPECT_TRUE(stays([&] { return done.value() == 1; }));
  second.store(0);
  EXPECT_TRUE(wait_until([&] { return done.value() == 0; }));
}

TEST_F(AqlTest, more_packets_than_the_ring_has_slots_all_complete) {
  constexpr std::size_t kSlots = 64;
  constexpr std::int64_t kPackets = 5 * kSlots + 3;
  ASSERT_OK_AND_ASSIGN(AqlQueue queue, AqlQueue::create(gpu(), kSlots));
  const AqlSignal countdown = signal(kPackets);
  for (std::int64_t i = 0; i < kPackets; ++i) ASSERT_OK(queue.submit(aql_barrier_and({}, &countdown)));
  ASSERT_OK(queue.wait_idle());
  EXPECT_TRUE(wait_until([&] { return countdown.value() == 0; }));
}

TEST_F(AqlTest, a_completion_signal_wakes_a_waiter) {
  ASSERT_OK_AND_ASSIGN(AqlQueue queue, AqlQueue::create(gpu()));
  ASSERT_OK_AND_ASSIGN(KfdEvent event, KfdEvent::create(gpu()));
  const AqlSignal done = signal(1, &event);
  ASSERT_OK(queue.submit(aql_barrier_and({}, &done)));
  ASSERT_OK_AND_ASSIGN(const WaitOutcome outcome, event.wait(std::chrono::seconds(20)));
  EXPECT_EQ(outcome, WaitOutcome::kSignaled);
  EXPECT_EQ(done.value(), 0);
}

TEST_F(AqlTest, a_barrier_takes_five_dependencies) {
  ASSERT_OK_AND_ASSIGN(AqlQueue queue, AqlQueue::create(gpu()));
  std::vector<AqlSignal> gates;
  for (std::size_t i = 0; i < kAqlBarrierDependencies; ++i) gates.push_back(signal(1));
  std::vector<const AqlSignal*> all;
  for (const AqlSignal& gate : gates) all.push_back(&gate);
  const AqlSignal done = signal(1);
  ASSERT_OK(queue.submit(aql_barrier_and(all, &done)));
  for (const AqlSignal& gate : gates) {
    ASSERT_TRUE(stays([&] { return done.value() == 1; }, std::chrono::milliseconds(10)));
    gate.store(0);
  }
  EXPECT_TRUE(wait_until([&] { return done.value() == 0; }));
}

TEST_F(AqlTest, a_barrier_or_waits_for_any_one_of_its_dependencies) {
  ASSERT_OK_AND_ASSIGN(AqlQueue queue, AqlQueue::create(gpu()));
  for (std::size_t which = 0; which < 3; ++which) {
    const AqlSignal gates[] = {signal(1), signal(1), signal(1)};
    const AqlSignal* const all[] = {&gates[0], &gates[1], &gates[2]};
    const AqlSignal done = signal(1);
    ASSERT_OK(queue.submit(aql_barrier_or(all, &done)));
    ASSERT_TRUE(stays([&] { return done.value() == 1; }, std::chrono::milliseconds(20)));
    gates[which].store(0);
    EXPECT_TRUE(wait_until([&] { return done.value() == 0; }));
  }
}

TEST_F(AqlTest, a_vendor_packet_runs_pm4_from_a_buffer) {
  if (gpu().generation.gfx_level < 9) GTEST_SKIP() << "the vendor packet with PM4 begins with gfx9";
  ASSERT_OK_AND_ASSIGN(AqlQueue queue, AqlQueue::create(gpu()));
  ASSERT_OK_AND_ASSIGN(GpuMemory buffer, GpuMemory::allocate(gpu(), MemoryKind::kGtt, kPageSize, MemoryUse::kRing));
  ASSERT_OK_AND_ASSIGN(GpuMemory words, GpuMemory::allocate(gpu(), MemoryKind::kGtt, kPageSize));
  words.store32(0, 0);
  const Pm4Commands commands = Pm4Commands(gpu()).write(words.gpu_address(), 0x9e119e11);
  std::memcpy(buffer.data(), commands.dwords().data(), commands.dwords().size_bytes());
  const AqlSignal gate = signal(1);
  const AqlSignal* const gates[] = {&gate};
  const AqlSignal done = signal(1);
  ASSERT_OK(queue.submit(aql_barrier_and(gates, nullptr)));
  ASSERT_OK(queue.submit(aql_pm4(buffer.gpu_address(), commands.dwords().size(), &done)));
  EXPECT_TRUE(stays([&] { return words.load32(0) == 0; }, std::chrono::milliseconds(20)));
  gate.store(0);
  EXPECT_TRUE(wait_until([&] { return done.value() == 0; }));
  EXPECT_EQ(words.load32(0), 0x9e119e11U);
}

TEST_F(AqlTest, a_barrier_on_a_value_waits_until_its_condition_holds) {
  if (gpu().generation.gfx_level < 9) GTEST_SKIP() << "vendor packets begin with gfx9";
  using packets::aql::Condition;
  struct Case {
    Condition condition;
    std::int64_t closed;
    std::int64_t open;
  };
  // Each condition compares the signal with 5.
  const Case cases[] = {{Condition::kEqual, 4, 5},
                        {Condition::kNotEqual, 5, 4},
                        {Condition::kLess, 5, -1},
                        {Condition::kGreaterEqual, -1, 5}};
  ASSERT_OK_AND_ASSIGN(AqlQueue queue, AqlQueue::create(gpu()));
  for (const Case& each : cases) {
    const AqlSignal gate = signal(each.closed);
    const AqlSignal done = signal(1);
    ASSERT_OK(queue.submit(aql_barrier_value({&gate, each.condition, 5}, &done)));
    EXPECT_TRUE(stays([&] { return done.value() == 1; }, std::chrono::milliseconds(20)));
    gate.store(each.open);
    EXPECT_TRUE(wait_until([&] { return done.value() == 0; }));
  }
}

TEST_F(AqlTest, a_barrier_on_a_value_looks_at_the_bits_of_its_mask_only) {
  if (gpu().generation.gfx_level < 9) GTEST_SKIP() << "vendor packets begin with gfx9";
  ASSERT_OK_AND_ASSIGN(AqlQueue queue, AqlQueue::create(gpu()));
  const AqlSignal gate = signal(0x701);
  const AqlSignal done = signal(1);
  ASSERT_OK(queue.submit(aql_barrier_value({.signal = &gate, .value = 2, .mask = 0xff}, &done)));
  EXPECT_TRUE(stays([&] { return done.value() == 1; }, std::chrono::milliseconds(20)));
  gate.store(0x502);
  EXPECT_TRUE(wait_until([&] { return done.value() == 0; }));
}

TEST_F(AqlTest, two_queues_hand_a_signal_to_each_other) {
  ASSERT_OK_AND_ASSIGN(AqlQueue left, AqlQueue::create(gpu()));
  ASSERT_OK_AND_ASSIGN(AqlQueue right, AqlQueue::create(gpu()));
  const AqlSignal gate = signal(1);
  const AqlSignal middle = signal(1);
  const AqlSignal done = signal(1);
  const AqlSignal* const on_middle[] = {&middle};
  const AqlSignal* const on_gate[] = {&gate};
  ASSERT_OK(left.submit(aql_barrier_and(on_middle, &done)));
  ASSERT_OK(right.submit(aql_barrier_and(on_gate, &middle)));
  EXPECT_TRUE(stays([&] { return done.value() == 1; }));
  gate.store(0);
  EXPECT_TRUE(wait_until([&] { return done.value() == 0; }));
}

}  // namespace
}  // namespace kfdtest
