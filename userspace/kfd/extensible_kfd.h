// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Kfd by the extensible ABI of our kernel series (linux/kfd_criu_ioctl.h). An image is its private data: ProcessInfo
// counts nothing but that, and RestoreRequest::bos names the BOs whose offsets and files are wanted, in the order of
// checkpoint(). DMA-bufs are made one by one, by export_bo().
#pragma once

#include <vector>

#include "kfd/kfd.h"

namespace kfd {

class ExtensibleKfd final : public Kfd {
 public:
  base::Result<Version> version(int fd) override;
  base::Result<Abi> choose_abi(int fd) override;
  base::Result<bool> is_traced(int fd) override;
  base::Result<Pause> pause(int fd) override;
  base::Result<Pause> pause_with_objects(int fd) override;
  base::Result<Checkpoint> checkpoint(int fd, const Pause& pause) override;
  base::Result<base::UniqueFd> export_bo(int fd, const Pause& pause, CheckpointedBo& bo) override;
  base::Status confirm(int fd, Pause& pause) override;
  base::Status unpause(int fd, Pause& pause) override;
  base::Result<std::vector<RestoredBo>> restore(int fd, RestoreRequest request) override;
  base::Result<base::UniqueFd> export_restored(int fd, const Bo& bo, RestoredBo& restored) override;
  base::Status resume(int fd, pid_t pid) override;
  base::Result<base::UniqueFd> allocate(int fd, const Allocation& allocation) override;

  // Whether the kernel has this ABI. Works only on a file that the calling process opened.
  static base::Result<bool> probe(int fd);
};

}  // namespace kfd
