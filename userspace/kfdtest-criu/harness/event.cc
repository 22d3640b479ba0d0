// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// KFD events through the session's driver.
#include "kfdtest-criu/harness/event.h"

#include <vector>

namespace kfdtest {

base::Result<KfdEvent> KfdEvent::create(const Gpu& gpu, EventKind kind, ResetMode reset) {
  ASSIGN_OR_RETURN(auto event, gpu.driver->create_event(gpu, kind, reset));
  return KfdEvent(gpu.driver, std::move(event));
}

base::Result<WaitOutcome> KfdEvent::wait(std::chrono::milliseconds limit) const {
  DriverEvent* const only[] = {event_.get()};
  return driver_->wait(only, /*all=*/true, limit);
}

base::Result<WaitOutcome> KfdEvent::wait_many(std::span<const KfdEvent* const> events, WaitFor what,
                                              std::chrono::milliseconds limit) {
  std::vector<DriverEvent*> all;
  for (const KfdEvent* event : events) all.push_back(event->event_.get());
  return events.front()->driver_->wait(all, what == WaitFor::kAll, limit);
}

}  // namespace kfdtest
