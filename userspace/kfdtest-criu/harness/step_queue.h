// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A queue of any kind whose work is a sequence of steps, each behind a gate of its own. The device counts the steps, so
// a step that is lost, done twice or done behind a closed gate shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kfdtest-criu/harness/commands.h"

namespace kfdtest {

[[nodiscard]] std::string_view name_of(QueueKind kind);

class StepQueue {
 public:
  static constexpr unsigned kMaxSteps = 500;

  struct Options {
    std::uint32_t percentage = kFullPercentage;
    std::uint32_t sdma_engine = 0;
  };
  static base::Result<StepQueue> create(const Gpu& gpu, QueueKind kind) { return create(gpu, kind, Options{}); }
  static base::Result<StepQueue> create(const Gpu& gpu, QueueKind kind, Options options);

  // Appends steps; at most kMaxSteps in all.
  base::Status submit(unsigned steps);
  // Appends one step that signals the event too.
  base::Status submit_signal(const KfdEvent& event);
  // Opens the gates of the first `steps` steps.
  void open(unsigned steps);
  [[nodiscard]] unsigned done() const;

  // Exactly `steps` come to be done, and no more happens for a while.
  base::Status expect_done(unsigned steps, Duration limit = kDeadline) const;
  // Waits until `steps` steps are done, without watching for more: use it when later gates may be open.
  base::Status wait_done(unsigned steps, Duration limit = kDeadline) const;

  [[nodiscard]] KfdQueue& queue() { return ring_.has_value() ? static_cast<KfdQueue&>(*ring_) : *aql_; }

 private:
  StepQueue(QueueKind kind, GpuMemory words) : kind_(kind), words_(std::move(words)) {}
  base::Status append(const KfdEvent* event);
  base::Status append_aql(const KfdEvent* event);

  QueueKind kind_;
  GpuMemory words_;  // the counter, then gates
  std::optional<RingQueue> ring_;
  std::optional<AqlQueue> aql_;
  unsigned submitted_ = 0;
  unsigned opened_ = 0;
  std::size_t events_ = 0;  // AQL: signals used
};

}  // namespace kfdtest
