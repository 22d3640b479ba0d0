// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What can be learnt from a program's open render node without changing it: objects that no image describes, and
// whether KFD uses its VM. The ioctls are those of amdgpu since Linux 4.2; the file is the program's own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace plugin::render_file {

// The first GEM object, context or synchronization object that is found; empty: none. For kernels that
// do not list GEM handles (RenderDriver::has_lists): they are tried one by one up to last_handle. The kernel gives out
// the lowest free one: a higher one exists alone if the program has closed all lower ones. debugfs lists them, where it
// can be read (Devices).
base::Result<std::string> objects_of(int fd, std::uint32_t last_handle);
inline constexpr std::uint32_t kFewHandles = 4096;
inline constexpr std::uint32_t kManyHandles = 65536;

// Whether the file may map the BO at this offset of its GPU: KFD permits it to the file whose VM it uses, and to no
// other. Nothing when there is no BO there.
base::Result<std::optional<bool>> may_map(int fd, std::uint64_t offset);

// Attributes of memory that a program can ask only KFD for: AMDGPU_GEM_CREATE_VRAM_CONTIGUOUS, _COHERENT, _UNCACHED,
// _EXT_COHERENT.
inline constexpr std::uint64_t kOnlyByKfd = 1ULL << 5 | 1ULL << 13 | 1ULL << 14 | 1ULL << 15;
// The attributes of memory with these AMDGPU_GEM_CREATE_*, as flags of AMDKFD_IOC_ALLOC_MEMORY_OF_GPU.
std::uint32_t attributes_of(std::uint64_t gem_flags);

// How the memory behind a DMA-buf was allocated: as flags of AMDKFD_IOC_ALLOC_MEMORY_OF_GPU without those that only a
// BO has; 0 if the memory is another GPU's. `fd` is a file of the caller's, where the memory gets a handle for a
// moment.
base::Result<std::uint32_t> alloc_flags_of(int fd, int dmabuf);
// Whether a program has described the memory behind a DMA-buf with DRM_AMDGPU_GEM_METADATA. `fd` as above.
base::Result<bool> has_metadata(int fd, int dmabuf);

// Whether the memory behind a DMA-buf is that of the GPU of `fd`, a file of the caller's. `mmap_offset` is that of a BO
// of KFD which has the memory on this GPU: only there the BO has the GEM object that the DMA-buf was exported from.
base::Result<bool> is_home(int fd, int dmabuf, std::uint64_t mmap_offset);

// The engine for video that a file has used, as its fdinfo names it; empty: none. The driver (amdgpu_uvd.c,
// amdgpu_vce.c) or the firmware keeps sessions of such an engine for the file, and lists them nowhere.
std::string video_engine_in(const std::string& fdinfo);
base::Result<std::string> video_engine_of(int fd);

}  // namespace plugin::render_file
