// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The fixture of the schedulers' tests: a fake driver, whose queues write words that show which of them ran.
#pragma once

#include <gtest/gtest.h>

#include "vasicd/blocks/fakes/fake_driver.h"

namespace vasicd {

class SchedulerTest : public ::testing::Test {
 protected:
  explicit SchedulerTest(unsigned gfx_level = 9) : driver(gfx_level) {}
  void write(GuestQueue& q, GpuAddr at, std::uint32_t value) {
    packets::Words w;
    packets::pm4::write_data(w, at, value);
    driver.submit(q, w);
  }
  std::uint32_t at(GpuAddr va) { return driver.memory.get<std::uint32_t>(va); }
  FakeDriver driver;
};

}  // namespace vasicd
