// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Rings wait for a word and add to a counter; AQL queues wait for a signal and take from another one.
#include "kfdtest-criu/harness/step_queue.h"

#include <algorithm>
#include <cerrno>
#include <string>

namespace kfdtest {
namespace {

constexpr std::size_t kSlot = AqlSignal::kSize;
constexpr std::size_t kCounter = 0;
constexpr std::size_t kGates = kSlot;
constexpr std::size_t kEventSignals = kGates + StepQueue::kMaxSteps * kSlot;
constexpr std::size_t kMaxEvents = 100;
constexpr std::size_t kWordsSize = kEventSignals + kMaxEvents * kSlot;
constexpr std::int64_t kCountFrom = 1 << 20;
constexpr std::uint32_t kOpen = 1;
constexpr std::size_t kAqlPackets = 1024;
static_assert(kAqlPackets > StepQueue::kMaxSteps + kMaxEvents);

}  // namespace

std::string_view name_of(QueueKind kind) {
  switch (kind) {
    case QueueKind::kPm4:
      return "pm4";
    case QueueKind::kAql:
      return "aql";
    case QueueKind::kSdma:
      return "sdma";
    case QueueKind::kSdmaXgmi:
      return "sdma_xgmi";
    case QueueKind::kSdmaByEngine:
      return "sdma_by_engine";
  }
  return "?";
}

base::Result<StepQueue> StepQueue::create(const Gpu& gpu, QueueKind kind, Options options) {
  ASSIGN_OR_RETURN(GpuMemory words, GpuMemory::allocate(gpu, MemoryKind::kGtt, kWordsSize));
  std::fill(words.bytes().begin(), words.bytes().end(), std::byte{0});
  StepQueue steps(kind, std::move(words));
  if (kind == QueueKind::kAql) {
    (void)AqlSignal(steps.words_, kCounter, kCountFrom);
    ASSIGN_OR_RETURN(AqlQueue queue, AqlQueue::create(gpu, kAqlPackets));
    steps.aql_.emplace(std::move(queue));
    return steps;
  }
  ASSIGN_OR_RETURN(
      RingQueue queue,
      RingQueue::create(gpu, kind, {.percentage = options.percentage, .sdma_engine = options.sdma_engine}));
  steps.ring_.emplace(std::move(queue));
  return steps;
}

base::Status StepQueue::submit(unsigned steps) {
  for (unsigned i = 0; i < steps; ++i) TRY(append(nullptr));
  return {};
}

base::Status StepQueue::submit_signal(const KfdEvent& event) { return append(&event); }

base::Status StepQueue::append(const KfdEvent* event) {
  if (submitted_ == kMaxSteps) return base::Error(E2BIG, "too many steps");
  const std::uint64_t gate = words_.gpu_address(kGates + submitted_ * kSlot);
  const std::uint64_t counter = words_.gpu_address(kCounter);
  if (kind_ == QueueKind::kAql) {
    TRY(append_aql(event));
  } else if (kind_ == QueueKind::kPm4) {
    Pm4Commands commands(ring_->gpu());
    commands.wait_equal(gate, kOpen).atomic_add64(counter, 1);
    if (event != nullptr) commands.signal(*event);
    TRY(ring_->submit(commands.dwords()));
  } else {
    SdmaCommands commands(ring_->gpu());
    commands.wait_equal(gate, kOpen).atomic_add64(counter, 1);
    if (event != nullptr) commands.signal(*event);
    TRY(ring_->submit(commands.dwords()));
  }
  ++submitted_;
  return {};
}

base::Status StepQueue::append_aql(const KfdEvent* event) {
  const AqlSignal gate(words_, kGates + submitted_ * kSlot, submitted_ < opened_ ? 0 : 1);
  const AqlSignal* const dependencies[] = {&gate};
  const AqlSignal counter = AqlSignal::existing(words_, kCounter);
  TRY(aql_->submit(aql_barrier_and(dependencies, &counter)));
  if (event == nullptr) return {};
  if (events_ == kMaxEvents) return base::Error(E2BIG, "too many events");
  const AqlSignal signal(words_, kEventSignals + events_++ * kSlot, 1, event);
  return aql_->submit(aql_barrier_and({}, &signal));
}

void StepQueue::open(unsigned steps) {
  for (; opened_ < steps; ++opened_) {
    const std::size_t gate = kGates + opened_ * kSlot;
    if (kind_ != QueueKind::kAql)
      words_.store32(gate, kOpen);
    else if (opened_ < submitted_)
      AqlSignal::existing(words_, gate).store(0);
  }
}

unsigned StepQueue::done() const {
  if (kind_ != QueueKind::kAql) return static_cast<unsigned>(words_.load64(kCounter));
  return static_cast<unsigned>(kCountFrom - AqlSignal::existing(words_, kCounter).value());
}

base::Status StepQueue::wait_done(unsigned steps, Duration limit) const {
  if (wait_until([&] { return done() == steps; }, limit)) return {};
  return base::Error(ETIME, std::string(name_of(kind_)) + " queue has done " + std::to_string(done()) + " steps, not " +
                                std::to_string(steps));
}

base::Status StepQueue::expect_done(unsigned steps, Duration limit) const {
  constexpr std::chrono::milliseconds kWatched{20};
  TRY(wait_done(steps, limit));
  if (stays([&] { return done() == steps; }, kWatched)) return {};
  return base::Error(EIO, std::string(name_of(kind_)) + " queue went on to " + std::to_string(done()) + " steps, not " +
                              std::to_string(steps));
}

}  // namespace kfdtest
