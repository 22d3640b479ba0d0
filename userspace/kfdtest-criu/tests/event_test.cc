// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// KFD events: timeouts, reset modes, ages, waiting for several, interrupts from the device.
#include <cstring>
#include <ctime>
#include <future>

#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/tests/test_listener.h"

namespace kfdtest {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kShort{30};
constexpr seconds kLong{20};
// The longest tick that a kernel can have: HZ=100.
constexpr milliseconds kTick{10};

class EventTest : public GpuTest {};

TEST_F(EventTest, a_wait_nobody_ends_times_out_and_not_early) {
  constexpr milliseconds kWait{500};
  ASSERT_OK_AND_ASSIGN(KfdEvent event, KfdEvent::create(gpu()));
  // KFD counts jiffies. On a loaded host ticks come late, so jiffies are behind when the wait begins, and so is this
  // clock.
  timespec start{};
  ASSERT_EQ(::clock_gettime(CLOCK_MONOTONIC_COARSE, &start), 0);
  ASSERT_OK_AND_ASSIGN(const WaitOutcome outcome, event.wait(kWait));
  EXPECT_EQ(outcome, WaitOutcome::kTimeout);
  const Duration waited =
      std::chrono::nanoseconds(monotonic_ns()) - seconds(start.tv_sec) - std::chrono::nanoseconds(start.tv_nsec);
  EXPECT_GE(waited, kWait - kTick);
}

TEST_F(EventTest, an_auto_reset_event_is_consumed_by_one_wait) {
  ASSERT_OK_AND_ASSIGN(KfdEvent event, KfdEvent::create(gpu()));
  ASSERT_OK(event.set());
  ASSERT_OK_AND_ASSIGN(const WaitOutcome first, event.wait(kShort));
  ASSERT_OK_AND_ASSIGN(const WaitOutcome second, event.wait(kShort));
  EXPECT_EQ(first, WaitOutcome::kSignaled);
  EXPECT_EQ(second, WaitOutcome::kTimeout);
}

TEST_F(EventTest, a_manual_reset_event_stays_until_it_is_reset) {
  ASSERT_OK_AND_ASSIGN(KfdEvent event, KfdEvent::create(gpu(), EventKind::kSignal, ResetMode::kManual));
  ASSERT_OK(event.set());
  ASSERT_OK_AND_ASSIGN(const WaitOutcome first, event.wait(kShort));
  ASSERT_OK_AND_ASSIGN(const WaitOutcome second, event.wait(kShort));
  ASSERT_OK(event.reset());
  ASSERT_OK_AND_ASSIGN(const WaitOutcome third, event.wait(kShort));
  EXPECT_EQ(first, WaitOutcome::kSignaled);
  EXPECT_EQ(second, WaitOutcome::kSignaled);
  EXPECT_EQ(third, WaitOutcome::kTimeout);
}

TEST_F(EventTest, a_sleeping_thread_is_woken_by_another_thread) {
  ASSERT_OK_AND_ASSIGN(KfdEvent event, KfdEvent::create(gpu()));
  auto sleeper = std::async(std::launch::async, [&] { return event.wait(kLong); });
  EXPECT_TRUE(stays([&] { return sleeper.wait_for(seconds(0)) == std::future_status::timeout; }));
  ASSERT_OK(event.set());
  ASSERT_OK_AND_ASSIGN(const WaitOutcome outcome, sleeper.get());
  EXPECT_EQ(outcome, WaitOutcome::kSignaled);
}

TEST_F(EventTest, waiting_for_all_needs_all_and_waiting_for_any_needs_one) {
  ASSERT_OK_AND_ASSIGN(KfdEvent first, KfdEvent::create(gpu(), EventKind::kSignal, ResetMode::kManual));
  ASSERT_OK_AND_ASSIGN(KfdEvent second, KfdEvent::create(gpu(), EventKind::kSignal, ResetMode::kManual));
  const KfdEvent* const both[] = {&first, &second};
  const auto wait = [&](WaitFor what) { return KfdEvent::wait_many(both, what, kShort); };
  ASSERT_OK(second.set());
  ASSERT_OK_AND_ASSIGN(const WaitOutcome any, wait(WaitFor::kAny));
  EXPECT_EQ(any, WaitOutcome::kSignaled);
  ASSERT_OK_AND_ASSIGN(const WaitOutcome not_all, wait(WaitFor::kAll));
  EXPECT_EQ(not_all, WaitOutcome::kTimeout);
  ASSERT_OK(first.set());
  ASSERT_OK_AND_ASSIGN(const WaitOutcome all, wait(WaitFor::kAll));
  EXPECT_EQ(all, WaitOutcome::kSignaled);
}

TEST_F(EventTest, more_events_than_a_word_has_bits_keep_apart) {
  std::vector<KfdEvent> events;
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK_AND_ASSIGN(KfdEvent event, KfdEvent::create(gpu()));
    events.push_back(std::move(event));
  }
  ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), QueueKind::kSdma));
  ASSERT_OK(queue.submit(SdmaCommands(gpu()).signal(events[70]).dwords()));
  ASSERT_OK_AND_ASSIGN(const WaitOutcome signaled, events[70].wait(kLong));
  EXPECT_EQ(signaled, WaitOutcome::kSignaled);
  ASSERT_OK_AND_ASSIGN(const WaitOutcome neighbour, events[69].wait(milliseconds(0)));
  EXPECT_EQ(neighbour, WaitOutcome::kTimeout);
}

TEST_F(EventTest, as_many_as_kfd_allows_can_be_made_and_no_more) {
  constexpr int kReserved = 1;  // KFD keeps id 0, which an interrupt without an id carries
  std::vector<KfdEvent> events;
  for (int i = kReserved; i < KFD_SIGNAL_EVENT_LIMIT; ++i) {
    ASSERT_OK_AND_ASSIGN(KfdEvent event, KfdEvent::create(gpu()));
    events.push_back(std::move(event));
  }
  EXPECT_FALSE(KfdEvent::create(gpu()).ok());
  ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), QueueKind::kSdma));
  ASSERT_OK(queue.submit(SdmaCommands(gpu()).signal(events.front()).signal(events.back()).dwords()));
  const KfdEvent* const both[] = {&events.front(), &events.back()};
  ASSERT_OK_AND_ASSIGN(const WaitOutcome outcome, KfdEvent::wait_many(both, WaitFor::kAll, kLong));
  EXPECT_EQ(outcome, WaitOutcome::kSignaled);
  ASSERT_OK_AND_ASSIGN(const WaitOutcome neighbour, events[events.size() - 2].wait(milliseconds(0)));
  EXPECT_EQ(neighbour, WaitOutcome::kTimeout);
  events.pop_back();
  EXPECT_OK(KfdEvent::create(gpu()));
}

TEST_F(EventTest, an_sdma_trap_signals_again_and_again) {
  ASSERT_OK_AND_ASSIGN(KfdEvent event, KfdEvent::create(gpu()));
  ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), QueueKind::kSdma));
  for (int round = 0; round < 50; ++round) {
    ASSERT_OK(queue.submit(SdmaCommands(gpu()).signal(event).dwords()));
    ASSERT_OK_AND_ASSIGN(const WaitOutcome outcome, event.wait(kLong));
    ASSERT_EQ(outcome, WaitOutcome::kSignaled) << "round " << round;
  }
}

TEST_F(EventTest, a_waves_message_wakes_its_waiter_and_no_other) {
  if (!gpu().generation.runs_gfx9_waves) GTEST_SKIP() << "the wave is for gfx900 to gfx90a";
  ASSERT_OK_AND_ASSIGN(KfdEvent event, KfdEvent::create(gpu()));
  ASSERT_OK_AND_ASSIGN(KfdEvent other, KfdEvent::create(gpu()));
  ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), QueueKind::kPm4));
  ASSERT_OK_AND_ASSIGN(MessageWave wave, MessageWave::create(gpu()));
  for (int round = 0; round < 10; ++round) {
    ASSERT_OK(queue.submit(wave.signal(event).dwords()));
    ASSERT_OK_AND_ASSIGN(const WaitOutcome outcome, event.wait(kLong));
    ASSERT_EQ(outcome, WaitOutcome::kSignaled) << "round " << round;
  }
  ASSERT_OK_AND_ASSIGN(const WaitOutcome neighbour, other.wait(milliseconds(0)));
  EXPECT_EQ(neighbour, WaitOutcome::kTimeout);
}

// Negative control: an interrupt for one event is none for another.
TEST_F(EventTest, a_trap_for_another_event_wakes_nobody) {
  ASSERT_OK_AND_ASSIGN(KfdEvent watched, KfdEvent::create(gpu()));
  ASSERT_OK_AND_ASSIGN(KfdEvent other, KfdEvent::create(gpu()));
  ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), QueueKind::kSdma));
  ASSERT_OK(queue.submit(SdmaCommands(gpu()).signal(other).dwords()));
  ASSERT_OK_AND_ASSIGN(const WaitOutcome expected, other.wait(kLong));
  EXPECT_EQ(expected, WaitOutcome::kSignaled);
  ASSERT_OK_AND_ASSIGN(const WaitOutcome outcome, watched.wait(kShort));
  EXPECT_EQ(outcome, WaitOutcome::kTimeout);
}

// Ages are newer than Debian's linux/kfd_ioctl.h.
class EventAgeTest : public GpuTest {
 protected:
  struct AgedWait {
    kfd::WaitResult result = kfd::WaitResult::kFail;
    std::uint64_t age = 0;
  };
  // The age stands where struct kfd_hsa_signal_event_data has it: first in the union.
  [[nodiscard]] base::Result<AgedWait> wait(const KfdEvent& event, std::uint64_t last_age, milliseconds limit) const {
    kfd_event_data data{};
    std::memcpy(&data, &last_age, sizeof(last_age));
    data.event_id = event.id();
    ASSIGN_OR_RETURN(
        const kfd::WaitResult result,
        ioctls_of(gpu()).client().wait_events({&data, 1}, /*all=*/false, static_cast<std::uint32_t>(limit.count())));
    AgedWait wait{.result = result};
    std::memcpy(&wait.age, &data, sizeof(wait.age));
    return wait;
  }
};

TEST_F(EventAgeTest, an_older_age_returns_at_once_and_the_current_age_waits) {
  ASSERT_OK_AND_ASSIGN(KfdEvent event, KfdEvent::create(gpu()));
  ASSERT_OK(event.set());  // age 2
  ASSERT_OK_AND_ASSIGN(const AgedWait first, wait(event, 1, kLong));
  EXPECT_EQ(first.result, kfd::WaitResult::kComplete);
  EXPECT_EQ(first.age, 2U);
  ASSERT_OK_AND_ASSIGN(const AgedWait again, wait(event, 1, milliseconds(0)));
  EXPECT_EQ(again.result, kfd::WaitResult::kComplete) << "the signal was missed";
  ASSERT_OK_AND_ASSIGN(const AgedWait current, wait(event, 2, kShort));
  EXPECT_EQ(current.result, kfd::WaitResult::kTimeout);
}

TEST_F(EventAgeTest, an_interrupt_makes_an_event_older) {
  ASSERT_OK_AND_ASSIGN(KfdEvent event, KfdEvent::create(gpu()));
  ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), QueueKind::kSdma));
  ASSERT_OK(queue.submit(SdmaCommands(gpu()).signal(event).dwords()));
  ASSERT_OK_AND_ASSIGN(const AgedWait woken, wait(event, 1, kLong));
  EXPECT_EQ(woken.result, kfd::WaitResult::kComplete);
  EXPECT_EQ(woken.age, 2U);
}

}  // namespace
}  // namespace kfdtest
