// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The checkpoint/restore operations of /dev/kfd as a typed interface; RealKfd issues the ioctls of the released ABI,
// ExtensibleKfd those of the extensible one, DriverKfd (driver_kfd.h) the ones that the kernel has.
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
#include "kfd/errors.h"

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

// A pause of one process.
struct Pause {
  base::UniqueFd file;  // extensible ABI: the process stays paused while it is open; released ABI: none
  ProcessInfo info;
  bool has_objects = false;  // see Kfd::pause_with_objects()
};

// user_id is the id that the program got, actual_id what this machine's sysfs says.
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
  base::UniqueFd dmabuf;     // released ABI: valid iff has_contents(bo); extensible ABI: see Kfd::export_bo()
  std::uint32_t handle = 0;  // extensible ABI: the program's handle, lower 32 bits
  std::uint64_t inode = 0;   // of the DMA-buf of its memory: equal for all BOs of the same memory; 0: has no DMA-buf
  bool imported = false;     // extensible ABI: the memory was allocated for another BO
  std::vector<std::uint32_t> mapped = {};  // extensible ABI: the GPUs that have it in their VMs, by user_id
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

// Which memory a BO has, and whether it was allocated for this BO.
struct Origin {
  std::uint64_t inode = 0;  // as CheckpointedBo::inode
  bool imported = false;    // as CheckpointedBo::imported
};

// Memory that exists before a restore, and that BOs of the image are to have.
struct SharedMemory {
  std::uint64_t inode = 0;  // of these BOs in the image
  int dmabuf = -1;          // borrowed
};

struct RestoreRequest {
  std::vector<RestoreDevice> devices;
  std::vector<Bo> bos;
  std::vector<Origin> origins;         // extensible ABI: of each BO; empty: not compared with the image
  std::vector<SharedMemory> memories;  // extensible ABI
  std::vector<std::byte> priv_data;
  std::uint32_t num_objects = 0;
};

// New memory for several processes.
struct Allocation {
  std::uint64_t size = 0;
  std::uint32_t gpu_id = 0;  // of this machine
  std::uint32_t alloc_flags = 0;
  int drm_fd = -1;  // borrowed: a render node of this GPU, the same one in all calls for the GPU
};

struct RestoredBo {
  std::uint64_t mmap_offset = 0;
  base::UniqueFd dmabuf;     // released ABI: valid iff has_contents(bo); extensible ABI: see Kfd::export_restored()
  std::uint32_t handle = 0;  // extensible ABI: the program's handle, lower 32 bits
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
  // The newest ABI that the kernel has; later calls use it. Works only on a file that the calling process opened.
  virtual base::Result<Abi> choose_abi(int fd) = 0;
  // Later calls use this ABI, which is that of an image; if the kernel does not have it, they fail.
  virtual void use_abi(Abi /*abi*/) {}
  // Whether the calling thread traces the process that opened the file. If a pause of the released ABI exists, it
  // ends: of the operations of that ABI only UNPAUSE tells this without pausing a process.
  virtual base::Result<bool> is_traced(int fd) = 0;
  // Evicts the process's queues. When it fails, the kernel has undone the pause.
  virtual base::Result<Pause> pause(int fd) = 0;
  // As pause(), but also pauses a process with objects of render nodes, which then are for the caller to save, on
  // kernels that let it. Pause::has_objects says whether the process has any.
  virtual base::Result<Pause> pause_with_objects(int fd) { return pause(fd); }
  virtual base::Result<Checkpoint> checkpoint(int fd, const Pause& pause) = 0;
  // The DMA-buf of a BO that has contents, for the caller to close. Call once for each BO: the released ABI gives away
  // what checkpoint() returned.
  virtual base::Result<base::UniqueFd> export_bo(int fd, const Pause& pause, CheckpointedBo& bo) = 0;
  // Fails unless the process was paused, and nothing that it uses was reset, since pause(). It stays paused. The
  // released ABI cannot tell, and never fails.
  virtual base::Status confirm(int fd, Pause& pause) = 0;
  // The pause is over, even if this fails, unless the GPU does not respond.
  virtual base::Status unpause(int fd, Pause& pause) = 0;
  // Answers one RestoredBo per requested BO, in order.
  virtual base::Result<std::vector<RestoredBo>> restore(int fd, RestoreRequest request) = 0;
  // The DMA-buf of a restored BO that has contents, for the caller to close. Between restore() and resume(), on the
  // same file. The released ABI gives away what restore() returned, so call it once for each BO there.
  virtual base::Result<base::UniqueFd> export_restored(int fd, const Bo& bo, RestoredBo& restored) = 0;
  virtual base::Status resume(int fd, pid_t pid) = 0;
  // New memory as a DMA-buf, which has it also when the calling process, to which the memory belongs, has ended. `fd`
  // must be a file that the calling process opened. Extensible ABI only: the other one can share no memory.
  virtual base::Result<base::UniqueFd> allocate(int fd, const Allocation& allocation) = 0;
};

class RealKfd final : public Kfd {
 public:
  base::Result<Version> version(int fd) override;
  base::Result<Abi> choose_abi(int fd) override;
  base::Result<bool> is_traced(int fd) override;
  base::Result<Pause> pause(int fd) override;
  base::Result<Checkpoint> checkpoint(int fd, const Pause& pause) override;
  base::Result<base::UniqueFd> export_bo(int fd, const Pause& pause, CheckpointedBo& bo) override;
  base::Status confirm(int fd, Pause& pause) override;
  base::Status unpause(int fd, Pause& pause) override;
  base::Result<std::vector<RestoredBo>> restore(int fd, RestoreRequest request) override;
  base::Result<base::UniqueFd> export_restored(int fd, const Bo& bo, RestoredBo& restored) override;
  base::Status resume(int fd, pid_t pid) override;
  base::Result<base::UniqueFd> allocate(int fd, const Allocation& allocation) override;
};

}  // namespace kfd
