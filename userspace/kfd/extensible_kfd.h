// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Kfd by the extensible ABI of our kernel series (linux/kfd_criu_ioctl.h). An image is its private data: ProcessInfo
// counts nothing but that, and RestoreRequest::bos names the BOs whose offsets and files are wanted, in the order of
// checkpoint().
#pragma once

#include <vector>

#include "kfd/kfd.h"

namespace kfd {

class ExtensibleKfd final : public Kfd {
 public:
  base::Result<Version> version(int fd) override;
  base::Result<ProcessInfo> process_info(int fd) override;
  base::Result<Checkpoint> checkpoint(int fd, const ProcessInfo& info) override;
  base::Status unpause(int fd) override;
  base::Result<std::vector<RestoredBo>> restore(int fd, RestoreRequest request) override;
  base::Status resume(int fd, pid_t pid) override;

 private:
  // From process_info() to unpause(). The process runs again when this object is destroyed, too.
  base::UniqueFd pause_;
};

}  // namespace kfd
