// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Checkpoint and restore of a process by the raw ioctls of either ABI, and what they took. Only the ioctls are timed,
// so not kfd::Kfd, whose calls also sort what the kernel said. An image is in the memory of the process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "base/result.h"

namespace kfdtest {

// Nanoseconds of CLOCK_MONOTONIC.
struct CriuTimes {
  std::uint64_t checkpoint = 0;  // PROCESS_INFO, which pauses, and CHECKPOINT
  std::uint64_t restore = 0;
  std::uint64_t resume = 0;
};

class TimedImage {
 public:
  TimedImage() = default;
  TimedImage(const TimedImage&) = delete;
  TimedImage& operator=(const TimedImage&) = delete;
  virtual ~TimedImage() = default;

  // Checkpoints the calling process, whose /dev/kfd is `fd`. Closes the files that come with it; the process stays
  // paused.
  virtual base::Status take(int fd, CriuTimes& times) = 0;
  // Restores in the calling process, which keeps the files until it ends. `gpu_id` is the only GPU of the image.
  virtual base::Status restore(int fd, std::uint32_t gpu_id, int render_fd, CriuTimes& times) = 0;
};

std::unique_ptr<TimedImage> released_image();
std::unique_ptr<TimedImage> extensible_image();

}  // namespace kfdtest
