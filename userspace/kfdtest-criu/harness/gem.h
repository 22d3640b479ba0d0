// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// GEM objects of the render node whose address space KFD uses, by its ioctls: the queues of KFD reach them. As with
// GpuMemory, GPU and CPU see an object at the same address, and an object dies before the Session does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "kfdtest-criu/harness/gpu.h"

namespace kfdtest {

// ---- single ioctls ----------------------------------------------------------

// A part of an object in the GPU's address space.
struct GemMapping {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;  // in the object
  std::uint64_t flags = 0;   // AMDGPU_VM_PAGE_*
};

// An object as the kernel lists it; see kernel/drm-handle-at.
struct ListedGem {
  std::uint32_t handle = 0;
  std::uint64_t size = 0;
  std::uint64_t domains = 0;  // AMDGPU_GEM_DOMAIN_*
  std::uint64_t flags = 0;    // AMDGPU_GEM_CREATE_*
  std::uint64_t alignment = 0;
};

// `render` is an open render node.
namespace gem {
// VRAM that the CPU reaches. The caller closes the handle.
base::Result<std::uint32_t> create(int render, std::size_t size);
base::Result<std::uint32_t> import(int render, int dmabuf);
base::Result<base::UniqueFd> export_dmabuf(int render, std::uint32_t handle);
// Where the CPU maps the object in the render node.
base::Result<std::uint64_t> mmap_offset(int render, std::uint32_t handle);
base::Status map(int render, std::uint32_t handle, const GemMapping& mapping);
base::Status unmap(int render, std::uint32_t handle, const GemMapping& mapping);
void close(int render, std::uint32_t handle);

base::Result<std::vector<ListedGem>> list(int render);
base::Result<std::vector<GemMapping>> mappings(int render, std::uint32_t handle);
base::Status create_at(int render, const ListedGem& like);
base::Status import_at(int render, std::uint32_t handle, int dmabuf);
}  // namespace gem

// ---- memory at several addresses ---------------------------------------------

// Memory as HIP's virtual memory management has it: KFD has allocated it without an address, or somebody has given it;
// a render node has its GEM object, which has addresses twice as a whole and once in part. An object of this class
// frees the memory, before the Session ends.
class GemViews {
 public:
  // At most one such memory of a process exists: all would have the same address in KFD's list, which no GPU uses.
  static base::Result<GemViews> allocate(const Gpu& gpu, std::size_t size);
  static base::Result<GemViews> import(const Gpu& gpu, int dmabuf, std::size_t size);
  GemViews(GemViews&& other) noexcept;
  GemViews& operator=(GemViews&&) = delete;
  GemViews(const GemViews&) = delete;
  GemViews& operator=(const GemViews&) = delete;
  ~GemViews();

  [[nodiscard]] std::span<const GemMapping> mappings() const { return mappings_; }
  [[nodiscard]] base::Result<base::UniqueFd> export_dmabuf() const;

 private:
  GemViews(const Gpu& gpu, std::uint32_t handle, std::uint64_t memory) : gpu_(&gpu), handle_(handle), memory_(memory) {}
  base::Status map(std::uint64_t offset, std::uint64_t size);
  base::Status map_all(std::size_t size);

  const Gpu* gpu_;
  std::uint32_t handle_ = 0;  // 0: owns nothing
  std::uint64_t memory_ = 0;  // KFD's handle; 0: KFD has not allocated it here
  std::vector<GemMapping> mappings_;
};

// ---- an object with its address ---------------------------------------------

class GemMemory {
 public:
  static base::Result<GemMemory> create(const Gpu& gpu, std::size_t size);
  static base::Result<GemMemory> import(const Gpu& gpu, int dmabuf, std::size_t size);
  GemMemory(GemMemory&& other) noexcept;
  GemMemory& operator=(GemMemory&&) = delete;
  GemMemory(const GemMemory&) = delete;
  GemMemory& operator=(const GemMemory&) = delete;
  ~GemMemory();

  [[nodiscard]] std::uint64_t gpu_address() const { return whole_.address; }
  [[nodiscard]] std::span<std::byte> bytes() const {
    return {reinterpret_cast<std::byte*>(whole_.address), whole_.size};
  }
  [[nodiscard]] base::Result<base::UniqueFd> export_dmabuf() const;

 private:
  GemMemory(const Gpu& gpu, std::uint32_t handle) : gpu_(&gpu), handle_(handle) {}
  base::Status map(std::size_t size);

  const Gpu* gpu_;
  std::uint32_t handle_ = 0;  // 0: owns nothing
  GemMapping whole_;
};

}  // namespace kfdtest
