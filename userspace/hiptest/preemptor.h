// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Takes this process's queues off the hardware, and lets them on again: the first and the last step of a checkpoint,
// which the process asks for itself.
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
  // Precondition: the process uses a GPU already. Begins at once.
  static base::Result<Preemptor> begin(std::uint32_t seed, Pace pace = Pace::kRandom);
  Preemptor(Preemptor&&) = default;
  Preemptor& operator=(Preemptor&&) = default;
  ~Preemptor() = default;

  // How often until now.
  [[nodiscard]] unsigned count() const { return shared_->count; }
  // Ends it; what went wrong, if anything did.
  base::Status end();

 private:
  struct Shared {
    std::atomic<unsigned> count{0};
    base::Status status = {};  // after the thread has ended
  };
  Preemptor() = default;

  std::unique_ptr<Shared> shared_ = std::make_unique<Shared>();
  std::jthread thread_;
};

}  // namespace hiptest
