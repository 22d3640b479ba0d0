// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Which GPU of this machine stands for which GPU of the image. A pure function: complete search, so that a refusal
// is a proof. The source may be a subset of the destination.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "base/result.h"
#include "plugin/topology/node.h"

namespace plugin::topology {

// Source gpu_id -> destination gpu_id.
using GpuMap = std::map<std::uint32_t, std::uint32_t>;

struct MatchPolicy {
  bool check_firmware = true;         // firmware of the destination at least as new
  GpuMap forced = {};                 // what the user asked for; still has to fit
  std::set<std::uint32_t> busy = {};  // GPUs that are chosen only if there is no mapping without them
  // PCI device ids must be equal. If not, the properties that code and queues depend on are still compared.
  bool check_device_id = true;
  // A search that takes more steps has a symmetrical machine for which no mapping exists; it ends with a refusal.
  std::uint64_t max_steps = 20'000'000;
};

// The first mapping in order of preference (no busy GPU, same gpu_id, same render minor, then node order), or an error
// that explains, GPU by GPU, why there is none. Destinations outside `usable` (their render node cannot be opened) are
// never chosen. CPU nodes are ignored.
base::Result<GpuMap> match(const std::vector<Node>& source, const std::vector<Node>& destination,
                           const std::set<std::uint32_t>& usable, const MatchPolicy& policy);

// Why `destination` cannot stand for `source`, links apart; empty when it can.
[[nodiscard]] std::string mismatch(const Node& source, const Node& destination, const MatchPolicy& policy);

}  // namespace plugin::topology
