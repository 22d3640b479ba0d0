// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A KFD event. A signal event has a mailbox: the device stores the trigger there, then raises an interrupt.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "kfdtest-criu/harness/driver.h"
#include "kfdtest-criu/harness/gpu.h"

namespace kfdtest {

enum class WaitFor : std::uint8_t { kAny, kAll };

class KfdEvent {
 public:
  static base::Result<KfdEvent> create(const Gpu& gpu, EventKind kind = EventKind::kSignal,
                                       ResetMode reset = ResetMode::kAuto);

  // Signaled, or timed out; anything else is an error.
  [[nodiscard]] base::Result<WaitOutcome> wait(std::chrono::milliseconds limit) const;
  [[nodiscard]] static base::Result<WaitOutcome> wait_many(std::span<const KfdEvent* const> events, WaitFor what,
                                                           std::chrono::milliseconds limit);
  base::Status set() const { return event_->set(); }
  base::Status reset() const { return event_->reset(); }

  // GPU address of the mailbox, and what to store there and to raise the interrupt with.
  [[nodiscard]] std::uint64_t mailbox() const { return event_->mailbox; }
  [[nodiscard]] std::uint32_t trigger() const { return event_->trigger; }
  [[nodiscard]] std::uint32_t id() const { return event_->id; }
  [[nodiscard]] const MemoryFault& fault() const { return event_->fault; }
  [[nodiscard]] const HwException& exception() const { return event_->exception; }

 private:
  KfdEvent(Driver* driver, std::unique_ptr<DriverEvent> event) : driver_(driver), event_(std::move(event)) {}
  Driver* driver_;
  std::unique_ptr<DriverEvent> event_;
};

}  // namespace kfdtest
