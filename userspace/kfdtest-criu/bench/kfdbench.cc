// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Measures the virtual GPU from inside the guest; JSON on standard output.
//   kfdbench [--copy-mib N] [--repeat R]   copy rate against memcpy's, latencies, AQL packet rate
//   kfdbench --idle SECONDS                maps queues and sleeps: what the device costs when nothing happens
// The guest's memcpy is slowed by TCG while the device copies at the host's speed: compare the SDMA rate with a memcpy
// on the host too before concluding anything.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "base/parse.h"
#include "kfdtest-criu/bench/bench_main.h"
#include "kfdtest-criu/env/deadline.h"
#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/harness/gpu.h"
#include "kfdtest-criu/harness/pattern.h"
#include "kfdtest-criu/harness/session.h"

namespace kfdtest {
namespace {

constexpr unsigned kLatencyRounds = 200;
constexpr unsigned kAqlPackets = 20'000;
constexpr std::uint64_t kSeed = 0xbe;

struct Options {
  std::uint64_t copy_mib = 256;
  std::uint64_t repeat = 3;
  std::uint64_t idle_seconds = 0;
};

struct Report {
  double sdma_gbps = 0;
  double memcpy_gbps = 0;
  double fence_us = 0;
  double event_us = 0;
  double aql_packets_per_second = 0;
};

struct Bench {
  Gpu gpu;
  GpuMemory words;
  RingQueue sdma;
  RingQueue pm4;
  AqlQueue aql;
  KfdEvent event;

  static base::Result<Bench> create(const Gpu& gpu) {
    ASSIGN_OR_RETURN(GpuMemory words, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
    std::fill(words.bytes().begin(), words.bytes().end(), std::byte{0});
    ASSIGN_OR_RETURN(RingQueue sdma, RingQueue::create(gpu, QueueKind::kSdma));
    ASSIGN_OR_RETURN(RingQueue pm4, RingQueue::create(gpu, QueueKind::kPm4));
    ASSIGN_OR_RETURN(AqlQueue aql, AqlQueue::create(gpu));
    ASSIGN_OR_RETURN(KfdEvent event, KfdEvent::create(gpu));
    return Bench{gpu, std::move(words), std::move(sdma), std::move(pm4), std::move(aql), std::move(event)};
  }
};

using Step = std::function<base::Status()>;

base::Result<std::uint64_t> time_ns(const Step& step) {
  const std::uint64_t start = monotonic_ns();
  TRY(step());
  return monotonic_ns() - start;
}

base::Result<std::uint64_t> best_ns(std::uint64_t rounds, const Step& step) {
  std::uint64_t best = ~std::uint64_t{0};
  for (std::uint64_t i = 0; i < rounds; ++i) {
    ASSIGN_OR_RETURN(const std::uint64_t took, time_ns(step));
    best = std::min(best, took);
  }
  return best;
}

base::Result<double> median_us(unsigned rounds, const Step& step) {
  std::vector<std::uint64_t> all;
  for (unsigned i = 0; i < rounds; ++i) {
    ASSIGN_OR_RETURN(const std::uint64_t took, time_ns(step));
    all.push_back(took);
  }
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  std::nth_element(all.begin(), middle, all.end());
  return static_cast<double>(*middle) / 1e3;
}

// Polls the fence without a pause, which would add to the latency that is measured.
base::Status spin_for(const GpuMemory& words, std::uint32_t value) {
  const std::uint64_t end = monotonic_ns() + static_cast<std::uint64_t>(kDeadline.count());
  while (words.load32(0) != value) {
    std::this_thread::yield();
    if (monotonic_ns() > end) return base::Error(ETIME, "no fence");
  }
  return {};
}

base::Status measure_copy(Bench& bench, const Options& options, Report& report) {
  const std::size_t size = options.copy_mib * kMiB;
  ASSIGN_OR_RETURN(GpuMemory source, GpuMemory::allocate(bench.gpu, MemoryKind::kVram, size));
  ASSIGN_OR_RETURN(GpuMemory target, GpuMemory::allocate(bench.gpu, MemoryKind::kGtt, size));
  fill_pattern(source.bytes(), kSeed);
  std::fill(target.bytes().begin(), target.bytes().end(), std::byte{0});
  std::uint32_t fence = 0;
  ASSIGN_OR_RETURN(
      const std::uint64_t sdma_ns, best_ns(options.repeat, [&]() -> base::Status {
        SdmaCommands copy(bench.gpu);
        copy.copy(target.gpu_address(), source.gpu_address(), size).fence(bench.words.gpu_address(), ++fence);
        TRY(bench.sdma.submit(copy.dwords()));
        return spin_for(bench.words, fence);
      }));
  if (find_mismatch(target.bytes(), kSeed).has_value()) return base::Error(EIO, "the copy differs");
  std::vector<std::byte> plain_source(size, std::byte{1});
  std::vector<std::byte> plain_target(size, std::byte{2});
  ASSIGN_OR_RETURN(const std::uint64_t memcpy_ns, best_ns(options.repeat, [&]() -> base::Status {
                     std::memcpy(plain_target.data(), plain_source.data(), size);
                     return plain_target[size - 1] == std::byte{1} ? base::Status() : base::Error(EIO, "memcpy");
                   }));
  report.sdma_gbps = static_cast<double>(size) / static_cast<double>(sdma_ns);
  report.memcpy_gbps = static_cast<double>(size) / static_cast<double>(memcpy_ns);
  return {};
}

base::Status measure_latencies(Bench& bench, Report& report) {
  std::uint32_t fence = 0x10000;
  ASSIGN_OR_RETURN(report.fence_us, median_us(kLatencyRounds, [&]() -> base::Status {
                     TRY(bench.pm4.submit(Pm4Commands(bench.gpu).fence(bench.words.gpu_address(), ++fence).dwords()));
                     return spin_for(bench.words, fence);
                   }));
  ASSIGN_OR_RETURN(report.event_us, median_us(kLatencyRounds, [&]() -> base::Status {
                     TRY(bench.pm4.submit(Pm4Commands(bench.gpu).signal(bench.event).dwords()));
                     ASSIGN_OR_RETURN(const WaitOutcome outcome, bench.event.wait(std::chrono::seconds(20)));
                     return outcome == WaitOutcome::kSignaled ? base::Status() : base::Error(ETIME, "no event");
                   }));
  return {};
}

base::Status measure_aql(Bench& bench, Report& report) {
  const AqlSignal countdown(bench.words, kPageSize / 2, kAqlPackets);
  ASSIGN_OR_RETURN(const std::uint64_t took, time_ns([&]() -> base::Status {
                     for (unsigned i = 0; i < kAqlPackets; ++i) TRY(bench.aql.submit(aql_barrier_and({}, &countdown)));
                     if (wait_until([&] { return countdown.value() == 0; })) return {};
                     return base::Error(ETIME, "barriers did not complete");
                   }));
  report.aql_packets_per_second = kAqlPackets * 1e9 / static_cast<double>(took);
  return {};
}

void print(const Options& options, const Report& report) {
  std::printf(
      "{\"copy_mib\": %llu, \"repeat\": %llu, \"sdma_copy_gbps\": %.3f, \"guest_memcpy_gbps\": %.3f,\n"
      " \"submit_to_fence_us_median\": %.1f, \"submit_to_event_us_median\": %.1f,\n"
      " \"aql_barriers_per_second\": %.0f,\n"
      " \"note\": \"guest_memcpy is slowed by emulation, sdma_copy runs at the host's speed: compare it with a memcpy "
      "on the host\"}\n",
      static_cast<unsigned long long>(options.copy_mib), static_cast<unsigned long long>(options.repeat),
      report.sdma_gbps, report.memcpy_gbps, report.fence_us, report.event_us, report.aql_packets_per_second);
}

base::Status run_bench(const Options& options) {
  ASSIGN_OR_RETURN(const Session session, Session::open());
  if (session.gpus().empty()) return base::Error(ENODEV, "no GPU");
  ASSIGN_OR_RETURN(Bench bench, Bench::create(session.gpus().front()));
  if (options.idle_seconds > 0) {
    std::this_thread::sleep_for(std::chrono::seconds(options.idle_seconds));
    std::printf("{\"idle_seconds\": %llu}\n", static_cast<unsigned long long>(options.idle_seconds));
    return {};
  }
  Report report;
  TRY(measure_copy(bench, options, report));
  TRY(measure_latencies(bench, report));
  TRY(measure_aql(bench, report));
  print(options, report);
  return {};
}

base::Result<Options> parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    std::uint64_t* const target = name == "--copy-mib" ? &options.copy_mib
                                  : name == "--repeat" ? &options.repeat
                                  : name == "--idle"   ? &options.idle_seconds
                                                       : nullptr;
    if (target == nullptr) return base::Error(EINVAL, "no option " + name);
    const auto value = i + 1 < argc ? base::parse_u64(argv[i + 1]) : std::nullopt;
    if (!value.has_value() || *value == 0) return base::Error(EINVAL, name + " wants a number above 0");
    *target = *value;
  }
  return options;
}

}  // namespace
}  // namespace kfdtest

int main(int argc, char** argv) {
  return kfdtest::bench_main("kfdbench", kfdtest::parse(argc, argv), kfdtest::run_bench);
}
