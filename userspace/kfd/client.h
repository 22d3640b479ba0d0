// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What a program does with /dev/kfd - memory, queues, events, SVM - as typed calls, an ioctl each. Owns the file.
// Not here: what to allocate and when; the checkpoint operations (kfd.h).
#pragma once

#include <linux/kfd_ioctl.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "kfd/abi.h"

namespace kfd {

enum class QueueType : std::uint32_t {
  kCompute = KFD_IOC_QUEUE_TYPE_COMPUTE,
  kSdma = KFD_IOC_QUEUE_TYPE_SDMA,
  kComputeAql = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL,
  kSdmaXgmi = KFD_IOC_QUEUE_TYPE_SDMA_XGMI,
  kSdmaByEngine = abi::kQueueTypeSdmaByEngine,
};

inline constexpr std::uint32_t kFullPercentage = 100;
inline constexpr std::uint32_t kNormalPriority = 7;

struct QueueRequest {
  std::uint32_t gpu_id = 0;
  QueueType type = QueueType::kCompute;
  std::uint64_t ring = 0;
  std::uint32_t ring_size = 0;  // bytes
  std::uint64_t write_pointer = 0;
  std::uint64_t read_pointer = 0;
  std::uint32_t percentage = kFullPercentage;
  std::uint32_t priority = kNormalPriority;
  std::uint64_t eop = 0;
  std::uint64_t eop_size = 0;
  std::uint64_t save_area = 0;
  std::uint32_t save_area_size = 0;
  std::uint32_t control_stack_size = 0;
  std::uint32_t sdma_engine = 0;
};

struct CreatedQueue {
  std::uint32_t id = 0;
  std::uint64_t doorbell = 0;  // mmap offset; with 64-bit doorbells the offset in the pages too
};

struct MemoryRequest {
  std::uint32_t gpu_id = 0;
  std::uint64_t va = 0;
  std::uint64_t size = 0;
  std::uint32_t flags = 0;         // KFD_IOC_ALLOC_MEM_FLAGS_*
  std::uint64_t user_address = 0;  // the pages of a userptr BO
};

struct CreatedMemory {
  std::uint64_t handle = 0;
  std::uint64_t mmap_offset = 0;
};

struct CreatedEvent {
  std::uint32_t id = 0;
  std::uint32_t trigger = 0;
  std::uint32_t slot = 0;
};

enum class WaitResult : std::uint32_t {
  kComplete = KFD_IOC_WAIT_RESULT_COMPLETE,
  kTimeout = KFD_IOC_WAIT_RESULT_TIMEOUT,
  kFail = KFD_IOC_WAIT_RESULT_FAIL,
};

struct WaveState {
  std::uint32_t control_stack_used = 0;
  std::uint32_t save_area_used = 0;
};

// AMDKFD_IOC_SET_MEMORY_POLICY: caching of all of a GPU's memory, and of an aperture in it.
struct MemoryPolicy {
  bool coherent = false;
  bool aperture_coherent = false;
  std::uint64_t base = 0;
  std::uint64_t size = 0;
};

struct DmabufInfo {
  std::uint64_t size = 0;
  std::uint32_t gpu_id = 0;
  std::uint32_t flags = 0;
};

class Client {
 public:
  static base::Result<Client> open();
  [[nodiscard]] int fd() const { return file_.get(); }

  base::Status acquire_vm(std::uint32_t gpu_id, int drm_fd) const;
  // At most `limit` GPUs.
  base::Result<std::vector<kfd_process_device_apertures>> apertures(std::uint32_t limit) const;
  base::Result<kfd_ioctl_get_clock_counters_args> clock_counters(std::uint32_t gpu_id) const;
  base::Result<std::uint64_t> available_memory(std::uint32_t gpu_id) const;

  base::Result<CreatedMemory> allocate(const MemoryRequest& request) const;
  base::Status free(std::uint64_t handle) const;
  base::Status map(std::uint64_t handle, std::span<const std::uint32_t> gpu_ids) const;
  base::Status unmap(std::uint64_t handle, std::span<const std::uint32_t> gpu_ids) const;
  base::Result<base::UniqueFd> export_dmabuf(std::uint64_t handle) const;
  base::Result<std::uint64_t> import_dmabuf(std::uint32_t gpu_id, int dmabuf, std::uint64_t va) const;
  base::Result<DmabufInfo> dmabuf_info(int dmabuf) const;

  base::Result<CreatedQueue> create_queue(const QueueRequest& request) const;
  base::Status destroy_queue(std::uint32_t id) const;
  base::Status update_queue(std::uint32_t id, std::uint64_t ring, std::uint32_t ring_size, std::uint32_t percentage,
                            std::uint32_t priority) const;
  // One bit a CU; whole dwords.
  base::Status set_cu_mask(std::uint32_t id, std::span<const std::uint32_t> mask) const;
  base::Result<WaveState> wave_state(std::uint32_t id, std::uint64_t control_stack) const;
  // With 0, KFD takes the queue's GWS away.
  base::Status allocate_gws(std::uint32_t id, std::uint32_t count) const;

  // `page` is the handle of the signal page with the first event, then 0.
  base::Result<CreatedEvent> create_event(std::uint32_t type, bool auto_reset, std::uint64_t page) const;
  base::Status destroy_event(std::uint32_t id) const;
  base::Status set_event(std::uint32_t id) const;
  base::Status reset_event(std::uint32_t id) const;
  base::Result<WaitResult> wait_events(std::span<kfd_event_data> events, bool all, std::uint32_t limit_ms) const;
  // Lines of SMI events can be read from it, once a mask of events was written to it.
  base::Result<base::UniqueFd> smi_events(std::uint32_t gpu_id) const;

  base::Status svm_set(std::uint64_t address, std::uint64_t size,
                       std::span<const kfd_ioctl_svm_attribute> attributes) const;
  base::Status svm_get(std::uint64_t address, std::uint64_t size, std::span<kfd_ioctl_svm_attribute> attributes) const;
  // Whether the process's faults on absent pages are retried until the driver has mapped them; EBUSY once it has
  // queues.
  base::Status set_xnack(bool retry) const;
  base::Result<bool> xnack() const;

  base::Status enable_runtime() const;
  // The program's own trap handler and its memory, behind the driver's where the driver has one.
  base::Status set_trap_handler(std::uint32_t gpu_id, std::uint64_t code, std::uint64_t memory) const;
  base::Status set_memory_policy(std::uint32_t gpu_id, const MemoryPolicy& policy) const;
  // Where the program has reserved addresses for scratch memory: bits 47 to 16, the driver keeps no others.
  base::Status set_scratch(std::uint32_t gpu_id, std::uint32_t address) const;
  base::Status debug_trap(abi::DebugTrapArgs& args) const;

 private:
  explicit Client(base::UniqueFd file) : file_(std::move(file)) {}
  base::Status call(unsigned long request, void* argument, std::string_view what) const;
  base::Status svm(std::uint32_t op, std::uint64_t address, std::uint64_t size,
                   std::span<kfd_ioctl_svm_attribute> attributes) const;

  base::UniqueFd file_;
};

}  // namespace kfd
