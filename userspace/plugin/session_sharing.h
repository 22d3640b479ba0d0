// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What an image says about memory that several of its processes, or files of render nodes, have, as sharing.h looks at
// it. Refuses an image whose files cannot have been those of one dump, before anything of it is restored.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "base/result.h"
#include "plugin/image/catalogue.h"
#include "plugin/sharing.h"

namespace plugin {

struct SessionSharing {
  sharing::Plan plan;
  // Indices of processes in the plan: files of kind kKfd, then those of kind kRender with GEM objects and those of kind
  // kDmabuf whose memory has no BO, which are like files with one object.
  std::vector<const image::Loaded*> files;
  std::vector<sharing::Place> contents;                  // as Plan::memories()
  std::map<std::uint64_t, std::uint32_t> foreign_flags;  // by inode: what the file with the contents says
  std::set<std::uint64_t> read_only;                     // inodes of memory whose DMA-buf may not be written through

  // How to allocate a memory of KFD that is made apart: flags of AMDKFD_IOC_ALLOC_MEMORY_OF_GPU.
  [[nodiscard]] std::uint32_t alloc_flags_of(const sharing::Memory& memory) const;
  // Whether a memory that is made apart is made as a GEM object, and not by KFD.
  [[nodiscard]] bool is_gem(const sharing::Memory& memory) const;
  // The GEM object that it was allocated for.
  [[nodiscard]] const image::GemObject& gem_of(const sharing::Memory& memory) const;
  // The id of its GPU on the machine of the dump.
  [[nodiscard]] std::uint32_t gpu_of(const sharing::Memory& memory) const;
  // The index in the plan of the file with this id.
  [[nodiscard]] std::size_t index_of(std::uint32_t file_id) const;
};

// `files` are all of one session; only those of kinds kKfd, kRender and kDmabuf matter. `is_late`: see sharing.h.
// `is_needed`: whether the task that opens this DMA-buf has no BO of its memory.
base::Result<SessionSharing> sharing_of(const std::vector<const image::Loaded*>& files,
                                        const std::function<bool(const image::Loaded& file)>& is_late,
                                        const std::function<bool(const image::Loaded& dmabuf)>& is_needed);

}  // namespace plugin
