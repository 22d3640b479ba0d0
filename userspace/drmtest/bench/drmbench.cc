// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// drmbench: from a submission to a kernel ring to its fence, as a client of the first GPU sees it. JSON on standard
// output.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "drmtest/env/device.h"
#include "drmtest/harness/submit.h"

namespace drmtest {
namespace {

constexpr std::size_t kWarmUp = 20;
constexpr std::size_t kRounds = 500;

base::Result<double> median_fence_us(const Device& device, unsigned ip) {
  ASSIGN_OR_RETURN(const Context context, Context::create(device));
  ASSIGN_OR_RETURN(Submitter submitter, Submitter::create(device, context));
  std::vector<std::int64_t> times;
  for (std::size_t i = 0; i < kWarmUp + kRounds; ++i) {
    Commands nop(device, ip);
    nop.nop();
    const std::int64_t begin = from_now(Nanoseconds(0));
    TRY(submitter.run({.ip = ip}, nop));
    if (i >= kWarmUp) times.push_back(from_now(Nanoseconds(0)) - begin);
  }
  std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
  return static_cast<double>(times[kRounds / 2]) / 1000;
}

base::Status run() {
  const std::vector<Node> nodes = render_nodes();
  if (nodes.empty()) return base::Error(ENODEV, "no AMD GPU");
  ASSIGN_OR_RETURN(const Device device, Device::open(nodes.front().path));
  ASSIGN_OR_RETURN(const double fence_us, median_fence_us(device, AMDGPU_HW_IP_DMA));
  std::printf("{\"ring_fence_us_median\": %.1f}\n", fence_us);
  return {};
}

}  // namespace
}  // namespace drmtest

int main() {
  const base::Status status = drmtest::run();
  if (status.ok()) return EXIT_SUCCESS;
  std::fprintf(stderr, "drmbench: %s\n", status.error().message().c_str());
  return EXIT_FAILURE;
}
