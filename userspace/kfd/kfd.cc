// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// RealKfd: marshalling between the typed interface and struct kfd_ioctl_criu_args. No policy.
#include "kfd/kfd.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/os.h"
#include "kfd/abi.h"
#include "kfd/errors.h"

namespace kfd {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

// Sizes above these are a kernel bug, not a program.
constexpr std::uint32_t kMaxDevices = 1024;
constexpr std::uint32_t kMaxBos = 1U << 24;
constexpr std::uint64_t kMaxPrivSize = 1ULL << 30;

int ioctl_restarted(int fd, unsigned long request, void* argument) {
  int result = 0;
  do {
    result = os::ioctl(fd, request, argument);
  } while (result < 0 && errno == EINTR);
  return result;
}

Status criu_op(int fd, kfd_ioctl_criu_args& args, kfd_criu_op op, Operation operation) {
  args.op = op;
  // An interrupted RESTORE has made some of the objects: a second one would fail because of them and hide the reason.
  const int result = op == KFD_CRIU_OP_RESTORE ? os::ioctl(fd, AMDKFD_IOC_CRIU_OP, &args)
                                               : ioctl_restarted(fd, AMDKFD_IOC_CRIU_OP, &args);
  if (result < 0) return operation_error(Abi::kReleased, operation, errno);
  return {};
}

std::uint64_t user_pointer(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// Takes the descriptor of a bucket whose BO has one; the others hold no descriptor, whatever the field says.
UniqueFd take_dmabuf(const kfd_criu_bo_bucket& bucket, const Bo& bo) {
  if (!has_contents(bo)) return UniqueFd();
  UniqueFd dmabuf(static_cast<int>(bucket.dmabuf_fd));
  // The kernel made it inheritable; nothing that CRIU executes may inherit it.
  (void)os::fcntl(dmabuf.get(), F_SETFD, FD_CLOEXEC);
  return dmabuf;
}

// The number by which DMA-bufs of the same memory are recognised; 0 without a descriptor.
Result<std::uint64_t> inode_of(const UniqueFd& dmabuf) {
  struct stat status {};
  if (!dmabuf.valid()) return std::uint64_t{0};
  if (os::fstat(dmabuf.get(), &status) != 0) return Error::from_errno(errno, "fstat of a DMA-buf");
  return std::uint64_t{status.st_ino};
}

}  // namespace

bool has_contents(const Bo& bo) { return (bo.alloc_flags & abi::kMemoryKinds) != 0; }

Result<Version> RealKfd::version(int fd) {
  kfd_ioctl_get_version_args args{};
  if (ioctl_restarted(fd, AMDKFD_IOC_GET_VERSION, &args) < 0)
    return operation_error(Abi::kReleased, Operation::kVersion, errno);
  return Version{args.major_version, args.minor_version};
}

Result<Abi> RealKfd::choose_abi(int /*fd*/) { return Abi::kReleased; }

Result<bool> RealKfd::is_traced(int fd) {
  kfd_ioctl_criu_args args{};
  const Status status = criu_op(fd, args, KFD_CRIU_OP_UNPAUSE, Operation::kUnpause);
  // The kernel looks first who calls (EBADF), then whether there is a pause (EINVAL) and whose it is (EBUSY).
  if (status.ok() || status.error().code() == EINVAL || status.error().code() == EBUSY) return true;
  if (status.error().code() == EBADF) return false;
  return status.error();
}

Result<Pause> RealKfd::pause(int fd) {
  kfd_ioctl_criu_args args{};
  TRY(criu_op(fd, args, KFD_CRIU_OP_PROCESS_INFO, Operation::kPause));
  return Pause{UniqueFd(), {args.pid, args.num_devices, args.num_bos, args.num_objects, args.priv_data_size}};
}

Result<Checkpoint> RealKfd::checkpoint(int fd, const Pause& pause) {
  const ProcessInfo& info = pause.info;
  if (info.num_devices == 0 || info.num_devices > kMaxDevices || info.num_bos > kMaxBos || info.priv_size == 0 ||
      info.priv_size > kMaxPrivSize)
    return Error(EOVERFLOW, "KFD PROCESS_INFO answered impossible sizes");
  std::vector<kfd_criu_device_bucket> devices(info.num_devices);
  // The kernel wants a pointer even when there is no BO.
  std::vector<kfd_criu_bo_bucket> bos(info.num_bos == 0 ? 1 : info.num_bos);
  Checkpoint result;
  result.priv_data.resize(info.priv_size);

  kfd_ioctl_criu_args args{};
  args.devices = user_pointer(devices.data());
  args.bos = user_pointer(bos.data());
  args.priv_data = user_pointer(result.priv_data.data());
  args.priv_data_size = info.priv_size;
  args.num_devices = info.num_devices;
  args.num_bos = info.num_bos;
  args.num_objects = info.num_objects;
  TRY(criu_op(fd, args, KFD_CRIU_OP_CHECKPOINT, Operation::kCheckpoint));

  bos.resize(info.num_bos);
  for (const kfd_criu_bo_bucket& bucket : bos) {
    const Bo bo{bucket.addr, bucket.size, bucket.offset, bucket.gpu_id, bucket.alloc_flags};
    result.bos.push_back({.bo = bo, .dmabuf = take_dmabuf(bucket, bo)});
  }
  for (CheckpointedBo& bo : result.bos) {
    ASSIGN_OR_RETURN(bo.inode, inode_of(bo.dmabuf));
  }
  for (const kfd_criu_device_bucket& bucket : devices)
    result.devices.push_back({bucket.user_gpu_id, bucket.actual_gpu_id});
  return result;
}

Result<UniqueFd> RealKfd::export_bo(int /*fd*/, const Pause& /*pause*/, CheckpointedBo& bo) {
  return std::move(bo.dmabuf);
}

// This ABI has no verdict: a kernel that has only this one does not know whether anything was lost. PROCESS_INFO is no
// way to ask: some kernels evict the queues of a paused process again for it, and UNPAUSE takes back only one eviction.
Status RealKfd::confirm(int /*fd*/, Pause& /*pause*/) { return {}; }

Status RealKfd::unpause(int fd, Pause& /*pause*/) {
  kfd_ioctl_criu_args args{};
  return criu_op(fd, args, KFD_CRIU_OP_UNPAUSE, Operation::kUnpause);
}

Result<std::vector<RestoredBo>> RealKfd::restore(int fd, RestoreRequest request) {
  std::vector<kfd_criu_device_bucket> devices;
  for (const RestoreDevice& device : request.devices)
    devices.push_back({device.user_id, device.actual_id, static_cast<std::uint32_t>(device.drm_fd), 0});
  std::vector<kfd_criu_bo_bucket> bos;
  for (const Bo& bo : request.bos) {
    kfd_criu_bo_bucket bucket{};
    bucket.addr = bo.addr;
    bucket.size = bo.size;
    bucket.offset = bo.mmap_offset;
    bucket.gpu_id = bo.user_gpu_id;
    bucket.alloc_flags = bo.alloc_flags;
    bos.push_back(bucket);
  }

  kfd_ioctl_criu_args args{};
  args.devices = user_pointer(devices.data());
  args.bos = user_pointer(bos.data());
  args.priv_data = user_pointer(request.priv_data.data());
  args.priv_data_size = request.priv_data.size();
  args.num_devices = static_cast<std::uint32_t>(devices.size());
  args.num_bos = static_cast<std::uint32_t>(bos.size());
  args.num_objects = request.num_objects;
  TRY(criu_op(fd, args, KFD_CRIU_OP_RESTORE, Operation::kRestore));

  std::vector<RestoredBo> result;
  for (std::size_t i = 0; i < bos.size(); ++i)
    result.push_back({.mmap_offset = bos[i].restored_offset, .dmabuf = take_dmabuf(bos[i], request.bos[i])});
  return result;
}

Result<UniqueFd> RealKfd::export_restored(int /*fd*/, const Bo& /*bo*/, RestoredBo& restored) {
  return std::move(restored.dmabuf);
}

Status RealKfd::resume(int fd, pid_t pid) {
  kfd_ioctl_criu_args args{};
  args.pid = static_cast<std::uint32_t>(pid);
  return criu_op(fd, args, KFD_CRIU_OP_RESUME, Operation::kResume);
}

Result<UniqueFd> RealKfd::allocate(int /*fd*/, const Allocation& /*allocation*/) {
  return Error(EOPNOTSUPP, "the released ABI of KFD cannot give BOs memory that exists");
}

}  // namespace kfd
