// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "plugin/restore_plan.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "plugin/topology/snapshot.h"

namespace plugin {

using base::Error;
using base::Result;

Result<RestorePlan> RestorePlan::make(const Devices& devices, const Options& options,
                                      std::vector<topology::Node> source) {
  RestorePlan plan;
  plan.source_ = std::move(source);
  ASSIGN_OR_RETURN(plan.kfd_, devices.kfd_node());
  ASSIGN_OR_RETURN(const std::vector<topology::Node> machine, devices.topology());
  std::set<std::uint32_t> usable;
  std::map<std::uint32_t, DeviceNode> nodes;
  for (const topology::Node& node : machine) {
    if (node.gpu_id == 0) continue;
    auto render = devices.render_node(node.render_minor());
    if (!render.ok() || !devices.open_node(*render).ok()) continue;
    usable.insert(node.gpu_id);
    nodes.emplace(node.gpu_id, std::move(render).value());
  }
  topology::MatchPolicy policy{options.check_firmware, options.gpu_map, {}, options.check_device_id};
  for (const QueueHolder& holder : devices.sdma_holders()) policy.busy.insert(holder.gpu_id);
  ASSIGN_OR_RETURN(plan.gpus_, topology::match(plan.source_, machine, usable, policy));
  for (const auto& [from, to] : plan.gpus_) plan.render_.emplace(to, nodes.at(to));
  return plan;
}

Result<std::uint32_t> RestorePlan::destination_of(std::uint32_t source_gpu) const {
  const auto found = gpus_.find(source_gpu);
  if (found == gpus_.end())
    return Error(EINVAL, "no GPU was chosen for GPU " + std::to_string(source_gpu) + " of the image");
  return found->second;
}

const DeviceNode& RestorePlan::render(std::uint32_t destination_gpu) const { return render_.at(destination_gpu); }

bool RestorePlan::has_device(dev_t number) const {
  if (kfd_.number == number) return true;
  return std::any_of(render_.begin(), render_.end(),
                     [number](const auto& render) { return render.second.number == number; });
}

std::string RestorePlan::holders(const Devices& devices) const {
  std::string text;
  for (const QueueHolder& holder : devices.sdma_holders()) {
    if (!render_.contains(holder.gpu_id)) continue;
    text += text.empty() ? "SDMA queues are held by " : ", ";
    text += "process " + std::to_string(holder.pid);
    if (!holder.comm.empty()) text += " (" + holder.comm + ")";
    text += " on GPU " + std::to_string(holder.gpu_id);
  }
  return text;
}

}  // namespace plugin
