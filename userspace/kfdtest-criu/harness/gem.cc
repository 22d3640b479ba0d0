// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Lists are asked for twice, without room and with it: nobody else creates objects in a file of the test.
#include "kfdtest-criu/harness/gem.h"

#include <fcntl.h>
#include <linux/kfd_ioctl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "drm/handle_at.h"
#include "kfdtest-criu/harness/kfd_driver.h"

namespace kfdtest {
namespace {

// Where libhsakmt puts memory that is to have no address.
constexpr std::uint64_t kNoAddress = 1ULL << 48;
constexpr auto kVirtualMemory =
    static_cast<std::uint32_t>(KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE |
                               KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC);
constexpr std::uint64_t kPartOffset = 2 * kPageSize;
constexpr std::uint64_t kReadWrite = AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE;

base::Status call(int render, unsigned long request, void* argument, const char* what) {
  while (::ioctl(render, request, argument) != 0)
    if (errno != EINTR) return base::Error::from_errno(errno, what);
  return {};
}

base::Status change_mapping(int render, std::uint32_t handle, const GemMapping& mapping, std::uint32_t operation) {
  drm_amdgpu_gem_va args{};
  args.handle = handle;
  args.operation = operation;
  args.flags = static_cast<std::uint32_t>(mapping.flags);
  args.va_address = mapping.address;
  args.offset_in_bo = mapping.offset;
  args.map_size = mapping.size;
  return call(render, DRM_IOCTL_AMDGPU_GEM_VA, &args, "DRM_IOCTL_AMDGPU_GEM_VA");
}

}  // namespace

namespace gem {

base::Result<std::uint32_t> create(int render, std::size_t size) {
  drm_amdgpu_gem_create args{};
  args.in.bo_size = size;
  args.in.domains = AMDGPU_GEM_DOMAIN_VRAM;
  args.in.domain_flags = AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED;
  TRY(call(render, DRM_IOCTL_AMDGPU_GEM_CREATE, &args, "DRM_IOCTL_AMDGPU_GEM_CREATE"));
  return std::uint32_t{args.out.handle};
}

base::Result<std::uint32_t> import(int render, int dmabuf) {
  drm_prime_handle args{};
  args.fd = dmabuf;
  TRY(call(render, DRM_IOCTL_PRIME_FD_TO_HANDLE, &args, "DRM_IOCTL_PRIME_FD_TO_HANDLE"));
  return std::uint32_t{args.handle};
}

base::Result<base::UniqueFd> export_dmabuf(int render, std::uint32_t handle) {
  drm_prime_handle args{};
  args.handle = handle;
  args.flags = std::uint32_t{DRM_CLOEXEC | DRM_RDWR};
  TRY(call(render, DRM_IOCTL_PRIME_HANDLE_TO_FD, &args, "DRM_IOCTL_PRIME_HANDLE_TO_FD"));
  return base::UniqueFd(args.fd);
}

base::Result<std::uint64_t> mmap_offset(int render, std::uint32_t handle) {
  drm_amdgpu_gem_mmap args{};
  args.in.handle = handle;
  TRY(call(render, DRM_IOCTL_AMDGPU_GEM_MMAP, &args, "DRM_IOCTL_AMDGPU_GEM_MMAP"));
  return std::uint64_t{args.out.addr_ptr};
}

base::Status map(int render, std::uint32_t handle, const GemMapping& mapping) {
  return change_mapping(render, handle, mapping, AMDGPU_VA_OP_MAP);
}

base::Status unmap(int render, std::uint32_t handle, const GemMapping& mapping) {
  return change_mapping(render, handle, mapping, AMDGPU_VA_OP_UNMAP);
}

void close(int render, std::uint32_t handle) {
  drm_gem_close args{};
  args.handle = handle;
  (void)call(render, DRM_IOCTL_GEM_CLOSE, &args, "DRM_IOCTL_GEM_CLOSE");
}

base::Result<std::vector<ListedGem>> list(int render) {
  drm_uapi::GemList args{};
  TRY(call(render, drm_uapi::kListGem, &args, "DRM_IOCTL_AMDGPU_GEM_LIST_HANDLES"));
  std::vector<drm_uapi::GemListEntry> entries(args.num_entries);
  args.entries = reinterpret_cast<std::uintptr_t>(entries.data());
  TRY(call(render, drm_uapi::kListGem, &args, "DRM_IOCTL_AMDGPU_GEM_LIST_HANDLES"));
  std::vector<ListedGem> result;
  for (const auto& each : entries)
    result.push_back({each.handle, each.size, each.preferred_domains, each.alloc_flags, each.alignment});
  return result;
}

base::Result<std::vector<GemMapping>> mappings(int render, std::uint32_t handle) {
  drm_uapi::GemOp args{};
  args.handle = handle;
  args.op = drm_uapi::kGetMappingInfo;
  TRY(call(render, drm_uapi::kGemOp, &args, "AMDGPU_GEM_OP_GET_MAPPING_INFO"));
  std::vector<drm_uapi::GemVmEntry> entries(args.num_entries);
  args.value = reinterpret_cast<std::uintptr_t>(entries.data());
  TRY(call(render, drm_uapi::kGemOp, &args, "AMDGPU_GEM_OP_GET_MAPPING_INFO"));
  std::vector<GemMapping> result;
  for (const auto& each : entries) result.push_back({each.addr, each.size, each.offset, each.flags});
  return result;
}

base::Status create_at(int render, const ListedGem& like) {
  drm_uapi::GemCreate args{};
  args.size = like.size;
  args.alignment = like.alignment;
  args.domains = like.domains;
  args.flags = like.flags | drm_uapi::kCreateAtHandle;
  args.handle = like.handle;
  return call(render, drm_uapi::kGemCreate, &args, "DRM_IOCTL_AMDGPU_GEM_CREATE at a handle");
}

base::Status import_at(int render, std::uint32_t handle, int dmabuf) {
  drm_uapi::PrimeHandleAt args{};
  args.handle = handle;
  args.fd = dmabuf;
  return call(render, drm_uapi::kPrimeFdToHandleAt, &args, "DRM_IOCTL_PRIME_FD_TO_HANDLE_AT");
}

}  // namespace gem

base::Result<GemViews> GemViews::allocate(const Gpu& gpu, std::size_t size) {
  KfdDriver& driver = ioctls_of(gpu);
  ASSIGN_OR_RETURN(
      const kfd::CreatedMemory memory,
      driver.client().allocate({.gpu_id = gpu.gpu_id, .va = kNoAddress, .size = size, .flags = kVirtualMemory}));
  GemViews views(gpu, 0, memory.handle);
  ASSIGN_OR_RETURN(const base::UniqueFd dmabuf, driver.client().export_dmabuf(memory.handle));
  ASSIGN_OR_RETURN(views.handle_, gem::import(driver.render_fd(gpu), dmabuf.get()));
  TRY(views.map_all(size));
  return views;
}

base::Result<GemViews> GemViews::import(const Gpu& gpu, int dmabuf, std::size_t size) {
  ASSIGN_OR_RETURN(const std::uint32_t handle, gem::import(ioctls_of(gpu).render_fd(gpu), dmabuf));
  GemViews views(gpu, handle, 0);
  TRY(views.map_all(size));
  return views;
}

base::Status GemViews::map(std::uint64_t offset, std::uint64_t size) {
  KfdDriver& driver = ioctls_of(*gpu_);
  ASSIGN_OR_RETURN(const std::uint64_t address, driver.reserve(size));
  const GemMapping mapping{.address = address, .size = size, .offset = offset, .flags = kReadWrite};
  base::Status mapped = gem::map(driver.render_fd(*gpu_), handle_, mapping);
  if (mapped.ok())
    mappings_.push_back(mapping);
  else
    driver.free_range(address, size);
  return mapped;
}

base::Status GemViews::map_all(std::size_t size) {
  TRY(map(0, size));
  TRY(map(0, size));
  return map(kPartOffset, size / 2);
}

base::Result<base::UniqueFd> GemViews::export_dmabuf() const {
  return gem::export_dmabuf(ioctls_of(*gpu_).render_fd(*gpu_), handle_);
}

GemViews::GemViews(GemViews&& other) noexcept
    : gpu_(other.gpu_),
      handle_(std::exchange(other.handle_, 0)),
      memory_(std::exchange(other.memory_, 0)),
      mappings_(std::exchange(other.mappings_, {})) {}

GemViews::~GemViews() {
  KfdDriver& driver = ioctls_of(*gpu_);
  const int render = driver.render_fd(*gpu_);
  for (const GemMapping& each : mappings_) {
    (void)gem::unmap(render, handle_, each);
    driver.free_range(each.address, each.size);
  }
  if (handle_ != 0) gem::close(render, handle_);
  if (memory_ != 0) (void)driver.client().free(memory_);
}

base::Result<GemMemory> GemMemory::create(const Gpu& gpu, std::size_t size) {
  ASSIGN_OR_RETURN(const std::uint32_t handle, gem::create(ioctls_of(gpu).render_fd(gpu), size));
  GemMemory memory(gpu, handle);
  TRY(memory.map(size));
  return memory;
}

base::Result<GemMemory> GemMemory::import(const Gpu& gpu, int dmabuf, std::size_t size) {
  ASSIGN_OR_RETURN(const std::uint32_t handle, gem::import(ioctls_of(gpu).render_fd(gpu), dmabuf));
  GemMemory memory(gpu, handle);
  TRY(memory.map(size));
  return memory;
}

base::Status GemMemory::map(std::size_t size) {
  KfdDriver& driver = ioctls_of(*gpu_);
  const int render = driver.render_fd(*gpu_);
  ASSIGN_OR_RETURN(const std::uint64_t address, driver.reserve(size));
  whole_ = {.address = address, .size = size, .offset = 0, .flags = kReadWrite};
  TRY(gem::map(render, handle_, whole_));
  ASSIGN_OR_RETURN(const std::uint64_t offset, gem::mmap_offset(render, handle_));
  if (::mmap(reinterpret_cast<void*>(address), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, render,
             static_cast<off_t>(offset)) == MAP_FAILED)
    return base::Error::from_errno(errno, "mapping a GEM object for the CPU");
  return {};
}

base::Result<base::UniqueFd> GemMemory::export_dmabuf() const {
  return gem::export_dmabuf(ioctls_of(*gpu_).render_fd(*gpu_), handle_);
}

GemMemory::GemMemory(GemMemory&& other) noexcept
    : gpu_(other.gpu_), handle_(std::exchange(other.handle_, 0)), whole_(other.whole_) {}

GemMemory::~GemMemory() {
  if (handle_ == 0) return;
  KfdDriver& driver = ioctls_of(*gpu_);
  const int render = driver.render_fd(*gpu_);
  if (whole_.address != 0) {
    (void)gem::unmap(render, handle_, whole_);
    driver.free_range(whole_.address, whole_.size);
  }
  gem::close(render, handle_);
}

}  // namespace kfdtest
