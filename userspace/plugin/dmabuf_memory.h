// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Memory of GPUs that has no BO and no GEM object any more: open descriptors of its DMA-buf are all that there is of
// it.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "plugin/dmabuf_file.h"
#include "plugin/image/format.h"
#include "plugin/services.h"
#include "plugin/topology/node.h"

namespace plugin::dmabuf_memory {

struct Found {
  const topology::Node* gpu = nullptr;
  image::GemObject object;
  image::BoRecord record;
  std::uint32_t alloc_flags = 0;  // see image::DmabufFile
  std::uint32_t vram_losses = 0;  // of the GPU, before anything was read
};

// Whether the kernel lists GEM objects. Else find() learns nothing.
base::Result<bool> can_find(const Services& services, const std::vector<topology::Node>& nodes);

// Which GPU has the memory, and as what it can be created again; fails with the reason if it cannot, and if a GPU does
// not take the memory and no other one has it. Nothing: it is memory of none of the GPUs.
base::Result<std::optional<Found>> find(const Services& services, const std::vector<topology::Node>& nodes, int fd,
                                        const dmabuf_file::Info& info);

// Fails if the GPU has lost the contents of VRAM since then: what was saved may not be what the memory had.
base::Status confirm(const Services& services, const Found& memory);

}  // namespace plugin::dmabuf_memory
