// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Reads the KFD topology from sysfs. Nodes that a device cgroup hides are left out.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "plugin/topology/node.h"

namespace plugin::topology {

// `root` is normally /sys/class/kfd/kfd/topology. Ascending node_id.
base::Result<std::vector<Node>> snapshot(const std::string& root);

// What an image records: those of `nodes` that are CPUs, and the GPUs in `gpu_ids`.
[[nodiscard]] std::vector<Node> select(const std::vector<Node>& nodes, const std::vector<std::uint32_t>& gpu_ids);

[[nodiscard]] const Node* find_gpu(const std::vector<Node>& nodes, std::uint32_t gpu_id);
[[nodiscard]] const Node* find_render_minor(const std::vector<Node>& nodes, std::uint32_t minor);

}  // namespace plugin::topology
