// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "plugin/render_file.h"

#include <amdgpu_drm.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>

#include "base/os.h"
#include "base/text_file.h"
#include "kfd/abi.h"

namespace plugin::render_file {
namespace {

using base::Error;
using base::Result;

constexpr std::uint32_t kMaxContext = 4095;  // AMDGPU_VM_MAX_NUM_CTX of the driver, less one
constexpr std::uint32_t kMaxSyncobj = 1024;
constexpr std::size_t kPage = 4096;

// 0 or an errno.
int call(int fd, unsigned long request, void* argument) {
  while (os::ioctl(fd, request, argument) != 0)
    if (errno != EINTR) return errno;
  return 0;
}

Result<bool> has_gem_object(int fd, std::uint32_t handle) {
  drm_amdgpu_gem_mmap args{};
  args.in.handle = handle;
  const int code = call(fd, DRM_IOCTL_AMDGPU_GEM_MMAP, &args);
  if (code == ENOENT) return false;
  if (code == 0 || code == EPERM) return true;  // EPERM: an object that the CPU cannot map
  return Error::from_errno(code, "DRM_IOCTL_AMDGPU_GEM_MMAP");
}

Result<bool> has_context(int fd, std::uint32_t id) {
  drm_amdgpu_ctx args{};
  args.in.op = AMDGPU_CTX_OP_QUERY_STATE2;
  args.in.ctx_id = id;
  const int code = call(fd, DRM_IOCTL_AMDGPU_CTX, &args);
  if (code == EINVAL) return false;
  if (code == 0) return true;
  return Error::from_errno(code, "DRM_IOCTL_AMDGPU_CTX");
}

Result<bool> has_syncobj(int fd, std::uint32_t handle) {
  std::uint64_t point = 0;
  drm_syncobj_timeline_array args{};
  args.handles = reinterpret_cast<std::uintptr_t>(&handle);
  args.points = reinterpret_cast<std::uintptr_t>(&point);
  args.count_handles = 1;
  const int code = call(fd, DRM_IOCTL_SYNCOBJ_QUERY, &args);
  if (code == ENOENT) return false;
  if (code == 0) return true;
  return Error::from_errno(code, "DRM_IOCTL_SYNCOBJ_QUERY");
}

Result<std::uint32_t> import(int fd, int dmabuf) {
  drm_prime_handle imported{};
  imported.fd = dmabuf;
  if (const int code = call(fd, DRM_IOCTL_PRIME_FD_TO_HANDLE, &imported); code != 0)
    return Error::from_errno(code, "DRM_IOCTL_PRIME_FD_TO_HANDLE");
  return std::uint32_t{imported.handle};
}

void close_handle(int fd, std::uint32_t handle) {
  drm_gem_close closed{};
  closed.handle = handle;
  (void)call(fd, DRM_IOCTL_GEM_CLOSE, &closed);
}

// Flags that kernels newer than the header have.
constexpr std::uint64_t kGemCoherent = 1ULL << 13;
constexpr std::uint64_t kGemUncached = 1ULL << 14;
constexpr std::uint64_t kGemExtCoherent = 1ULL << 15;

struct Attribute {
  std::uint64_t gem;
  std::uint32_t kfd;
};
// AMDKFD_IOC_ALLOC_MEMORY_OF_GPU translates them so.
constexpr std::array kAttributes = {Attribute{AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED, KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC},
                                    Attribute{AMDGPU_GEM_CREATE_VRAM_CONTIGUOUS, kfd::abi::kAllocContiguous},
                                    Attribute{kGemCoherent, KFD_IOC_ALLOC_MEM_FLAGS_COHERENT},
                                    Attribute{kGemUncached, KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED},
                                    Attribute{kGemExtCoherent, kfd::abi::kAllocExtCoherent}};

}  // namespace

std::uint32_t attributes_of(std::uint64_t gem_flags) {
  std::uint32_t flags = 0;
  for (const Attribute& each : kAttributes)
    if ((gem_flags & each.gem) != 0) flags |= each.kfd;
  return flags;
}

Result<bool> is_home(int fd, int dmabuf, std::uint64_t mmap_offset) {
  ASSIGN_OR_RETURN(const std::uint32_t handle, import(fd, dmabuf));
  drm_amdgpu_gem_mmap args{};
  args.in.handle = handle;
  const int code = call(fd, DRM_IOCTL_AMDGPU_GEM_MMAP, &args);
  close_handle(fd, handle);
  // Memory that the CPU cannot map. A GEM object that was made for an import is not of this kind.
  if (code == EPERM) return true;
  if (code != 0) return Error::from_errno(code, "DRM_IOCTL_AMDGPU_GEM_MMAP");
  return args.out.addr_ptr == mmap_offset;
}

Result<std::uint32_t> alloc_flags_of(int fd, int dmabuf) {
  ASSIGN_OR_RETURN(const std::uint32_t handle, import(fd, dmabuf));
  drm_amdgpu_gem_create_in created{};
  drm_amdgpu_gem_op question{};
  question.handle = handle;
  question.op = AMDGPU_GEM_OP_GET_GEM_CREATE_INFO;
  question.value = reinterpret_cast<std::uintptr_t>(&created);
  const int code = call(fd, DRM_IOCTL_AMDGPU_GEM_OP, &question);
  close_handle(fd, handle);
  if (code == EPERM) return std::uint32_t{0};  // memory of another GPU
  if (code != 0) return Error::from_errno(code, "DRM_IOCTL_AMDGPU_GEM_OP");
  return attributes_of(created.domain_flags);
}

Result<bool> has_metadata(int fd, int dmabuf) {
  ASSIGN_OR_RETURN(const std::uint32_t handle, import(fd, dmabuf));
  drm_amdgpu_gem_metadata metadata{};
  metadata.handle = handle;
  metadata.op = AMDGPU_GEM_METADATA_OP_GET_METADATA;
  const int code = call(fd, DRM_IOCTL_AMDGPU_GEM_METADATA, &metadata);
  close_handle(fd, handle);
  if (code != 0) return Error::from_errno(code, "DRM_IOCTL_AMDGPU_GEM_METADATA");
  return metadata.data.flags != 0 || metadata.data.tiling_info != 0 || metadata.data.data_size_bytes != 0;
}

Result<std::string> objects_of(int fd, std::uint32_t last_handle) {
  for (std::uint32_t handle = 1; handle <= last_handle; ++handle) {
    ASSIGN_OR_RETURN(const bool found, has_gem_object(fd, handle));
    if (found) return "GEM object " + std::to_string(handle);
  }
  for (std::uint32_t id = 1; id <= kMaxContext; ++id) {
    ASSIGN_OR_RETURN(const bool found, has_context(fd, id));
    if (found) return "context " + std::to_string(id);
  }
  for (std::uint32_t handle = 1; handle <= kMaxSyncobj; ++handle) {
    ASSIGN_OR_RETURN(const bool found, has_syncobj(fd, handle));
    if (found) return "synchronization object " + std::to_string(handle);
  }
  return std::string();
}

Result<std::optional<bool>> may_map(int fd, std::uint64_t offset) {
  void* mapping = os::mmap(nullptr, kPage, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (mapping != MAP_FAILED) {
    os::munmap(mapping, kPage);
    return std::optional<bool>(true);
  }
  // The kernel looks for the BO (EINVAL), then asks whether this file may map it (EACCES), then whether the CPU can
  // (EPERM).
  if (errno == EPERM) return std::optional<bool>(true);
  if (errno == EACCES) return std::optional<bool>(false);
  if (errno == EINVAL) return std::optional<bool>();
  return Error::from_errno(errno, "mapping a BO of KFD through a render node");
}

std::string video_engine_in(const std::string& fdinfo) {
  // amdgpu_fdinfo.c has a line for each engine that the file has used.
  for (const char* engine : {"dec", "enc", "enc_1"})
    if (("\n" + fdinfo).find("\ndrm-engine-" + std::string(engine) + ":") != std::string::npos) return engine;
  return {};
}

Result<std::string> video_engine_of(int fd) {
  ASSIGN_OR_RETURN(const std::string fdinfo, base::read_text("/proc/self/fdinfo/" + std::to_string(fd)));
  return video_engine_in(fdinfo);
}

}  // namespace plugin::render_file
