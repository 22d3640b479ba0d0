// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Evicts the queues of its own process and restores them, again and again, from a thread. It uses the first and the
// last ioctl of a checkpoint (PROCESS_INFO, UNPAUSE).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "base/result.h"

namespace hiptest {

class Preemptor {
 public:
  enum class Pace : std::uint8_t {
    kRandom,  // at random instants
    kStorm,   // as fast as the driver can
  };
  // Starts the thread. Precondition: the process has opened a GPU.
  static base::Result<Preemptor> begin(std::uint32_t seed, Pace pace = Pace::kRandom);
  Preemptor(Preemptor&&) = default;
  Preemptor& operator=(Preemptor&&) = default;
  ~Preemptor() = default;

  // Returns how often the queues have been evicted so far.
  [[nodiscard]] unsigned count() const { return shared_->count; }
  // Stops the thread and returns its first error, if any.
  base::Status end();

 private:
  struct Shared {
    std::atomic<unsigned> count{0};
    base::Status status = {};  // valid after the thread has ended
  };
  Preemptor() = default;

  std::unique_ptr<Shared> shared_ = std::make_unique<Shared>();
  std::jthread thread_;
};

}  // namespace hiptest
