// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What the harness asks of KFD, whichever way it goes there (see DriverKind). An interface; its users are GpuMemory,
// KfdQueue and KfdEvent, which own what it hands out.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "kfdtest-criu/harness/gpu.h"

namespace kfdtest {

enum class MemoryKind : std::uint8_t { kVram, kGtt, kUserptr };
// What the memory is for: plain data; a ring or code that the command processor fetches; the ring of an AQL queue.
enum class MemoryUse : std::uint8_t { kData, kRing, kAqlRing };

enum class QueueKind : std::uint8_t { kPm4, kAql, kSdma, kSdmaXgmi, kSdmaByEngine };
enum class ResetMode : std::uint8_t { kAuto, kManual };
enum class WaitOutcome : std::uint8_t { kSignaled, kTimeout };
enum class EventKind : std::uint8_t { kSignal, kMemory, kHwException };

// An allocation. `data` is null when the CPU cannot see it.
struct Block {
  MemoryKind kind = MemoryKind::kGtt;
  std::size_t size = 0;
  std::byte* data = nullptr;
  std::uint64_t gpu_address = 0;
  std::uint64_t handle = 0;              // KFD's handle; libhsakmt keeps its own
  std::vector<std::uint32_t> mapped_to;  // nodes
};

struct MemoryFault {
  std::uint64_t address = 0;
  std::uint32_t gpu_id = 0;
  bool not_present = false;
  bool read_only = false;
};
struct HwException {
  std::uint32_t gpu_id = 0;
  bool memory_lost = false;
};

// Where a compute queue's waves are saved: in memory that KFD allocated, or in an SVM range, as later runtimes have it.
enum class SaveArea : std::uint8_t { kBo, kSvm };

// Addresses are the GPU's.
struct QueueSpec {
  QueueKind kind = QueueKind::kPm4;
  std::span<std::byte> ring;
  std::uint64_t ring_address = 0;
  // GPU addresses of an AQL queue's pointers; the driver allocates those of other queues.
  std::uint64_t read_pointer = 0;
  std::uint64_t write_pointer = 0;
  std::uint32_t error_event_id = 0;       // 0: none
  std::uint64_t* error_reason = nullptr;  // exception word of a queue with an error event
  std::uint32_t percentage = 100;
  std::uint32_t priority = 7;
  std::uint32_t sdma_engine = 0;
  SaveArea save_area = SaveArea::kBo;  // kSvm: by the ioctls only, and where there is SVM
};

// A queue of KFD; destroying the object destroys it.
class DriverQueue {
 public:
  DriverQueue() = default;
  DriverQueue(const DriverQueue&) = delete;
  DriverQueue& operator=(const DriverQueue&) = delete;
  virtual ~DriverQueue() = default;

  struct Settings {
    std::uint32_t percentage = 100;
    std::uint32_t priority = 7;
    std::uint64_t ring_address = 0;
    std::size_t ring_size = 0;
  };
  virtual base::Status update(const Settings& settings) = 0;

  // KFD's id; 0 through libhsakmt, which does not tell it.
  std::uint32_t id = 0;
  std::byte* doorbell = nullptr;
  std::uint64_t doorbell_offset = 0;  // in the doorbells of the process; only the ioctls tell
  std::byte* read_pointer = nullptr;
  std::byte* write_pointer = nullptr;
};

class DriverEvent {
 public:
  DriverEvent() = default;
  DriverEvent(const DriverEvent&) = delete;
  DriverEvent& operator=(const DriverEvent&) = delete;
  virtual ~DriverEvent() = default;
  virtual base::Status set() = 0;
  virtual base::Status reset() = 0;

  std::uint32_t id = 0;
  std::uint32_t trigger = 0;
  std::uint64_t mailbox = 0;  // GPU address; 0 unless a signal event
  // Data of the last wait that this event ended.
  MemoryFault fault;
  HwException exception;
};

class Driver {
 public:
  Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  virtual ~Driver() = default;

  // Allocates VRAM or GTT memory, which is not mapped to any GPU yet.
  virtual base::Result<Block> allocate(const Gpu& gpu, MemoryKind kind, std::size_t size, MemoryUse use) = 0;
  // Registers the program's own pages, which outlive the block.
  virtual base::Result<Block> adopt(const Gpu& gpu, std::span<std::byte> pages) = 0;
  // Maps the block to these GPUs and unmaps it from all others.
  virtual base::Status map(Block& block, std::span<const Gpu* const> gpus) = 0;
  virtual void release(Block& block) = 0;

  virtual base::Result<std::unique_ptr<DriverQueue>> create_queue(const Gpu& gpu, const QueueSpec& spec) = 0;

  virtual base::Result<std::unique_ptr<DriverEvent>> create_event(const Gpu& gpu, EventKind kind, ResetMode reset) = 0;
  virtual base::Result<WaitOutcome> wait(std::span<DriverEvent* const> events, bool all,
                                         std::chrono::milliseconds limit) = 0;
};

}  // namespace kfdtest
