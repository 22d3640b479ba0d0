// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Kfd by the newest ABI that the running kernel has: the extensible one if choose_abi() finds it, else the released
// one. Not here: the operations themselves.
#pragma once

#include <vector>

#include "kfd/extensible_kfd.h"
#include "kfd/kfd.h"

namespace kfd {

class DriverKfd final : public Kfd {
 public:
  base::Result<Version> version(int fd) override { return used().version(fd); }
  base::Result<Abi> choose_abi(int fd) override;
  void use_abi(Abi abi) override { abi_ = abi; }
  base::Result<bool> is_traced(int fd) override { return used().is_traced(fd); }
  base::Result<Pause> pause(int fd) override { return used().pause(fd); }
  base::Result<Pause> pause_with_objects(int fd) override { return used().pause_with_objects(fd); }
  base::Result<Checkpoint> checkpoint(int fd, const Pause& pause) override { return used().checkpoint(fd, pause); }
  base::Result<base::UniqueFd> export_bo(int fd, const Pause& pause, CheckpointedBo& bo) override {
    return used().export_bo(fd, pause, bo);
  }
  base::Status confirm(int fd, Pause& pause) override { return used().confirm(fd, pause); }
  base::Status unpause(int fd, Pause& pause) override { return used().unpause(fd, pause); }
  base::Result<std::vector<RestoredBo>> restore(int fd, RestoreRequest request) override {
    return used().restore(fd, std::move(request));
  }
  base::Result<base::UniqueFd> export_restored(int fd, const Bo& bo, RestoredBo& restored) override {
    return used().export_restored(fd, bo, restored);
  }
  base::Status resume(int fd, pid_t pid) override { return used().resume(fd, pid); }
  base::Result<base::UniqueFd> allocate(int fd, const Allocation& allocation) override {
    return used().allocate(fd, allocation);
  }

 private:
  Kfd& used() { return abi_ == Abi::kExtensible ? static_cast<Kfd&>(extensible_) : released_; }

  RealKfd released_;
  ExtensibleKfd extensible_;
  Abi abi_ = Abi::kReleased;
};

}  // namespace kfd
