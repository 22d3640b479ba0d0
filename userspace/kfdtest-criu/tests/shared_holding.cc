// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "kfdtest-criu/tests/shared_holding.h"

#include "kfdtest-criu/harness/kfd_driver.h"

namespace kfdtest {

base::Result<Held> Held::allocate(const Gpu& gpu, As as) {
  if (as == As::kGem) {
    ASSIGN_OR_RETURN(GemMemory object, GemMemory::create(gpu, kSharedSize));
    return Held(gpu, std::move(object));
  }
  ASSIGN_OR_RETURN(GpuMemory bo, GpuMemory::allocate(gpu, MemoryKind::kVram, kSharedSize));
  return Held(gpu, std::move(bo));
}

base::Result<Held> Held::import(const Gpu& gpu, As as, int dmabuf) {
  if (as == As::kGem) {
    ASSIGN_OR_RETURN(GemMemory object, GemMemory::import(gpu, dmabuf, kSharedSize));
    return Held(gpu, std::move(object));
  }
  ASSIGN_OR_RETURN(Block block, ioctls_of(gpu).import_dmabuf(gpu, dmabuf, kSharedSize));
  ASSIGN_OR_RETURN(GpuMemory bo, GpuMemory::take(gpu, std::move(block)));
  return Held(gpu, std::move(bo));
}

std::span<std::byte> Held::bytes() const {
  const auto* bo = std::get_if<GpuMemory>(&what_);
  return bo != nullptr ? bo->bytes() : std::get<GemMemory>(what_).bytes();
}

std::uint64_t Held::address(std::size_t offset) const {
  const auto* bo = std::get_if<GpuMemory>(&what_);
  return (bo != nullptr ? bo->gpu_address() : std::get<GemMemory>(what_).gpu_address()) + offset;
}

base::Result<base::UniqueFd> Held::export_dmabuf() const {
  const auto* bo = std::get_if<GpuMemory>(&what_);
  return bo != nullptr ? ioctls_of(*gpu_).client().export_dmabuf(bo->block().handle)
                       : std::get<GemMemory>(what_).export_dmabuf();
}

base::Status Held::map_also(const Gpu& other) {
  const Gpu* const both[] = {gpu_, &other};
  return std::get<GpuMemory>(what_).map_to(both);
}

}  // namespace kfdtest
