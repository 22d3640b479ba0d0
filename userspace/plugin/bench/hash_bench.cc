// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What one thread does with each byte of a BO at dump: the search for zeros, and the checksum.
#include <benchmark/benchmark.h>

#include <cstring>
#include <random>
#include <vector>

#include "plugin/image/format.h"
#include "plugin/image/hash.h"

namespace {

using plugin::image::kChunkSize;
using plugin::image::kPieceSize;

constexpr std::size_t kBytes = std::size_t{64} << 20;  // more than a cache holds

const std::vector<std::byte>& random_bytes() {
  static const std::vector<std::byte> bytes = [] {
    std::vector<std::byte> out(kBytes);
    std::minstd_rand random;
    for (std::byte& byte : out) byte = static_cast<std::byte>(random());
    return out;
  }();
  return bytes;
}

template <std::uint64_t (*hash)(const void*, std::size_t) noexcept>
void hashes(benchmark::State& state) {
  const auto& bytes = random_bytes();
  for (auto _ : state)
    for (std::size_t at = 0; at < kBytes; at += kChunkSize) benchmark::DoNotOptimize(hash(&bytes[at], kChunkSize));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kBytes));
}
BENCHMARK(hashes<plugin::image::hash_plain>)->Name("hash_plain");

#if defined(__x86_64__)
void hash_avx2(benchmark::State& state) {
  if (__builtin_cpu_supports("avx2") == 0) return state.SkipWithError("no AVX2");
  hashes<plugin::image::hash_avx2>(state);
}
BENCHMARK(hash_avx2);
#endif

// As FileWriter looks for them.
void search_zeros(benchmark::State& state) {
  const std::vector<std::byte> zeros(kBytes);
  for (auto _ : state)
    for (std::size_t at = 0; at < kBytes; at += kPieceSize)
      benchmark::DoNotOptimize(std::memcmp(&zeros[at], &zeros[at] + 1, kPieceSize - 1));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kBytes));
}
BENCHMARK(search_zeros);

}  // namespace
