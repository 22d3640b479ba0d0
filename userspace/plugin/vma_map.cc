// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header. The layout of KFD's mmap offsets is kernel ABI: bits 63:62 type, bits 61:46 gpu_id.
#include "plugin/vma_map.h"

namespace plugin {
namespace {

constexpr int kGpuIdShift = 46;
constexpr std::uint64_t kGpuIdMask = 0xffffULL << kGpuIdShift;

bool in_range(std::uint64_t value, std::uint64_t start, std::uint64_t size) {
  return value >= start && value - start < size;
}

}  // namespace

std::optional<RenderVma> locate_exactly(std::span<const MappableBo> bos, std::uint64_t addr, std::uint64_t offset) {
  for (const MappableBo& bo : bos)
    if (in_range(offset, bo.old_offset, bo.size) && in_range(addr, bo.addr, bo.size) &&
        addr - bo.addr == offset - bo.old_offset)
      return RenderVma{bo.new_offset + (offset - bo.old_offset), bo.destination_gpu};
  return std::nullopt;
}

std::optional<RenderVma> locate_render_vma(std::span<const MappableBo> bos, std::optional<std::uint32_t> source_gpu,
                                           std::uint64_t addr, std::uint64_t offset) {
  const MappableBo* found = nullptr;
  for (const MappableBo& bo : bos) {
    if (source_gpu && bo.source_gpu != *source_gpu) continue;
    if (!in_range(offset, bo.old_offset, bo.size)) continue;
    const bool same_address = in_range(addr, bo.addr, bo.size);
    if (found == nullptr || same_address) found = &bo;
    if (same_address) break;
  }
  if (found == nullptr) return std::nullopt;
  return RenderVma{found->new_offset + (offset - found->old_offset), found->destination_gpu};
}

std::optional<std::uint64_t> locate_kfd_vma(std::span<const MappedGpu> gpus, std::uint64_t offset) {
  const auto gpu_id = static_cast<std::uint32_t>((offset & kGpuIdMask) >> kGpuIdShift);
  if (gpu_id == 0) return offset;  // the event page: of the process, not of a GPU
  for (const MappedGpu& gpu : gpus)
    if ((gpu.source_gpu & 0xffffU) == gpu_id)
      return (offset & ~kGpuIdMask) | ((std::uint64_t{gpu.destination_gpu} << kGpuIdShift) & kGpuIdMask);
  return std::nullopt;
}

}  // namespace plugin
