// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A program that makes its first queue in its first stage, so that it maps its doorbells when it may have been restored
// on another GPU already, by what CREATE_QUEUE says. The queue works on in later stages.
#include <optional>

#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/workloads/workloads.h"

namespace kfdtest {
namespace {

constexpr unsigned kStages = 3;
constexpr std::uint32_t kAddsPerStage = 5;
constexpr std::size_t kCounter = 0;

class QueueLate : public Workload {
 public:
  [[nodiscard]] std::string_view name() const override { return "queue_late"; }
  [[nodiscard]] unsigned stages() const override { return kStages; }

  base::Status setup(const Gpu& gpu) override {
    gpu_ = gpu;
    ASSIGN_OR_RETURN(GpuMemory words, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
    words_.emplace(std::move(words));
    words_->store32(kCounter, 0);
    return {};
  }

  base::Status advance(unsigned stage) override {
    if (stage == 0) {
      ASSIGN_OR_RETURN(RingQueue queue, RingQueue::create(gpu_, QueueKind::kPm4, {.ring_size = kPageSize}));
      queue_.emplace(std::move(queue));
    }
    Pm4Commands commands(queue_->gpu());
    for (std::uint32_t i = 0; i < kAddsPerStage; ++i) commands.atomic_add32(words_->gpu_address(kCounter), 1);
    TRY(queue_->submit(commands.dwords()));
    return wait_for_word(*words_, kCounter, (stage + 1) * kAddsPerStage, limit_);
  }

  base::Status verify() override {
    TRY(queue_->wait_idle(limit_));
    const std::uint32_t count = words_->load32(kCounter);
    if (count == kStages * kAddsPerStage) return {};
    return base::Error(EIO, "the queue has counted to " + std::to_string(count));
  }

 private:
  Gpu gpu_;
  std::optional<GpuMemory> words_;
  std::optional<RingQueue> queue_;
};

}  // namespace

std::unique_ptr<Workload> make_queue_late() { return std::make_unique<QueueLate>(); }

}  // namespace kfdtest
