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
  // Time limit for the end of a hung job, including the reset.
  static constexpr Nanoseconds kHangLimit = std::chrono::seconds(60);

  void SetUp() override;
  void TearDown() override { page_.reset(); }

  // Waits until the driver has ended the hung job, and checks that its context reports the reset.
  void expect_ended_by_reset(const Context& context, amdgpu_cs_fence fence) const;
  // Submits a job that writes the value to word 2 of the page, and checks that it does.
  void expect_work(const Context& context, unsigned ip, std::uint32_t value) const;
  // The kinds of rings that the GPU has: AMDGPU_HW_IP_*.
  [[nodiscard]] std::vector<unsigned> engines() const;
  [[nodiscard]] const Buffer& page() const { return *page_; }

 private:
  void wait_for_reset(const Context& context) const;
  std::optional<Buffer> page_;
};

}  // namespace drmtest
