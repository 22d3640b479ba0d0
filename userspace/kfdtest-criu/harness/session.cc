// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "kfdtest-criu/harness/session.h"

#include <cerrno>
#include <string>
#include <utility>

#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/harness/thunk_driver.h"

namespace kfdtest {

base::Result<Session> Session::open(DriverKind kind) {
  ASSIGN_OR_RETURN(std::vector<Gpu> gpus, gpus_in_sysfs());
  if (kind == DriverKind::kThunk) {
    ASSIGN_OR_RETURN(auto driver, ThunkDriver::open());
    number_as_the_thunk_does(gpus);
    return Session(std::move(gpus), std::move(driver));
  }
  ASSIGN_OR_RETURN(auto driver, KfdDriver::open(gpus));
  return Session(std::move(gpus), std::move(driver));
}

base::Result<Session> Session::open_one(std::size_t gpu) {
  ASSIGN_OR_RETURN(std::vector<Gpu> gpus, gpus_in_sysfs());
  if (gpu >= gpus.size()) return base::Error(ENODEV, "there is no GPU " + std::to_string(gpu));
  gpus = {gpus[gpu]};
  ASSIGN_OR_RETURN(auto driver, KfdDriver::open(gpus));
  return Session(std::move(gpus), std::move(driver));
}

Session::Session(std::vector<Gpu> gpus, std::unique_ptr<Driver> driver)
    : gpus_(std::move(gpus)), driver_(std::move(driver)) {
  for (Gpu& gpu : gpus_) gpu.driver = driver_.get();
}

Session::Session(Session&&) noexcept = default;
Session::~Session() = default;

}  // namespace kfdtest
