// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Events and nothing else that runs: which are signaled, and which become so by being waited for; and that the GPU
// still reaches them. Between two stages the process has no queue.
#include <chrono>
#include <optional>

#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/workloads/workloads.h"

namespace kfdtest {
namespace {

using std::chrono::milliseconds;

class EventState : public Workload {
 public:
  [[nodiscard]] std::string_view name() const override { return "event_state"; }
  [[nodiscard]] unsigned stages() const override { return 3; }

  base::Status setup(const Gpu& gpu) override {
    gpu_ = gpu;
    ASSIGN_OR_RETURN(KfdEvent stays, KfdEvent::create(gpu, EventKind::kSignal, ResetMode::kManual));
    ASSIGN_OR_RETURN(KfdEvent once, KfdEvent::create(gpu, EventKind::kSignal, ResetMode::kAuto));
    stays_.emplace(std::move(stays));
    once_.emplace(std::move(once));
    TRY(signal(*once_));
    return expect(*once_, WaitOutcome::kSignaled, limit());
  }

  base::Status advance(unsigned stage) override {
    if (stage == 0) {
      TRY(expect(*stays_, WaitOutcome::kTimeout));
      TRY(expect(*once_, WaitOutcome::kTimeout));
      return stays_->set();
    }
    TRY(expect(*stays_, WaitOutcome::kSignaled));
    if (stage == 1) {
      TRY(expect(*once_, WaitOutcome::kTimeout));
      return once_->set();
    }
    TRY(expect(*once_, WaitOutcome::kSignaled));
    TRY(stays_->reset());
    TRY(signal(*stays_));
    return expect(*stays_, WaitOutcome::kSignaled, limit());
  }

  base::Status verify() override {
    TRY(expect(*once_, WaitOutcome::kTimeout));
    TRY(expect(*stays_, WaitOutcome::kSignaled));
    TRY(signal(*once_));
    return expect(*once_, WaitOutcome::kSignaled, limit());
  }

 private:
  [[nodiscard]] milliseconds limit() const { return std::chrono::duration_cast<milliseconds>(limit_); }
  [[nodiscard]] base::Status signal(const KfdEvent& event) const {
    return run_alone(gpu_, SdmaCommands(gpu_).signal(event));
  }
  base::Status expect(const KfdEvent& event, WaitOutcome wanted, milliseconds limit = milliseconds(0)) const {
    ASSIGN_OR_RETURN(const WaitOutcome outcome, event.wait(limit));
    if (outcome == wanted) return {};
    return base::Error(EIO, "event " + std::to_string(event.id()) + " is " +
                                (outcome == WaitOutcome::kSignaled ? "signaled" : "not signaled"));
  }

  Gpu gpu_;
  std::optional<KfdEvent> stays_;  // signaled until it is reset
  std::optional<KfdEvent> once_;   // for one waiter
};

}  // namespace

std::unique_ptr<Workload> make_event_state() { return std::make_unique<EventState>(); }

}  // namespace kfdtest
