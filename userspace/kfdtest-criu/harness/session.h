// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A Session is the process's one connection to KFD: everything of the harness is used between open() and its end.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "kfdtest-criu/harness/driver.h"
#include "kfdtest-criu/harness/gpu.h"

namespace kfdtest {

// How the session reaches KFD: by ioctls, or through Debian's libhsakmt, which does not know every chip.
enum class DriverKind : std::uint8_t { kIoctls, kThunk };

class Session {
 public:
  static base::Result<Session> open(DriverKind kind = DriverKind::kIoctls);
  // As if there were only the GPU with this index of gpus_in_sysfs(): KFD is given the VM of no other one.
  static base::Result<Session> open_one(std::size_t gpu);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) = delete;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  // In the order of their nodes.
  [[nodiscard]] const std::vector<Gpu>& gpus() const { return gpus_; }

 private:
  Session(std::vector<Gpu> gpus, std::unique_ptr<Driver> driver);
  std::vector<Gpu> gpus_;
  std::unique_ptr<Driver> driver_;
};

}  // namespace kfdtest
