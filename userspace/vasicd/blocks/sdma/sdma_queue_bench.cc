// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// How fast the SDMA engine copies, compared with plain memcpy: 256 MiB in packets of 4 MiB.
#include <benchmark/benchmark.h>

#include <cstring>

#include "vasicd/blocks/fakes/fake_driver.h"

namespace vasicd {
namespace {

constexpr std::size_t kBytes = 256u << 20;
constexpr GpuAddr kRing = 0x10000;
constexpr std::uint64_t kRingDwords = 4096;
constexpr GpuAddr kPointers = 0x20000;
constexpr GpuAddr kSrc = 1u << 20;
constexpr GpuAddr kDst = kSrc + kBytes;

void BM_Memcpy(benchmark::State& state) {
  std::vector<std::byte> memory(kDst + kBytes, std::byte{1});
  for (auto _ : state) {
    std::memcpy(memory.data() + kDst, memory.data() + kSrc, kBytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(kBytes));
}
BENCHMARK(BM_Memcpy)->Unit(benchmark::kMillisecond)->UseRealTime();

// range(0): whether memory is one run, or a new one every 4 KiB.
void BM_SdmaCopy(benchmark::State& state) {
  FakeContext fake(kDst + kBytes);
  std::memset(fake.memory.bytes().data(), 1, fake.memory.bytes().size());
  std::memset(fake.memory.bytes().data() + kPointers, 0, 64);
  fake.memory.paged = state.range(0) != 0;
  fake.trace.on = false;
  fake.info.sdma_count = 1;
  auto engines = Engines::create(fake.info, fake.context());
  if (!engines->load_ring({RingKind::kSdma, 0, kRing, kRingDwords * 4, kPointers, kPointers + 8, 2}).ok()) {
    state.SkipWithError("ring does not load");
    return;
  }
  std::uint64_t wptr = 0;
  for (auto _ : state) {
    packets::Words w;
    packets::sdma::copy_linear_split(w, kDst, kSrc, kBytes);
    for (const std::uint32_t word : w) {
      fake.memory.put(kRing + wptr % (kRingDwords * 4), word);
      wptr += 4;
    }
    fake.doorbells.rung[2] = wptr;
    while (engines->step()) {
    }
    if (fake.memory.get<std::uint64_t>(kPointers) != wptr) state.SkipWithError("ring did not drain");
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(kBytes));
}
BENCHMARK(BM_SdmaCopy)->ArgName("paged")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace vasicd
