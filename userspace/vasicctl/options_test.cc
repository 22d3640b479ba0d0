// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The command line.
#include "vasicctl/options.h"

#include <gtest/gtest.h>

namespace vasicctl {
namespace {

TEST(Options, words_become_one_line) {
  const auto parsed = parse_options({"hang", "gpu=0", "sdma0"});
  ASSERT_TRUE(parsed.options);
  EXPECT_EQ(parsed.options->line, "hang gpu=0 sdma0");
  EXPECT_FALSE(parsed.options->watch);
}

TEST(Options, the_gpu_is_part_of_the_line) {
  const auto parsed = parse_options({"--gpu", "1", "link", "500"});
  ASSERT_TRUE(parsed.options);
  EXPECT_EQ(parsed.options->line, "gpu=1 link 500");
}

TEST(Options, watch_repeats_status) {
  const auto parsed = parse_options({"--interval", "0.5", "watch"});
  ASSERT_TRUE(parsed.options);
  EXPECT_TRUE(parsed.options->watch);
  EXPECT_EQ(parsed.options->line, "status");
  EXPECT_DOUBLE_EQ(parsed.options->interval_s, 0.5);
}

TEST(Options, mistakes_are_one_line_and_status_2) {
  const std::vector<std::vector<std::string>> mistakes = {{},
                                                          {"--gpu", "x", "status"},
                                                          {"--gpu"},
                                                          {"--frob", "status"},
                                                          {"watch", "x"},
                                                          {"--interval", "0", "watch"},
                                                          {"--socket", "a", "--vm", "b", "status"},
                                                          {"echo", "a\nb"}};
  for (const auto& arguments : mistakes) {
    const auto parsed = parse_options(arguments);
    EXPECT_FALSE(parsed.options);
    EXPECT_EQ(parsed.exit_status, kExitUsage);
    EXPECT_TRUE(parsed.error.starts_with("vasicctl: error: ")) << parsed.error;
    EXPECT_EQ(parsed.error.find('\n'), parsed.error.size() - 1);
  }
}

TEST(Options, help_is_no_error) {
  const auto parsed = parse_options({"--help"});
  EXPECT_FALSE(parsed.options);
  EXPECT_EQ(parsed.exit_status, 0);
  EXPECT_NE(parsed.out.find("VASIC_CONTROL"), std::string::npos);
}

}  // namespace
}  // namespace vasicctl
