// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "kfdtest-criu/bench/objects.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "kfdtest-criu/harness/kfd_driver.h"
#include "kfdtest-criu/harness/memory.h"

namespace kfdtest {
namespace {

constexpr unsigned kMostBos = 10'000;
constexpr unsigned kMostEvents = 1'000;
constexpr unsigned kMostSvmRanges = 1'000;

// Addresses that every GPU and the CPU have.
constexpr std::uint64_t kFirstVa = std::uint64_t{8} << 30;
constexpr std::uint64_t kFirstSvm = std::uint64_t{16} << 30;
// A free page between two objects keeps the driver from merging them.
constexpr std::uint64_t kStride = 2 * kPageSize;
constexpr std::uint64_t kEventPageSize = KFD_SIGNAL_EVENT_LIMIT * sizeof(std::uint64_t);
// Bytes of a queue's two pointers. The pointers of all queues share one page, which is a BO of its own for the driver.
constexpr std::uint64_t kPointersSize = 2 * sizeof(std::uint64_t);
constexpr std::uint64_t kMostQueues = kPageSize / kPointersSize;

constexpr std::uint32_t kAccess = KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE;
constexpr std::uint32_t kGtt = KFD_IOC_ALLOC_MEM_FLAGS_GTT | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT | kAccess;
constexpr std::uint32_t kVram = KFD_IOC_ALLOC_MEM_FLAGS_VRAM | kAccess;

// Makes BOs at consecutive addresses.
class Allocator {
 public:
  Allocator(const OpenGpu& open, const Gpu& gpu) : open_(&open), gpu_id_(gpu.gpu_id) {}

  struct Bo {
    std::uint64_t va = 0;
    std::uint64_t handle = 0;
  };
  base::Result<Bo> allocate(std::uint64_t size, std::uint32_t flags = kGtt) {
    const std::uint64_t va = next_;
    next_ += size + kPageSize;
    ASSIGN_OR_RETURN(const kfd::CreatedMemory memory,
                     open_->client.allocate({.gpu_id = gpu_id_, .va = va, .size = size, .flags = flags}));
    TRY(open_->client.map(memory.handle, std::array{gpu_id_}));
    return Bo{va, memory.handle};
  }

 private:
  const OpenGpu* open_;
  std::uint32_t gpu_id_;
  std::uint64_t next_ = kFirstVa;
};

base::Status make_events(const OpenGpu& open, const Gpu& gpu, unsigned count) {
  ASSIGN_OR_RETURN(const auto page, Allocator(open, gpu).allocate(kEventPageSize));
  for (unsigned i = 0; i < count; ++i)
    // KFD accepts the event page once in the life of a process.
    TRY(open.client.create_event(KFD_IOC_EVENT_SIGNAL, /*auto_reset=*/true, i == 0 ? page.handle : 0));
  return {};
}

base::Status make_svm_ranges(const OpenGpu& open, const Gpu& gpu, unsigned count) {
  void* const wanted = reinterpret_cast<void*>(kFirstSvm);
  if (::mmap(wanted, kMostSvmRanges * kStride, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != wanted)
    return base::Error::from_errno(errno, "memory for SVM ranges");
  const std::array attributes = {kfd_ioctl_svm_attribute{KFD_IOCTL_SVM_ATTR_ACCESS, gpu.gpu_id}};
  for (unsigned i = 0; i < count; ++i) TRY(open.client.svm_set(kFirstSvm + i * kStride, kPageSize, attributes));
  return {};
}

base::Status make_queues(const OpenGpu& open, const Gpu& gpu, kfd::QueueType type, unsigned count) {
  Allocator allocator(open, gpu);
  ASSIGN_OR_RETURN(const auto ring, allocator.allocate(kPageSize));
  ASSIGN_OR_RETURN(const auto pointers, allocator.allocate(kPageSize));
  kfd::QueueRequest request{
      .gpu_id = gpu.gpu_id, .type = type, .ring = ring.va, .ring_size = static_cast<std::uint32_t>(kPageSize)};
  if (type == kfd::QueueType::kCompute && gpu.generation.saves_waves) {
    ASSIGN_OR_RETURN(const auto eop, allocator.allocate(kPageSize));
    // Tens of MiB, which in system memory would take longer than all else.
    ASSIGN_OR_RETURN(const auto save_area, allocator.allocate(save_area_size(gpu), kVram));
    request.eop = eop.va;
    request.eop_size = kPageSize;
    request.save_area = save_area.va;
    request.save_area_size = static_cast<std::uint32_t>(gpu.cwsr_size);
    request.control_stack_size = static_cast<std::uint32_t>(gpu.ctl_stack_size);
  }
  for (unsigned i = 0; i < count; ++i) {
    request.write_pointer = pointers.va + i * kPointersSize;
    request.read_pointer = request.write_pointer + sizeof(std::uint64_t);
    TRY(open.client.create_queue(request));
  }
  return {};
}

base::Status make_bos(const OpenGpu& open, const Gpu& gpu, unsigned count) {
  Allocator allocator(open, gpu);
  for (unsigned i = 0; i < count; ++i) TRY(allocator.allocate(kPageSize));
  return {};
}

}  // namespace

std::string_view name_of(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::kBo:
      return "bo";
    case ObjectKind::kEvent:
      return "event";
    case ObjectKind::kSvmRange:
      return "svm_range";
    case ObjectKind::kSdmaQueue:
      return "sdma_queue";
    case ObjectKind::kComputeQueue:
      return "compute_queue";
  }
  return "";
}

unsigned most_of(const Gpu& gpu, ObjectKind kind) {
  switch (kind) {
    case ObjectKind::kBo:
      return kMostBos;
    case ObjectKind::kEvent:
      return kMostEvents;
    case ObjectKind::kSvmRange:
      return gpu.has_svm() ? kMostSvmRanges : 0;
    case ObjectKind::kSdmaQueue:
      return static_cast<unsigned>(std::min(gpu.sdma_engines * gpu.sdma_queues_per_engine, kMostQueues));
    case ObjectKind::kComputeQueue:
      return static_cast<unsigned>(std::min(gpu.cp_queues, kMostQueues));
  }
  return 0;
}

base::Result<OpenGpu> OpenGpu::open(const Gpu& gpu) {
  ASSIGN_OR_RETURN(kfd::Client client, kfd::Client::open());
  const std::string path = "/dev/dri/renderD" + std::to_string(gpu.render_minor);
  base::UniqueFd render(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!render.valid()) return base::Error::from_errno(errno, path);
  return OpenGpu{std::move(client), std::move(render)};
}

base::Status make_objects(const OpenGpu& open, const Gpu& gpu, ObjectKind kind, unsigned count) {
  TRY(open.client.acquire_vm(gpu.gpu_id, open.render.get()));
  switch (kind) {
    case ObjectKind::kBo:
      return make_bos(open, gpu, count);
    case ObjectKind::kEvent:
      return make_events(open, gpu, count);
    case ObjectKind::kSvmRange:
      return make_svm_ranges(open, gpu, count);
    case ObjectKind::kSdmaQueue:
      return make_queues(open, gpu, kfd::QueueType::kSdma, count);
    case ObjectKind::kComputeQueue:
      return make_queues(open, gpu, kfd::QueueType::kCompute, count);
  }
  return base::Error(EINVAL, "no such kind of objects");
}

}  // namespace kfdtest
