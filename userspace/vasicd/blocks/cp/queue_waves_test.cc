// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Dispatches of both kinds of queue: what they compute, how they end, and that they continue after their queue was
// unmapped.
#include "vasicd/blocks/cp/queue_waves.h"

#include <gtest/gtest.h>

#include "packets/ih.h"
#include "vasicd/blocks/fakes/dispatch_driver.h"

namespace vasicd::queue_waves_test {

namespace aql = packets::aql;
namespace c = packets::compute;
namespace ih = packets::ih;
namespace pm4 = packets::pm4;
using Shape = DispatchDriver::Shape;

constexpr GpuAddr kOut = FakeDriver::kData;
constexpr GpuAddr kGateWord = FakeDriver::kData + 0x200000;
constexpr std::uint32_t kDoorbell = 0x404;

class Dispatches : public testing::TestWithParam<bool> {
 protected:
  Dispatches() { driver.map({&q}); }

  // Dispatches through this test's queue; the end of the dispatch signals `done`.
  void dispatch(const Shape& shape, packets::WordView code, GpuAddr args) {
    const GpuAddr kernel = driver.make_kernel(code);
    if (GetParam()) {
      driver.submit_aql(q, driver.packet(shape, kernel, args, done));
    } else {
      packets::Words w = driver.commands(shape, kernel + 256, args);
      pm4::write_data(w, done + offsetof(aql::Signal, value), 0);
      driver.submit(q, w);
    }
  }
  [[nodiscard]] bool is_done() const { return packets::lo32(static_cast<std::uint64_t>(driver.value_of(done))) == 0; }
  [[nodiscard]] std::uint32_t out(std::uint32_t i) const { return driver.memory.get<std::uint32_t>(kOut + 4 * i); }

  DispatchDriver driver;
  GuestQueue q = driver.make_wave_queue(kDoorbell, GetParam());
  GpuAddr done = driver.make_signal(1);
};
INSTANTIATE_TEST_SUITE_P(, Dispatches, testing::Values(false, true),
                         [](const auto& p) { return p.param ? "aql" : "pm4"; });

TEST_P(Dispatches, every_item_of_every_group_runs_once) {
  constexpr std::uint32_t kGroups = 1000;
  dispatch({.groups = kGroups, .size = 192}, kernels::kIds, driver.make_args({kOut, 192}));
  driver.run();
  ASSERT_TRUE(is_done());
  for (std::uint32_t i = 0; i < kGroups * 192; ++i) ASSERT_EQ(out(i), i);
  EXPECT_EQ(out(kGroups * 192), 0u);
}

TEST_P(Dispatches, waves_of_a_group_meet_at_the_barrier) {
  constexpr std::uint32_t kGroups = 50;
  dispatch({.groups = kGroups, .size = 256, .lds = 1024}, kernels::kMirror, driver.make_args({kOut}));
  driver.run();
  ASSERT_TRUE(is_done());
  for (std::uint32_t i = 0; i < kGroups * 256; ++i) ASSERT_EQ(out(i), 255 - i % 256) << i;
}

// What a group reads after round r has been written by all groups in that round, and by some perhaps in the next one.
TEST_P(Dispatches, groups_meet_at_the_barrier_of_the_grid_also_when_they_are_preempted_there) {
  constexpr std::uint32_t kGroups = 40;
  dispatch({.groups = kGroups, .size = 128}, kernels::kMeet, driver.make_args({kOut, kGroups - 1}));
  for (unsigned i = 0; i < 20; ++i) {
    driver.run(1);
    driver.preempt_and_remap(q);
    if (i % 4 == 3) driver.move_to_another_device(q, 4 + i);
  }
  driver.run();
  ASSERT_TRUE(is_done());
  for (std::uint32_t group = 0; group < kGroups; ++group) {
    for (std::uint32_t round = 0; round < 3; ++round) {
      const std::uint32_t seen = out(16 + 3 * group + round);
      ASSERT_GE(seen, kGroups * (round + 1)) << group << ' ' << round;
      ASSERT_LE(seen, kGroups * std::min(round + 2, 3U)) << group << ' ' << round;
    }
  }
}

TEST_P(Dispatches, a_barrier_for_which_too_few_groups_are_there_waits) {
  dispatch({.groups = 3, .size = 64}, kernels::kMeet, driver.make_args({kOut, 3}));
  driver.run(100);
  EXPECT_FALSE(is_done());
  EXPECT_EQ(out(0), 3u);
}

TEST_P(Dispatches, waves_go_on_after_any_preemption) {
  constexpr std::uint32_t kGroups = 20;
  dispatch({.groups = kGroups, .size = 100}, kernels::kGate, driver.make_args({kOut, kGateWord}));
  for (int i = 0; i < 5; ++i) {
    driver.run(20);
    EXPECT_FALSE(is_done());
    driver.preempt_and_remap(q);
    driver.run(20);
    driver.move_to_another_device(q, i % 2 == 0 ? 1 : 60);
  }
  driver.memory.put<std::uint32_t>(kGateWord, 1);
  driver.run();
  ASSERT_TRUE(is_done());
  for (std::uint32_t i = 0; i < 100; ++i) ASSERT_EQ(out(i), 1000 * (kGroups * (kGroups - 1) / 2) + kGroups * i);
  EXPECT_EQ(out(100), 0u);
}

TEST_P(Dispatches, what_is_saved_is_where_the_driver_looks) {
  dispatch({.groups = 3, .size = 64}, kernels::kGate, driver.make_args({kOut, kGateWord}));
  driver.run(50);
  driver.unmap_all();
  const auto& at = driver.compute_layout();
  const std::uint32_t offset = driver.mqd_word(q, at.cp_hqd_cntl_stack_offset);
  const std::uint32_t end = driver.mqd_word(q, at.cp_hqd_wg_state_offset);
  EXPECT_LT(offset, DispatchDriver::kStackBytes);
  EXPECT_GT(end, DispatchDriver::kStackBytes);
  EXPECT_LE(end, DispatchDriver::kAreaBytes);
  driver.memory.put<std::uint32_t>(kGateWord, 1);
  driver.map({&q});
  driver.run();
  driver.unmap_all();
  EXPECT_TRUE(is_done());
  EXPECT_EQ(driver.mqd_word(q, at.cp_hqd_cntl_stack_offset), DispatchDriver::kStackBytes);
  EXPECT_EQ(driver.mqd_word(q, at.cp_hqd_wg_state_offset), DispatchDriver::kStackBytes);
}

TEST_P(Dispatches, garbage_in_the_saved_state_kills_the_queue_and_no_other) {
  dispatch({.groups = 3, .size = 64}, kernels::kGate, driver.make_args({kOut, kGateWord}));
  driver.run(50);
  driver.unmap_all();
  const std::uint32_t offset = driver.mqd_word(q, driver.compute_layout().cp_hqd_cntl_stack_offset);
  std::uint32_t random = 1;
  for (std::uint32_t i = offset; i < DispatchDriver::kStackBytes; i += 4) {
    random = random * 1664525 + 1013904223;
    driver.memory.put(q.mqd + 0x1000 + i, random);
  }
  GuestQueue other = driver.make_compute(0x500);
  driver.map({&q, &other});
  packets::Words w;
  pm4::write_data(w, kOut, 5);
  driver.submit(other, w);
  driver.run();
  EXPECT_EQ(out(0), 5u);
  EXPECT_FALSE(is_done());
  ASSERT_FALSE(driver.interrupts.raised.empty());
  EXPECT_EQ(driver.interrupts.raised[0].kind, InterruptKind::kSqError);
}

TEST_P(Dispatches, waves_that_cannot_be_saved_kill_the_queue) {
  dispatch({.groups = 3, .size = 64}, kernels::kGate, driver.make_args({kOut, kGateWord}));
  driver.run(50);
  for (GpuAddr at = 0; at < DispatchDriver::kAreaBytes; at += FakeMemory::kPage) {
    driver.memory.bad_pages.insert((driver.save_area + at) / FakeMemory::kPage);
  }
  driver.memory.put<std::uint32_t>(kGateWord, 1);
  driver.preempt_and_remap(q);
  driver.run();
  EXPECT_FALSE(is_done());
  EXPECT_EQ(out(0), 0u);
}

TEST_P(Dispatches, an_endless_wave_holds_nobody_up) {
  dispatch({}, kernels::kForever, 0);
  GuestQueue other = driver.make_compute(0x500);
  driver.map({&q, &other});
  packets::Words w;
  pm4::write_data(w, kOut, 5);
  driver.submit(other, w);
  driver.run(50);
  EXPECT_EQ(out(0), 5u);
  driver.unmap_all();
  EXPECT_FALSE(is_done());
}

TEST_P(Dispatches, an_illegal_instruction_stops_the_queue) {
  dispatch({}, kernels::kIllegal, 0);
  driver.run();
  EXPECT_FALSE(is_done());
  ASSERT_EQ(driver.interrupts.raised.size(), 2u);
  EXPECT_EQ(driver.interrupts.raised[0].kind, InterruptKind::kSqError);
  EXPECT_EQ(driver.interrupts.raised[0].data[0], static_cast<std::uint32_t>(SqError::kIllegalInstruction));
  EXPECT_EQ(driver.interrupts.raised[1].kind, InterruptKind::kSqTrap);
  EXPECT_EQ(driver.interrupts.raised[1].data[0], kDoorbell / 2);
  EXPECT_EQ(driver.interrupts.raised[1].data[1], ih::kTrapIllegalInstruction);
}

// ROCr's trap handler: s_trap 2 is an abort, s_trap 3 waits for a debugger that is not there, others are an error.
TEST_P(Dispatches, a_trap_is_sent_as_the_runtimes_handler_sends_it) {
  dispatch({}, kernels::kTrap, 0);
  driver.run();
  EXPECT_FALSE(is_done());
  ASSERT_EQ(driver.interrupts.raised.size(), 1u);
  EXPECT_EQ(driver.interrupts.raised[0].kind, InterruptKind::kSqTrap);
  EXPECT_EQ(driver.interrupts.raised[0].data[1], ih::kTrapWaveAbort);
}

TEST_P(Dispatches, a_trap_without_a_meaning_stops_the_queue) {
  dispatch({}, packets::Words{0xbf920005, 0xbf810000}, 0);
  driver.run();
  EXPECT_FALSE(is_done());
  ASSERT_EQ(driver.interrupts.raised.size(), 1u);
  EXPECT_EQ(driver.interrupts.raised[0].data[1], ih::kTrapWaveTrap);
}

TEST_P(Dispatches, a_debug_trap_without_a_debugger_does_nothing) {
  dispatch({}, packets::Words{0xbf920003, 0xbf810000}, 0);
  driver.run();
  EXPECT_TRUE(is_done());
  EXPECT_TRUE(driver.interrupts.raised.empty());
}

TEST_P(Dispatches, an_access_to_nothing_is_a_fault_at_its_address) {
  constexpr GpuAddr kNowhere = GpuAddr{1} << 40;
  dispatch({}, kernels::kIds, driver.make_args({kNowhere, 64}));
  driver.run();
  EXPECT_FALSE(is_done());
  ASSERT_EQ(driver.interrupts.faults.size(), 1u);
  EXPECT_EQ(driver.interrupts.faults[0].fault.va & ~GpuAddr{0xfff}, kNowhere);
  EXPECT_EQ(driver.interrupts.faults[0].fault.access, Access::kWrite);
}

TEST_P(Dispatches, a_retried_fault_leaves_the_wave_where_it_is) {
  driver.memory.retry = true;
  driver.memory.bad_pages.insert(kOut / FakeMemory::kPage);
  dispatch({.groups = 4}, kernels::kIds, driver.make_args({kOut, 64}));
  driver.run(30);
  EXPECT_FALSE(is_done());
  EXPECT_FALSE(driver.interrupts.faults.empty());
  driver.move_to_another_device(q);
  driver.memory.bad_pages.clear();
  driver.run();
  ASSERT_TRUE(is_done());
  for (std::uint32_t i = 0; i < 256; ++i) ASSERT_EQ(out(i), i);
}

TEST_P(Dispatches, a_message_is_an_interrupt_with_m0) {
  dispatch({}, kernels::kMessage, 0);
  driver.run();
  EXPECT_TRUE(is_done());
  ASSERT_FALSE(driver.interrupts.raised.empty());
  EXPECT_EQ(driver.interrupts.raised[0].kind, InterruptKind::kSqMessage);
  EXPECT_EQ(driver.interrupts.raised[0].data[0], 7u);
}

TEST(Dispatch, code_that_is_not_there_is_a_fault) {
  constexpr GpuAddr kNowhere = GpuAddr{1} << 40;
  DispatchDriver driver;
  GuestQueue q = driver.make_wave_queue(kDoorbell, false);
  driver.map({&q});
  driver.submit(q, driver.commands({}, kNowhere, 0));
  driver.run(20);
  ASSERT_EQ(driver.interrupts.faults.size(), 1u);
  EXPECT_EQ(driver.interrupts.faults[0].fault.va, kNowhere);
  EXPECT_EQ(driver.interrupts.faults[0].fault.access, Access::kRead);
}

// s_load_dwordx2 s[4:5], s[0:1], 0x0; s_memrealtime s[6:7]; s_waitcnt lgkmcnt(0); s_store_dwordx2 s[6:7], s[4:5], 0x0;
// s_endpgm
TEST(Dispatch, waves_have_a_clock_that_runs) {
  const packets::Words code = {0xc0060100, 0, 0xc0940180, 0, 0xbf8cc07f, 0xc0460182, 0, 0xbf810000};
  DispatchDriver driver;
  GuestQueue q = driver.make_wave_queue(kDoorbell, true);
  driver.map({&q});
  const GpuAddr kernel = driver.make_kernel(code);
  std::uint64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    driver.submit_aql(q, driver.packet({}, kernel, driver.make_args({kOut}), 0));
    driver.run();
    const auto now = driver.memory.get<std::uint64_t>(kOut);
    EXPECT_GT(now, last);
    last = now;
  }
}

TEST(Dispatch, registers_of_a_pm4_queue_survive_preemption) {
  DispatchDriver driver;
  GuestQueue q = driver.make_wave_queue(kDoorbell, false);
  driver.map({&q});
  const GpuAddr kernel = driver.make_kernel(kernels::kIds);
  packets::Words w = driver.commands({.groups = 2}, kernel + 256, driver.make_args({kOut, 64}));
  constexpr std::size_t kDispatchDwords = 5;
  const packets::Words last(w.end() - kDispatchDwords, w.end());
  w.resize(w.size() - kDispatchDwords);
  driver.submit(q, w);
  driver.run();
  driver.move_to_another_device(q);
  driver.submit(q, last);
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kOut + 4 * 127), 127u);
}

// The value of the inactive signal when the command processor refuses a packet.
struct Refusal {
  const char* name;
  void (*spoil)(aql::KernelDispatch&);
  std::uint64_t code;
};
class Refusals : public testing::TestWithParam<Refusal> {};
INSTANTIATE_TEST_SUITE_P(
    , Refusals,
    testing::Values(
        Refusal{"no_dimensions", [](aql::KernelDispatch& p) { p.setup = 0; }, aql::kInactiveDimensions},
        Refusal{"empty_grid", [](aql::KernelDispatch& p) { p.grid_size[0] = 0; }, aql::kInactiveDimensions},
        Refusal{"empty_group", [](aql::KernelDispatch& p) { p.workgroup_size[0] = 0; }, aql::kInactiveDimensions},
        Refusal{"large_group", [](aql::KernelDispatch& p) { p.workgroup_size[0] = 1025; }, aql::kInactiveGroupSize},
        Refusal{"much_lds", [](aql::KernelDispatch& p) { p.group_segment_size = 65537; }, aql::kInactiveGroupMemory},
        Refusal{"no_code", [](aql::KernelDispatch& p) { p.kernel_object = 0; }, aql::kInactiveCode}),
    [](const auto& p) { return p.param.name; });

TEST_P(Refusals, are_told_to_the_runtime) {
  DispatchDriver driver;
  GuestQueue q = driver.make_wave_queue(kDoorbell, true);
  driver.map({&q});
  aql::KernelDispatch packet = driver.packet({}, driver.make_kernel(kernels::kIds), driver.make_args({kOut, 64}), 0);
  GetParam().spoil(packet);
  driver.submit_aql(q, packet);
  driver.run();
  EXPECT_EQ(driver.value_of(driver.inactive), static_cast<std::int64_t>(GetParam().code));
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kOut + 4), 0u);
}

TEST(Dispatch, a_trap_is_told_to_the_runtime) {
  DispatchDriver driver;
  GuestQueue q = driver.make_wave_queue(kDoorbell, true);
  driver.map({&q});
  driver.submit_aql(q, driver.packet({}, driver.make_kernel(kernels::kTrap), 0, 0));
  driver.run();
  EXPECT_EQ(driver.value_of(driver.inactive), static_cast<std::int64_t>(aql::kInactiveTrap));
}

TEST(Dispatch, a_runtime_that_reads_exceptions_finds_its_inactive_signal_untouched) {
  for (const packets::Words& kernel : {kernels::kTrap, kernels::kIllegal}) {
    DispatchDriver driver;
    GuestQueue q = driver.make_wave_queue(kDoorbell, true);
    driver.memory.put<std::uint64_t>(driver.save_area + aql::kSaveAreaErrorPayload, 0x1000);
    driver.map({&q});
    driver.submit_aql(q, driver.packet({}, driver.make_kernel(kernel), 0, 0));
    driver.run();
    EXPECT_EQ(driver.value_of(driver.inactive), 0);
    ASSERT_FALSE(driver.interrupts.raised.empty());
    EXPECT_EQ(driver.interrupts.raised.back().kind, InterruptKind::kSqTrap);
  }
}

TEST(Dispatch, too_little_scratch_waits_until_the_runtime_gives_more) {
  DispatchDriver driver;
  GuestQueue q = driver.make_wave_queue(kDoorbell, true);
  driver.map({&q});
  driver.submit_aql(
      q, driver.packet({.scratch = 16}, driver.make_kernel(kernels::kIds, true), driver.make_args({kOut, 64}), 0));
  driver.run(20);
  EXPECT_EQ(driver.value_of(driver.inactive), static_cast<std::int64_t>(aql::kInactiveScratch));
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kOut + 4), 0u);
  driver.memory.put(q.rptr_word + aql::kQueueTmpringSize, c::kTmpringWaves.put(4) | c::kTmpringWaveSize.put(1));
  driver.memory.put(q.rptr_word + aql::kQueueScratchLocation, driver.alloc(4096));
  driver.memory.put<std::uint64_t>(driver.inactive + offsetof(aql::Signal, value), 0);
  driver.run(20);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kOut + 4), 1u);
}

}  // namespace vasicd::queue_waves_test
