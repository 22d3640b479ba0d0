// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Moves contents of BOs between a GPU and host memory. A Copier belongs to one GPU, has one fixed pool of buffers
// whatever the BOs' size, and is used by one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/result.h"

namespace plugin::copy {

// Called with the BO's contents in order, slice by slice; all but the last have kSliceSize bytes.
using Sink = std::function<base::Status(std::span<const std::byte>)>;

// The BO's contents in order.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;
  // Passes over the next bytes that are known to be zero, and returns how many these are: at most `limit`.
  virtual std::uint64_t skip_zeros(std::uint64_t limit) = 0;
  // Fills `out` with the next bytes.
  virtual base::Status read(std::span<std::byte> out) = 0;
};

// A multiple of the image's chunk size, so that a slice ends where a chunk ends.
inline constexpr std::size_t kSliceSize = 16U << 20;
// The most that a source is asked for at once. Between two steps it is asked for zeros.
inline constexpr std::size_t kStepSize = 1U << 20;

// Whether a failed copy may be tried in another way: kUnreachable promises that no byte was asked for or delivered.
enum class FailureKind { kUnreachable, kBroken };
struct Failure {
  FailureKind kind;
  base::Error error;
};
using Outcome = base::Expected<void, Failure>;

class Copier {
 public:
  Copier() = default;
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;
  virtual ~Copier() = default;

  // dmabuf is borrowed for the call.
  virtual Outcome read(int dmabuf, std::uint64_t size, const Sink& sink) = 0;
  virtual Outcome write(int dmabuf, std::uint64_t size, Source& source) = 0;
};

// The CPU, through mmap() of the dmabuf: for what it can see.
std::unique_ptr<Copier> make_cpu_copier();

// The CPU, for a BO of which there is no DMA-buf: instead of one, read() and write() are given the file of the render
// node that the BO is in, which has it at `offset`.
std::unique_ptr<Copier> make_mapping_copier(std::uint64_t offset);

enum class Method { kAuto, kSdma, kCpu };

// The one that copies by `method`, for the GPU behind `render_fd` (borrowed; the copier opens nothing else and leaves no
// trace in that file once destroyed). kAuto is SDMA, and the CPU for BOs or GPUs that SDMA cannot reach.
base::Result<std::unique_ptr<Copier>> make_copier(int render_fd, Method method,
                                                  std::chrono::seconds fence_timeout);

}  // namespace plugin::copy
