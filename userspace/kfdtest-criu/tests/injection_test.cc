// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What the driver and a program make of a GPU that misbehaves on demand. Some of it resets the GPU under everyone else,
// so the test runner gives these tests VMs of their own, with small time limits for jobs and preemption.
#include "kfdtest-criu/env/control_port.h"
#include "kfdtest-criu/tests/scenario_process.h"
#include "kfdtest-criu/tests/test_listener.h"

namespace kfdtest {
namespace {

class InjectionTest : public GpuTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(GpuTest::SetUp());
    if (!ControlPort::exists()) GTEST_SKIP() << kNoControlPort;
  }
  // Whatever the test did, the GPU must work for the next program.
  void TearDown() override {
    if (IsSkipped()) return;
    {
      ASSERT_OK_AND_ASSIGN(ControlPort port, ControlPort::open());
      ASSERT_OK(port.cancel_requests());
      ASSERT_OK_AND_ASSIGN(const std::string state, port.status("gpu", "state"));
      EXPECT_EQ(state, "ready");
      ASSERT_OK_AND_ASSIGN(const std::string faults, port.status("inject", "vm-fault"));
      EXPECT_EQ(faults, "0") << "a fault that was asked for did not happen";
    }
    EXPECT_OK(spawn_scenario("every_kind_of_queue_works"));
  }
};

TEST_F(InjectionTest, a_hung_compute_queue_is_found_and_its_program_told) {
  EXPECT_OK(spawn_scenario("hung_compute_queue"));
}

TEST_F(InjectionTest, a_hung_queue_that_is_changed_stops_no_other) {
  if (gpu().generation.gfx_level >= 11) GTEST_SKIP() << "with MES the driver resets the whole GPU";
  EXPECT_OK(spawn_scenario("hung_queue_is_changed"));
}

TEST_F(InjectionTest, a_program_whose_queue_hung_is_not_checkpointed) {
  EXPECT_OK(spawn_scenario("hung_queue_has_no_image"));
}

TEST_F(InjectionTest, a_queue_that_hangs_when_its_program_is_paused_is_not_checkpointed) {
  EXPECT_OK(spawn_scenario("pause_meets_hung_queue"));
}

TEST_F(InjectionTest, a_hung_sdma_queue_makes_the_driver_reset_the_gpu) {
  EXPECT_OK(spawn_scenario("hung_sdma_queue"));
}

TEST_F(InjectionTest, an_unmap_request_without_an_answer_makes_the_driver_reset_the_gpu) {
  EXPECT_OK(spawn_scenario("unanswered_unmap"));
}

TEST_F(InjectionTest, queues_whose_restore_fails_are_not_restored_on_a_gpu_that_was_reset) {
  if (gpu().generation.gfx_level >= 11) GTEST_SKIP() << "with MES a restore takes no queue off the hardware";
  EXPECT_OK(spawn_scenario("restore_meets_silent_gpu"));
}

TEST_F(InjectionTest, a_gpu_that_declares_itself_hung_is_reset) { EXPECT_OK(spawn_scenario("hung_gpu")); }

TEST_F(InjectionTest, after_a_lost_interrupt_of_a_compute_queue_the_next_one_wakes_the_waiter) {
  EXPECT_OK(spawn_scenario("lost_interrupt_pm4"));
}

TEST_F(InjectionTest, after_a_lost_interrupt_of_an_sdma_queue_the_next_one_wakes_the_waiter) {
  EXPECT_OK(spawn_scenario("lost_interrupt_sdma"));
}

TEST_F(InjectionTest, after_a_lost_message_of_a_wave_the_next_one_wakes_the_waiter) {
  if (!gpu().generation.runs_gfx9_waves) GTEST_SKIP() << "the wave is for gfx900 to gfx90a";
  EXPECT_OK(spawn_scenario("lost_interrupt_wave"));
}

TEST_F(InjectionTest, a_vm_fault_of_a_compute_queue_is_reported_and_harms_no_other_process) {
  EXPECT_OK(spawn_scenario("vm_fault_pm4_beside_others"));
}

TEST_F(InjectionTest, a_vm_fault_of_an_sdma_queue_is_reported_and_harms_no_other_process) {
  EXPECT_OK(spawn_scenario("vm_fault_sdma_beside_others"));
}

TEST_F(InjectionTest, copies_to_and_from_vram_have_the_speed_of_the_link) { EXPECT_OK(spawn_scenario("slow_link")); }

TEST_F(InjectionTest, vram_truth_names_the_pages_that_a_queue_wrote_and_no_others) {
  EXPECT_OK(spawn_scenario("vram_truth"));
}

TEST_F(InjectionTest, while_user_queues_are_paused_only_the_driver_works) { EXPECT_OK(spawn_scenario("paused_user")); }

TEST_F(InjectionTest, a_paused_queue_goes_on_by_one_packet_a_step) { EXPECT_OK(spawn_scenario("stepped")); }

}  // namespace
}  // namespace kfdtest
