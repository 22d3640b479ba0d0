// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Guest RAM's two pieces, and bus addresses that are another GPU's VRAM.
#include "vasicd/mem/bus.h"

#include <gtest/gtest.h>

#include <vector>

#include "vasic/vasic_abi.h"

namespace vasicd::bus_test {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kBarSize = 8 * kMiB;
constexpr std::uint64_t kBar0 = std::uint64_t{1} << 40;
constexpr std::uint64_t kBar1 = kBar0 + kBarSize;

struct BusTest : testing::Test {
  std::vector<std::byte> ram_bytes = std::vector<std::byte>(3 * kMiB);
  std::vector<std::byte> bar0 = std::vector<std::byte>(kBarSize);
  std::vector<std::byte> bar1 = std::vector<std::byte>(kBarSize);
  GuestRam ram{ram_bytes, 2 * kMiB};
  Bus bus{ram, {{.bytes = bar0}, {.bytes = bar1}}};
};

TEST_F(BusTest, low_ram_is_the_start_of_the_file) {
  const auto run = ram.at(0x1000, 16);
  EXPECT_EQ(run.data(), ram_bytes.data() + 0x1000);
  EXPECT_EQ(run.size(), 16u);
}

TEST_F(BusTest, high_ram_at_4_GiB_is_the_rest_of_the_file) {
  const auto run = ram.at(GuestRam::kHighBase + 5, ~std::uint64_t{0});
  EXPECT_EQ(run.data(), ram_bytes.data() + 2 * kMiB + 5);
  EXPECT_EQ(run.size(), kMiB - 5);
}

TEST_F(BusTest, a_run_of_ram_ends_at_the_end_of_its_piece) {
  EXPECT_EQ(ram.at(2 * kMiB - 8, 64).size(), 8u);
  EXPECT_TRUE(ram.at(2 * kMiB, 1).empty());
  EXPECT_TRUE(ram.at(GuestRam::kHighBase - 1, 8).empty());
  EXPECT_TRUE(ram.at(GuestRam::kHighBase + kMiB, 1).empty());
  EXPECT_TRUE(ram.at(~std::uint64_t{0}, 8).empty());
}

TEST_F(BusTest, overlap_with_ram_is_seen_at_both_ends_of_both_pieces) {
  EXPECT_TRUE(ram.overlaps(2 * kMiB - 1, 1));
  EXPECT_FALSE(ram.overlaps(2 * kMiB, kMiB));
  EXPECT_TRUE(ram.overlaps(GuestRam::kHighBase - 1, 2));
  EXPECT_FALSE(ram.overlaps(GuestRam::kHighBase - 1, 1));
  EXPECT_FALSE(ram.overlaps(GuestRam::kHighBase + kMiB, kMiB));
  EXPECT_TRUE(ram.overlaps(0, ~std::uint64_t{0}));
}

TEST_F(BusTest, an_address_in_a_bar_resolves_anywhere_but_in_its_mailbox) {
  ASSERT_TRUE(bus.attach(1, kBar1));
  const auto run = bus.resolve(kBar1 + VASIC_OFF_VRAM + 3, 100);
  EXPECT_EQ(run.data(), bar1.data() + VASIC_OFF_VRAM + 3);
  EXPECT_EQ(run.size(), 100u);
  EXPECT_EQ(bus.resolve(kBar1 + VASIC_OFF_DOORBELL, 8).data(), bar1.data() + VASIC_OFF_DOORBELL);
  EXPECT_EQ(bus.resolve(kBar1 + VASIC_OFF_MMIO, 8).data(), bar1.data() + VASIC_OFF_MMIO);
  EXPECT_TRUE(bus.resolve(kBar1 + VASIC_OFF_MMIO - 1, 8).empty());
  EXPECT_TRUE(bus.resolve(kBar1 + VASIC_OFF_COMMAND, 8).empty());
  EXPECT_TRUE(bus.resolve(kBar1 + kBarSize, 8).empty());
  EXPECT_EQ(bus.resolve(kBar1 + kBarSize - 1, 8).size(), 1u);
}

TEST_F(BusTest, vram_behind_a_small_bar_is_not_on_the_bus) {
  Bus small{ram, {{.bytes = bar0, .reach = VASIC_OFF_VRAM + 4096}}};
  ASSERT_TRUE(small.attach(0, kBar0));
  EXPECT_EQ(small.resolve(kBar0 + VASIC_OFF_VRAM, kMiB).size(), 4096u);
  EXPECT_EQ(small.resolve(kBar0 + VASIC_OFF_VRAM + 4095, 8).size(), 1u);
  EXPECT_TRUE(small.resolve(kBar0 + VASIC_OFF_VRAM + 4096, 8).empty());
}

TEST_F(BusTest, a_bar_that_was_never_told_or_was_detached_is_not_there) {
  EXPECT_TRUE(bus.resolve(kBar0 + VASIC_OFF_VRAM, 8).empty());
  ASSERT_TRUE(bus.attach(0, kBar0));
  bus.detach(0);
  EXPECT_TRUE(bus.resolve(kBar0 + VASIC_OFF_VRAM, 8).empty());
}

TEST_F(BusTest, attach_refuses_impossible_addresses) {
  ASSERT_TRUE(bus.attach(0, kBar0));
  EXPECT_FALSE(bus.attach(1, 0));
  EXPECT_FALSE(bus.attach(1, kBar1 + 0x1000)) << "not naturally aligned";
  EXPECT_FALSE(bus.attach(1, kBar0)) << "another GPU is there";
  EXPECT_FALSE(bus.attach(1, GuestRam::kHighBase)) << "RAM is there";
  EXPECT_FALSE(bus.attach(1, std::uint64_t{1} << 48));
  EXPECT_FALSE(bus.attach(2, kBar1)) << "no such GPU";
  EXPECT_TRUE(bus.attach(1, kBar1));
  EXPECT_TRUE(bus.attach(0, kBar0)) << "telling the same again is fine";
}

}  // namespace vasicd::bus_test
