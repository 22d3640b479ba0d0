// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A program with memory as HIP's virtual memory management makes it: allocated through /dev/kfd without an address that
// a GPU uses, imported into the render node whose VM KFD uses, and mapped there at addresses that the program has
// reserved: whole, twice, and in part.
//   field_vmm --dir FOLDER [--undisturbed]
// Beside it there are memory that KFD has mapped as well, a GEM object that KFD does not know, a DMA-buf that stays
// open, and the pending work of demo_program. After the checkpoint the GPU reads and writes through each mapping. The
// result is a checksum of what it has read.
#include <amdgpu_drm.h>
#include <drm.h>
#include <linux/kfd_ioctl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mapping.h"
#include "kfdtest-criu/demo/command_line.h"
#include "kfdtest-criu/demo/pending_work.h"
#include "kfdtest-criu/harness/commands.h"
#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/harness/pattern.h"
#include "kfdtest-criu/harness/session.h"

namespace fieldtest {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;
using kfdtest::Gpu;
using kfdtest::GpuMemory;
using kfdtest::KfdDriver;
using kfdtest::MemoryKind;
using kfdtest::SdmaCommands;

constexpr std::uint64_t kPage = kfdtest::kPageSize;
constexpr std::uint64_t kSize = 3 * kfdtest::kMiB + 2 * kPage;
constexpr std::uint64_t kPartOffset = kfdtest::kMiB + kPage;
constexpr std::uint64_t kPartSize = 16 * kPage;
constexpr std::uint64_t kSeed = 61;
// Where libhsakmt puts memory that is to have no address; the next one is behind it.
constexpr std::uint64_t kNoAddress = 1ULL << 48;
constexpr std::uint32_t kReadWrite = AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE;
constexpr std::uint32_t kVramFlags =
    KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE;
constexpr std::uint32_t kGttFlags = KFD_IOC_ALLOC_MEM_FLAGS_GTT | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE |
                                    KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT;

Status call(int fd, unsigned long request, void* argument, const char* what) {
  while (::ioctl(fd, request, argument) != 0)
    if (errno != EINTR) return Error::from_errno(errno, what);
  return {};
}

// hipMemMap() and hipMemSetAccess(): a part of an object at an address.
Status map(int render, std::uint32_t handle, std::uint64_t address, std::uint64_t offset, std::uint64_t size,
           std::uint32_t flags = kReadWrite) {
  drm_amdgpu_gem_va args{};
  args.handle = handle;
  args.operation = AMDGPU_VA_OP_MAP;
  args.flags = flags;
  args.va_address = address;
  args.offset_in_bo = offset;
  args.map_size = size;
  return call(render, DRM_IOCTL_AMDGPU_GEM_VA, &args, "DRM_IOCTL_AMDGPU_GEM_VA");
}

Result<std::uint32_t> import(int render, int dmabuf) {
  drm_prime_handle args{};
  args.fd = dmabuf;
  TRY(call(render, DRM_IOCTL_PRIME_FD_TO_HANDLE, &args, "DRM_IOCTL_PRIME_FD_TO_HANDLE"));
  return std::uint32_t{args.handle};
}

Result<std::uint32_t> create_gem(int render, std::uint64_t size) {
  drm_amdgpu_gem_create args{};
  args.in.bo_size = size;
  args.in.alignment = kPage;
  args.in.domains = AMDGPU_GEM_DOMAIN_GTT;
  TRY(call(render, DRM_IOCTL_AMDGPU_GEM_CREATE, &args, "DRM_IOCTL_AMDGPU_GEM_CREATE"));
  return std::uint32_t{args.out.handle};
}

// The mappings of one memory.
struct Views {
  std::uint32_t handle = 0;
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  std::uint64_t part = 0;  // for reading
};

class Program {
 public:
  static Result<std::unique_ptr<Program>> create(const Gpu& gpu) {
    std::unique_ptr<Program> program(new Program(gpu));
    TRY(program->make());
    TRY(program->fill());
    return program;
  }

  // After the checkpoint.
  Status check(kfdtest::Checksum& checksum) {
    std::uint64_t seed = kSeed;
    for (const Views* views : all()) {
      TRY(expect(views->first, kSize, seed, 0, checksum));
      TRY(expect(views->second, kSize, seed, 0, checksum));
      TRY(expect(views->part, kPartSize, seed, kPartOffset, checksum));
      ++seed;
    }
    // What the GPU writes through one mapping it reads through the others.
    for (const Views* views : all()) {
      kfdtest::fill_pattern(page_->bytes(), seed);
      TRY(copy(views->second + kPartOffset, page_->gpu_address(), kPartSize));
      TRY(expect(views->part, kPartSize, seed, 0, checksum));
      TRY(expect(views->first + kPartOffset, kPartSize, seed, 0, checksum));
      ++seed;
    }
    return check_cpu(seed - 2, checksum);
  }

 private:
  explicit Program(const Gpu& gpu) : gpu_(&gpu), driver_(&kfdtest::ioctls_of(gpu)) {}

  [[nodiscard]] int render() const { return driver_->render_fd(*gpu_); }
  [[nodiscard]] std::vector<const Views*> all() const { return {&vram_, &gtt_, &mapped_, &gem_}; }

  Status make() {
    ASSIGN_OR_RETURN(page_, GpuMemory::allocate(*gpu_, MemoryKind::kGtt, kSize));
    // Handles that are not in a row.
    std::vector<std::uint32_t> fillers;
    for (int i = 0; i < 5; ++i) {
      ASSIGN_OR_RETURN(const std::uint32_t filler, create_gem(render(), kPage));
      fillers.push_back(filler);
    }
    const auto& client = driver_->client();
    ASSIGN_OR_RETURN(const kfd::CreatedMemory vram,
                     client.allocate({.gpu_id = gpu_->gpu_id, .va = kNoAddress, .size = kSize, .flags = kVramFlags}));
    ASSIGN_OR_RETURN(
        const kfd::CreatedMemory gtt,
        client.allocate({.gpu_id = gpu_->gpu_id, .va = kNoAddress + kSize, .size = kSize, .flags = kGttFlags}));
    ASSIGN_OR_RETURN(twice_, GpuMemory::allocate(*gpu_, MemoryKind::kVram, kSize));
    TRY(view(vram_, vram.handle, nullptr));
    TRY(view(gtt_, gtt.handle, &kept_));
    TRY(view(mapped_, twice_->block().handle, nullptr));
    for (const std::uint32_t filler : fillers) {
      drm_gem_close args{};
      args.handle = filler;
      TRY(call(render(), DRM_IOCTL_GEM_CLOSE, &args, "DRM_IOCTL_GEM_CLOSE"));
    }
    ASSIGN_OR_RETURN(gem_.handle, create_gem(render(), kSize));
    TRY(map_views(gem_));
    // hipMemSetAccess() for the CPU.
    drm_amdgpu_gem_mmap args{};
    args.in.handle = gtt_.handle;
    TRY(call(render(), DRM_IOCTL_AMDGPU_GEM_MMAP, &args, "DRM_IOCTL_AMDGPU_GEM_MMAP"));
    ASSIGN_OR_RETURN(
        cpu_, base::Mapping::shared(render(), kSize, static_cast<off_t>(args.out.addr_ptr), "memory for the CPU"));
    args = {};
    args.in.handle = gem_.handle;
    TRY(call(render(), DRM_IOCTL_AMDGPU_GEM_MMAP, &args, "DRM_IOCTL_AMDGPU_GEM_MMAP"));
    ASSIGN_OR_RETURN(cpu_gem_, base::Mapping::shared(render(), kSize, static_cast<off_t>(args.out.addr_ptr),
                                                     "GEM object for the CPU"));
    return {};
  }

  // hipMemCreate(), hipMemMap(), hipMemSetAccess(). `kept`: the DMA-buf stays open there.
  Status view(Views& views, std::uint64_t memory, UniqueFd* kept) {
    ASSIGN_OR_RETURN(UniqueFd dmabuf, driver_->client().export_dmabuf(memory));
    ASSIGN_OR_RETURN(views.handle, import(render(), dmabuf.get()));
    if (kept != nullptr) *kept = std::move(dmabuf);
    return map_views(views);
  }

  Status map_views(Views& views) {
    ASSIGN_OR_RETURN(views.first, driver_->reserve(kSize));
    ASSIGN_OR_RETURN(views.second, driver_->reserve(kSize));
    ASSIGN_OR_RETURN(views.part, driver_->reserve(kPartSize));
    TRY(map(render(), views.handle, views.first, 0, kSize));
    TRY(map(render(), views.handle, views.second, 0, kSize));
    return map(render(), views.handle, views.part, kPartOffset, kPartSize, AMDGPU_VM_PAGE_READABLE);
  }

  Status fill() {
    std::uint64_t seed = kSeed;
    for (const Views* views : all()) {
      kfdtest::fill_pattern(page_->bytes(), seed++);
      TRY(copy(views->first, page_->gpu_address(), kSize));
    }
    return {};
  }

  Status copy(std::uint64_t to, std::uint64_t from, std::uint64_t size) const {
    return kfdtest::run_alone(*gpu_, SdmaCommands(*gpu_).copy(to, from, size));
  }

  // That the GPU finds the bytes of a pattern from `offset` on there.
  Status expect(std::uint64_t address, std::uint64_t size, std::uint64_t seed, std::uint64_t offset,
                kfdtest::Checksum& checksum) {
    const std::span<std::byte> bytes = page_->bytes().first(size);
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
    TRY(copy(page_->gpu_address(), address, size));
    checksum.add(bytes);
    const auto wrong = kfdtest::find_mismatch(bytes, seed, offset);
    if (!wrong) return {};
    return Error(EIO, "byte " + std::to_string(*wrong) + " behind address " + std::to_string(address) + " is wrong");
  }

  // `seed`: of what the GPU has written last into the memory that KFD has mapped.
  Status check_cpu(std::uint64_t seed, kfdtest::Checksum& checksum) const {
    checksum.add(cpu_.bytes());
    checksum.add(cpu_gem_.bytes());
    const std::uint64_t gtt = seed - 1;
    const std::uint64_t gem = seed + 1;
    if (kfdtest::find_mismatch(cpu_.bytes().first(kPartOffset), kSeed + 1) ||
        kfdtest::find_mismatch(cpu_.bytes().subspan(kPartOffset, kPartSize), gtt))
      return Error(EIO, "the CPU sees other memory than the GPU");
    if (kfdtest::find_mismatch(cpu_gem_.bytes().first(kPartOffset), kSeed + 3) ||
        kfdtest::find_mismatch(cpu_gem_.bytes().subspan(kPartOffset, kPartSize), gem))
      return Error(EIO, "the CPU sees another GEM object than the GPU");
    // The DMA-buf is still that of the memory: the render node knows it.
    ASSIGN_OR_RETURN(const std::uint32_t handle, import(render(), kept_.get()));
    if (handle != gtt_.handle) return Error(EIO, "the open DMA-buf is of other memory");
    return {};
  }

  const Gpu* gpu_;
  KfdDriver* driver_;
  std::optional<GpuMemory> page_;
  std::optional<GpuMemory> twice_;
  Views vram_;
  Views gtt_;
  Views mapped_;
  Views gem_;
  UniqueFd kept_;
  base::Mapping cpu_;
  base::Mapping cpu_gem_;
};

Status run(const kfdtest::CommandLine& line, const kfdtest::MessageFiles& messages) {
  ASSIGN_OR_RETURN(const kfdtest::Session session, kfdtest::Session::open(kfdtest::DriverKind::kIoctls));
  ASSIGN_OR_RETURN(const auto work, kfdtest::PendingWork::start(session.gpus().front(), kSeed));
  ASSIGN_OR_RETURN(const auto program, Program::create(session.gpus().front()));
  messages.say("pending");
  TRY(wait_pending(line, messages));
  kfdtest::Checksum checksum;
  TRY(work->expect_pending());
  TRY(work->finish());
  work->add_to(checksum);
  TRY(program->check(checksum));
  return messages.publish_result(checksum.hex());
}

}  // namespace
}  // namespace fieldtest

int main(int argc, char** argv) {
  kfdtest::CommandLine line;
  return run_program(argc, argv, line,
                     [&](const kfdtest::MessageFiles& messages) { return fieldtest::run(line, messages); });
}
