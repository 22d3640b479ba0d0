// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What one object costs, from the times that several counts of them took. Arithmetic alone.
#pragma once

#include <optional>
#include <span>

namespace kfdtest {

// `time` is in any unit, and results are in the same.
struct Sample {
  double count = 0;
  double time = 0;
};

// time = each * count + fixed
struct Line {
  double each = 0;
  double fixed = 0;
};

// Fits a line by least squares; nothing if there are no two different counts.
[[nodiscard]] std::optional<Line> fit_line(std::span<const Sample> samples);

// The cost of one object at the largest count, divided by that at the least count that is a quarter of the largest or
// more; the time at count 0 belongs to no object. 1 for what is linear, 4 for what is quadratic. Nothing if one of the
// three counts is missing, or a quarter of the objects took no time.
[[nodiscard]] std::optional<double> growth(std::span<const Sample> samples);

}  // namespace kfdtest
