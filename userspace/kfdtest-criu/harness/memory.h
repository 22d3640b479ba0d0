// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Memory a GPU can reach, of the three kinds a program uses: VRAM, GTT (system memory KFD allocated) and userptr
// (the program's own pages, registered). Owners free what they hold; a buffer dies before the Session does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/mapping.h"
#include "base/result.h"
#include "kfdtest-criu/harness/driver.h"
#include "kfdtest-criu/harness/gpu.h"

namespace kfdtest {

inline constexpr std::size_t kPageSize = 4096;
inline constexpr std::size_t kKiB = 1024;
inline constexpr std::size_t kMiB = 1024 * kKiB;

inline constexpr MemoryKind kAllMemoryKinds[] = {MemoryKind::kVram, MemoryKind::kGtt, MemoryKind::kUserptr};
[[nodiscard]] std::string_view name_of(MemoryKind kind);

class GpuMemory {
 public:
  // Allocates memory and maps it to `gpu`, and to the CPU unless it is VRAM that the CPU does not reach.
  static base::Result<GpuMemory> allocate(const Gpu& gpu, MemoryKind kind, std::size_t size,
                                          MemoryUse use = MemoryUse::kData);
  // Takes over what the driver handed out, and maps it to `gpu`.
  static base::Result<GpuMemory> take(const Gpu& gpu, Block block);
  GpuMemory(GpuMemory&& other) noexcept;
  GpuMemory& operator=(GpuMemory&& other) noexcept;
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  ~GpuMemory() { release(); }

  // Replaces the GPUs the memory is mapped to.
  base::Status map_to(std::span<const Gpu* const> gpus);
  // Makes every GPU access to the memory a fault, while the CPU still reaches it; and undoes that.
  base::Status unmap();
  base::Status remap(const Gpu& gpu);

  [[nodiscard]] MemoryKind kind() const { return block_.kind; }
  [[nodiscard]] std::size_t size() const { return block_.size; }
  [[nodiscard]] std::byte* data() const { return block_.data; }
  [[nodiscard]] std::span<std::byte> bytes() const { return {block_.data, block_.size}; }
  [[nodiscard]] const Block& block() const { return block_; }
  // The GPU's address of byte `offset`; differs from the CPU's for userptr memory.
  [[nodiscard]] std::uint64_t gpu_address(std::size_t offset = 0) const { return block_.gpu_address + offset; }

  // Word `index` of the CPU mapping, for words that the device writes or reads concurrently.
  [[nodiscard]] std::uint32_t load32(std::size_t offset) const;
  [[nodiscard]] std::uint64_t load64(std::size_t offset) const;
  void store32(std::size_t offset, std::uint32_t value) const;
  void store64(std::size_t offset, std::uint64_t value) const;

 private:
  GpuMemory() = default;
  void release();

  Driver* driver_ = nullptr;  // null: owns nothing
  Block block_;
  base::Mapping pages_;  // userptr: the program's own pages
};

}  // namespace kfdtest
