// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Page table walks: every level, leaves of every size, bad tables, garbage.
#include "vasicd/mem/page_walker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "vasicd/transport/fake_engines.h"
#include "vasicd/transport/loopback.h"

namespace vasicd::page_walker_test {

constexpr std::uint64_t kRw = pte::kValid | pte::kReadable | pte::kWriteable;
constexpr std::uint64_t k2M = std::uint64_t{2} << 20;
constexpr std::uint64_t k1G = std::uint64_t{1} << 30;
constexpr std::uint64_t kNoAddress = 0x0000'7fff'ffff'f000;
constexpr GpuAddr kVa = 0x7f12'3456'7000;

struct PageWalkerTest : testing::Test {
  FakeEngines::Script script;
  Loopback guest{FakeEngines::factory(script)};
  PageWalker walker{guest.vram(), guest.vm().bus()};
  std::uint64_t root = guest.new_page_directory();
  std::uint64_t pd = root | pte::kValid;

  // The entry at `shift` on the way to `va`.
  std::uint64_t& entry(GpuAddr va, unsigned shift) {
    std::uint64_t table = root;
    for (unsigned level = 39; level > shift; level -= 9)
      table = guest.vram_word(table + 8 * (va >> level & 511)) & pte::kAddressMask;
    return guest.vram_word(table + 8 * (va >> shift & 511));
  }
};

TEST_F(PageWalkerTest, a_page_in_vram_is_found_through_four_levels) {
  const auto page = guest.vm().allocate_vram(0, kGpuPageSize);
  guest.map(root, kVa, page, kGpuPageSize, kRw);
  const auto run = walker.walk(pd, kVa + 0x123, 1);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->host, guest.vram().data() + page);
  EXPECT_EQ(run->size, kGpuPageSize);
  EXPECT_TRUE(run->readable && run->writable);
}

TEST_F(PageWalkerTest, a_system_page_is_a_bus_address) {
  const auto gpa = guest.vm().allocate_ram(kGpuPageSize);
  guest.map(root, kVa, gpa, kGpuPageSize, kRw | pte::kSystem);
  const auto run = walker.walk(pd, kVa, 1);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->host, guest.vm().ram().data() + gpa);
}

TEST_F(PageWalkerTest, high_guest_ram_is_reached_above_4_GiB) {
  guest.map(root, kVa, GuestRam::kHighBase, kGpuPageSize, kRw | pte::kSystem);
  const auto run = walker.walk(pd, kVa, 1);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->host, guest.vm().ram().data() + (std::uint64_t{32} << 20));
}

TEST_F(PageWalkerTest, tables_may_be_in_system_memory) {
  const auto page = guest.vm().allocate_vram(0, kGpuPageSize);
  guest.map(root, kVa, page, kGpuPageSize, kRw);
  const auto table_offset = entry(kVa, 21) & pte::kAddressMask;
  const auto table_gpa = guest.vm().allocate_ram(kGpuPageSize);
  std::ranges::copy(guest.vram().subspan(table_offset, kGpuPageSize), guest.vm().ram().subspan(table_gpa).begin());
  entry(kVa, 21) = table_gpa | pte::kValid | pte::kSystem;
  guest.vram_word(table_offset + 8 * (kVa >> 12 & 511)) = 0;
  const auto run = walker.walk(pd, kVa, 1);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->host, guest.vram().data() + page);
}

TEST_F(PageWalkerTest, a_2_MiB_leaf_gives_the_rest_of_its_page_in_one_run) {
  const auto page = guest.vm().allocate_vram(0, k2M, k2M);
  guest.map(root, k1G, page, k2M, kRw, k2M);
  const auto run = walker.walk(pd, k1G + 0x5678, 1);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->host, guest.vram().data() + page + 0x5000);
  EXPECT_EQ(run->size, k2M - 0x5000);
  EXPECT_TRUE(run->complete);
}

TEST_F(PageWalkerTest, a_1_GiB_leaf_is_cut_at_the_end_of_vram) {
  guest.map(root, k1G, 0, k1G, kRw, k1G);
  const auto run = walker.walk(pd, k1G + k2M, 1);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->host, guest.vram().data() + k2M);
  EXPECT_EQ(run->size, guest.vram().size() - k2M);
  EXPECT_EQ(walker.walk(pd, k1G + guest.vram().size(), 1).error(), FaultKind::kBadTable);
}

TEST_F(PageWalkerTest, a_leaf_at_the_root_is_a_bad_table) {
  guest.vram_word(root + 8 * (kVa >> 39)) = kRw | pte::kHuge;
  EXPECT_EQ(walker.walk(pd, kVa, 1).error(), FaultKind::kBadTable);
}

TEST_F(PageWalkerTest, an_invalid_entry_at_any_level_is_not_present) {
  guest.map(root, kVa, 0, kGpuPageSize, kRw);
  EXPECT_EQ(walker.walk(root, kVa, 1).error(), FaultKind::kNotPresent) << "page directory base";
  for (const unsigned shift : {12u, 21u, 30u, 39u}) {
    entry(kVa, shift) &= ~pte::kValid;
    EXPECT_EQ(walker.walk(pd, kVa, 1).error(), FaultKind::kNotPresent) << shift;
    entry(kVa, shift) |= pte::kValid;
  }
  EXPECT_TRUE(walker.walk(pd, kVa, 1).ok());
}

TEST_F(PageWalkerTest, an_invalid_huge_leaf_is_not_present) {
  guest.map(root, k1G, 0, k2M, pte::kReadable, k2M);
  EXPECT_EQ(walker.walk(pd, k1G, 1).error(), FaultKind::kNotPresent);
}

TEST_F(PageWalkerTest, an_entry_that_points_nowhere_is_a_bad_table_at_any_level) {
  for (const std::uint64_t system : {std::uint64_t{0}, pte::kSystem}) {
    const std::uint64_t bad = kNoAddress | kRw | system;
    EXPECT_EQ(walker.walk(bad, kVa, 1).error(), FaultKind::kBadTable) << "page directory base";
    for (const unsigned shift : {39u, 30u, 21u, 12u}) {
      guest.map(root, kVa, 0, kGpuPageSize, kRw);
      const auto good = std::exchange(entry(kVa, shift), bad);
      EXPECT_EQ(walker.walk(pd, kVa, 1).error(), FaultKind::kBadTable) << shift;
      entry(kVa, shift) = good;
    }
  }
}

TEST_F(PageWalkerTest, contiguous_pages_form_one_run_as_far_as_wanted) {
  const auto pages = guest.vm().allocate_vram(0, k2M);
  guest.map(root, k1G, pages, k2M, kRw);
  const auto some = walker.walk(pd, k1G, 3 * kGpuPageSize);
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(some->size, 3 * kGpuPageSize);
  EXPECT_FALSE(some->complete);
  const auto all = walker.walk(pd, k1G, k1G);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->size, k2M);
  EXPECT_TRUE(all->complete);
}

TEST_F(PageWalkerTest, a_run_ends_where_address_or_permissions_change) {
  const auto pages = guest.vm().allocate_vram(0, k2M);
  guest.map(root, k1G, pages, k2M, kRw);
  entry(k1G + 4 * kGpuPageSize, 12) &= ~pte::kWriteable;
  EXPECT_EQ(walker.walk(pd, k1G, k1G)->size, 4 * kGpuPageSize);
  entry(k1G + 2 * kGpuPageSize, 12) += kGpuPageSize;
  EXPECT_EQ(walker.walk(pd, k1G, k1G)->size, 2 * kGpuPageSize);
}

TEST_F(PageWalkerTest, a_sign_extended_address_is_masked_to_48_bits) {
  const GpuAddr top = 0x0000'ffff'ffff'f000;
  guest.map(root, top, 0x3000, kGpuPageSize, kRw);
  const auto run = walker.walk(pd, top | 0xffff'0000'0000'0000, 1);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->host, guest.vram().data() + 0x3000);
}

TEST_F(PageWalkerTest, garbage_tables_never_lead_out_of_the_device) {
  std::mt19937_64 random(12345);
  const auto vram = guest.vram();
  const auto ram = guest.vm().ram();
  // A small pool of tables full of half-plausible entries, which often point at each other.
  constexpr std::uint64_t kPool = 64 * kGpuPageSize;
  for (std::uint64_t offset = 0; offset < kPool; offset += 8) {
    std::uint64_t word = random();
    if (random() % 4 != 0) word = (word & 0xffff'0000'0000'0fff & ~pte::kHuge) | (random() % kPool & ~kGpuPageMask) | 1;
    if (random() % 8 == 0) word |= pte::kHuge;
    guest.vram_word(offset) = word;
    guest.ram_word(offset) = word;
  }
  int found = 0;
  for (int i = 0; i < 20000; ++i) {
    const auto run = walker.walk((random() % kPool & ~kGpuPageMask) | 1, random(), random() % k1G + 1);
    if (!run.ok() || run->host == nullptr) continue;
    ++found;
    const auto inside = [&](std::span<std::byte> bytes) {
      return run->host >= bytes.data() && run->host + run->size <= bytes.data() + bytes.size();
    };
    ASSERT_TRUE(run->size > 0 && (inside(vram) || inside(ram)));
  }
  EXPECT_GT(found, 100) << "the garbage is too garbled to test anything";
}

// Tables of other formats, written out entry by entry.
struct FormatTest : testing::Test {
  static constexpr std::uint64_t kVram = 1 << 20;
  std::vector<std::uint64_t> words = std::vector<std::uint64_t>(kVram / 8);
  std::vector<std::byte> ram = std::vector<std::byte>(1 << 16);
  Bus bus{GuestRam(ram, ram.size()), {}};

  std::span<std::byte> vram() { return std::as_writable_bytes(std::span(words)); }
  void put(std::uint64_t table, std::uint64_t index, std::uint64_t entry) { words[table / 8 + index] = entry; }
  // A path of four levels to the page table at 0x4000.
  void put_path(GpuAddr va) {
    put(0x1000, va >> 39 & 511, 0x2000 | pte::kValid);
    put(0x2000, va >> 30 & 511, 0x3000 | pte::kValid);
    put(0x3000, va >> 21 & 511, 0x4000 | pte::kValid);
  }
  static constexpr std::uint64_t kRoot = 0x1000 | pte::kValid;
};

struct Gfx7FormatTest : FormatTest {
  static constexpr GpuAddr kVramBase = 0x1000000;
  static constexpr unsigned kTableBits = 11;
  static constexpr GpuAddr kPage = GpuAddr{5} << 23 | 0x403000;  // directory entry 5, page 0x403
  PageWalker walker{vram(), bus, page_format(VASIC_PTE_GFX7)};

  void SetUp() override {
    walker.set_layout(kVramBase, kTableBits);
    put(0x2000, 5, (kVramBase + 0x8000) | pte::kValid);
    put(0x8000, 0x403, 0x30000 | kRw);
  }
};

TEST_F(Gfx7FormatTest, a_directory_holds_mc_addresses_and_a_table_offsets) {
  const auto run = walker.walk(kVramBase + 0x2000, kPage + 0x10, 1);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->host, vram().data() + 0x30000);
  EXPECT_TRUE(run->readable && run->writable);
}

TEST_F(Gfx7FormatTest, addresses_have_40_bits) {
  put(0x8000, 0x403, 0x30000 | kRw | std::uint64_t{0xabc} << 40);
  EXPECT_EQ(walker.walk(kVramBase + 0x2000, kPage | GpuAddr{1} << 40, 1)->host, vram().data() + 0x30000);
}

TEST_F(Gfx7FormatTest, no_directory_entry_is_a_leaf_and_no_page_is_resident_in_part) {
  put(0x2000, 6, 0x30000 | kRw | pte::kHuge);
  EXPECT_EQ(walker.walk(kVramBase + 0x2000, GpuAddr{6} << 23, 1).error(), FaultKind::kBadTable);
  put(0x8000, 0x403, pte::kPrt);
  EXPECT_EQ(walker.walk(kVramBase + 0x2000, kPage, 1).error(), FaultKind::kNotPresent);
}

TEST_F(Gfx7FormatTest, a_root_may_have_more_than_512_entries) {
  put(0x40000, 700, (kVramBase + 0x8000) | pte::kValid);
  EXPECT_EQ(walker.walk(kVramBase + 0x40000, (GpuAddr{700} << 23) + 0x403000, 1)->host, vram().data() + 0x30000);
}

TEST_F(Gfx7FormatTest, what_is_not_in_vram_is_a_bad_table) {
  EXPECT_EQ(walker.walk(kVramBase + kVram, 0, 1).error(), FaultKind::kBadTable);
  EXPECT_EQ(walker.walk(kVramBase - 0x1000, 0, 1).error(), FaultKind::kBadTable);
  EXPECT_EQ(walker.walk(kVramBase + kVram - 0x1000, GpuAddr{600} << 23, 1).error(), FaultKind::kBadTable);
  put(0x2000, 5, (kVramBase + kVram - 0x1000) | pte::kValid);
  EXPECT_EQ(walker.walk(kVramBase + 0x2000, kPage, 1).error(), FaultKind::kBadTable) << "cut short";
  EXPECT_EQ(walker.walk(0, kPage, 1).error(), FaultKind::kNotPresent) << "no directory at all";
}

struct Gfx12FormatTest : FormatTest {
  static constexpr GpuAddr kVa12 = 0x7f00'0040'3000;
  PageWalker walker{vram(), bus, page_format(VASIC_PTE_GFX12)};
  void SetUp() override { put_path(kVa12); }
};

TEST_F(Gfx12FormatTest, a_page_may_be_marked_as_one) {
  put(0x4000, kVa12 >> 12 & 511, 0x30000 | kRw | pte::kHugeGfx12);
  EXPECT_EQ(walker.walk(kRoot, kVa12, 1)->host, vram().data() + 0x30000);
  put(0x4000, kVa12 >> 12 & 511, 0x30000 | kRw | std::uint64_t{3} << 54);
  EXPECT_EQ(walker.walk(kRoot, kVa12, 1)->host, vram().data() + 0x30000) << "bit 54 is a memory type";
}

TEST_F(Gfx12FormatTest, a_large_page_is_bit_63_of_the_directory_entry) {
  put(0x3000, kVa12 >> 21 & 511, 0x40000 | kRw | pte::kHugeGfx12);
  const auto run = walker.walk(kRoot, kVa12 & ~GpuAddr{0x1fffff}, 1);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->host, vram().data() + 0x40000);
  EXPECT_EQ(run->size, kVram - 0x40000);
}

TEST_F(Gfx12FormatTest, a_sparse_page_is_bit_56) {
  put(0x4000, kVa12 >> 12 & 511, pte::kPrtGfx12 | pte::kSystem | pte::kHugeGfx12);
  const auto run = walker.walk(kRoot, kVa12, 1);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->host, nullptr);
}

struct Gfx9FormatTest : FormatTest {
  PageWalker walker{vram(), bus, page_format(VASIC_PTE_GFX9)};
  void SetUp() override { put_path(kVa); }
  std::uint64_t page_index() const { return kVa >> 12 & 511; }
};

TEST_F(Gfx9FormatTest, sparse_pages_form_a_run_whatever_their_addresses) {
  for (std::uint64_t i = 0; i < 8; ++i) put(0x4000, page_index() + i, pte::kPrt | (i * 0x5000));
  const auto run = walker.walk(kRoot, kVa, 1 << 20);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->host, nullptr);
  EXPECT_EQ(run->size, 8 * kGpuPageSize);
  EXPECT_TRUE(run->complete && run->readable && run->writable);
}

TEST_F(Gfx9FormatTest, a_sparse_range_may_be_one_directory_entry_of_any_level) {
  for (const auto& [table, shift] : {std::pair{0x3000, 21u}, std::pair{0x2000, 30u}, std::pair{0x1000, 39u}}) {
    put(static_cast<std::uint64_t>(table), kVa >> shift & 511, pte::kPrt | pte::kHuge);
    const auto run = walker.walk(kRoot, kVa, 1);
    ASSERT_TRUE(run.ok()) << shift;
    EXPECT_EQ(run->host, nullptr);
    EXPECT_EQ(run->size, (std::uint64_t{1} << shift) - (kVa & ((std::uint64_t{1} << shift) - 1)));
  }
}

TEST_F(Gfx9FormatTest, what_the_driver_refused_is_told_from_what_is_not_there_yet) {
  EXPECT_EQ(walker.walk(kRoot, kVa, 1).error(), FaultKind::kNotPresent);
  put(0x4000, page_index(), pte::kExecutable);
  EXPECT_EQ(walker.walk(kRoot, kVa, 1).error(), FaultKind::kNotPresent) << "a cleared table";
  put(0x4000, page_index(), pte::kExecutable | pte::kHuge | pte::kTranslateFurther);
  EXPECT_EQ(walker.walk(kRoot, kVa, 1).error(), FaultKind::kRefused);
  put(0x4000, page_index(), pte::kValid | pte::kSystem | pte::kPrt);
  EXPECT_EQ(walker.walk(kRoot, kVa, 1).error(), FaultKind::kRefused);
}

TEST_F(FormatTest, garbage_of_every_format_stays_inside) {
  std::mt19937_64 random(99);
  for (const std::uint32_t format : {VASIC_PTE_GFX7, VASIC_PTE_GFX9, VASIC_PTE_GFX10, VASIC_PTE_GFX12}) {
    PageWalker walker(vram(), bus, page_format(format));
    walker.set_layout(0, format == VASIC_PTE_GFX7 ? 12 : 9);
    for (auto& word : words) word = (random() & 0xffff'0000'0000'0ffe) | (random() % (2 * kVram) & ~kGpuPageMask) | 1;
    for (int i = 0; i < 5000; ++i) {
      const auto run = walker.walk((random() % kVram & ~kGpuPageMask) | 1, random(), random() % kVram + 1);
      if (!run.ok() || run->host == nullptr) continue;
      const auto inside = [&](std::span<std::byte> bytes) {
        return run->host >= bytes.data() && run->host + run->size <= bytes.data() + bytes.size();
      };
      ASSERT_TRUE(inside(vram()) || inside(ram));
    }
  }
}

TEST(VramSpace, in_no_hive_offsets_are_ones_own) {
  std::vector<std::byte> own(8192);
  const VramSpace space(own);
  EXPECT_EQ(space.resolve(4096, 1 << 20).data(), own.data() + 4096);
  EXPECT_EQ(space.resolve(4096, 1 << 20).size(), 4096u);
  EXPECT_TRUE(space.resolve(8192, 1).empty());
  EXPECT_TRUE(space.resolve(~std::uint64_t{0}, 1).empty());
}

TEST(VramSpace, in_a_hive_every_node_has_its_segment) {
  std::vector<std::byte> first(8192);
  std::vector<std::byte> second(4096);
  const VramSpace space({first, second}, 1, 16384);
  EXPECT_EQ(space.own_offset(), 16384u);
  EXPECT_EQ(space.resolve(16384, 8).data(), second.data());
  EXPECT_EQ(space.resolve(4096, 8).data(), first.data() + 4096);
  for (const std::uint64_t nothing : {8192u, 16384u + 4096u, 2u * 16384u, 0xfffff000u})
    EXPECT_TRUE(space.resolve(nothing, 8).empty()) << nothing;
}

}  // namespace vasicd::page_walker_test
