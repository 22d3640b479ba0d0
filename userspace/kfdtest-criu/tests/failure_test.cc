// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What a program's mistake does: it is reported, its process lives on, others do not notice.
#include "kfdtest-criu/harness/smi_events.h"
#include "kfdtest-criu/harness/step_queue.h"
#include "kfdtest-criu/tests/scenario_process.h"
#include "kfdtest-criu/tests/test_listener.h"

namespace kfdtest {
namespace {

class FailureTest : public GpuTest {
 protected:
  // This process's queue must still work after the scenario, which ran in another process on the same GPU.
  void TearDown() override {
    ASSERT_OK_AND_ASSIGN(GpuMemory words, GpuMemory::allocate(gpu(), MemoryKind::kGtt, kPageSize));
    words.store32(0, 0);
    ASSERT_OK_AND_ASSIGN(RingQueue queue, RingQueue::create(gpu(), QueueKind::kPm4));
    ASSERT_OK(queue.submit(Pm4Commands(gpu()).fence(words.gpu_address(), 1).dwords()));
    EXPECT_OK(wait_for_word(words, 0, 1));
  }
};

TEST_F(FailureTest, sdma_at_an_unmapped_address_raises_a_memory_exception_there) {
  EXPECT_OK(spawn_scenario("memory_fault_sdma"));
}

TEST_F(FailureTest, pm4_at_an_unmapped_address_raises_a_memory_exception_there) {
  EXPECT_OK(spawn_scenario("memory_fault_pm4"));
}

TEST_F(FailureTest, a_bad_opcode_stops_its_queue_and_no_other) { EXPECT_OK(spawn_scenario("bad_opcode")); }

TEST_F(FailureTest, a_bad_opcode_is_reported_to_an_enabled_runtime) {
  if (gpu().generation.gfx_level < 9) GTEST_SKIP() << "amdkfd reports no packet errors before gfx9";
  EXPECT_OK(spawn_scenario("bad_opcode_report"));
}

TEST_F(FailureTest, an_illegal_instruction_is_reported_to_an_enabled_runtime) {
  if (gpu().generation.gfx_level < 9) GTEST_SKIP() << "amdkfd reports no errors of waves before gfx9";
  EXPECT_OK(spawn_scenario("illegal_instruction_report"));
}

TEST_F(FailureTest, a_wave_that_aborts_is_reported_to_an_enabled_runtime) {
  if (!gpu().generation.runs_gfx9_waves) GTEST_SKIP() << "the wave is for gfx900 to gfx90a";
  EXPECT_OK(spawn_scenario("wave_abort_report"));
}

TEST_F(FailureTest, a_waves_trap_is_reported_to_an_enabled_runtime) {
  if (!gpu().generation.runs_gfx9_waves) GTEST_SKIP() << "the wave is for gfx900 to gfx90a";
  EXPECT_OK(spawn_scenario("wave_trap_report"));
}

TEST_F(FailureTest, an_agent_dispatch_stops_its_queue_and_is_reported) { EXPECT_OK(spawn_scenario("agent_dispatch")); }

TEST_F(FailureTest, a_write_to_read_only_memory_is_said_to_be_one) { EXPECT_OK(spawn_scenario("read_only_fault")); }

TEST_F(FailureTest, a_fault_of_another_process_is_seen_in_smi_events_and_harms_no_pending_work) {
  ASSERT_OK_AND_ASSIGN(SmiEvents events, SmiEvents::open(gpu(), {SmiKind::kVmFault, SmiKind::kOfAllProcesses}));
  std::vector<StepQueue> queues;
  for (const QueueKind kind : {QueueKind::kPm4, QueueKind::kAql, QueueKind::kSdma}) {
    ASSERT_OK_AND_ASSIGN(StepQueue queue, StepQueue::create(gpu(), kind));
    ASSERT_OK(queue.submit(4));
    queue.open(2);
    ASSERT_OK(queue.wait_done(2));
    queues.push_back(std::move(queue));
  }
  ASSERT_OK(spawn_scenario("memory_fault_pm4"));
  // amdkfd does not tell of faults of gfx10 (kfd_int_process_v10.c).
  if (gpu().generation.gfx_level != 10) {
    EXPECT_OK(events.wait_for(SmiKind::kVmFault));
  }
  for (StepQueue& queue : queues) {
    EXPECT_OK(queue.expect_done(2));
    queue.open(4);
    EXPECT_OK(queue.expect_done(4));
  }
}

// Negative control: a scenario that fails is seen to fail.
TEST_F(FailureTest, a_scenario_that_does_not_exist_fails) { EXPECT_FALSE(spawn_scenario("none_such").ok()); }

TEST_F(FailureTest, a_queue_with_an_odd_ring_size_is_refused) {
  EXPECT_FALSE(RingQueue::create(gpu(), QueueKind::kPm4, {.ring_size = 3 * kPageSize}).ok());
}

}  // namespace
}  // namespace kfdtest
