// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "kfdtest-criu/demo/command_line.h"

#include <gtest/gtest.h>

namespace kfdtest {
namespace {

// A program with an option of each kind.
struct Read {
  explicit Read(std::initializer_list<std::string_view> arguments) {
    line.flag("--svm", svm).number("--gpus", gpus, 1, 2);
    line.words("--gem", {{"mapped", [this] { gem = 1; }}, {"handle", [this] { gem = 2; }}});
    status = line.read(arguments);
  }
  CommandLine line;
  base::Status status;
  bool svm = false;
  std::uint64_t gpus = 1;
  int gem = 0;
};

TEST(CommandLine, of_a_folder_alone_leaves_all_else_as_it_is) {
  const Read read({"--dir", "/d"});
  ASSERT_TRUE(read.status.ok());
  EXPECT_EQ(read.line.folder(), "/d");
  EXPECT_FALSE(read.line.undisturbed() || read.svm);
  EXPECT_EQ(read.gpus, 1U);
  EXPECT_EQ(read.gem, 0);
}

TEST(CommandLine, takes_options_in_any_order) {
  const Read read({"--gem", "handle", "--svm", "--gpus", "2", "--undisturbed", "--dir", "/d"});
  ASSERT_TRUE(read.status.ok());
  EXPECT_TRUE(read.line.undisturbed() && read.svm);
  EXPECT_EQ(read.gpus, 2U);
  EXPECT_EQ(read.gem, 2);
}

struct Wrong {
  std::vector<std::string_view> words;
  std::string_view says;
};
class WrongCommandLine : public testing::TestWithParam<Wrong> {};

TEST_P(WrongCommandLine, is_refused_with_the_option_and_what_it_wants) {
  CommandLine line;
  bool svm = false;
  std::uint64_t gpus = 1;
  line.flag("--svm", svm).number("--gpus", gpus, 1, 2).words("--gem", {{"mapped", [] {}}, {"handle", [] {}}});
  std::vector<const char*> arguments = {"program"};
  for (const std::string_view word : GetParam().words) arguments.push_back(word.data());
  const base::Status status = line.read(static_cast<int>(arguments.size()), arguments.data());
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message().find(GetParam().says), std::string::npos) << status.error().message();
}

INSTANTIATE_TEST_SUITE_P(Each, WrongCommandLine,
                         testing::Values(Wrong{{}, "--dir is needed"}, Wrong{{"--dir"}, "--dir wants a value"},
                                         Wrong{{"--dir", "/d", "--gpu", "1"}, "no option --gpu"},
                                         Wrong{{"--dir", "/d", "--gpus", "3"}, "--gpus wants 1 to 2"},
                                         Wrong{{"--dir", "/d", "--gpus", "one"}, "--gpus wants 1 to 2"},
                                         Wrong{{"--dir", "/d", "--gem", "own"}, "--gem wants mapped or handle"}));

}  // namespace
}  // namespace kfdtest
