// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Which rings a machine has.
#include "drmtest/env/gpu_test.h"

namespace drmtest {

std::vector<Ring> all_rings() {
  std::vector<Ring> rings;
  for (const Node& node : render_nodes()) {
    const auto device = Device::open(node.path);
    if (!device.ok()) continue;  // GpuTest says why
    for (const unsigned ip : {AMDGPU_HW_IP_DMA, AMDGPU_HW_IP_COMPUTE})
      if (device->rings(ip) != 0) rings.push_back({node, ip});
  }
  return rings;
}

std::string ring_name(const Ring& ring) {
  return ring.node.name + (ring.ip == AMDGPU_HW_IP_DMA ? "_sdma" : "_compute");
}

}  // namespace drmtest
