// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The checkpoint/restore operations of /dev/kfd as a typed interface; RealKfd issues the ioctls.
// Owns the file descriptors that the kernel hands out with BOs, from the moment the ioctl returns.
// Not here: which file belongs to which process, and the order of operations (see the plugin).
#pragma once

#include <linux/kfd_ioctl.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace kfd {

struct Version {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
};

// What a paused process owns.
struct ProcessInfo {
  std::uint32_t pid = 0;  // in the process's innermost pid namespace
  std::uint32_t num_devices = 0;
  std::uint32_t num_bos = 0;
  std::uint32_t num_objects = 0;
  std::uint64_t priv_size = 0;
};

// user_id is what the program was told, actual_id what this machine's sysfs says.
struct Device {
  std::uint32_t user_id = 0;
  std::uint32_t actual_id = 0;
};

struct Bo {
  std::uint64_t addr = 0;
  std::uint64_t size = 0;
  std::uint64_t mmap_offset = 0;
  std::uint32_t user_gpu_id = 0;
  std::uint32_t alloc_flags = 0;
};

// VRAM and GTT have contents of their own, the rest is the process's memory or registers.
[[nodiscard]] bool has_contents(const Bo& bo);

struct CheckpointedBo {
  Bo bo;
  base::UniqueFd dmabuf;  // valid iff has_contents(bo)
};

struct Checkpoint {
  std::vector<Device> devices;
  std::vector<CheckpointedBo> bos;
  std::vector<std::byte> priv_data;
};

struct RestoreDevice {
  std::uint32_t user_id = 0;
  std::uint32_t actual_id = 0;
  int drm_fd = -1;  // borrowed
};

struct RestoreRequest {
  std::vector<RestoreDevice> devices;
  std::vector<Bo> bos;
  std::vector<std::byte> priv_data;
  std::uint32_t num_objects = 0;
};

struct RestoredBo {
  std::uint64_t mmap_offset = 0;
  base::UniqueFd dmabuf;  // valid iff has_contents(bo)
};

// `fd` is always an open /dev/kfd. checkpoint-side calls work on another process's file, given by the tracer thread
// of that process; restore() works on the caller's own file; resume() on any.
class Kfd {
 public:
  Kfd() = default;
  Kfd(const Kfd&) = delete;
  Kfd& operator=(const Kfd&) = delete;
  virtual ~Kfd() = default;

  // Works only on a file that the calling process opened.
  virtual base::Result<Version> version(int fd) = 0;
  // Pauses the process's queues; they stay so until unpause(). When it fails, the kernel has undone the pause.
  virtual base::Result<ProcessInfo> process_info(int fd) = 0;
  // `info` is the answer of process_info() of the same pause.
  virtual base::Result<Checkpoint> checkpoint(int fd, const ProcessInfo& info) = 0;
  virtual base::Status unpause(int fd) = 0;
  // Answers one RestoredBo per requested BO, in order.
  virtual base::Result<std::vector<RestoredBo>> restore(int fd, RestoreRequest request) = 0;
  virtual base::Status resume(int fd, pid_t pid) = 0;
};

class RealKfd final : public Kfd {
 public:
  base::Result<Version> version(int fd) override;
  base::Result<ProcessInfo> process_info(int fd) override;
  base::Result<Checkpoint> checkpoint(int fd, const ProcessInfo& info) override;
  base::Status unpause(int fd) override;
  base::Result<std::vector<RestoredBo>> restore(int fd, RestoreRequest request) override;
  base::Status resume(int fd, pid_t pid) override;
};

}  // namespace kfd
