// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// GEM objects that three processes have, each in an open file of the render node of its own: one object of the parent,
// which both children import, and one of the second child, which the parent imports. The first child keeps the
// descriptor of the DMA-buf, and has it mapped for the GPU only at the end. With KFD in the parent, KFD has the
// parent's object as well, and the parent's file has memory of KFD's.
#pragma once

#include <sys/types.h>

#include <array>
#include <memory>
#include <optional>

#include "base/result.h"
#include "base/unique_fd.h"
#include "drmtest/harness/buffer.h"
#include "kfdtest-criu/harness/memory.h"
#include "kfdtest-criu/harness/queue.h"

namespace fieldtest {

class SharedObjects {
 public:
  // Forks the children; before the process has a GPU.
  static base::Result<std::unique_ptr<SharedObjects>> fork();
  // Makes and passes the objects. `gpu`: null without KFD.
  base::Status share(const kfdtest::Gpu* gpu);
  // Each has what all had, and sees what any of them writes, by CPU and GPU. Ends the children.
  base::Status check();

 private:
  struct Child {
    pid_t pid = 0;
    base::UniqueFd socket;
  };

  SharedObjects() = default;
  base::Status share_with_kfd(const kfdtest::Gpu& gpu);
  base::Status check_kfd();

  std::array<Child, 2> children_;
  std::optional<drmtest::Device> device_;
  std::optional<drmtest::Buffer> own_;
  std::optional<drmtest::Buffer> given_;
  // With KFD: its BO of own_, memory of its own, and the object that has this.
  const kfdtest::Gpu* gpu_ = nullptr;
  std::optional<kfdtest::GpuMemory> bo_;
  std::optional<kfdtest::GpuMemory> memory_;
  std::optional<drmtest::Buffer> object_;
  std::optional<kfdtest::RingQueue> queue_;
};

}  // namespace fieldtest
