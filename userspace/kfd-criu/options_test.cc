// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Command lines.
#include "kfd-criu/options.h"

#include <gtest/gtest.h>

#include "kfd-criu/test_support.h"

namespace kfd_criu {
namespace {

using testing::run_tool;

TEST(Options, each_command_has_its_own) {
  const auto diff = parse_options({"diff", "a", "b", "--json"});
  ASSERT_TRUE(diff.options) << diff.error;
  EXPECT_EQ(diff.options->command, Command::kDiff);
  EXPECT_EQ(diff.options->directory, "a");
  EXPECT_EQ(diff.options->other, "b");
  EXPECT_TRUE(diff.options->json);
  const auto show = parse_options({"show", "--bos", "a"});
  ASSERT_TRUE(show.options) << show.error;
  EXPECT_EQ(show.options->command, Command::kShow);
  EXPECT_TRUE(show.options->every_bo);
  EXPECT_FALSE(show.options->json);
  const auto topology = parse_options({"topology"});
  ASSERT_TRUE(topology.options) << topology.error;
  EXPECT_EQ(topology.options->directory, "");
  EXPECT_EQ(topology.options->root, "/");
}

TEST(Options, a_wrong_command_line_is_one_line_and_status_64) {
  const std::vector<std::vector<std::string>> wrong = {{},
                                                       {"nothing"},
                                                       {"show"},
                                                       {"show", "a", "b"},
                                                       {"verify", "--bos", "a"},
                                                       {"diff", "a"},
                                                       {"diff", "a", "b", "c"},
                                                       {"--json"},
                                                       {"show", "--nothing", "a"},
                                                       {"topology", "--root"}};
  for (const auto& arguments : wrong) {
    const auto outcome = run_tool(arguments);
    EXPECT_EQ(outcome.status, Exit::kUsage);
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(outcome.error.starts_with("kfd-criu: error: ")) << outcome.error;
    EXPECT_EQ(outcome.error.find('\n'), outcome.error.size() - 1) << outcome.error;
  }
}

TEST(Options, help_is_no_error) {
  const auto all = run_tool({"--help"});
  EXPECT_EQ(all.status, Exit::kGood);
  for (const char* word : {"show", "verify", "diff", "topology", "Exit status: 0 good; 1 damaged"})
    EXPECT_NE(all.out.find(word), std::string::npos) << word;
  const auto one = run_tool({"show", "--help"});
  EXPECT_EQ(one.status, Exit::kGood);
  EXPECT_NE(one.out.find("--bos"), std::string::npos) << one.out;
}

}  // namespace
}  // namespace kfd_criu
