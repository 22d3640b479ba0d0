// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// An AQL queue of barrier-AND packets. Each stage adds a pair: one packet waits for a gate that the next stage opens,
// the other for the first one's completion and for an earlier stage's.
#include <optional>

#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/workloads/workloads.h"

namespace kfdtest {
namespace {

constexpr unsigned kStages = 3;

class AqlBarrier : public Workload {
 public:
  [[nodiscard]] std::string_view name() const override { return "aql_barrier"; }
  [[nodiscard]] unsigned stages() const override { return kStages; }

  base::Status setup(const Gpu& gpu) override {
    ASSIGN_OR_RETURN(GpuMemory memory, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
    memory_.emplace(std::move(memory));
    for (unsigned i = 0; i < kStages; ++i) {
      gates_.push_back(new_signal(1));
      firsts_.push_back(new_signal(1));
      seconds_.push_back(new_signal(2));
    }
    ASSIGN_OR_RETURN(AqlQueue queue, AqlQueue::create(gpu));
    queue_.emplace(std::move(queue));
    return {};
  }

  base::Status advance(unsigned stage) override {
    if (stage > 0) TRY(open_gate(stage - 1));
    const AqlSignal* const gate[] = {&gates_[stage]};
    TRY(queue_->submit(aql_barrier_and(gate, &firsts_[stage])));
    const AqlSignal* const both[] = {&firsts_[stage], &firsts_[0]};
    return queue_->submit(aql_barrier_and(both, &seconds_[stage]));
  }

  base::Status verify() override {
    TRY(open_gate(kStages - 1));
    TRY(queue_->wait_idle(limit_));
    for (unsigned stage = 0; stage < kStages; ++stage)
      if (firsts_[stage].value() != 0 || seconds_[stage].value() != 1)
        return base::Error(EIO, "signals of stage " + std::to_string(stage) + " are " +
                                    std::to_string(firsts_[stage].value()) + " and " +
                                    std::to_string(seconds_[stage].value()) + ", not 0 and 1");
    return {};
  }

 private:
  AqlSignal new_signal(std::int64_t value) { return {*memory_, AqlSignal::kSize * used_++, value}; }

  base::Status open_gate(unsigned stage) {
    if (firsts_[stage].value() != 1) return base::Error(EIO, "a barrier passed a closed gate");
    gates_[stage].store(0);
    if (wait_until([&] { return seconds_[stage].value() == 1; }, limit_)) return {};
    return base::Error(ETIME, "barrier of stage " + std::to_string(stage) + " did not complete");
  }

  std::optional<GpuMemory> memory_;
  std::size_t used_ = 0;
  std::vector<AqlSignal> gates_;
  std::vector<AqlSignal> firsts_;
  std::vector<AqlSignal> seconds_;
  std::optional<AqlQueue> queue_;
};

}  // namespace

std::unique_ptr<Workload> make_aql_barrier() { return std::make_unique<AqlBarrier>(); }

}  // namespace kfdtest
