// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A /dev/kfd in memory for tests: one process with devices and BOs, whose "dmabufs" are memfds.
// fail_at names the operation that fails; every call is recorded, and counts as a system call (base/os.h), as it is one
// on a real /dev/kfd. Follows the kernel's rules about order
// (CHECKPOINT and UNPAUSE want a pause) so that a wrong order fails here too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kfd/errors.h"
#include "kfd/kfd.h"

namespace kfd {

class FakeKfd final : public Kfd {
 public:
  struct FakeBo {
    Bo bo;
    std::vector<std::byte> contents;
  };

  // The process to checkpoint.
  std::vector<Device> devices;
  std::vector<FakeBo> bos;
  std::vector<std::byte> priv_data;
  std::uint32_t num_objects = 0;
  std::uint32_t pid = 0;
  Version kfd_version{1, 16};

  // Faults: "version", "process_info", "checkpoint", "unpause", "restore" or "resume" fails with fail_errno.
  std::string fail_at;
  int fail_errno = 5;

  // What happened.
  std::vector<std::string> calls;
  bool paused = false;
  std::optional<RestoreRequest> restored;
  std::vector<pid_t> resumed;

  // Contents of restored BO `index`, as the copier left them.
  [[nodiscard]] std::vector<std::byte> restored_contents(std::size_t index) const;

  base::Result<Version> version(int fd) override;
  base::Result<ProcessInfo> process_info(int fd) override;
  base::Result<Checkpoint> checkpoint(int fd, const ProcessInfo& info) override;
  base::Status unpause(int fd) override;
  base::Result<std::vector<RestoredBo>> restore(int fd, RestoreRequest request) override;
  base::Status resume(int fd, pid_t target) override;

 private:
  base::Status step(int fd, const std::string& name, Operation operation);

  std::vector<base::UniqueFd> restored_memory_;
};

// The offset that FakeKfd::restore() gives to BO `index`.
[[nodiscard]] std::uint64_t fake_restored_offset(std::size_t index);

}  // namespace kfd
