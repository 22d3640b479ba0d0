// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Driver on the ioctls. Sizes of a queue's buffers are what kfd_queue.c demands.
#include "kfdtest-criu/harness/kfd_driver.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "kfdtest-criu/harness/memory.h"

namespace kfdtest {
namespace {

constexpr std::uint64_t kLowestAddress = std::uint64_t{4} << 30;
constexpr std::uint64_t kHighestAddress = std::uint64_t{1} << 39;
constexpr std::uint64_t kSearchStep = std::uint64_t{16} << 20;
constexpr unsigned kSearchSteps = 4096;
constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;

constexpr auto kAccess =
    static_cast<std::uint32_t>(KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE | KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE);
constexpr std::size_t kEopSize = kPageSize;
constexpr std::size_t kReadPointer = 64;  // byte offset in the page of pointers
constexpr std::size_t kEventSlot = sizeof(std::uint64_t);
constexpr std::uint64_t kEventPageSize = KFD_SIGNAL_EVENT_LIMIT * kEventSlot;

constexpr std::uint64_t page_aligned(std::uint64_t size) { return (size + kPageSize - 1) / kPageSize * kPageSize; }

std::uint32_t flags_of(const Gpu& gpu, MemoryKind kind, MemoryUse use) {
  std::uint32_t flags = kAccess | KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE;
  if (kind == MemoryKind::kVram) {
    flags |= KFD_IOC_ALLOC_MEM_FLAGS_VRAM;
    if (gpu.vram_cpu_visible) flags |= KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC;
  } else {
    flags |= KFD_IOC_ALLOC_MEM_FLAGS_GTT | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT;
  }
  if (use == MemoryUse::kAqlRing) flags |= KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM;
  return flags;
}

kfd::QueueType type_of(QueueKind kind) {
  switch (kind) {
    case QueueKind::kPm4:
      return kfd::QueueType::kCompute;
    case QueueKind::kAql:
      return kfd::QueueType::kComputeAql;
    case QueueKind::kSdma:
      return kfd::QueueType::kSdma;
    case QueueKind::kSdmaXgmi:
      return kfd::QueueType::kSdmaXgmi;
    case QueueKind::kSdmaByEngine:
      return kfd::QueueType::kSdmaByEngine;
  }
  return kfd::QueueType::kCompute;
}

bool is_compute(QueueKind kind) { return kind == QueueKind::kPm4 || kind == QueueKind::kAql; }

// A queue with the buffers that its user does not see.
class KfdDriverQueue final : public DriverQueue {
 public:
  explicit KfdDriverQueue(const kfd::Client& client) : client_(&client) {}
  ~KfdDriverQueue() override {
    if (created_) (void)client_->destroy_queue(id);
  }
  base::Status update(const Settings& settings) override {
    return client_->update_queue(id, settings.ring_address, static_cast<std::uint32_t>(settings.ring_size),
                                 settings.percentage, settings.priority);
  }

  base::Status make_pointers(const Gpu& gpu, kfd::QueueRequest* request) {
    ASSIGN_OR_RETURN(GpuMemory memory, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
    std::memset(memory.data(), 0, memory.size());
    write_pointer = memory.data();
    read_pointer = memory.data() + kReadPointer;
    request->write_pointer = memory.gpu_address();
    request->read_pointer = memory.gpu_address(kReadPointer);
    buffers_.push_back(std::move(memory));
    return {};
  }

  base::Status make_eop(const Gpu& gpu, kfd::QueueRequest* request) {
    if (!gpu.generation.saves_waves) return {};  // gfx7 has no EOP buffer either
    ASSIGN_OR_RETURN(GpuMemory memory, GpuMemory::allocate(gpu, MemoryKind::kVram, kEopSize));
    request->eop = memory.gpu_address();
    request->eop_size = kEopSize;
    buffers_.push_back(std::move(memory));
    return {};
  }

  // Makes a save area for this queue alone, whose header tells KFD where to report errors.
  base::Result<std::uint64_t> make_save_area(const Gpu& gpu, const QueueSpec& spec) {
    const std::size_t size = save_area_size(gpu);
    ASSIGN_OR_RETURN(GpuMemory memory, GpuMemory::allocate(gpu, MemoryKind::kGtt, size));
    kfd::abi::SaveAreaHeader header{};
    header.debug_offset = static_cast<std::uint32_t>(gpu.cwsr_size * gpu.num_xcc);
    header.debug_size = static_cast<std::uint32_t>(size) - header.debug_offset;
    header.error_payload_address = reinterpret_cast<std::uint64_t>(spec.error_reason);
    header.error_event_id = spec.error_event_id;
    for (std::uint64_t xcc = 0; xcc < gpu.num_xcc; ++xcc)
      std::memcpy(memory.data() + xcc * gpu.cwsr_size, &header, sizeof(header));
    buffers_.push_back(std::move(memory));
    return buffers_.back().gpu_address();
  }

  // Makes the save area an SVM range: anonymous pages of the program.
  base::Result<std::uint64_t> make_svm_save_area(const Gpu& gpu) {
    constexpr std::uint32_t kFlags =
        KFD_IOCTL_SVM_FLAG_HOST_ACCESS | KFD_IOCTL_SVM_FLAG_COHERENT | kfd::abi::kSvmAlwaysMapped;
    ASSIGN_OR_RETURN(svm_save_area_, base::Mapping::anonymous(save_area_size(gpu), "save area"));
    const auto address = reinterpret_cast<std::uint64_t>(svm_save_area_.data());
    const kfd_ioctl_svm_attribute attributes[] = {{KFD_IOCTL_SVM_ATTR_SET_FLAGS, kFlags},
                                                  {KFD_IOCTL_SVM_ATTR_ACCESS, gpu.gpu_id}};
    TRY(client_->svm_set(address, svm_save_area_.size(), attributes));
    return address;
  }

  base::Result<kfd::CreatedQueue> create(const kfd::QueueRequest& request) {
    ASSIGN_OR_RETURN(const kfd::CreatedQueue queue, client_->create_queue(request));
    id = queue.id;
    created_ = true;
    return queue;
  }

 private:
  const kfd::Client* client_;
  bool created_ = false;
  base::Mapping svm_save_area_;
  std::vector<GpuMemory> buffers_;
};

class KfdDriverEvent final : public DriverEvent {
 public:
  KfdDriverEvent(const kfd::Client& client, const kfd::CreatedEvent& event) : client_(&client) {
    id = event.id;
    trigger = event.trigger;
  }
  ~KfdDriverEvent() override { (void)client_->destroy_event(id); }
  base::Status set() override { return client_->set_event(id); }
  base::Status reset() override { return client_->reset_event(id); }

 private:
  const kfd::Client* client_;
};

std::uint32_t type_of(EventKind kind) {
  switch (kind) {
    case EventKind::kSignal:
      return KFD_IOC_EVENT_SIGNAL;
    case EventKind::kMemory:
      return KFD_IOC_EVENT_MEMORY;
    case EventKind::kHwException:
      return KFD_IOC_EVENT_HW_EXCEPTION;
  }
  return KFD_IOC_EVENT_SIGNAL;
}

}  // namespace

// kfd_queue_ctx_save_restore_size(): what a wave needs for the debugger comes on top of what topology says.
std::size_t save_area_size(const Gpu& gpu) {
  constexpr std::uint64_t kDebuggerBytesPerWave = 32;
  constexpr std::uint64_t kDebuggerAlign = 64;
  const std::uint64_t cus = gpu.cu_count() / gpu.num_xcc;
  const std::uint64_t arrays = gpu.array_count / gpu.num_xcc;
  const std::uint64_t waves =
      gpu.generation.gfx_level < 10 ? std::min(cus * 40, arrays / gpu.simd_arrays_per_engine * 512) : cus * 32;
  const std::uint64_t debugger = (waves * kDebuggerBytesPerWave + kDebuggerAlign - 1) / kDebuggerAlign * kDebuggerAlign;
  return page_aligned((gpu.cwsr_size + debugger) * gpu.num_xcc);
}

KfdDriver& ioctls_of(const Gpu& gpu) { return static_cast<KfdDriver&>(*gpu.driver); }

base::Result<std::unique_ptr<Driver>> KfdDriver::open(const std::vector<Gpu>& gpus) {
  ASSIGN_OR_RETURN(kfd::Client client, kfd::Client::open());
  auto driver = std::unique_ptr<KfdDriver>(new KfdDriver(std::move(client)));
  for (const Gpu& gpu : gpus) TRY(driver->open_gpu(gpu));
  driver->gpus_ = gpus;
  ASSIGN_OR_RETURN(const auto apertures, driver->client_.apertures(static_cast<std::uint32_t>(gpus.size())));
  driver->first_address_ = kLowestAddress;
  driver->end_address_ = kHighestAddress;
  for (const kfd_process_device_apertures& each : apertures) {
    driver->first_address_ = std::max<std::uint64_t>(driver->first_address_, each.gpuvm_base);
    driver->end_address_ = std::min<std::uint64_t>(driver->end_address_, each.gpuvm_limit);
  }
  driver->next_address_ = driver->first_address_;
  return std::unique_ptr<Driver>(std::move(driver));
}

base::Status KfdDriver::open_gpu(const Gpu& gpu) {
  const std::string path = "/dev/dri/renderD" + std::to_string(gpu.render_minor);
  OpenedGpu opened;
  opened.gpu_id = gpu.gpu_id;
  opened.drm.reset(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!opened.drm.valid()) return base::Error::from_errno(errno, path);
  TRY(client_.acquire_vm(gpu.gpu_id, opened.drm.get()));
  opened_.emplace(gpu.node, std::move(opened));
  return {};
}

// Nothing is behind the range yet; a page in front of it stays unused, so that running over an end is a fault.
base::Result<std::uint64_t> KfdDriver::reserve(std::size_t size) {
  const std::uint64_t align = size >= kHugePage ? kHugePage : kPageSize;
  for (unsigned step = 0; step < kSearchSteps; ++step) {
    std::uint64_t at = (next_address_ + kPageSize + align - 1) / align * align;
    if (at + size > end_address_) {
      next_address_ = first_address_;
      continue;
    }
    void* const wanted = reinterpret_cast<void*>(at);
    void* const got =
        ::mmap(wanted, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    next_address_ = got == MAP_FAILED ? at + kSearchStep : at + page_aligned(size);
    if (got != MAP_FAILED) return at;
    if (errno != EEXIST) return base::Error::from_errno(errno, "reserving addresses");
  }
  return base::Error(ENOMEM, "no free addresses");
}

void KfdDriver::free_range(std::uint64_t address, std::size_t size) {
  ::munmap(reinterpret_cast<void*>(address), size);
}

base::Result<Block> KfdDriver::allocate(const Gpu& gpu, MemoryKind kind, std::size_t size, MemoryUse use) {
  ASSIGN_OR_RETURN(Block block, allocate_with(gpu, flags_of(gpu, kind, use), size));
  block.kind = kind;
  return block;
}

base::Result<Block> KfdDriver::allocate_with(const Gpu& gpu, std::uint32_t flags, std::size_t size) {
  ASSIGN_OR_RETURN(const std::uint64_t va, reserve(size));
  auto block = allocate_at(gpu, va, flags, size);
  if (!block.ok()) free_range(va, size);
  return block;
}

base::Result<Block> KfdDriver::allocate_at(const Gpu& gpu, std::uint64_t va, std::uint32_t flags, std::size_t size) {
  ASSIGN_OR_RETURN(const kfd::CreatedMemory memory,
                   client_.allocate({.gpu_id = gpu.gpu_id, .va = va, .size = size, .flags = flags}));
  Block block;
  block.kind = (flags & KFD_IOC_ALLOC_MEM_FLAGS_VRAM) != 0 ? MemoryKind::kVram : MemoryKind::kGtt;
  block.size = size;
  block.gpu_address = va;
  block.handle = memory.handle;
  constexpr std::uint32_t kVisibleVram = KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC;
  const bool visible = (flags & KFD_IOC_ALLOC_MEM_FLAGS_GTT) != 0 || (flags & kVisibleVram) == kVisibleVram;
  if (!visible) return block;
  // A ring that is mapped twice has half the memory; the CPU needs it once.
  const std::size_t bytes = (flags & KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM) != 0 ? size / 2 : size;
  void* const mapped = ::mmap(reinterpret_cast<void*>(va), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                              render_fd(gpu), static_cast<off_t>(memory.mmap_offset));
  if (mapped == MAP_FAILED) {
    const int code = errno;
    (void)client_.free(memory.handle);
    return base::Error::from_errno(code, "mapping GPU memory");
  }
  block.data = static_cast<std::byte*>(mapped);
  return block;
}

base::Result<Block> KfdDriver::adopt(const Gpu& gpu, std::span<std::byte> pages) {
  ASSIGN_OR_RETURN(const std::uint64_t va, reserve(pages.size()));
  const auto memory =
      client_.allocate({.gpu_id = gpu.gpu_id,
                        .va = va,
                        .size = pages.size(),
                        .flags = KFD_IOC_ALLOC_MEM_FLAGS_USERPTR | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT | kAccess,
                        .user_address = reinterpret_cast<std::uint64_t>(pages.data())});
  if (!memory.ok()) {
    free_range(va, pages.size());
    return memory.error();
  }
  Block block;
  block.kind = MemoryKind::kUserptr;
  block.size = pages.size();
  block.data = pages.data();
  block.gpu_address = va;
  block.handle = memory->handle;
  return block;
}

base::Result<Block> KfdDriver::import_dmabuf(const Gpu& gpu, int dmabuf, std::size_t size) {
  ASSIGN_OR_RETURN(const std::uint64_t va, reserve(size));
  const auto handle = client_.import_dmabuf(gpu.gpu_id, dmabuf, va);
  if (!handle.ok()) {
    free_range(va, size);
    return handle.error();
  }
  Block block;
  block.size = size;
  block.gpu_address = va;
  block.handle = *handle;
  return block;
}

base::Status KfdDriver::map(Block& block, std::span<const Gpu* const> gpus) {
  std::vector<std::uint32_t> wanted;
  std::vector<std::uint32_t> added;
  std::vector<std::uint32_t> removed;
  for (const Gpu* gpu : gpus) {
    wanted.push_back(gpu->node);
    if (std::ranges::find(block.mapped_to, gpu->node) == block.mapped_to.end()) added.push_back(gpu->gpu_id);
  }
  for (const std::uint32_t node : block.mapped_to)
    if (std::ranges::find(wanted, node) == wanted.end()) removed.push_back(opened_.at(node).gpu_id);
  if (!removed.empty()) TRY(client_.unmap(block.handle, removed));
  if (!added.empty()) TRY(client_.map(block.handle, added));
  block.mapped_to = wanted;
  return {};
}

void KfdDriver::release(Block& block) {
  (void)map(block, {});
  (void)client_.free(block.handle);
  // A userptr only reserved the range; its pages belong to the program.
  free_range(block.gpu_address, block.size);
}

base::Result<std::unique_ptr<DriverQueue>> KfdDriver::create_queue(const Gpu& gpu, const QueueSpec& spec) {
  auto queue = std::make_unique<KfdDriverQueue>(client_);
  kfd::QueueRequest request;
  request.gpu_id = gpu.gpu_id;
  request.type = type_of(spec.kind);
  request.ring = spec.ring_address;
  request.ring_size = static_cast<std::uint32_t>(spec.ring.size());
  request.percentage = spec.percentage;
  request.priority = spec.priority;
  request.sdma_engine = spec.sdma_engine;
  request.read_pointer = spec.read_pointer;
  request.write_pointer = spec.write_pointer;
  if (spec.kind != QueueKind::kAql) TRY(queue->make_pointers(gpu, &request));
  if (is_compute(spec.kind)) {
    TRY(queue->make_eop(gpu, &request));
    if (gpu.generation.saves_waves) {
      ASSIGN_OR_RETURN(request.save_area, spec.save_area == SaveArea::kSvm ? queue->make_svm_save_area(gpu)
                                          : spec.error_reason != nullptr   ? queue->make_save_area(gpu, spec)
                                                                           : shared_save_area(gpu));
      request.save_area_size = static_cast<std::uint32_t>(gpu.cwsr_size);
      request.control_stack_size = static_cast<std::uint32_t>(gpu.ctl_stack_size);
    }
  }
  ASSIGN_OR_RETURN(const kfd::CreatedQueue created, queue->create(request));
  TRY(find_doorbell(gpu, created, queue.get()));
  return std::unique_ptr<DriverQueue>(std::move(queue));
}

base::Result<std::uint64_t> KfdDriver::shared_save_area(const Gpu& gpu) {
  Block& area = opened_.at(gpu.node).save_area;
  if (area.handle == 0) {
    ASSIGN_OR_RETURN(area, allocate(gpu, MemoryKind::kGtt, save_area_size(gpu), MemoryUse::kData));
    const Gpu* const only[] = {&gpu};
    TRY(map(area, only));
  }
  return area.gpu_address;
}

// All doorbells of the process on one GPU are mapped at once.
base::Status KfdDriver::find_doorbell(const Gpu& gpu, const kfd::CreatedQueue& created, DriverQueue* queue) {
  const std::uint64_t slice = gpu.generation.doorbell_slice;
  OpenedGpu& opened = opened_.at(gpu.node);
  if (opened.doorbells.data() == nullptr) {
    ASSIGN_OR_RETURN(opened.doorbells,
                     base::Mapping::shared(client_.fd(), slice, static_cast<off_t>(created.doorbell & ~(slice - 1)),
                                           "mapping doorbells"));
  }
  // 32-bit doorbells are ordered by queue id; KFD does not tell the program their offsets.
  queue->doorbell_offset =
      gpu.generation.doorbell_bytes == 4 ? created.id * std::uint64_t{4} : created.doorbell & (slice - 1);
  queue->doorbell = opened.doorbells.data() + queue->doorbell_offset;
  return {};
}

base::Status KfdDriver::make_event_page(const Gpu& gpu) {
  if (event_page_.data != nullptr) return {};
  ASSIGN_OR_RETURN(Block page, allocate(gpu, MemoryKind::kGtt, kEventPageSize, MemoryUse::kData));
  std::vector<const Gpu*> all;
  for (const Gpu& each : gpus_) all.push_back(&each);
  TRY(map(page, all));
  event_page_ = page;
  return {};
}

base::Result<std::unique_ptr<DriverEvent>> KfdDriver::create_event(const Gpu& gpu, EventKind kind, ResetMode reset) {
  TRY(make_event_page(gpu));
  // KFD accepts the event page once in the life of a process.
  const std::uint64_t page = event_page_known_ ? 0 : event_page_.handle;
  ASSIGN_OR_RETURN(const kfd::CreatedEvent created,
                   client_.create_event(type_of(kind), reset == ResetMode::kAuto, page));
  event_page_known_ = true;
  auto event = std::make_unique<KfdDriverEvent>(client_, created);
  if (kind == EventKind::kSignal) event->mailbox = event_page_.gpu_address + created.slot * kEventSlot;
  return std::unique_ptr<DriverEvent>(std::move(event));
}

base::Result<WaitOutcome> KfdDriver::wait(std::span<DriverEvent* const> events, bool all,
                                          std::chrono::milliseconds limit) {
  std::vector<kfd_event_data> data(events.size());
  for (std::size_t i = 0; i < events.size(); ++i) data[i].event_id = events[i]->id;
  ASSIGN_OR_RETURN(const kfd::WaitResult result,
                   client_.wait_events(data, all, static_cast<std::uint32_t>(limit.count())));
  if (result == kfd::WaitResult::kTimeout) return WaitOutcome::kTimeout;
  if (result != kfd::WaitResult::kComplete) return base::Error(EIO, "a waited-for event was destroyed");
  for (std::size_t i = 0; i < events.size(); ++i) {
    const kfd_hsa_memory_exception_data& memory = data[i].memory_exception_data;
    events[i]->fault = {memory.va, memory.gpu_id, memory.failure.NotPresent != 0, memory.failure.ReadOnly != 0};
    events[i]->exception = {data[i].hw_exception_data.gpu_id, data[i].hw_exception_data.memory_lost != 0};
  }
  return WaitOutcome::kSignaled;
}

}  // namespace kfdtest
