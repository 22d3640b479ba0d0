// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "kfdtest-criu/bench/linear_fit.h"

#include <gtest/gtest.h>

#include <vector>

namespace kfdtest {
namespace {

TEST(FitLineTest, points_on_a_line_give_that_line) {
  const std::vector<Sample> samples = {{0, 7}, {10, 27}, {1000, 2007}};
  const auto line = fit_line(samples);
  ASSERT_TRUE(line.has_value());
  EXPECT_DOUBLE_EQ(line->each, 2);
  EXPECT_NEAR(line->fixed, 7, 1e-9);
}

TEST(FitLineTest, points_off_a_line_give_the_least_squares_fit) {
  const std::vector<Sample> samples = {{0, 1}, {0, 3}, {2, 5}, {2, 7}};
  const auto line = fit_line(samples);
  ASSERT_TRUE(line.has_value());
  EXPECT_DOUBLE_EQ(line->each, 2);
  EXPECT_DOUBLE_EQ(line->fixed, 2);
}

TEST(FitLineTest, one_count_alone_has_no_line) {
  EXPECT_FALSE(fit_line({}).has_value());
  const std::vector<Sample> samples = {{5, 1}, {5, 2}};
  EXPECT_FALSE(fit_line(samples).has_value());
}

std::vector<Sample> samples_of(double (*time)(double count)) {
  std::vector<Sample> samples;
  for (const double count : {0.0, 125.0, 250.0, 500.0, 1000.0}) samples.push_back({count, time(count)});
  return samples;
}

TEST(GrowthTest, is_1_for_linear_cost_whatever_the_fixed_cost) {
  EXPECT_DOUBLE_EQ(growth(samples_of([](double n) { return 3 * n; })).value_or(0), 1);
  EXPECT_DOUBLE_EQ(growth(samples_of([](double n) { return 3 * n + 5000; })).value_or(0), 1);
}

TEST(GrowthTest, is_4_for_quadratic_cost) {
  EXPECT_DOUBLE_EQ(growth(samples_of([](double n) { return n * n + 10; })).value_or(0), 4);
}

TEST(GrowthTest, is_unknown_unless_all_three_counts_were_measured) {
  const std::vector<Sample> samples = samples_of([](double n) { return n; });
  EXPECT_FALSE(growth({}).has_value());
  EXPECT_FALSE(growth(std::span(samples).first(1)).has_value());
  EXPECT_FALSE(growth(std::span(samples).subspan(1)).has_value());
  const std::vector<Sample> ends = {samples.front(), samples.back()};
  EXPECT_FALSE(growth(ends).has_value());
}

TEST(GrowthTest, is_unknown_if_the_objects_took_no_time) {
  EXPECT_FALSE(growth(samples_of([](double) { return 5.0; })).has_value());
}

}  // namespace
}  // namespace kfdtest
