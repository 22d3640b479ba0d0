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
// The least median of so many batches is the result. Under emulation medians scatter between 165 and 400 us, and five
// batches are often all disturbed.
constexpr int kRepeats = 15;
constexpr Nanoseconds kLimit = std::chrono::seconds(10);

// Microseconds from before a submission until ...
struct Medians {
  double fence = 0;  // the ring has written the fence's value to memory
  double wait = 0;   // the driver's wait for it has returned: an interrupt and a woken thread later
};

double median_us(std::vector<std::int64_t> nanoseconds) {
  const auto middle = nanoseconds.begin() + static_cast<std::ptrdiff_t>(nanoseconds.size() / 2);
  std::nth_element(nanoseconds.begin(), middle, nanoseconds.end());
  return static_cast<double>(*middle) / 1000;
}

base::Result<Medians> measure(const Device& device, unsigned ip) {
  ASSIGN_OR_RETURN(const Context context, Context::create(device));
  ASSIGN_OR_RETURN(Submitter submitter, Submitter::create(device, context));
  ASSIGN_OR_RETURN(Buffer page, Buffer::create(device, gtt(kPage)));
  std::vector<std::int64_t> fences;
  std::vector<std::int64_t> waits;
  for (std::size_t i = 0; i < kWarmUp + kRounds; ++i) {
    Commands nop(device, ip);
    nop.nop();
    page.fill(0);
    const std::int64_t begin = from_now(Nanoseconds(0));
    ASSIGN_OR_RETURN(const amdgpu_cs_fence fence,
                     submitter.submit({.ip = ip, .bos = {page.handle()}, .user_fence = page.handle()}, nop));
    while (page.load(0) != static_cast<std::uint32_t>(fence.fence) && from_now(-kLimit) < begin) {
    }
    const std::int64_t written = from_now(Nanoseconds(0));
    ASSIGN_OR_RETURN(const bool ended, wait(fence));
    if (!ended) return base::Error(ETIME, "a job did not end");
    if (i < kWarmUp) continue;
    fences.push_back(written - begin);
    waits.push_back(from_now(Nanoseconds(0)) - begin);
  }
  return Medians{median_us(std::move(fences)), median_us(std::move(waits))};
}

base::Status run() {
  const std::vector<Node> nodes = render_nodes();
  if (nodes.empty()) return base::Error(ENODEV, "no AMD GPU");
  ASSIGN_OR_RETURN(const Device device, Device::open(nodes.front().path));
  ASSIGN_OR_RETURN(Medians sdma, measure(device, AMDGPU_HW_IP_DMA));
  for (int i = 1; i < kRepeats; ++i) {
    ASSIGN_OR_RETURN(const Medians again, measure(device, AMDGPU_HW_IP_DMA));
    sdma = {std::min(sdma.fence, again.fence), std::min(sdma.wait, again.wait)};
  }
  std::printf("{\"ring_fence_us_median\": %.1f, \"ring_wait_us_median\": %.1f}\n", sdma.fence, sdma.wait);
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
