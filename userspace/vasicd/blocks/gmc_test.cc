// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Registers of the memory controller and the trace of a VM fault.
#include "vasicd/blocks/gmc.h"

#include <gtest/gtest.h>

#include "vasicd/transport/fake_engines.h"
#include "vasicd/transport/loopback.h"

namespace vasicd::gmc_test {

constexpr GpuAddr kVa = 0x7f12'3456'7000;
constexpr std::uint64_t kRw = pte::kValid | pte::kReadable | pte::kWriteable;

struct GmcTest : testing::Test {
  FakeEngines::Script script;
  Loopback guest{FakeEngines::factory(script)};
  GpuMemory memory{guest.vram(), guest.vm().bus()};
  RecordingTrace trace;
  Gmc gmc{memory, trace};
  std::uint64_t root = guest.new_page_directory();
};

TEST_F(GmcTest, a_page_directory_written_in_two_halves_translates) {
  guest.map(root, kVa, 0x5000, kGpuPageSize, kRw);
  EXPECT_TRUE(gmc.write(VASIC_REG_VM_PD_HI(15), 0));
  EXPECT_TRUE(gmc.write(VASIC_REG_VM_PD_LO(15), static_cast<std::uint32_t>(root | pte::kValid)));
  EXPECT_EQ(memory.map(15, kVa, 8, Access::kRead)->data(), guest.vram().data() + 0x5000);
}

TEST_F(GmcTest, the_high_half_of_the_page_directory_counts) {
  guest.map(root, kVa, 0x5000, kGpuPageSize, kRw);
  EXPECT_TRUE(gmc.write(VASIC_REG_VM_PD_LO(15), static_cast<std::uint32_t>(root | pte::kValid)));
  EXPECT_TRUE(gmc.write(VASIC_REG_VM_PD_HI(15), 0x7fff));
  EXPECT_EQ(memory.map(15, kVa, 8, Access::kRead).error().kind, FaultKind::kBadTable);
}

TEST_F(GmcTest, pasids_are_kept_per_vmid_and_are_16_bits_wide) {
  EXPECT_TRUE(gmc.write(VASIC_REG_VM_PASID(8), 0x1'8001));
  EXPECT_EQ(gmc.pasid(8), 0x8001u);
  EXPECT_EQ(gmc.pasid(9), 0u);
  EXPECT_EQ(gmc.pasid(999), 0u);
}

TEST_F(GmcTest, binding_and_unbinding_change_what_an_address_means_at_once) {
  guest.map(root, kVa, 0x5000, kGpuPageSize, kRw);
  gmc.bind_vmid(8, root | pte::kValid, 0x8002);
  EXPECT_TRUE(memory.map(8, kVa, 8, Access::kRead).ok());
  EXPECT_EQ(gmc.pasid(8), 0x8002u);
  gmc.unbind_vmid(8);
  EXPECT_FALSE(memory.map(8, kVa, 8, Access::kRead).ok());
  EXPECT_EQ(gmc.pasid(8), 0u);
}

TEST_F(GmcTest, the_invalidate_register_drops_translations_of_the_vmids_in_its_mask) {
  guest.map(root, kVa, 0x5000, kGpuPageSize, kRw);
  gmc.bind_vmid(8, root | pte::kValid, 1);
  ASSERT_TRUE(memory.map(8, kVa, 8, Access::kRead).ok());
  guest.map(root, kVa, 0x6000, kGpuPageSize, kRw);
  EXPECT_TRUE(gmc.write(VASIC_REG_TLB_INVALIDATE, 1u << 9));
  EXPECT_EQ(memory.map(8, kVa, 8, Access::kRead)->data(), guest.vram().data() + 0x5000);
  EXPECT_TRUE(gmc.write(VASIC_REG_TLB_INVALIDATE, 1u << 8));
  EXPECT_EQ(memory.map(8, kVa, 8, Access::kRead)->data(), guest.vram().data() + 0x6000);
}

TEST_F(GmcTest, an_index_without_a_register_is_refused) {
  for (const std::uint32_t index : {0u, 0xfffu, 0x1020u, 0x103fu, 0x1050u, 0x105fu, 0x1061u, 0xffffffffu})
    EXPECT_FALSE(gmc.write(index, 1)) << std::hex << index;
}

TEST_F(GmcTest, vmids_that_do_not_exist_are_ignored) {
  gmc.bind_vmid(16, root | pte::kValid, 1);
  gmc.unbind_vmid(~0u);
  EXPECT_EQ(memory.map(16, kVa, 8, Access::kRead).error().kind, FaultKind::kNotPresent);
}

TEST_F(GmcTest, a_fault_is_traced_in_stable_text) {
  EXPECT_TRUE(gmc.report_fault({.vmid = 8, .va = kVa, .access = Access::kRead, .kind = FaultKind::kNotPresent}, 0));
  EXPECT_TRUE(trace.has("gmc: fault vmid=8 va=0x7f1234567000 access=read kind=not-present"));
}

TEST_F(GmcTest, a_fault_that_is_retried_is_reported_at_a_bounded_rate) {
  const auto at = [&](GpuAddr va, std::uint64_t now, unsigned vmid = 8) {
    return gmc.report_fault({.vmid = vmid, .va = va, .retry = true}, now);
  };
  EXPECT_TRUE(at(kVa, 100));
  EXPECT_FALSE(at(kVa + 8, 200)) << "the same page";
  EXPECT_TRUE(at(kVa + kGpuPageSize, 200));
  EXPECT_TRUE(at(kVa, 200, 9)) << "another process";
  EXPECT_TRUE(at(kVa, 100 + Gmc::kRetryNs)) << "the driver may have missed it";
  for (GpuAddr i = 0; i < 10000; ++i) at(kVa + i * kGpuPageSize, 100 + Gmc::kRetryNs);
  EXPECT_TRUE(at(kVa, 200 + Gmc::kRetryNs)) << "what was forgotten is reported again";
}

TEST_F(GmcTest, retry_is_for_chips_that_can) {
  gmc.bind_vmid(8, root | pte::kValid, 1);
  gmc.set_retry(8, true);
  EXPECT_FALSE(memory.map(8, kVa, 8, Access::kRead).error().retry);
  Gmc able{memory, trace, true};
  able.set_retry(8, true);
  EXPECT_TRUE(memory.map(8, kVa, 8, Access::kRead).error().retry);
}

}  // namespace vasicd::gmc_test
