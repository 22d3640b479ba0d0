// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What an image says about memory that several of its processes have, as sharing.h looks at it. Refuses an image whose
// processes cannot have been those of one dump, before anything of it is restored.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "base/result.h"
#include "plugin/image/catalogue.h"
#include "plugin/sharing.h"

namespace plugin {

struct SessionSharing {
  sharing::Plan plan;
  std::vector<const image::Loaded*> files;               // of kind kKfd; indices of processes in the plan
  std::vector<sharing::Place> contents;                  // as Plan::memories()
  std::map<std::uint64_t, std::uint32_t> foreign_flags;  // by inode: what the file with the contents says

  // How to allocate a memory that is made apart: flags of AMDKFD_IOC_ALLOC_MEMORY_OF_GPU.
  [[nodiscard]] std::uint32_t alloc_flags_of(const sharing::Memory& memory) const;
  // The id of its GPU on the machine of the dump.
  [[nodiscard]] std::uint32_t gpu_of(const sharing::Memory& memory) const;
  // The index of a process in the plan.
  [[nodiscard]] std::size_t index_of(std::uint32_t pid) const;
};

// `files` are all of one session; only those of kinds kKfd and kDmabuf matter. `is_late`: see sharing.h. `is_needed`:
// whether the task that opens this DMA-buf has no BO of its memory.
base::Result<SessionSharing> sharing_of(const std::vector<const image::Loaded*>& files,
                                        const std::function<bool(const image::Loaded& file)>& is_late,
                                        const std::function<bool(const image::Loaded& dmabuf)>& is_needed);

}  // namespace plugin
