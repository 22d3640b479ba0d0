// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Mappings of render nodes: of memory that nobody saves, and of one process's BOs in another process. Restore::locate()
// and Restore::locate_inherited() find mappings by the same rules, and what they would not find is refused here.
#include <algorithm>
#include <cerrno>

#include "plugin/preflight.h"

namespace plugin::preflight {
namespace {

using base::Error;
using base::Status;

// Whether `mapping` shows a part of the BO, through the render node of the BO's GPU.
bool shows(const DeviceMapping& mapping, const Process& process, const kfd::Bo& bo,
           const std::vector<topology::Node>& nodes) {
  const topology::Node* gpu = gpu_of(nodes, process.state, bo.user_gpu_id);
  return kfd::has_contents(bo) && gpu != nullptr && gpu->render_minor() == mapping.device.minor &&
         mapping.offset >= bo.mmap_offset && mapping.size <= bo.size &&
         mapping.offset - bo.mmap_offset <= bo.size - mapping.size;
}

// Whether it could be such a mapping by address and offset, which is all that a restore looks at.
bool is_at_address_of(const DeviceMapping& mapping, const kfd::Bo& bo) {
  return kfd::has_contents(bo) && mapping.start >= bo.addr && mapping.start - bo.addr < bo.size &&
         mapping.offset >= bo.mmap_offset && mapping.start - bo.addr == mapping.offset - bo.mmap_offset;
}

template <typename Fits>
std::vector<const Process*> owners(const std::vector<Process>& processes, const Fits& fits) {
  std::vector<const Process*> found;
  for (const Process& process : processes)
    if (std::any_of(process.state.bos.begin(), process.state.bos.end(),
                    [&](const kfd::CheckpointedBo& each) { return fits(process, each.bo); }))
      found.push_back(&process);
  return found;
}

class LostMappings {
 public:
  LostMappings(const Tree& tree, const std::vector<Process>& processes, const std::vector<topology::Node>& nodes,
               const std::function<bool(const Process&, std::uint32_t)>& keeps_render_file)
      : tree_(tree), processes_(processes), nodes_(nodes), keeps_render_file_(keeps_render_file) {}

  // Why the mapping would be lost; empty: it would not.
  [[nodiscard]] std::string reason(std::size_t task, const DeviceMapping& mapping) const {
    const auto all = owners(
        processes_, [&](const Process& process, const kfd::Bo& bo) { return shows(mapping, process, bo, nodes_); });
    if (all.empty()) return {};  // refuse_foreign_mappings() has a better message
    const bool is_own =
        std::any_of(all.begin(), all.end(), [&](const Process* process) { return process->task == task; });
    if (is_own) return {};
    const std::string name = tree_.tasks[all.front()->task].name();
    const bool uses_kfd =
        std::any_of(processes_.begin(), processes_.end(), [&](const Process& process) { return process.task == task; });
    if (uses_kfd) return "it is memory of " + name + ", and a program that uses KFD itself gets back only its own";
    return reason_of_inherited(mapping, all, name);
  }

 private:
  [[nodiscard]] std::string reason_of_inherited(const DeviceMapping& mapping, const std::vector<const Process*>& all,
                                                const std::string& name) const {
    const auto exact = owners(
        processes_, [&](const Process& /*process*/, const kfd::Bo& bo) { return is_at_address_of(mapping, bo); });
    if (exact.empty()) return "it is memory of " + name + " at another address than where its GPU has it";
    if (exact.size() > 1 || exact.front() != all.front())
      return "several programs have memory at this address, and a restore could not tell whose it is";
    const Process& owner = *exact.front();
    if (tree_.tasks[owner.task].mappings.empty())
      return "it is memory of " + name + ", which maps nothing of its GPUs any more and would not give it away";
    if (!keeps_render_file_(owner, mapping.device.minor))
      return "it is memory of " + name + ", which has closed the render node through which it could be mapped";
    return {};
  }

  const Tree& tree_;
  const std::vector<Process>& processes_;
  const std::vector<topology::Node>& nodes_;
  const std::function<bool(const Process&, std::uint32_t)>& keeps_render_file_;
};

}  // namespace

Status refuse_foreign_mappings(
    const Tree& tree, const std::vector<Process>& processes, const std::vector<topology::Node>& nodes,
    const std::function<bool(std::size_t task, const DeviceMapping& mapping)>& is_of_object) {
  const auto is_bo_of_kfd = [&](const DeviceMapping& mapping) {
    return !owners(processes, [&](const Process& process, const kfd::Bo& bo) {
              return shows(mapping, process, bo, nodes);
            }).empty();
  };
  for (std::size_t i = 0; i < tree.tasks.size(); ++i) {
    const Task& task = tree.tasks[i];
    for (const DeviceMapping& mapping : task.mappings) {
      if (mapping.device.kind != DeviceKind::kRender || is_of_object(i, mapping) || is_bo_of_kfd(mapping)) continue;
      return Error(EOPNOTSUPP, task.name() + ", mapping of " + std::to_string(mapping.size) + " bytes of renderD" +
                                   std::to_string(mapping.device.minor) + " at " + std::to_string(mapping.start) +
                                   ": it is no memory that KFD has, and no GEM object of a render node that this "
                                   "program has open");
    }
  }
  return {};
}

Status refuse_lost_mappings(const Tree& tree, const std::vector<Process>& processes,
                            const std::vector<topology::Node>& nodes,
                            const std::function<bool(const Process&, std::uint32_t)>& keeps_render_file,
                            const std::function<bool(std::size_t, const DeviceMapping&)>& is_of_object) {
  const LostMappings lost(tree, processes, nodes, keeps_render_file);
  for (std::size_t i = 0; i < tree.tasks.size(); ++i) {
    for (const DeviceMapping& mapping : tree.tasks[i].mappings) {
      if (mapping.device.kind != DeviceKind::kRender || is_of_object(i, mapping)) continue;
      const std::string reason = lost.reason(i, mapping);
      if (reason.empty()) continue;
      return Error(EOPNOTSUPP, tree.tasks[i].name() + ", inherited mapping of " + std::to_string(mapping.size) +
                                   " bytes of renderD" + std::to_string(mapping.device.minor) + " at " +
                                   std::to_string(mapping.start) + ": " + reason +
                                   "; end the program, or let it unmap this before the dump");
    }
  }
  return {};
}

}  // namespace plugin::preflight
