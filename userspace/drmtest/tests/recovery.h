// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What tests of hangs and faults share: waiting for the driver's recovery, and work that shows that the GPU is usable.
#pragma once

#include <optional>
#include <vector>

#include "drmtest/env/gpu_test.h"
#include "drmtest/harness/buffer.h"
#include "drmtest/harness/submit.h"

namespace drmtest {

class RecoveryTest : public GpuTest {
 protected:
  // Of a job, a reset, and whatever they wait for.
  static constexpr Nanoseconds kHangLimit = std::chrono::seconds(60);

  void SetUp() override;
  void TearDown() override { page_.reset(); }

  // The driver ends a job that cannot end, and says so to its context.
  void expect_ended_by_reset(const Context& context, amdgpu_cs_fence fence) const;
  // The ring writes the value to word 2 of the page.
  void expect_work(const Context& context, unsigned ip, std::uint32_t value) const;
  // The kinds of rings that the GPU has: AMDGPU_HW_IP_*.
  [[nodiscard]] std::vector<unsigned> engines() const;
  [[nodiscard]] const Buffer& page() const { return *page_; }

 private:
  void wait_for_reset(const Context& context) const;
  std::optional<Buffer> page_;
};

}  // namespace drmtest
