// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Where a device mapping of the image is found after restore: pure functions over offsets.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace plugin {

// A BO that can be mapped, before and after.
struct MappableBo {
  std::uint64_t addr = 0;
  std::uint64_t size = 0;
  std::uint64_t old_offset = 0;
  std::uint64_t new_offset = 0;
  std::uint32_t source_gpu = 0;  // actual ids
  std::uint32_t destination_gpu = 0;
};

struct MappedGpu {
  std::uint32_t source_gpu = 0;
  std::uint32_t destination_gpu = 0;
};

struct RenderVma {
  std::uint64_t new_offset = 0;
  std::uint32_t destination_gpu = 0;
};

// The mapping of a BO at the address where the GPU has it, as libhsakmt makes them all: address and offset are equally
// far from the start of the BO. Nothing when no BO is there.
std::optional<RenderVma> locate_exactly(std::span<const MappableBo> bos, std::uint64_t addr, std::uint64_t offset);

// The mapping of `offset` of a render node. source_gpu is the render node's, if known. A BO's range of offsets decides,
// so parts of a BO (after mprotect or a partial munmap) are found; of several BOs that share memory, the one at `addr`.
std::optional<RenderVma> locate_render_vma(std::span<const MappableBo> bos, std::optional<std::uint32_t> source_gpu,
                                           std::uint64_t addr, std::uint64_t offset);

// The mapping of `offset` of /dev/kfd: the same object (doorbells, registers) of the GPU that stands for the old one.
// Nothing when the offset names a GPU that is not in the map.
std::optional<std::uint64_t> locate_kfd_vma(std::span<const MappedGpu> gpus, std::uint64_t offset);

}  // namespace plugin
