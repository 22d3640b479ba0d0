// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The two kinds of address space, permissions, and when cached translations are dropped.
#include "vasicd/mem/gpu_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "vasicd/transport/fake_engines.h"
#include "vasicd/transport/loopback.h"

namespace vasicd::gpu_memory_test {

constexpr std::uint64_t kRead = pte::kValid | pte::kReadable;
constexpr std::uint64_t kRw = kRead | pte::kWriteable;
constexpr unsigned kVmid = 8;
constexpr GpuAddr kVa = 0x7f00'0000'0000;
constexpr std::uint64_t k2M = std::uint64_t{2} << 20;

struct GpuMemoryTest : testing::Test {
  FakeEngines::Script script;
  Loopback guest{FakeEngines::factory(script)};
  GpuMemory memory{guest.vram(), guest.vm().bus()};
  std::uint64_t gart_table = guest.vm().allocate_vram(0, Loopback::kGartSize / kGpuPageSize * 8);
  McLayout layout{Loopback::kVramBase, Loopback::kGartBase, Loopback::kGartSize, gart_table};
  std::uint64_t root = guest.new_page_directory();
  std::uint64_t page = guest.vm().allocate_vram(0, 4 * kGpuPageSize);

  void SetUp() override {
    ASSERT_TRUE(memory.set_mc(layout));
    memory.set_page_directory(kVmid, root | pte::kValid);
  }
  FaultKind fault(unsigned vmid, GpuAddr va, Access access) {
    const auto bytes = memory.map(vmid, va, 8, access);
    EXPECT_FALSE(bytes.ok());
    EXPECT_EQ(bytes.error().va, va);
    EXPECT_EQ(bytes.error().vmid, vmid);
    EXPECT_EQ(bytes.error().access, access);
    return bytes.error().kind;
  }
};

TEST_F(GpuMemoryTest, vmid_0_reaches_vram_at_its_aperture) {
  const auto bytes = memory.map(0, Loopback::kVramBase + page, ~std::size_t{0}, Access::kWrite);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(bytes->data(), guest.vram().data() + page);
  EXPECT_EQ(bytes->size(), guest.vram().size() - page);
}

TEST_F(GpuMemoryTest, vmid_0_reaches_system_memory_through_the_gart) {
  const auto gpa = guest.vm().allocate_ram(2 * kGpuPageSize);
  guest.vram_word(gart_table + 8 * 5) = gpa | kRw | pte::kSystem;
  guest.vram_word(gart_table + 8 * 6) = (gpa + kGpuPageSize) | kRw | pte::kSystem;
  const auto bytes = memory.map(0, Loopback::kGartBase + 5 * kGpuPageSize + 16, k2M, Access::kWrite);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(bytes->data(), guest.vm().ram().data() + gpa + 16);
  EXPECT_EQ(bytes->size(), 2 * kGpuPageSize - 16);
}

TEST_F(GpuMemoryTest, gart_entries_are_seen_at_once_and_checked_for_permission) {
  EXPECT_EQ(fault(0, Loopback::kGartBase, Access::kRead), FaultKind::kNotPresent);
  guest.vram_word(gart_table) = page | kRead;
  EXPECT_TRUE(memory.map(0, Loopback::kGartBase, 8, Access::kRead).ok());
  EXPECT_EQ(fault(0, Loopback::kGartBase, Access::kWrite), FaultKind::kNotWritable);
}

TEST_F(GpuMemoryTest, the_last_gart_page_does_not_run_into_what_follows_the_table) {
  const auto last = Loopback::kGartSize / kGpuPageSize - 1;
  guest.vram_word(gart_table + 8 * last) = page | kRw;
  guest.vram_word(gart_table + 8 * (last + 1)) = (page + kGpuPageSize) | kRw;
  const auto bytes = memory.map(0, Loopback::kGartBase + Loopback::kGartSize - 8, k2M, Access::kRead);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(bytes->size(), 8u);
}

TEST_F(GpuMemoryTest, outside_the_apertures_vmid_0_faults) {
  for (const GpuAddr va : {GpuAddr{0}, Loopback::kVramBase - 8, Loopback::kVramBase + guest.vram().size(),
                           Loopback::kGartBase - 8, Loopback::kGartBase + Loopback::kGartSize, ~GpuAddr{7}})
    EXPECT_EQ(fault(0, va, Access::kRead), FaultKind::kNotPresent) << std::hex << va;
}

TEST_F(GpuMemoryTest, nothing_is_reachable_before_the_layout_is_known) {
  memory.reset();
  EXPECT_EQ(fault(0, Loopback::kVramBase, Access::kRead), FaultKind::kNotPresent);
  EXPECT_EQ(fault(kVmid, kVa, Access::kRead), FaultKind::kNotPresent);
  EXPECT_EQ(fault(16, kVa, Access::kRead), FaultKind::kNotPresent);
}

TEST_F(GpuMemoryTest, hostile_layouts_are_refused_and_change_nothing) {
  const auto vram_size = guest.vram().size();
  const auto with = [&](auto change) {
    McLayout bad = layout;
    change(bad);
    return memory.set_mc(bad);
  };
  EXPECT_FALSE(with([](auto& l) { l.gart_size = 0; }));
  EXPECT_FALSE(with([](auto& l) { l.gart_size += 1; }));
  EXPECT_FALSE(with([](auto& l) { l.gart_base += 8; }));
  EXPECT_FALSE(with([](auto& l) { l.vram_base += 8; }));
  EXPECT_FALSE(with([](auto& l) { l.vram_base = kVaMask & ~kGpuPageMask; }));
  EXPECT_FALSE(with([](auto& l) { l.gart_base = ~kGpuPageMask; }));
  EXPECT_FALSE(with([](auto& l) { l.gart_base = l.vram_base; }));
  EXPECT_FALSE(with([](auto& l) { l.gart_base = l.vram_base - l.gart_size + kGpuPageSize; }));
  EXPECT_FALSE(with([&](auto& l) { l.gart_base = l.vram_base + vram_size - kGpuPageSize; }));
  EXPECT_FALSE(with([](auto& l) { l.gart_table += 8; }));
  EXPECT_FALSE(with([&](auto& l) { l.gart_table = vram_size - kGpuPageSize; }));
  EXPECT_FALSE(with([](auto& l) { l.gart_table = ~kGpuPageMask; }));
  EXPECT_TRUE(memory.map(0, Loopback::kVramBase, 8, Access::kRead).ok());
  EXPECT_TRUE(with([&](auto& l) { l.gart_base = l.vram_base + vram_size; }));
}

TEST_F(GpuMemoryTest, permissions_are_checked_per_access) {
  guest.map(root, kVa, page, kGpuPageSize, kRead);
  guest.map(root, kVa + kGpuPageSize, page, kGpuPageSize, pte::kValid | pte::kWriteable);
  EXPECT_TRUE(memory.map(kVmid, kVa, 8, Access::kRead).ok());
  EXPECT_EQ(fault(kVmid, kVa, Access::kWrite), FaultKind::kNotWritable);
  EXPECT_EQ(fault(kVmid, kVa + kGpuPageSize, Access::kRead), FaultKind::kNotReadable);
  EXPECT_TRUE(memory.map(kVmid, kVa + kGpuPageSize, 8, Access::kWrite).ok());
}

TEST_F(GpuMemoryTest, each_vmid_has_its_own_tables) {
  guest.map(root, kVa, page, kGpuPageSize, kRw);
  const auto other = guest.new_page_directory();
  guest.map(other, kVa, page + kGpuPageSize, kGpuPageSize, kRw);
  memory.set_page_directory(9, other | pte::kValid);
  EXPECT_EQ(memory.map(kVmid, kVa, 8, Access::kRead)->data(), guest.vram().data() + page);
  EXPECT_EQ(memory.map(9, kVa, 8, Access::kRead)->data(), guest.vram().data() + page + kGpuPageSize);
  EXPECT_EQ(fault(10, kVa, Access::kRead), FaultKind::kNotPresent);
}

TEST_F(GpuMemoryTest, a_translation_is_remembered_until_its_vmid_is_invalidated) {
  guest.map(root, kVa, page, kGpuPageSize, kRw);
  ASSERT_TRUE(memory.map(kVmid, kVa, 8, Access::kRead).ok());
  guest.map(root, kVa, page + kGpuPageSize, kGpuPageSize, kRw);
  memory.invalidate(~(1u << kVmid));
  EXPECT_EQ(memory.map(kVmid, kVa, 8, Access::kRead)->data(), guest.vram().data() + page);
  memory.invalidate(1u << kVmid);
  EXPECT_EQ(memory.map(kVmid, kVa, 8, Access::kRead)->data(), guest.vram().data() + page + kGpuPageSize);
}

TEST_F(GpuMemoryTest, a_fault_is_never_remembered) {
  EXPECT_EQ(fault(kVmid, kVa, Access::kRead), FaultKind::kNotPresent);
  guest.map(root, kVa, page, kGpuPageSize, kRw);
  EXPECT_TRUE(memory.map(kVmid, kVa, 8, Access::kRead).ok());
}

TEST_F(GpuMemoryTest, a_word_access_first_does_not_shorten_a_later_large_run) {
  const auto big = guest.vm().allocate_vram(0, k2M, k2M);
  guest.map(root, kVa, big, k2M, kRw);
  ASSERT_TRUE(memory.load32(kVmid, kVa).ok());
  EXPECT_EQ(memory.map(kVmid, kVa, k2M, Access::kRead)->size(), k2M);
}

TEST_F(GpuMemoryTest, a_copy_crosses_pages_that_are_scattered) {
  guest.map(root, kVa, page + 3 * kGpuPageSize, kGpuPageSize, kRw);
  guest.map(root, kVa + kGpuPageSize, page, kGpuPageSize, kRw);
  std::vector<std::byte> out(100, std::byte{0x5a});
  std::vector<std::byte> in(100);
  ASSERT_TRUE(memory.write(kVmid, kVa + kGpuPageSize - 50, out).ok());
  ASSERT_TRUE(memory.read(kVmid, kVa + kGpuPageSize - 50, in).ok());
  EXPECT_EQ(in, out);
  EXPECT_EQ(guest.vram()[page + 49], std::byte{0x5a});
  EXPECT_EQ(guest.vram()[page + 50], std::byte{0});
}

TEST_F(GpuMemoryTest, a_system_page_of_another_gpus_bar_is_its_vram) {
  VirtualMachine vm({}, 2);
  ASSERT_TRUE(vm.bus().attach(1, vm.bar_address(1)));
  FakeEngines::Script other;
  Loopback gpu0(vm, 0, FakeEngines::factory(other));
  GpuMemory memory0(gpu0.vram(), vm.bus());
  const auto pd = gpu0.new_page_directory();
  gpu0.map(pd, kVa, vm.bar_address(1) + VASIC_OFF_VRAM + 0x2000, kGpuPageSize, kRw | pte::kSystem);
  memory0.set_page_directory(kVmid, pd | pte::kValid);
  ASSERT_TRUE(memory0.store32(kVmid, kVa, 77).ok());
  EXPECT_EQ(vm.region(1).vram()[0x2000], std::byte{77});
}

TEST_F(GpuMemoryTest, sparse_pages_read_as_zeros_and_swallow_writes) {
  guest.map(root, kVa, 0, 16 * kGpuPageSize, pte::kPrt);
  ASSERT_TRUE(memory.store64(kVmid, kVa + 64, 0x1234).ok());
  EXPECT_EQ(memory.load64(kVmid, kVa + 64).value(), 0u);
  ASSERT_TRUE(memory.fetch_add64(kVmid, kVa + 64, 5).ok());
  EXPECT_EQ(memory.fetch_add64(kVmid, kVa + 64, 5).value(), 0u) << "an atomic sees zero, too";
  std::vector<std::byte> bytes(16 * kGpuPageSize, std::byte{0xff});
  ASSERT_TRUE(memory.write(kVmid, kVa, bytes).ok());
  ASSERT_TRUE(memory.read(kVmid, kVa, bytes).ok());
  EXPECT_EQ(std::ranges::count(bytes, std::byte{0}), static_cast<std::ptrdiff_t>(bytes.size()));
}

TEST_F(GpuMemoryTest, only_an_absent_page_of_a_vmid_with_retry_may_be_waited_for) {
  guest.map(root, kVa, page, kGpuPageSize, kRead);
  guest.map(root, kVa + kGpuPageSize, 0, kGpuPageSize, pte::kNoRetry);
  const GpuAddr absent = kVa + 2 * kGpuPageSize;
  EXPECT_FALSE(memory.map(kVmid, absent, 8, Access::kRead).error().retry);
  memory.set_retry(kVmid, true);
  EXPECT_TRUE(memory.map(kVmid, absent, 8, Access::kRead).error().retry);
  EXPECT_FALSE(memory.map(kVmid, kVa, 8, Access::kWrite).error().retry) << "permissions do not come back";
  EXPECT_FALSE(memory.map(kVmid, kVa + kGpuPageSize, 8, Access::kRead).error().retry) << "refused by the driver";
  EXPECT_FALSE(memory.map(0, 0, 8, Access::kRead).error().retry);
  memory.set_page_directory(kVmid, root | pte::kValid);
  EXPECT_FALSE(memory.map(kVmid, absent, 8, Access::kRead).error().retry) << "the next process has not asked for it";
}

TEST_F(GpuMemoryTest, an_address_space_ends_where_the_driver_says) {
  guest.map(root, 0x1000, page, 2 * kGpuPageSize, kRw);
  layout.va_pages = 2;
  ASSERT_TRUE(memory.set_mc(layout));
  EXPECT_TRUE(memory.map(kVmid, 0x1000, 8, Access::kRead).ok());
  EXPECT_EQ(fault(kVmid, 0x2000, Access::kRead), FaultKind::kNotPresent);
}

TEST_F(GpuMemoryTest, table_sizes_that_the_format_has_not_are_refused) {
  layout.table_bits = 10;
  EXPECT_FALSE(memory.set_mc(layout));
  layout.table_bits = 9;
  layout.va_pages = (std::uint64_t{1} << 36) + 1;
  EXPECT_FALSE(memory.set_mc(layout));
  GpuMemory gfx7{guest.vram(), guest.vm().bus(), page_format(VASIC_PTE_GFX7)};
  layout.va_pages = 0;
  for (const unsigned bits : {0u, 8u, 25u, 64u}) {
    layout.table_bits = bits;
    EXPECT_FALSE(gfx7.set_mc(layout)) << bits;
  }
  layout.table_bits = 12;
  EXPECT_TRUE(gfx7.set_mc(layout));
}

TEST(GpuMemoryHive, peers_are_in_their_segments_of_both_address_spaces) {
  VirtualMachine vm({.spec = "gfx90a,hive=7,vram=64M"}, 2);
  FakeEngines::Script script;
  Loopback guest(vm, 1, FakeEngines::factory(script));
  const std::uint64_t segment = vm.info(1).xgmi_segment_size;
  GpuMemory memory{VramSpace(vm.hive(1), 1, segment), vm.bus()};
  const auto table = vm.allocate_vram(1, Loopback::kGartSize / kGpuPageSize * 8);
  ASSERT_TRUE(memory.set_mc({guest.vram_base(), Loopback::kGartBase, Loopback::kGartSize, table}));
  const auto peer = vm.region(0).vram();
  EXPECT_EQ(memory.map(0, Loopback::kVramBase + 0x5000, 8, Access::kRead)->data(), peer.data() + 0x5000);
  EXPECT_EQ(memory.map(0, Loopback::kVramBase + segment + 0x5000, 8, Access::kRead)->data(),
            guest.vram().data() + 0x5000);
  EXPECT_FALSE(memory.map(0, Loopback::kVramBase + 2 * segment, 8, Access::kRead).ok());

  // A page table of node 1 at 0x100000, whose directories are in its own segment.
  const std::uint64_t root = 0x100000;
  for (std::uint64_t level = 0; level < 3; ++level)
    guest.vram_word(root + level * 0x1000) = (segment + root + (level + 1) * 0x1000) | pte::kValid;
  guest.vram_word(root + 0x3000) = 0x7000 | kRw;
  guest.vram_word(root + 0x3008) = (segment + 0x8000) | kRw;
  memory.set_page_directory(kVmid, (segment + root) | pte::kValid);
  EXPECT_EQ(memory.map(kVmid, 0, 8, Access::kWrite)->data(), peer.data() + 0x7000);
  EXPECT_EQ(memory.map(kVmid, 0x1000, 8, Access::kWrite)->data(), guest.vram().data() + 0x8000);
}

}  // namespace vasicd::gpu_memory_test
