// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Part of Dump: which process owns the state of KFD, in which of its files it is saved, and how memory was allocated
// that none of them owns.
#include <algorithm>
#include <cerrno>

#include "plugin/dump.h"

namespace plugin {

using base::Error;
using base::Status;
using base::UniqueFd;

// Which of its files stands for a process, and what the others are.
Status Dump::choose_files() {
  for (Process& process : processes_) {
    const auto is_owner = [&](const Task& task) { return task.inner_pid == process.pid; };
    const auto owner = std::find_if(tree_.tasks.begin(), tree_.tasks.end(), is_owner);
    if (owner == tree_.tasks.end() || std::find_if(owner + 1, tree_.tasks.end(), is_owner) != tree_.tasks.end())
      return Error(ESRCH, tree_.name_of(tree_.files[process.file]) + ": its KFD process has pid " +
                              std::to_string(process.pid) + " in its pid namespace, and " +
                              (owner == tree_.tasks.end() ? "no program" : "more than one program") +
                              " of this dump has");
    process.task = static_cast<std::size_t>(owner - tree_.tasks.begin());
    bool is_chosen = false;
    for (std::size_t i = 0; i < tree_.files.size(); ++i) {
      Role& role = roles_[i];
      if (tree_.files[i].device.kind != DeviceKind::kKfd || role.owner != process.pid) continue;
      const auto& holders = tree_.files[i].holders;
      // A file that only other processes hold stays inert.
      if (std::none_of(holders.begin(), holders.end(), [&](const Holder& each) { return each.task == process.task; }))
        continue;
      role.kind = is_chosen ? image::Kind::kSecond : image::Kind::kKfd;
      if (is_chosen) continue;
      is_chosen = true;
      process.file = i;
      role.process = static_cast<std::size_t>(&process - processes_.data());
    }
    if (!is_chosen)
      return Error(EOPNOTSUPP,
                   name_of(process) + ": it uses KFD, but has closed the /dev/kfd that it opened; only a child has it");
  }
  return {};
}

// At restore CRIU asks the holder with the lowest pid for a file, and each process for its mappings. A process that
// maps nothing gets back nothing that another process is asked for.
Status Dump::refuse_owners_without_hook() const {
  for (const Process& process : processes_) {
    if (!tree_.tasks[process.task].mappings.empty()) continue;
    for (std::size_t i = 0; i < tree_.files.size(); ++i) {
      if (roles_[i].kind == image::Kind::kInert || roles_[i].owner != process.pid) continue;
      const auto& holders = tree_.files[i].holders;
      if (std::none_of(holders.begin(), holders.end(), [&](const Holder& each) { return each.task == process.task; }))
        continue;
      for (const Holder& holder : holders)
        if (const std::uint32_t pid = tree_.tasks[holder.task].inner_pid; pid < process.pid)
          return Error(EOPNOTSUPP, name_of(process) + ": it maps nothing of its GPUs, and process " +
                                       std::to_string(pid) + " with a lower pid has its " +
                                       (roles_[i].kind == image::Kind::kRender ? "render node" : "/dev/kfd") +
                                       "; CRIU would not give it back");
    }
  }
  return {};
}

// A restore allocates this memory again, and there is no BO that says how.
Status Dump::read_foreign_memories() {
  for (const sharing::Memory& memory : sharing_.memories()) {
    if (memory.origin.process >= processes_.size()) continue;  // of a GEM object
    Process& process = processes_[memory.origin.process];
    kfd::CheckpointedBo& bo = process.state.bos[memory.origin.bo];
    if (!bo.imported) continue;
    const topology::Node* gpu = preflight::gpu_of(nodes_, process.state, bo.bo.user_gpu_id);
    ASSIGN_OR_RETURN(const UniqueFd dmabuf, services_.kfd.export_bo(fd_of(process), process.pause, bo));
    ASSIGN_OR_RETURN(const UniqueFd render, services_.system.open_render(gpu->render_minor()));
    ASSIGN_OR_RETURN(foreign_[memory.inode], services_.render.alloc_flags(render.get(), dmabuf.get()));
  }
  return {};
}

}  // namespace plugin
