// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A PM4 queue that counts. Between two stages it stands at a WAIT_REG_MEM whose gate only the next stage opens, so its
// read pointer, its pending packets and its counters must all survive. "svm_queue" is one whose save area is in SVM.
#include <optional>

#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/workloads/workloads.h"

namespace kfdtest {
namespace {

constexpr unsigned kStages = 4;
constexpr std::uint32_t kAddsPerStage = 8;
constexpr std::uint64_t kAddend64 = 0x1'0000'0001;

// Offsets in the page of words.
constexpr std::size_t kCounter32 = 0x000;
constexpr std::size_t kCounter64 = 0x008;
constexpr std::size_t kSnapshots = 0x100;  // a dword a stage: the counter as the queue itself saw it
constexpr std::size_t kGates = 0x200;
constexpr std::size_t kFences = 0x300;

constexpr std::size_t slot(std::size_t base, unsigned stage) { return base + stage * sizeof(std::uint64_t); }

class QueueCounter : public Workload {
 public:
  explicit QueueCounter(SaveArea save_area) : save_area_(save_area) {}
  [[nodiscard]] std::string_view name() const override { return uses_svm() ? "svm_queue" : "queue_counter"; }
  [[nodiscard]] bool uses_svm() const override { return save_area_ == SaveArea::kSvm; }
  [[nodiscard]] unsigned stages() const override { return kStages; }

  base::Status setup(const Gpu& gpu) override {
    ASSIGN_OR_RETURN(GpuMemory words, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
    words_.emplace(std::move(words));
    fill_words();
    ASSIGN_OR_RETURN(RingQueue queue,
                     RingQueue::create(gpu, QueueKind::kPm4, {.ring_size = kPageSize, .save_area = save_area_}));
    queue_.emplace(std::move(queue));
    return {};
  }

  base::Status advance(unsigned stage) override {
    if (stage > 0) TRY(open_gate(stage - 1));
    Pm4Commands commands(queue_->gpu());
    commands.wait_equal(words_->gpu_address(slot(kGates, stage)), gate_value(stage));
    for (std::uint32_t i = 0; i < kAddsPerStage; ++i) {
      commands.atomic_add32(words_->gpu_address(kCounter32), 1);
      commands.atomic_add64(words_->gpu_address(kCounter64), kAddend64);
    }
    commands.copy32(words_->gpu_address(slot(kSnapshots, stage)), words_->gpu_address(kCounter32));
    commands.fence(words_->gpu_address(slot(kFences, stage)), gate_value(stage));
    return queue_->submit(commands.dwords());
  }

  base::Status verify() override {
    TRY(open_gate(kStages - 1));
    TRY(queue_->wait_idle(limit_));
    for (unsigned stage = 0; stage < kStages; ++stage)
      TRY(wait_for_word(*words_, slot(kSnapshots, stage), (stage + 1) * kAddsPerStage));
    if (words_->load64(kCounter64) != kStages * kAddsPerStage * kAddend64)
      return base::Error(EIO, "64-bit counter is " + std::to_string(words_->load64(kCounter64)));
    return {};
  }

 private:
  static std::uint32_t gate_value(unsigned stage) { return 0x600d0000 + stage; }

  void fill_words() {
    for (std::size_t at = 0; at < words_->size(); at += sizeof(std::uint64_t)) words_->store64(at, 0);
  }

  base::Status open_gate(unsigned stage) {
    if (words_->load32(slot(kFences, stage)) != 0) return base::Error(EIO, "the queue passed a closed gate");
    words_->store32(slot(kGates, stage), gate_value(stage));
    return wait_for_word(*words_, slot(kFences, stage), gate_value(stage), limit_);
  }

  SaveArea save_area_;
  std::optional<GpuMemory> words_;
  std::optional<RingQueue> queue_;
};

}  // namespace

std::unique_ptr<Workload> make_queue_counter() { return std::make_unique<QueueCounter>(SaveArea::kBo); }
std::unique_ptr<Workload> make_svm_queue() { return std::make_unique<QueueCounter>(SaveArea::kSvm); }

}  // namespace kfdtest
