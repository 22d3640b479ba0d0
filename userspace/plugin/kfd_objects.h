// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// GEM objects that are memory of BOs of KFD, in the file of a render node whose VM KFD uses: HIP's virtual memory
// management (hipMemCreate, hipMemMap) imports BOs there and maps them a second time. Such an object is saved with the
// BO, and a restore imports the BO at the number of the object. Decides on what the kernel said at the dump, or what an
// image says; makes no system call.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "base/result.h"
#include "kfd/kfd.h"
#include "plugin/image/catalogue.h"
#include "plugin/render_objects.h"

namespace plugin::kfd_objects {

// The references that each memory of KFD has by GEM handles, by inode.
using References = std::map<std::uint64_t, std::uint64_t>;

// Makes the objects of `found` that are memory of the process's BOs RenderObjects::kfd_gem, whose mappings are those
// that KFD has not made. `user_gpu_id` is how the process knows the GPU of the file. Adds to `references`.
base::Status take(render_objects::Found& found, const kfd::Checkpoint& state, std::uint32_t user_gpu_id,
                  References& references);

// The index of a BO that has the memory.
std::optional<std::size_t> bo_with(const image::KfdFile& kfd, std::uint64_t inode);

// Whether the objects of the render nodes of a session are those of its processes. `files` are all of the session.
base::Status check(std::span<const image::Loaded* const> files);

}  // namespace plugin::kfd_objects
