// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Tests of base/parse.h.
#include "base/parse.h"

#include <gtest/gtest.h>

namespace base {
namespace {

TEST(ParseSize, accepts_plain_numbers_and_binary_suffixes) {
  EXPECT_EQ(parse_size("0"), 0u);
  EXPECT_EQ(parse_size("4096"), 4096u);
  EXPECT_EQ(parse_size("4K"), 4096u);
  EXPECT_EQ(parse_size("3M"), 3u << 20);
  EXPECT_EQ(parse_size("2G"), std::uint64_t{2} << 30);
}

TEST(ParseSize, refuses_anything_else) {
  for (const char* text : {"", "K", "-1", "+1", " 1", "1 ", "1KK", "1T", "0x10", "1.5G", "18446744073709551616"})
    EXPECT_EQ(parse_size(text), std::nullopt) << text;
}

TEST(ParseSize, refuses_a_size_that_overflows_with_its_suffix) {
  EXPECT_EQ(parse_size("17179869183G"), std::uint64_t{17179869183} << 30);
  EXPECT_EQ(parse_size("17179869184G"), std::nullopt);
}

TEST(ParseU64, takes_a_hexadecimal_prefix_only_in_radix_16) {
  EXPECT_EQ(parse_u64("0xFf", 16), 255u);
  EXPECT_EQ(parse_u64("ff", 16), 255u);
  EXPECT_EQ(parse_u64("0x10"), std::nullopt);
  EXPECT_EQ(parse_u64("0x", 16), std::nullopt);
  EXPECT_EQ(parse_u64("12g", 16), std::nullopt);
}

}  // namespace
}  // namespace base
