// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What the SDMA copier needs of a GPU: staging buffers, addresses of BOs, submission of packets. Not here: which
// packets are submitted when.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "packets/words.h"

namespace plugin::copy {

// Submissions that there can be at once; each has a staging buffer of kSliceSize and an indirect buffer.
// Half of them are with the GPU while the contents of the others are saved.
inline constexpr std::size_t kSlots = 4;
// The size of an indirect buffer, with the padding of pad().
inline constexpr std::size_t kIbDwords = 4096;

// A BO with a GPU address, until it is destroyed.
class GpuMemory {
 public:
  GpuMemory() = default;
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  virtual ~GpuMemory() = default;
  [[nodiscard]] virtual std::uint64_t va() const = 0;
};

class SdmaEngine {
 public:
  SdmaEngine() = default;
  SdmaEngine(const SdmaEngine&) = delete;
  SdmaEngine& operator=(const SdmaEngine&) = delete;
  virtual ~SdmaEngine() = default;

  // dmabuf is borrowed for the call. The result must not outlive the engine.
  virtual base::Result<std::unique_ptr<GpuMemory>> import(int dmabuf, std::uint64_t size) = 0;
  [[nodiscard]] virtual std::span<std::byte> staging(std::size_t slot) const = 0;
  [[nodiscard]] virtual std::uint64_t staging_va(std::size_t slot) const = 0;
  // The packets use `bos` and the slot's staging buffer, until wait() has returned.
  virtual base::Status submit(std::size_t slot, packets::WordView words, std::span<const GpuMemory* const> bos) = 0;
  // Returns at once if nothing was submitted since the last wait().
  virtual base::Status wait(std::size_t slot) = 0;
  // Whether a submission was not finished in time. The engine is of no use then, and wait() returns at once.
  [[nodiscard]] virtual bool hung() const = 0;
};

}  // namespace plugin::copy
