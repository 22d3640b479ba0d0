// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What KFD lets a program set on a queue, and what it refuses: priority, percentage, CU mask, GWS, ring, buffers. More
// queues and processes than the hardware has room for; what a debugger sees and stops.
#include <algorithm>
#include <functional>
#include <set>
#include <vector>

#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/harness/step_queue.h"
#include "kfdtest-criu/tests/scenario_process.h"
#include "kfdtest-criu/tests/test_listener.h"

namespace kfdtest {
namespace {

constexpr std::uint32_t kNoSuchQueue = 1000;
constexpr QueueKind kBasicKinds[] = {QueueKind::kPm4, QueueKind::kAql, QueueKind::kSdma};

class QueueControlTest : public GpuTest {
 protected:
  static const kfd::Client& client() { return ioctls_of(gpu()).client(); }

  // Waits until `steps` more steps than `before` are done.
  static base::Status prove_alive(StepQueue& queue, unsigned before, unsigned steps) {
    TRY(queue.submit(steps));
    queue.open(before + steps);
    return queue.wait_done(before + steps);
  }
};

TEST_F(QueueControlTest, ids_are_unique_and_those_of_no_queue_are_refused) {
  std::set<std::uint32_t> ids;
  std::vector<StepQueue> queues;
  for (unsigned i = 0; i < 6; ++i) {
    ASSERT_OK_AND_ASSIGN(StepQueue queue, StepQueue::create(gpu(), kBasicKinds[i % std::size(kBasicKinds)]));
    EXPECT_TRUE(ids.insert(queue.queue().id()).second);
    queues.push_back(std::move(queue));
  }
  EXPECT_FALSE(client().destroy_queue(kNoSuchQueue).ok());
  EXPECT_FALSE(client().update_queue(kNoSuchQueue, 0, 0, kFullPercentage, 7).ok());
  EXPECT_FALSE(client().allocate_gws(kNoSuchQueue, 1).ok());
  const std::uint32_t all_cus[] = {~0U};
  EXPECT_FALSE(client().set_cu_mask(kNoSuchQueue, all_cus).ok());
  for (StepQueue& queue : queues) EXPECT_OK(prove_alive(queue, 0, 1));
}

TEST_F(QueueControlTest, a_queue_of_any_priority_runs_and_can_change_it) {
  for (const std::uint32_t priority : {0U, 7U, 15U}) {
    ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), QueueKind::kPm4, {.priority = priority}));
    ASSERT_OK(queue.submit(Pm4Commands(gpu()).nop(4).dwords()));
    ASSERT_OK(queue.wait_idle());
    ASSERT_OK(queue.set_priority(15 - priority));
    ASSERT_OK(queue.submit(Pm4Commands(gpu()).nop(4).dwords()));
    EXPECT_OK(queue.wait_idle());
  }
  EXPECT_FALSE(RingQueue::create(gpu(), QueueKind::kPm4, {.priority = 16}).ok());
}

TEST_F(QueueControlTest, percentages_are_0_to_100) {
  EXPECT_FALSE(RingQueue::create(gpu(), QueueKind::kPm4, {.percentage = 101}).ok());
  ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), QueueKind::kPm4, {.percentage = kStopped}));
  ASSERT_OK(queue.submit(Pm4Commands(gpu()).nop(4).dwords()));
  EXPECT_TRUE(stays([&] { return !queue.idle(); }));
  EXPECT_FALSE(queue.set_percentage(101).ok());
  ASSERT_OK(queue.set_percentage(1));
  EXPECT_OK(queue.wait_idle());
}

// KFD gives the doorbell of a destroyed queue to a new one.
TEST_F(QueueControlTest, a_new_queue_does_not_see_the_doorbell_value_of_a_destroyed_one) {
  const std::vector<std::uint32_t> never_read(48);
  for (const QueueKind kind : {QueueKind::kPm4, QueueKind::kSdma}) {
    SCOPED_TRACE(name_of(kind));
    std::uint64_t place = 0;
    {
      ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), kind, {.percentage = kStopped}));
      ASSERT_OK(queue.submit(never_read));
      place = queue.append({}).offset;
    }
    ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), kind));
    ASSERT_EQ(queue.append({}).offset, place);
    EXPECT_TRUE(stays([&] { return queue.idle(); }));
  }
}

TEST_F(QueueControlTest, a_cu_mask_is_taken_and_a_bad_one_refused) {
  ASSERT_OK_AND_ASSIGN(StepQueue queue, StepQueue::create(gpu(), QueueKind::kPm4));
  const std::uint32_t pairs[] = {0x3, 0, 0, 0xc0000000};
  ASSERT_OK(client().set_cu_mask(queue.queue().id(), pairs));
  EXPECT_OK(prove_alive(queue, 0, 2));
  EXPECT_FALSE(client().set_cu_mask(queue.queue().id(), {}).ok());
  const std::uint32_t odd[] = {0x1};
  // From gfx10 on CUs come in pairs.
  EXPECT_EQ(client().set_cu_mask(queue.queue().id(), odd).ok(), gpu().generation.gfx_level < 10);
  EXPECT_OK(prove_alive(queue, 2, 2));
}

TEST_F(QueueControlTest, gws_belongs_to_one_queue_of_a_process) {
  if (gpu().num_gws == 0) GTEST_SKIP() << "the driver offers no GWS on this chip";
  ASSERT_OK_AND_ASSIGN(StepQueue first, StepQueue::create(gpu(), QueueKind::kAql));
  ASSERT_OK_AND_ASSIGN(StepQueue second, StepQueue::create(gpu(), QueueKind::kAql));
  ASSERT_OK(client().allocate_gws(first.queue().id(), 1));
  EXPECT_FALSE(client().allocate_gws(second.queue().id(), 1).ok());
  EXPECT_OK(prove_alive(first, 0, 3));
  EXPECT_OK(prove_alive(second, 0, 3));
  ASSERT_OK(client().allocate_gws(first.queue().id(), 0));
  ASSERT_OK(client().allocate_gws(second.queue().id(), 1));
  EXPECT_OK(prove_alive(first, 3, 3));
  EXPECT_OK(prove_alive(second, 3, 3));
}

TEST_F(QueueControlTest, a_queue_goes_on_in_a_new_ring) {
  for (const QueueKind kind : {QueueKind::kPm4, QueueKind::kSdma}) {
    ASSERT_OK_AND_ASSIGN(GpuMemory words, GpuMemory::allocate(gpu(), MemoryKind::kGtt, kPageSize));
    words.store64(0, 0);
    ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), kind, {.ring_size = kPageSize}));
    for (std::uint32_t round = 1; round <= 3; ++round) {
      ASSERT_OK(kind == QueueKind::kPm4 ? queue.submit(Pm4Commands(gpu()).fence(words.gpu_address(), round).dwords())
                                        : queue.submit(SdmaCommands(gpu()).fence(words.gpu_address(), round).dwords()));
      ASSERT_OK(wait_for_word(words, 0, round));
      ASSERT_OK(queue.wait_idle());
      ASSERT_OK(queue.replace_ring());
    }
  }
}

TEST_F(QueueControlTest, wave_state_is_that_of_a_stopped_compute_queue_only) {
  if (!gpu().generation.saves_waves) GTEST_SKIP() << "this chip does not save waves";
  std::vector<std::byte> area(gpu().cwsr_size * gpu().num_xcc);
  const auto wave_state = [&](KfdQueue& queue) {
    return client().wave_state(queue.id(), reinterpret_cast<std::uint64_t>(area.data()));
  };
  ASSERT_OK_AND_ASSIGN(RingQueue sdma, RingQueue::create(gpu(), QueueKind::kSdma, {.percentage = kStopped}));
  EXPECT_FALSE(wave_state(sdma).ok());
  ASSERT_OK_AND_ASSIGN(RingQueue pm4, RingQueue::create(gpu(), QueueKind::kPm4));
  ASSERT_OK(pm4.submit(Pm4Commands(gpu()).nop(4).dwords()));
  ASSERT_OK(pm4.wait_idle());
  EXPECT_FALSE(wave_state(pm4).ok());
  ASSERT_OK(pm4.set_percentage(kStopped));
  ASSERT_OK_AND_ASSIGN(const kfd::WaveState state, wave_state(pm4));
  EXPECT_EQ(state.control_stack_used, 0U);  // no wave ever ran
  EXPECT_EQ(state.save_area_used, 0U);
}

TEST_F(QueueControlTest, more_queues_than_the_hardware_has_all_run) {
  if (gpu().generation.gfx_level < 8) GTEST_SKIP() << "no firmware schedules this chip";
  const unsigned count = std::max<unsigned>(static_cast<unsigned>(gpu().cp_queues), 24) + 8;
  std::vector<StepQueue> queues;
  for (unsigned i = 0; i < count; ++i) {
    ASSERT_OK_AND_ASSIGN(StepQueue queue, StepQueue::create(gpu(), i % 2 == 0 ? QueueKind::kPm4 : QueueKind::kAql));
    ASSERT_OK(queue.submit(3));
    queues.push_back(std::move(queue));
  }
  // All gates open at once, so that the scheduler must map the queues in turn.
  for (unsigned step = 1; step <= 3; ++step) {
    for (StepQueue& queue : queues) queue.open(step);
    for (StepQueue& queue : queues) ASSERT_OK(queue.wait_done(step));
  }
}

// The buffers of a queue, of which a test spoils one.
struct RawQueue {
  GpuMemory ring;
  GpuMemory pointers;
  GpuMemory eop;
  GpuMemory save_area;
  kfd::QueueRequest request;

  static base::Result<RawQueue> create(const Gpu& gpu) {
    const std::size_t save_size = std::max(save_area_size(gpu), kPageSize);
    ASSIGN_OR_RETURN(GpuMemory ring, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize, MemoryUse::kRing));
    ASSIGN_OR_RETURN(GpuMemory pointers, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
    ASSIGN_OR_RETURN(GpuMemory eop, GpuMemory::allocate(gpu, MemoryKind::kVram, kPageSize));
    ASSIGN_OR_RETURN(GpuMemory save_area, GpuMemory::allocate(gpu, MemoryKind::kGtt, save_size));
    std::fill(pointers.bytes().begin(), pointers.bytes().end(), std::byte{0});
    RawQueue queue{std::move(ring), std::move(pointers), std::move(eop), std::move(save_area), {}};
    queue.request = {.gpu_id = gpu.gpu_id,
                     .ring = queue.ring.gpu_address(),
                     .ring_size = kPageSize,
                     .write_pointer = queue.pointers.gpu_address(),
                     .read_pointer = queue.pointers.gpu_address(64)};
    if (gpu.generation.saves_waves) {
      queue.request.eop = queue.eop.gpu_address();
      queue.request.eop_size = kPageSize;
      queue.request.save_area = queue.save_area.gpu_address();
      queue.request.save_area_size = static_cast<std::uint32_t>(gpu.cwsr_size);
      queue.request.control_stack_size = static_cast<std::uint32_t>(gpu.ctl_stack_size);
    }
    return queue;
  }
};

TEST_F(QueueControlTest, a_queue_with_a_wrong_buffer_is_refused_and_harms_nothing) {
  struct Spoiled {
    std::string_view what;
    std::function<void(kfd::QueueRequest&)> spoil;
    bool only_with_save_area = false;
  };
  const std::uint64_t nowhere = kPageSize * 16;
  const Spoiled cases[] = {
      {"a ring that is not mapped", [&](auto& r) { r.ring = nowhere; }},
      {"a ring smaller than its buffer", [](auto& r) { r.ring_size = 2 * kPageSize; }},
      {"a ring size that is no power of two", [](auto& r) { r.ring_size = 3 * kPageSize; }},
      {"a write pointer that is not mapped", [&](auto& r) { r.write_pointer = nowhere; }},
      {"a read pointer that is not mapped", [&](auto& r) { r.read_pointer = nowhere; }},
      {"no such GPU", [](auto& r) { r.gpu_id = 1; }},
      {"no such type", [](auto& r) { r.type = static_cast<kfd::QueueType>(77); }},
      {"a small EOP buffer", [](auto& r) { r.eop_size = 64; }, true},
      {"an EOP buffer that is not mapped", [&](auto& r) { r.eop = nowhere; }, true},
      {"a small save area", [](auto& r) { r.save_area_size -= std::uint32_t{kPageSize}; }, true},
      {"a save area that is not mapped", [&](auto& r) { r.save_area = nowhere; }, true},
      {"another size of control stack", [](auto& r) { r.control_stack_size += std::uint32_t{kPageSize}; }, true},
  };
  ASSERT_OK_AND_ASSIGN(RawQueue raw, RawQueue::create(gpu()));
  for (const Spoiled& each : cases) {
    if (each.only_with_save_area && !gpu().generation.saves_waves) continue;
    kfd::QueueRequest request = raw.request;
    each.spoil(request);
    EXPECT_FALSE(client().create_queue(request).ok()) << each.what;
  }
  ASSERT_OK_AND_ASSIGN(const kfd::CreatedQueue good, client().create_queue(raw.request));
  EXPECT_OK(client().destroy_queue(good.id));
  EXPECT_FALSE(client().destroy_queue(good.id).ok());
  // The buffers of a destroyed queue can be freed.
  EXPECT_OK(raw.ring.unmap());
}

class ProcessesTest : public GpuTest {};

// A process has a VMID while its queues are on the hardware, and KFD has eight of them.
TEST_F(ProcessesTest, more_than_there_are_vmids_all_make_progress) {
  if (gpu().generation.gfx_level < 8) GTEST_SKIP() << "no firmware schedules this chip";
  EXPECT_OK(spawn_together("step_together", 12));
}

class DebuggerTest : public GpuTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(GpuTest::SetUp());
    if (gpu().generation.gfx_level < 9) GTEST_SKIP() << "amdkfd debugs no chip before gfx9";
  }
};

TEST_F(DebuggerTest, is_told_of_the_queues_and_gpus_of_its_process) { EXPECT_OK(spawn_scenario("debugger_lists")); }

TEST_F(DebuggerTest, suspends_a_queue_and_lets_it_go_on) {
  EXPECT_OK(spawn_scenario("debugger_suspends_pm4"));
  EXPECT_OK(spawn_scenario("debugger_suspends_aql"));
}

class QueueControlSlowTest : public QueueControlTest {};

TEST_F(QueueControlSlowTest, a_hundred_queues_of_one_process_all_run) {
  constexpr unsigned kCount = 110;
  std::vector<StepQueue> queues;
  for (unsigned i = 0; i < kCount; ++i) {
    ASSERT_OK_AND_ASSIGN(StepQueue queue, StepQueue::create(gpu(), i % 2 == 0 ? QueueKind::kPm4 : QueueKind::kAql));
    ASSERT_OK(queue.submit(2));
    queues.push_back(std::move(queue));
  }
  for (StepQueue& queue : queues) queue.open(1);
  for (StepQueue& queue : queues) ASSERT_OK(queue.wait_done(1));
  for (StepQueue& queue : queues) queue.open(2);
  for (StepQueue& queue : queues) ASSERT_OK(queue.expect_done(2));
}

// Rings full of long NOPs, gone round until the pointer needs its upper half.
TEST_F(QueueControlSlowTest, pointers_pass_4_gib) {
  constexpr std::size_t kRing = 16 * kMiB;
  constexpr std::size_t kPacket = 16384;
  constexpr std::size_t kHalf = kRing / sizeof(std::uint32_t) / 2;
  ASSERT_OK_AND_ASSIGN(GpuMemory words, GpuMemory::allocate(gpu(), MemoryKind::kGtt, kPageSize));
  words.store64(0, 0);
  for (const QueueKind kind : {QueueKind::kPm4, QueueKind::kSdma}) {
    ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), kind, {.ring_size = kRing}));
    const std::uint64_t unit = kind == QueueKind::kPm4 ? 1 : sizeof(std::uint32_t);
    for (std::size_t at = 0; at < 2 * kHalf; at += kPacket)
      ASSERT_OK(kind == QueueKind::kPm4 ? queue.submit(Pm4Commands(gpu()).nop(kPacket).dwords())
                                        : queue.submit(SdmaCommands(gpu()).nop(kPacket).dwords()));
    while (queue.written() * unit <= (std::uint64_t{1} << 32)) ASSERT_OK(queue.submit_again(kHalf));
    ASSERT_OK(kind == QueueKind::kPm4 ? queue.submit(Pm4Commands(gpu()).fence(words.gpu_address(), 77).dwords())
                                      : queue.submit(SdmaCommands(gpu()).fence(words.gpu_address(), 78).dwords()));
    ASSERT_OK(wait_for_word(words, 0, kind == QueueKind::kPm4 ? 77 : 78));
    // The queue keeps a pointer above 4 GiB when it is taken off.
    ASSERT_OK(queue.set_percentage(kStopped));
    ASSERT_OK(queue.set_percentage(kFullPercentage));
    ASSERT_OK(kind == QueueKind::kPm4 ? queue.submit(Pm4Commands(gpu()).fence(words.gpu_address(), 87).dwords())
                                      : queue.submit(SdmaCommands(gpu()).fence(words.gpu_address(), 88).dwords()));
    EXPECT_OK(wait_for_word(words, 0, kind == QueueKind::kPm4 ? 87 : 88));
  }
}

}  // namespace
}  // namespace kfdtest
