// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "plugin/copy_meter.h"

#include <gtest/gtest.h>

#include <regex>
#include <thread>
#include <vector>

namespace plugin {
namespace {

class Log final : public Criu {
 public:
  [[nodiscard]] int image_dir() const override { return -1; }
  [[nodiscard]] int unused_fd() const override { return -1; }
  [[nodiscard]] bool takes_vma_fd() const override { return true; }
  void inform(std::string_view message) const override { lines.emplace_back(message); }
  mutable std::vector<std::string> lines;
};

constexpr std::uint64_t kMiB = 1U << 20;

TEST(CopyMeterTest, says_nothing_before_its_interval_is_over) {
  const Log log;
  CopyMeter meter(log, "GPU memory", 100 * kMiB);
  for (int i = 0; i < 100; ++i) meter.add(kMiB);
  EXPECT_TRUE(log.lines.empty());
  EXPECT_EQ(meter.copied(), 100 * kMiB);
}

TEST(CopyMeterTest, says_how_much_is_copied_how_fast_and_how_long_the_rest_takes) {
  const Log log;
  CopyMeter meter(log, "GPU memory", 100 * kMiB, std::chrono::milliseconds(20));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  meter.add(25 * kMiB);
  meter.add(kMiB);
  ASSERT_EQ(log.lines.size(), 1U);
  std::smatch match;
  const std::regex line("GPU memory: 25 of 100 MiB, ([0-9]+) MiB/s, ([0-9]+) s left");
  ASSERT_TRUE(std::regex_match(log.lines[0], match, line)) << log.lines[0];
  EXPECT_LE(std::stoi(match[1]), 500);
  EXPECT_GE(std::stoi(match[2]), 1);
}

TEST(CopyMeterTest, more_than_was_known_has_no_rest) {
  const Log log;
  CopyMeter meter(log, "GPU memory", 10 * kMiB, std::chrono::milliseconds(0));
  meter.add(20 * kMiB);
  ASSERT_EQ(log.lines.size(), 1U);
  EXPECT_EQ(log.lines[0].find("GPU memory: 20 of 20 MiB, "), 0U) << log.lines[0];
  EXPECT_EQ(log.lines[0].find("left"), std::string::npos);
}

TEST(CopyMeterTest, says_at_the_end_how_fast_it_was) {
  const Log log;
  CopyMeter meter(log, "GPU memory of process 7", 10 * kMiB);
  meter.end();
  EXPECT_TRUE(log.lines.empty());
  meter.add(9 * kMiB);
  meter.end();
  ASSERT_EQ(log.lines.size(), 1U);
  EXPECT_TRUE(std::regex_match(log.lines[0], std::regex("GPU memory of process 7: 9 MiB in [0-9]+ ms, [0-9]+ MiB/s")))
      << log.lines[0];
}

TEST(CopyMeterTest, a_rate_needs_time) {
  EXPECT_EQ(rate_text(kMiB, std::chrono::seconds(0)), "0 MiB/s");
  EXPECT_EQ(rate_text(3 * kMiB, std::chrono::seconds(2)), "2 MiB/s");
  EXPECT_EQ(rate_text(4000 * kMiB, std::chrono::milliseconds(500)), "8000 MiB/s");
}

}  // namespace
}  // namespace plugin
