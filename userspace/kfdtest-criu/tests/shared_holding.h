// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Memory that a process of SharedRestoreTest has, in one of several ways.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "kfdtest-criu/harness/gem.h"
#include "kfdtest-criu/harness/memory.h"
#include "kfdtest-criu/harness/successor.h"
#include "kfdtest-criu/tests/shared_shapes.h"

namespace kfdtest {

inline constexpr std::size_t kSharedSize = 64 * kKiB;

// Bytes of the memory from `offset` on.
struct Piece {
  std::size_t offset = 0;
  std::vector<std::byte> bytes;
};

// Reads and writes are the GPU's, but for those of an open DMA-buf, which are the CPU's.
class Held {
 public:
  static base::Result<Held> allocate(const Gpu& gpu, As as);
  static base::Result<Held> import(const Gpu& gpu, As as, int dmabuf);

  [[nodiscard]] bool is(const HeldMemory& memory) const;
  [[nodiscard]] base::Result<base::UniqueFd> export_dmabuf() const;
  // Lets another GPU reach the BO as well.
  base::Status map_also(const Gpu& other);

  base::Status fill(std::uint64_t seed) const;
  base::Status store32(const Gpu& by, std::size_t offset, std::uint32_t word) const;
  // All of the memory as each address of it has it. `page` is memory of `by`.
  [[nodiscard]] base::Result<std::vector<Piece>> read(const Gpu& by, const GpuMemory& page) const;

 private:
  template <typename What>
  Held(const Gpu& gpu, What what) : gpu_(&gpu), what_(std::move(what)) {}
  // Where a GPU finds the memory.
  [[nodiscard]] std::vector<GemMapping> mappings() const;

  const Gpu* gpu_;
  std::variant<GpuMemory, GemMemory, GemViews, base::UniqueFd> what_;
};

}  // namespace kfdtest
