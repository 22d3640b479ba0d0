// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The streaming copy equals memmove, at every alignment and overlap.
#include "vasicd/blocks/queue/copy_run.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace vasicd::copy_run_test {

std::vector<std::byte> numbered(std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(i * 31 + (i >> 9));
  return out;
}

TEST(CopyRun, equals_memmove_at_every_alignment) {
  constexpr std::size_t kLength = (std::size_t{300} << 10) + 77;
  const std::vector<std::byte> src = numbered(kLength + 128);
  for (const std::size_t to : {0u, 1u, 15u, 16u, 63u}) {
    for (const std::size_t from : {0u, 3u, 64u}) {
      std::vector<std::byte> dst(kLength + 128, std::byte{0xee});
      copy_run(dst.data() + to, src.data() + from, kLength);
      EXPECT_EQ(std::memcmp(dst.data() + to, src.data() + from, kLength), 0) << to << " " << from;
      EXPECT_EQ(dst[to + kLength], std::byte{0xee});
      if (to > 0) {
        EXPECT_EQ(dst[to - 1], std::byte{0xee});
      }
    }
  }
}

TEST(CopyRun, overlapping_runs_are_moved) {
  constexpr std::size_t kLength = std::size_t{512} << 10;
  for (const std::size_t shift : {1u, 64u, 5000u}) {
    std::vector<std::byte> forward = numbered(kLength + shift);
    std::vector<std::byte> expected = forward;
    std::memmove(expected.data() + shift, expected.data(), kLength);
    copy_run(forward.data() + shift, forward.data(), kLength);
    EXPECT_TRUE(forward == expected) << shift;
  }
}

}  // namespace vasicd::copy_run_test
