// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The interrupt ring: encoding in place, wrap, full ring, bounded waiting, hostile read pointers.
#include "vasicd/blocks/ih.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "vasicd/transport/fake_engines.h"
#include "vasicd/transport/loopback.h"

namespace vasicd::ih_test {

constexpr std::uint64_t kRing = 0x10000;
constexpr std::uint64_t kRingSize = 256;  // eight entries, of which seven can be used
constexpr std::uint64_t kWptr = 0x20000;
constexpr std::uint32_t kEntry = packets::ih::kEntryBytes;

struct IhTest : testing::Test {
  FakeEngines::Script script;
  Loopback guest{FakeEngines::factory(script)};
  GuestRam ram{guest.vm().ram(), std::uint64_t{32} << 20};
  CountingLine line;
  RecordingTrace trace;
  Ih ih{VASIC_IH_SOC15, guest.region(), ram, line, trace};

  void SetUp() override {
    guest.ram_word(kWptr) = 0xdead;
    ASSERT_TRUE(ih.setup(kRing, kRingSize, kWptr));
  }
  void raise(std::uint32_t number, std::uint64_t timestamp = 0) {
    ih.raise({.client_id = 0x14, .source_id = 181, .timestamp = timestamp, .data = {number, 0, 0, 0}});
  }
  std::uint32_t wptr() { return static_cast<std::uint32_t>(guest.ram_word(kWptr)); }
  packets::ih::Entry entry(std::uint32_t offset) {
    const auto* words = reinterpret_cast<const std::uint32_t*>(guest.vm().ram().data() + kRing + offset);
    return packets::ih::decode(std::span<const std::uint32_t, packets::ih::kEntryDwords>(words, 8));
  }
  // Consumes all entries in the ring and returns the numbers found in them.
  std::vector<std::uint32_t> consume() {
    std::vector<std::uint32_t> numbers;
    std::uint32_t& rptr = guest.guest_words().ih_rptr;
    for (; rptr != wptr(); rptr = (rptr + kEntry) % kRingSize) numbers.push_back(entry(rptr).data[0]);
    return numbers;
  }
};

TEST_F(IhTest, setup_publishes_an_empty_ring) { EXPECT_EQ(wptr(), 0u); }

TEST_F(IhTest, the_guest_is_told_of_held_entries_when_they_are_released) {
  ih.hold(true);
  raise(1);
  EXPECT_EQ(ih.flush(), Ih::Flush::kDelivered);
  EXPECT_EQ(line.signals, 0u);
  EXPECT_EQ(consume(), std::vector<std::uint32_t>{1});
  ih.hold(false);
  EXPECT_EQ(line.signals, 1u);
  ih.hold(true);
  ih.hold(false);
  EXPECT_EQ(line.signals, 1u) << "nothing was held";
}

TEST_F(IhTest, an_entry_is_written_then_published_then_signalled) {
  ih.raise({.client_id = 0x1b,
            .source_id = 7,
            .ring_id = 0x29,
            .vmid = 9,
            .vmid_type = 1,
            .timestamp = 0x1234'5678'9abc,
            .pasid = 0x8003,
            .node_id = 2,
            .data = {1, 2, 3, 4}});
  EXPECT_EQ(ih.flush(), Ih::Flush::kDelivered);
  EXPECT_EQ(wptr(), kEntry);
  EXPECT_EQ(line.signals, 1);
  const auto* words = reinterpret_cast<const std::uint32_t*>(guest.vm().ram().data() + kRing);
  const std::vector<std::uint32_t> expected{0x8929'071b, 0x5678'9abc, 0x1234, 0x0002'8003, 1, 2, 3, 4};
  EXPECT_EQ(std::vector<std::uint32_t>(words, words + 8), expected);
}

TEST_F(IhTest, several_entries_cost_one_signal) {
  raise(1);
  raise(2);
  EXPECT_EQ(ih.flush(), Ih::Flush::kDelivered);
  EXPECT_EQ(line.signals, 1);
  EXPECT_EQ(consume(), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(ih.flush(), Ih::Flush::kIdle);
}

TEST_F(IhTest, the_write_pointer_wraps) {
  for (std::uint32_t number = 0; number < 100; ++number) {
    raise(number);
    ASSERT_EQ(ih.flush(), Ih::Flush::kDelivered);
    ASSERT_EQ(consume(), std::vector<std::uint32_t>{number});
  }
  EXPECT_EQ(wptr(), 100 * kEntry % kRingSize);
}

TEST_F(IhTest, a_full_ring_loses_nothing_and_keeps_order) {
  for (std::uint32_t number = 0; number < 20; ++number) raise(number);
  std::vector<std::uint32_t> seen;
  for (int round = 0; round < 5; ++round) {
    ih.flush();
    for (const auto number : consume()) seen.push_back(number);
  }
  ASSERT_EQ(seen.size(), 20u);
  EXPECT_TRUE(std::ranges::is_sorted(seen));
  EXPECT_FALSE(ih.waiting());
  EXPECT_EQ(ih.dropped(), 0u);
}

TEST_F(IhTest, a_full_ring_is_not_signalled_again) {
  for (std::uint32_t number = 0; number < 20; ++number) raise(number);
  EXPECT_EQ(ih.flush(), Ih::Flush::kDelivered);
  EXPECT_EQ(ih.flush(), Ih::Flush::kIdle);
  EXPECT_EQ(line.signals, 1);
  EXPECT_EQ(wptr(), kRingSize - kEntry) << "one entry stays free, or full would look empty";
}

TEST_F(IhTest, beyond_the_bound_an_equal_entry_is_dropped_first) {
  for (std::uint32_t number = 0; number < Ih::kMaxWaiting; ++number) raise(number, number);
  raise(5, 999);
  EXPECT_EQ(ih.dropped(), 1u);
  ih.flush();
  EXPECT_EQ(consume().front(), 0u) << "the oldest survived";
}

TEST_F(IhTest, beyond_the_bound_a_new_entry_replaces_the_oldest) {
  for (std::uint32_t number = 0; number <= Ih::kMaxWaiting; ++number) raise(number);
  EXPECT_EQ(ih.dropped(), 1u);
  ih.flush();
  EXPECT_EQ(consume().front(), 1u);
}

TEST_F(IhTest, while_off_entries_are_dropped_and_counted) {
  ASSERT_TRUE(ih.setup(0, 0, 0));
  raise(1);
  EXPECT_EQ(ih.flush(), Ih::Flush::kIdle);
  EXPECT_EQ(ih.dropped(), 1u);
  EXPECT_TRUE(trace.has("dropped=off"));
}

TEST_F(IhTest, a_read_pointer_outside_the_ring_or_between_entries_turns_the_block_off) {
  for (const std::uint32_t bad : {static_cast<std::uint32_t>(kRingSize), 0xffffffe0u, 16u, 1u}) {
    ASSERT_TRUE(ih.setup(kRing, kRingSize, kWptr));
    guest.guest_words().ih_rptr = bad;
    raise(1);
    EXPECT_EQ(ih.flush(), Ih::Flush::kBadReadPointer) << bad;
    EXPECT_EQ(ih.flush(), Ih::Flush::kIdle);
  }
}

TEST_F(IhTest, hostile_rings_are_refused_and_leave_the_block_off) {
  const std::uint64_t low_end = std::uint64_t{32} << 20;
  struct Bad {
    std::uint64_t ring, size, wptr;
  };
  for (const Bad& bad :
       {Bad{kRing, 32, kWptr}, Bad{kRing, 96, kWptr}, Bad{kRing, 2 << 20, kWptr}, Bad{kRing, ~std::uint64_t{0}, kWptr},
        Bad{kRing + 4, 256, kWptr}, Bad{kRing, 256, kWptr + 2}, Bad{low_end - 128, 256, kWptr},
        Bad{kRing, 256, low_end}, Bad{~std::uint64_t{31}, 256, kWptr}, Bad{kRing, 256, ~std::uint64_t{3}}}) {
    EXPECT_FALSE(ih.setup(bad.ring, bad.size, bad.wptr));
    raise(1);
    EXPECT_EQ(ih.flush(), Ih::Flush::kIdle);
  }
}

TEST_F(IhTest, a_ring_may_be_in_high_ram) {
  EXPECT_TRUE(ih.setup(GuestRam::kHighBase, kRingSize, GuestRam::kHighBase + kRingSize));
}

TEST_F(IhTest, entries_of_gfx7_and_gfx8_are_16_bytes) {
  Ih cik(VASIC_IH_CIK, guest.region(), ram, line, trace);
  ASSERT_TRUE(cik.setup(kRing, 64, kWptr));
  for (std::uint32_t number = 1; number <= 4; ++number)
    cik.raise({.source_id = 181, .ring_id = 4, .vmid = 9, .pasid = 0x8003, .data = {number, 7, 8, 9}});
  EXPECT_EQ(cik.flush(), Ih::Flush::kDelivered);
  EXPECT_EQ(wptr(), 48u) << "one entry stays free";
  const auto* words = reinterpret_cast<const std::uint32_t*>(guest.vm().ram().data() + kRing);
  const std::vector<std::uint32_t> expected{181, 1, 0x8003'0904, 7, 181, 2};
  EXPECT_EQ(std::vector<std::uint32_t>(words, words + 6), expected);
  guest.guest_words().ih_rptr = 48;
  EXPECT_EQ(cik.flush(), Ih::Flush::kDelivered);
  EXPECT_EQ(wptr(), 0u);
  EXPECT_FALSE(cik.setup(kRing, 16, kWptr)) << "room for one entry, which has to stay free";
}

}  // namespace vasicd::ih_test
