// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A thread sleeps in KFD's WAIT_EVENTS; SDMA, PM4 and AQL in turn wake it through mailbox and interrupt. Between two
// stages the thread is asleep and the signalling packet is pending behind a gate. The workload "event_pending" has no
// such thread.
#include <algorithm>
#include <future>
#include <optional>

#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/workloads/workloads.h"

namespace kfdtest {
namespace {

enum Signaller : unsigned { kBySdma, kByPm4, kByAql, kSignallers };

constexpr std::uint32_t kOpen = 1;

class EventSignal : public Workload {
 public:
  explicit EventSignal(bool sleeps) : sleeps_(sleeps) {}
  ~EventSignal() override {
    // The sleeper is joined by its future; wake it, whatever the device did.
    if (sleeper_.valid() && event_.has_value()) (void)event_->set();
  }

  [[nodiscard]] std::string_view name() const override { return sleeps_ ? "event_signal" : "event_pending"; }
  [[nodiscard]] bool has_threads() const override { return sleeps_; }
  [[nodiscard]] unsigned stages() const override { return kSignallers; }

  base::Status setup(const Gpu& gpu) override {
    ASSIGN_OR_RETURN(KfdEvent event, KfdEvent::create(gpu));
    event_.emplace(std::move(event));
    ASSIGN_OR_RETURN(GpuMemory words, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
    std::fill(words.bytes().begin(), words.bytes().end(), std::byte{0});
    words_.emplace(std::move(words));
    ASSIGN_OR_RETURN(RingQueue sdma, RingQueue::create(gpu, QueueKind::kSdma));
    sdma_.emplace(std::move(sdma));
    ASSIGN_OR_RETURN(RingQueue pm4, RingQueue::create(gpu, QueueKind::kPm4));
    pm4_.emplace(std::move(pm4));
    ASSIGN_OR_RETURN(AqlQueue aql, AqlQueue::create(gpu));
    aql_.emplace(std::move(aql));
    return {};
  }

  base::Status advance(unsigned stage) override {
    if (stage > 0) TRY(open_and_join(stage - 1));
    pending_ = stage;
    if (sleeps_) sleeper_ = std::async(std::launch::async, [this] { return event_->wait(limit()); });
    return submit(stage);
  }

  base::Status verify() override { return open_and_join(kSignallers - 1); }

 private:
  static constexpr std::size_t gate_offset(unsigned stage) { return stage * 2 * AqlSignal::kSize; }
  static constexpr std::size_t done_offset(unsigned stage) { return gate_offset(stage) + AqlSignal::kSize; }

  base::Status submit(unsigned stage) {
    const std::uint64_t gate = words_->gpu_address(gate_offset(stage));
    if (stage == kBySdma)
      return sdma_->submit(SdmaCommands(sdma_->gpu()).wait_equal(gate, kOpen).signal(*event_).dwords());
    if (stage == kByPm4) return pm4_->submit(Pm4Commands(pm4_->gpu()).wait_equal(gate, kOpen).signal(*event_).dwords());
    aql_gate_.emplace(*words_, gate_offset(stage), 1);
    aql_done_.emplace(*words_, done_offset(stage), 1, &*event_);
    const AqlSignal* const dependencies[] = {&*aql_gate_};
    return aql_->submit(aql_barrier_and(dependencies, &*aql_done_));
  }

  [[nodiscard]] std::chrono::milliseconds limit() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(limit_);
  }

  base::Status open_and_join(unsigned stage) {
    if (pending_ != stage) return base::Error(EINVAL, "signaller " + std::to_string(stage) + " was never pending");
    ASSIGN_OR_RETURN(const bool early, signaled_already());
    if (early) return base::Error(EIO, "the event was signaled behind a closed gate");
    if (stage == kByAql)
      aql_gate_->store(0);
    else
      words_->store32(gate_offset(stage), kOpen);
    ASSIGN_OR_RETURN(const WaitOutcome outcome, sleeps_ ? sleeper_.get() : event_->wait(limit()));
    if (outcome == WaitOutcome::kSignaled) return {};
    return base::Error(ETIME, "no event of signaller " + std::to_string(stage));
  }

  base::Result<bool> signaled_already() {
    if (sleeps_) return sleeper_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    ASSIGN_OR_RETURN(const WaitOutcome outcome, event_->wait(std::chrono::milliseconds(0)));
    return outcome == WaitOutcome::kSignaled;
  }

  bool sleeps_;  // a thread sleeps in WAIT_EVENTS between two stages
  std::optional<KfdEvent> event_;
  std::optional<GpuMemory> words_;
  std::optional<RingQueue> sdma_;
  std::optional<RingQueue> pm4_;
  std::optional<AqlQueue> aql_;
  std::optional<AqlSignal> aql_gate_;
  std::optional<AqlSignal> aql_done_;
  std::optional<unsigned> pending_;  // the stage whose packet waits
  std::future<base::Result<WaitOutcome>> sleeper_;
};

}  // namespace

std::unique_ptr<Workload> make_event_signal() { return std::make_unique<EventSignal>(true); }
std::unique_ptr<Workload> make_event_pending() { return std::make_unique<EventSignal>(false); }

}  // namespace kfdtest
