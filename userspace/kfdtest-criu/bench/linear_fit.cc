// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "kfdtest-criu/bench/linear_fit.h"

#include <algorithm>

namespace kfdtest {

std::optional<Line> fit_line(std::span<const Sample> samples) {
  double count = 0;
  double time = 0;
  for (const Sample& each : samples) {
    count += each.count;
    time += each.time;
  }
  const auto n = static_cast<double>(samples.size());
  double variance = 0;
  double covariance = 0;
  for (const Sample& each : samples) {
    // Sums are taken around the means, because sums of squares of large counts would lose digits.
    variance += (each.count - count / n) * (each.count - count / n);
    covariance += (each.count - count / n) * (each.time - time / n);
  }
  if (!(variance > 0)) return std::nullopt;
  Line line;
  line.each = covariance / variance;
  line.fixed = (time - line.each * count) / n;
  return line;
}

std::optional<double> growth(std::span<const Sample> samples) {
  const auto less = [](const Sample& a, const Sample& b) { return a.count < b.count; };
  const auto none = std::ranges::find(samples, 0.0, &Sample::count);
  const auto all = std::ranges::max_element(samples, less);
  if (none == samples.end() || none == all) return std::nullopt;
  auto quarter = all;
  for (auto at = samples.begin(); at != samples.end(); ++at)
    if (at->count * 4 >= all->count && at->count < quarter->count) quarter = at;
  if (quarter == all || !(quarter->time > none->time)) return std::nullopt;
  return (all->time - none->time) / all->count / ((quarter->time - none->time) / quarter->count);
}

}  // namespace kfdtest
