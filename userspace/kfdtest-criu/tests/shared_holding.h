// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Memory that a process of SharedRestoreTest has, in one of several ways.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>

#include "base/result.h"
#include "base/unique_fd.h"
#include "kfdtest-criu/harness/gem.h"
#include "kfdtest-criu/harness/memory.h"
#include "kfdtest-criu/tests/shared_shapes.h"

namespace kfdtest {

inline constexpr std::size_t kSharedSize = 64 * kKiB;

class Held {
 public:
  static base::Result<Held> allocate(const Gpu& gpu, As as);
  static base::Result<Held> import(const Gpu& gpu, As as, int dmabuf);

  // Only for memory that this process has allocated.
  [[nodiscard]] std::span<std::byte> bytes() const;
  [[nodiscard]] std::uint64_t address(std::size_t offset = 0) const;
  [[nodiscard]] base::Result<base::UniqueFd> export_dmabuf() const;
  // Lets another GPU reach the BO as well.
  base::Status map_also(const Gpu& other);

 private:
  template <typename What>
  Held(const Gpu& gpu, What what) : gpu_(&gpu), what_(std::move(what)) {}
  const Gpu* gpu_;
  std::variant<GpuMemory, GemMemory> what_;
};

}  // namespace kfdtest
