// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Makes the programs' inputs: pseudo-random numbers that depend only on the seed.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace hiptest {

inline std::vector<std::uint32_t> integers(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::uint32_t> values(count);
  for (std::uint32_t& value : values) value = static_cast<std::uint32_t>(random());
  return values;
}

// Returns numbers in [-1, 1).
inline std::vector<float> floats(std::size_t count, std::uint32_t seed) {
  std::vector<float> values;
  for (const std::uint32_t bits : integers(count, seed)) {
    values.push_back(static_cast<float>(bits >> 8) / static_cast<float>(1u << 23) - 1.0f);
  }
  return values;
}

template <typename T>
std::vector<double> widened(const std::vector<T>& values) {
  return std::vector<double>(values.begin(), values.end());
}

}  // namespace hiptest
