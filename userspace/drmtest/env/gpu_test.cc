// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Which GPUs and rings a machine has.
#include "drmtest/env/gpu_test.h"

namespace drmtest {
namespace {

std::vector<Ring> find_rings() {
  std::vector<Ring> rings;
  for (const Node& node : all_gpus()) {
    if (listed_machine()) {
      rings.insert(rings.end(), {{node, AMDGPU_HW_IP_DMA}, {node, AMDGPU_HW_IP_COMPUTE}});
      continue;
    }
    const auto device = Device::open(node.path);
    if (!device.ok()) continue;  // GpuTest reports the error
    for (const unsigned ip : {AMDGPU_HW_IP_DMA, AMDGPU_HW_IP_COMPUTE})
      if (device->rings(ip) != 0) rings.push_back({node, ip});
  }
  return rings;
}

}  // namespace

const std::vector<Node>& all_gpus() {
  static const std::vector<Node> kNodes = render_nodes();
  return kNodes;
}

const std::vector<Ring>& all_rings() {
  static const std::vector<Ring> kRings = find_rings();
  return kRings;
}

std::string ring_name(const Ring& ring) {
  return ring.node.name + (ring.ip == AMDGPU_HW_IP_DMA ? "_sdma" : "_compute");
}

}  // namespace drmtest
