// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "kfdtest-criu/harness/pattern.h"

#include <gtest/gtest.h>

#include <vector>

namespace kfdtest {
namespace {

TEST(PatternTest, any_slice_is_the_same_part_of_the_stream) {
  std::vector<std::byte> whole(1000);
  fill_pattern(whole, 7);
  for (std::size_t first = 0; first < 20; ++first) {
    std::vector<std::byte> slice(101);
    fill_pattern(slice, 7, first);
    EXPECT_EQ(std::vector(whole.begin() + static_cast<std::ptrdiff_t>(first),
                          whole.begin() + static_cast<std::ptrdiff_t>(first + slice.size())),
              slice);
    EXPECT_EQ(slice[50], pattern_byte(7, first + 50));
  }
}

TEST(PatternTest, a_single_changed_byte_is_found_wherever_it_is) {
  for (std::size_t at = 0; at < 37; ++at) {
    std::vector<std::byte> bytes(37);
    fill_pattern(bytes, 9, 3);
    EXPECT_EQ(find_mismatch(bytes, 9, 3), std::nullopt);
    bytes[at] ^= std::byte{1};
    EXPECT_EQ(find_mismatch(bytes, 9, 3), at);
  }
}

TEST(PatternTest, another_seed_and_another_offset_do_not_match) {
  std::vector<std::byte> bytes(64);
  fill_pattern(bytes, 9);
  EXPECT_NE(find_mismatch(bytes, 10), std::nullopt);
  EXPECT_NE(find_mismatch(bytes, 9, 1), std::nullopt);
  EXPECT_NE(find_mismatch(bytes, 9, 8), std::nullopt);
}

TEST(PatternTest, a_foreign_word_is_found) {
  std::vector<std::byte> bytes(64, std::byte{0x11});
  EXPECT_EQ(find_other_word(bytes, 0x11111111), std::nullopt);
  bytes[43] = std::byte{0x12};
  EXPECT_EQ(find_other_word(bytes, 0x11111111), 10U);
}

TEST(ChecksumTest, depends_on_every_byte_on_order_and_on_length) {
  const auto sum = [](const std::vector<std::byte>& bytes) {
    Checksum checksum;
    checksum.add(bytes);
    return checksum.hex();
  };
  std::vector<std::byte> bytes(29);
  fill_pattern(bytes, 1);
  const std::string original = sum(bytes);
  EXPECT_EQ(original.size(), 16U);
  EXPECT_EQ(sum(bytes), original);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::vector<std::byte> changed = bytes;
    changed[at] ^= std::byte{0x80};
    EXPECT_NE(sum(changed), original) << at;
  }
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_NE(sum(longer), original);
}

}  // namespace
}  // namespace kfdtest
