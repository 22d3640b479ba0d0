// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A PM4 queue whose context save area is an SVM range, as later runtimes make them; libhsakmt 5.2 takes a BO. Made by
// the ioctls themselves. Never destroyed before the process ends: it is for one gated batch of packets.
#pragma once

#include <cstdint>
#include <span>

#include "base/mapping.h"
#include "base/result.h"
#include "kfdtest-criu/harness/gpu.h"
#include "kfdtest-criu/harness/memory.h"

namespace kfdtest {

class SvmQueue {
 public:
  static base::Result<SvmQueue> create(const Gpu& gpu);

  // Submits the only batch of the queue's life; at most the ring's size.
  base::Status submit(std::span<const std::uint32_t> dwords);

 private:
  SvmQueue(GpuMemory ring, GpuMemory pointers, GpuMemory eop, base::Mapping save_area)
      : ring_(std::move(ring)),
        pointers_(std::move(pointers)),
        eop_(std::move(eop)),
        save_area_(std::move(save_area)) {}

  GpuMemory ring_;
  GpuMemory pointers_;  // write pointer, then read pointer
  GpuMemory eop_;
  base::Mapping save_area_;
  base::Mapping doorbells_;
  std::size_t doorbell_ = 0;  // byte offset
};

}  // namespace kfdtest
