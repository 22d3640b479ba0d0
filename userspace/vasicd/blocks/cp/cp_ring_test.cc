// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Compute rings of the driver, as amdgpu's ring functions use them, in every generation.
#include <gtest/gtest.h>

#include "vasicd/blocks/fakes/fake_driver.h"

namespace vasicd::cp_ring_test {

namespace pm4 = packets::pm4;
using packets::Words;

constexpr GpuAddr kSrc = FakeDriver::kData;
constexpr GpuAddr kDst = FakeDriver::kData + 0x400000;

class ComputeRings : public ::testing::TestWithParam<unsigned> {
 protected:
  ComputeRings() {
    driver.info.compute_rings = 2;
    q = driver.make_queue(0x100, 256);
    q.kernel = true;
    EXPECT_TRUE(load(0).ok());
  }
  base::Status load(unsigned instance, std::uint64_t bytes = 1024) {
    return driver.engines->load_ring(
        {RingKind::kCompute, instance, q.ring, bytes, q.rptr_word, q.wptr_word, q.doorbell});
  }
  void submit(const Words& w) {
    driver.submit(q, w);
    driver.run();
  }
  // As amdgpu ends a submission.
  void fence(Words& w, GpuAddr addr, std::uint64_t value) {
    pm4::release_mem(
        w, {.int_sel = pm4::ReleaseInt::kAfterWrite, .data_sel = pm4::ReleaseData::k64, .addr = addr, .data = value},
        GetParam());
  }
  FakeDriver driver{GetParam()};
  GuestQueue q;
};

TEST_P(ComputeRings, a_buffer_runs_in_its_vmid_and_the_fence_interrupts) {
  Words ib;
  pm4::write_data(ib, kDst, 5);
  pm4::nop(ib, 7);
  Words w;
  pm4::indirect_buffer(w, driver.put_words(ib), static_cast<std::uint32_t>(ib.size()), false, 11);
  fence(w, kDst + 8, 0x1'0000'0002);
  for (int i = 0; i < 100; ++i) pm4::nop(w);
  submit(w);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 5u);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst + 8), 0x1'0000'0002u);
  EXPECT_TRUE(driver.memory.vmids_used.contains(11));
  EXPECT_EQ(driver.memory.get<std::uint64_t>(q.rptr_word), q.wptr);
  ASSERT_EQ(driver.interrupts.raised.size(), 1u);
  EXPECT_EQ(driver.interrupts.raised[0].kind, InterruptKind::kCpEndOfPipe);
  EXPECT_EQ(driver.interrupts.raised[0].vmid, 0);
}

TEST_P(ComputeRings, the_ring_wraps_and_its_pointers_do_not) {
  for (std::uint32_t i = 1; i <= 200; ++i) {
    Words w;
    fence(w, kDst, i);
    pm4::nop(w, 5);
    submit(w);
    ASSERT_EQ(driver.memory.get<std::uint32_t>(kDst), i);
  }
  EXPECT_EQ(driver.memory.get<std::uint64_t>(q.rptr_word), q.wptr);
  EXPECT_GT(q.wptr, 1024u);
}

TEST_P(ComputeRings, registers_are_written_in_vmid_0_only) {
  Words w;
  pm4::write_data(w, VASIC_REG_VM_PD_LO(3), Words{0x1234, 0x5678}, pm4::WriteDst::kRegister);
  pm4::wait_reg_mem(w, {.memory = false, .operation = 1, .addr = 0x17, .reference = 1, .mask = 1});
  Words ib;
  pm4::write_data(ib, VASIC_REG_VM_PD_LO(4), Words{0xbad}, pm4::WriteDst::kRegister);
  pm4::write_data(ib, kDst, 1);
  pm4::indirect_buffer(w, driver.put_words(ib), static_cast<std::uint32_t>(ib.size()), false, 9);
  submit(w);
  EXPECT_EQ(driver.registers.written[VASIC_REG_VM_PD_LO(3)], 0x1234u);
  EXPECT_EQ(driver.registers.written[VASIC_REG_VM_PD_HI(3)], 0x5678u);
  EXPECT_FALSE(driver.registers.written.contains(VASIC_REG_VM_PD_LO(4)));
  ASSERT_EQ(driver.interrupts.raised.size(), 1u);
  EXPECT_EQ(driver.interrupts.raised[0].kind, InterruptKind::kCpPrivilegedRegister);
  EXPECT_EQ(driver.interrupts.raised[0].vmid, 9);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 1u) << "the packet is skipped, the buffer goes on";
}

TEST_P(ComputeRings, a_bad_packet_or_a_fault_is_skipped) {
  driver.memory.bad_pages.insert(kSrc / FakeMemory::kPage);
  Words w;
  pm4::write_data(w, kSrc, 1);
  w.push_back(0xc0009902);
  w.push_back(0);
  pm4::dispatch_direct(w, 1, 1, 1, 1);
  pm4::indirect_buffer(w, kSrc, 16, false, 9);
  fence(w, kDst, 7);
  submit(w);
  EXPECT_EQ(driver.interrupts.faults.size(), 2u);
  EXPECT_EQ(driver.interrupts.raised.size(), 3u);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 7u);
}

TEST_P(ComputeRings, a_vm_fault_on_demand_skips_one_packet_however_long_the_one_before_was) {
  constexpr GpuAddr kAsked = 0xdead000;
  Words w;
  pm4::nop(w, 9);
  submit(w);
  driver.controls.fault("compute0", kAsked);
  w.clear();
  pm4::write_data(w, kDst, 1);
  pm4::write_data(w, kDst + 4, 2);
  submit(w);
  ASSERT_EQ(driver.interrupts.faults.size(), 1u);
  EXPECT_EQ(driver.interrupts.faults[0].fault.va, kAsked);
  EXPECT_TRUE(driver.interrupts.raised.empty()) << "what is left is packets";
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 0u);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst + 4), 2u);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(q.rptr_word), q.wptr);
}

TEST_P(ComputeRings, a_vm_fault_on_demand_may_hit_a_buffer) {
  Words ib;
  pm4::write_data(ib, kDst, 5);
  pm4::write_data(ib, kDst + 4, 6);
  driver.controls.run(Running::kNothing);
  Words w;
  pm4::indirect_buffer(w, driver.put_words(ib), static_cast<std::uint32_t>(ib.size()), false, 11);
  fence(w, kDst + 8, 7);
  submit(w);
  driver.engines->step_packet();  // enters the buffer
  driver.engines->step_packet();  // its first packet
  driver.controls.fault("compute0", std::nullopt);
  driver.controls.run(Running::kAll);
  driver.run();
  ASSERT_EQ(driver.interrupts.faults.size(), 1u);
  EXPECT_EQ(driver.interrupts.faults[0].fault.vmid, 11u);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 5u);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst + 4), 0u);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(kDst + 8), 7u);
}

TEST_P(ComputeRings, a_wait_without_end_is_ended_by_a_reset) {
  Words w;
  pm4::wait_reg_mem(w, {.addr = kSrc, .reference = 1});
  submit(w);
  EXPECT_EQ(driver.memory.get<std::uint64_t>(q.rptr_word), 0u);
  ASSERT_TRUE(driver.engines->unload_ring(RingKind::kCompute, 0, UnloadMode::kReset).ok());
  q.wptr = 0;
  driver.memory.put<std::uint64_t>(q.wptr_word, 0);
  driver.memory.put<std::uint64_t>(q.rptr_word, 0);
  ASSERT_TRUE(load(0).ok());
  w.clear();
  fence(w, kDst, 3);
  submit(w);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 3u);
}

TEST_P(ComputeRings, a_hung_ring_stops_for_a_reset_only) {
  driver.controls.hang("compute0");
  Words w;
  fence(w, kDst, 3);
  submit(w);
  EXPECT_EQ(driver.memory.get<std::uint32_t>(kDst), 0u);
  EXPECT_EQ(driver.engines->unload_ring(RingKind::kCompute, 0, UnloadMode::kDrain).error().code(), ETIME);
  EXPECT_TRUE(driver.engines->unload_ring(RingKind::kCompute, 0, UnloadMode::kReset).ok());
  EXPECT_FALSE(driver.controls.hung("compute0"));
}

TEST_P(ComputeRings, are_loaded_once_and_validated) {
  EXPECT_EQ(load(0).error().code(), EBUSY);
  EXPECT_EQ(load(2).error().code(), EINVAL);
  EXPECT_EQ(load(1, 1000).error().code(), EINVAL);
  driver.doorbells.rung[q.doorbell] = 100'000;
  driver.run();
  EXPECT_EQ(driver.memory.get<std::uint64_t>(q.rptr_word), 0u) << "a pointer beyond the ring is ignored";
}

INSTANTIATE_TEST_SUITE_P(Gfx, ComputeRings, ::testing::Range(7u, 13u),
                         [](const auto& instance) { return std::to_string(instance.param); });

}  // namespace vasicd::cp_ring_test
