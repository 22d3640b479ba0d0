// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Driver on libhsakmt.
#include "kfdtest-criu/harness/thunk_driver.h"

#include <hsakmt.h>

#include <cerrno>
#include <string>

namespace kfdtest {
namespace {

constexpr std::uint32_t kCpuNode = 0;

base::Status check(HSAKMT_STATUS status, std::string_view what) {
  if (status == HSAKMT_STATUS_SUCCESS) return {};
  const int code = status == HSAKMT_STATUS_NO_MEMORY ? ENOMEM : status == HSAKMT_STATUS_WAIT_TIMEOUT ? ETIME : EIO;
  return base::Error(code, std::string(what) + ": libhsakmt status " + std::to_string(static_cast<int>(status)));
}

HsaMemFlags flags_of(MemoryKind kind, MemoryUse use) {
  HsaMemFlags flags{};
  flags.ui32.NonPaged = 1;  // a BO of KFD's; paged system memory would become userptr
  flags.ui32.HostAccess = 1;
  flags.ui32.PageSize = HSA_PAGE_SIZE_4KB;
  flags.ui32.NoNUMABind = 1;
  flags.ui32.CoarseGrain = kind == MemoryKind::kVram ? 1 : 0;
  flags.ui32.NoSubstitute = kind == MemoryKind::kVram ? 1 : 0;
  flags.ui32.ExecuteAccess = use == MemoryUse::kData ? 0 : 1;
  flags.ui32.AQLQueueMemory = use == MemoryUse::kAqlRing ? 1 : 0;
  return flags;
}

class ThunkQueue final : public DriverQueue {
 public:
  explicit ThunkQueue(const HsaQueueResource& resource) : resource_(resource) {
    doorbell = reinterpret_cast<std::byte*>(resource_.Queue_DoorBell);
    read_pointer = reinterpret_cast<std::byte*>(resource_.Queue_read_ptr);
    write_pointer = reinterpret_cast<std::byte*>(resource_.Queue_write_ptr);
  }
  ~ThunkQueue() override { hsaKmtDestroyQueue(resource_.QueueId); }
  base::Status update(const Settings& settings) override {
    return check(hsaKmtUpdateQueue(resource_.QueueId, settings.percentage, HSA_QUEUE_PRIORITY_NORMAL,
                                   reinterpret_cast<void*>(settings.ring_address), settings.ring_size, nullptr),
                 "update queue");
  }

 private:
  HsaQueueResource resource_;
};

class ThunkEvent final : public DriverEvent {
 public:
  explicit ThunkEvent(HsaEvent* event) : event_(event) {
    id = event->EventId;
    trigger = event->EventData.HWData3;
    mailbox = event->EventData.HWData2;
  }
  ~ThunkEvent() override { hsaKmtDestroyEvent(event_); }
  base::Status set() override { return check(hsaKmtSetEvent(event_), "set event"); }
  base::Status reset() override { return check(hsaKmtResetEvent(event_), "reset event"); }
  [[nodiscard]] HsaEvent* get() const { return event_; }

 private:
  HsaEvent* event_;
};

// libhsakmt takes the size of an AQL ring's memory, and returns twice as many addresses.
std::size_t memory_size(MemoryUse use, std::size_t size) { return use == MemoryUse::kAqlRing ? size / 2 : size; }

HSA_EVENTTYPE type_of(EventKind kind) {
  switch (kind) {
    case EventKind::kSignal:
      return HSA_EVENTTYPE_SIGNAL;
    case EventKind::kMemory:
      return HSA_EVENTTYPE_MEMORY;
    case EventKind::kHwException:
      return HSA_EVENTTYPE_HW_EXCEPTION;
  }
  return HSA_EVENTTYPE_SIGNAL;
}

}  // namespace

base::Result<std::unique_ptr<Driver>> ThunkDriver::open() {
  // In a process with a HIP runtime libhsakmt is open already. It counts opens and closes.
  const HSAKMT_STATUS opened = hsaKmtOpenKFD();
  const bool alone = opened != HSAKMT_STATUS_KERNEL_ALREADY_OPENED;
  if (alone) TRY(check(opened, "open /dev/kfd"));
  std::unique_ptr<Driver> driver(new ThunkDriver(alone));
  HsaSystemProperties system{};
  TRY(check(hsaKmtAcquireSystemProperties(&system), "topology snapshot"));
  return driver;
}

ThunkDriver::~ThunkDriver() {
  if (alone_) hsaKmtReleaseSystemProperties();
  hsaKmtCloseKFD();
}

base::Result<Block> ThunkDriver::allocate(const Gpu& gpu, MemoryKind kind, std::size_t size, MemoryUse use) {
  void* address = nullptr;
  const std::uint32_t node = kind == MemoryKind::kVram ? gpu.node : kCpuNode;
  TRY(check(hsaKmtAllocMemory(node, memory_size(use, size), flags_of(kind, use), &address), "allocate"));
  Block block;
  block.kind = kind;
  block.size = size;
  block.data = static_cast<std::byte*>(address);
  block.gpu_address = reinterpret_cast<std::uint64_t>(address);
  return block;
}

base::Result<Block> ThunkDriver::adopt(const Gpu& gpu, std::span<std::byte> pages) {
  std::uint32_t nodes[] = {gpu.node};
  TRY(check(hsaKmtRegisterMemoryToNodes(pages.data(), pages.size(), 1, nodes), "register"));
  Block block;
  block.kind = MemoryKind::kUserptr;
  block.size = pages.size();
  block.data = pages.data();
  return block;
}

base::Status ThunkDriver::map(Block& block, std::span<const Gpu* const> gpus) {
  if (gpus.empty()) {
    if (!block.mapped_to.empty()) TRY(check(hsaKmtUnmapMemoryToGPU(block.data), "unmap"));
    block.mapped_to.clear();
    return {};
  }
  std::vector<std::uint32_t> nodes;
  for (const Gpu* gpu : gpus) nodes.push_back(gpu->node);
  HSAuint64 address = 0;
  if (block.kind == MemoryKind::kUserptr)  // libhsakmt maps it to the nodes that it is registered for
    TRY(check(hsaKmtMapMemoryToGPU(block.data, block.size, &address), "map"));
  else
    TRY(check(hsaKmtMapMemoryToGPUNodes(block.data, block.size, &address, HsaMemMapFlags{}, nodes.size(), nodes.data()),
              "map"));
  block.mapped_to = nodes;
  if (address != 0) block.gpu_address = address;
  return {};
}

void ThunkDriver::release(Block& block) {
  (void)map(block, {});
  if (block.kind == MemoryKind::kUserptr)
    hsaKmtDeregisterMemory(block.data);
  else
    hsaKmtFreeMemory(block.data, block.size);
}

base::Result<std::unique_ptr<DriverQueue>> ThunkDriver::create_queue(const Gpu& gpu, const QueueSpec& spec) {
  HsaQueueResource resource{};
  HSA_QUEUE_TYPE type = HSA_QUEUE_COMPUTE;
  if (spec.kind == QueueKind::kSdma) type = HSA_QUEUE_SDMA;
  if (spec.kind == QueueKind::kSdmaXgmi) type = HSA_QUEUE_SDMA_XGMI;
  if (spec.kind == QueueKind::kSdmaByEngine) return base::Error(ENOTSUP, "libhsakmt has no queues by engine");
  if (spec.save_area == SaveArea::kSvm) return base::Error(ENOTSUP, "libhsakmt makes save areas itself");
  if (spec.kind == QueueKind::kAql) {
    type = HSA_QUEUE_COMPUTE_AQL;
    resource.QueueRptrValue = spec.read_pointer;
    resource.QueueWptrValue = spec.write_pointer;
  }
  TRY(check(hsaKmtCreateQueue(gpu.node, type, spec.percentage, HSA_QUEUE_PRIORITY_NORMAL, spec.ring.data(),
                              spec.ring.size(), nullptr, &resource),
            "create queue"));
  return std::unique_ptr<DriverQueue>(new ThunkQueue(resource));
}

base::Result<std::unique_ptr<DriverEvent>> ThunkDriver::create_event(const Gpu& gpu, EventKind kind, ResetMode reset) {
  HsaEventDescriptor descriptor{};
  descriptor.EventType = type_of(kind);
  descriptor.NodeId = gpu.node;
  HsaEvent* event = nullptr;
  TRY(check(hsaKmtCreateEvent(&descriptor, reset == ResetMode::kManual, /*IsSignaled=*/false, &event), "create event"));
  return std::unique_ptr<DriverEvent>(new ThunkEvent(event));
}

base::Result<WaitOutcome> ThunkDriver::wait(std::span<DriverEvent* const> events, bool all,
                                            std::chrono::milliseconds limit) {
  std::vector<HsaEvent*> each;
  for (DriverEvent* event : events) each.push_back(static_cast<ThunkEvent*>(event)->get());
  const HSAKMT_STATUS status = hsaKmtWaitOnMultipleEvents(each.data(), static_cast<HSAuint32>(each.size()), all,
                                                          static_cast<HSAuint32>(limit.count()));
  if (status == HSAKMT_STATUS_WAIT_TIMEOUT) return WaitOutcome::kTimeout;
  TRY(check(status, "wait for event"));
  return WaitOutcome::kSignaled;
}

}  // namespace kfdtest
