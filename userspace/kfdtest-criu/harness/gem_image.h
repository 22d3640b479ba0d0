// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// GEM objects of a render node in an image, and how they come back with their handles and addresses.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "kfd/kfd.h"
#include "kfdtest-criu/harness/contents.h"
#include "kfdtest-criu/harness/gem.h"

namespace kfdtest {

struct SavedGem {
  ListedGem object;
  std::uint64_t inode = 0;           // of the DMA-buf of its memory
  std::uint64_t mmap_offset = 0;     // in the render node
  std::vector<GemMapping> mappings;  // but for those that KFD has made
  Contents contents;                 // none of memory that KFD has too
};

// The objects of an open render node of a paused process; `bos` are those that KFD has of the process.
base::Result<std::vector<SavedGem>> save_gems(int render, std::span<const kfd::CheckpointedBo> bos);

// The DMA-buf of memory that exists, by the inode that it has in the image; no descriptor if there is none.
using ExistingMemory = std::function<base::Result<base::UniqueFd>(std::uint64_t inode)>;

// Creates or imports the objects in a new file, with their contents. Returns the mmap offset of each.
base::Result<std::vector<std::uint64_t>> restore_gems(int render, std::span<const SavedGem> gems,
                                                      const ExistingMemory& existing);

}  // namespace kfdtest
