// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The GPU work of the demo: three memories, three queues, and one chain of pending packets through all of them:
//
//   program opens the gate -> SDMA poll, copies -> PM4 wait, arithmetic -> SDMA poll, copies
//     -> AQL barrier (also gated by the program) -> AQL barrier -> interrupt -> the thread that waits for the event
//
// Every link reads what the one before wrote, so the checksum depends on all memories and on every pending packet.
#pragma once

#include <cstdint>
#include <future>
#include <memory>

#include "base/result.h"
#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/harness/pattern.h"
#include "kfdtest-criu/harness/svm_queue.h"

namespace kfdtest {

class PendingWork {
 public:
  // Fills the memories, runs some packets to completion, leaves the chain pending and the thread waiting.
  static base::Result<std::unique_ptr<PendingWork>> start(const Gpu& gpu, std::uint64_t seed);
  ~PendingWork();

  // OK while no packet behind the gate has been executed.
  [[nodiscard]] base::Status expect_pending() const;
  // Lets the GPU count, in a queue and a memory that are there only meanwhile, so that the other memories stay what
  // they are; the count.
  base::Result<std::uint64_t> beat();
  // Opens the gates; returns when the thread has been woken.
  base::Status finish();
  void add_to(Checksum& checksum) const;

 private:
  PendingWork() = default;
  base::Status allocate(const Gpu& gpu, std::uint64_t seed);
  base::Status run_to_completion();
  base::Status submit_sdma_first();
  base::Status submit_pm4();
  base::Status submit_sdma_second();
  base::Status submit_aql();
  [[nodiscard]] std::uint64_t word(std::size_t offset) const { return words_->gpu_address(offset); }

  std::optional<GpuMemory> vram_;
  std::optional<GpuMemory> gtt_;
  std::optional<GpuMemory> userptr_;
  std::optional<GpuMemory> words_;  // gates, fences, signals
  std::optional<KfdEvent> event_;
  std::optional<RingQueue> pm4_;
  std::optional<RingQueue> sdma_;
  std::optional<AqlQueue> aql_;
  std::optional<AqlSignal> by_program_;
  std::optional<AqlSignal> by_sdma_;
  std::optional<AqlSignal> middle_;
  std::optional<AqlSignal> done_;
  std::future<base::Result<WaitOutcome>> sleeper_;
  std::uint64_t beats_ = 0;
};

// The least a second GPU can hold: VRAM with a pattern, and a queue with one pending addition to it.
class SecondGpuWork {
 public:
  static base::Result<std::unique_ptr<SecondGpuWork>> start(const Gpu& gpu, std::uint64_t seed);
  [[nodiscard]] base::Status expect_pending() const;
  base::Status finish();
  void add_to(Checksum& checksum) const { checksum.add(vram_->bytes()); }

 private:
  SecondGpuWork() = default;
  std::optional<GpuMemory> vram_;
  std::optional<GpuMemory> words_;
  std::optional<RingQueue> pm4_;
};

// A queue whose save area is an SVM range.
class SvmQueueWork {
 public:
  static base::Result<std::unique_ptr<SvmQueueWork>> start(const Gpu& gpu);
  [[nodiscard]] base::Status expect_pending() const;
  base::Status finish();
  void add_to(Checksum& checksum) const { checksum.add(words_->bytes()); }

 private:
  SvmQueueWork() = default;
  std::optional<GpuMemory> words_;
  std::optional<SvmQueue> queue_;
};

}  // namespace kfdtest
