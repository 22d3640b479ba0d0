// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Through the ioctls of /dev/kfd alone: knows every chip, because all it needs stands in the topology. GPU and CPU see
// an allocation at the same address, in the low part of the address space that even a 40-bit GPU reaches.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/mapping.h"
#include "base/unique_fd.h"
#include "kfd/client.h"
#include "kfdtest-criu/harness/driver.h"

namespace kfdtest {

class KfdDriver final : public Driver {
 public:
  static base::Result<std::unique_ptr<Driver>> open(const std::vector<Gpu>& gpus);
  ~KfdDriver() override = default;

  base::Result<Block> allocate(const Gpu& gpu, MemoryKind kind, std::size_t size, MemoryUse use) override;
  base::Result<Block> adopt(const Gpu& gpu, std::span<std::byte> pages) override;
  base::Status map(Block& block, std::span<const Gpu* const> gpus) override;
  void release(Block& block) override;
  base::Result<std::unique_ptr<DriverQueue>> create_queue(const Gpu& gpu, const QueueSpec& spec) override;
  base::Result<std::unique_ptr<DriverEvent>> create_event(const Gpu& gpu, EventKind kind, ResetMode reset) override;
  base::Result<WaitOutcome> wait(std::span<DriverEvent* const> events, bool all,
                                 std::chrono::milliseconds limit) override;

  // Allocates with the caller's flags (KFD_IOC_ALLOC_MEM_FLAGS_*), without a mapping to any GPU, and without a CPU
  // mapping unless it is VRAM or GTT that has one.
  base::Result<Block> allocate_with(const Gpu& gpu, std::uint32_t flags, std::size_t size);
  // Imports a dmabuf's memory at an address of its own, without a mapping to any GPU.
  base::Result<Block> import_dmabuf(const Gpu& gpu, int dmabuf, std::size_t size);
  // A range of addresses that nothing else uses, of the CPU and of every GPU; given back by free_range().
  base::Result<std::uint64_t> reserve(std::size_t size);
  void free_range(std::uint64_t address, std::size_t size);

  [[nodiscard]] const kfd::Client& client() const { return client_; }
  [[nodiscard]] int render_fd(const Gpu& gpu) const { return opened_.at(gpu.node).drm.get(); }

 private:
  struct OpenedGpu {
    std::uint32_t gpu_id = 0;
    base::UniqueFd drm;
    base::Mapping doorbells;
    Block save_area;
  };
  // No wave ever runs in these queues and a save area is large, so all queues of a process share one on each GPU.
  base::Result<std::uint64_t> shared_save_area(const Gpu& gpu);
  explicit KfdDriver(kfd::Client client) : client_(std::move(client)) {}
  base::Status open_gpu(const Gpu& gpu);
  base::Result<Block> allocate_at(const Gpu& gpu, std::uint64_t va, std::uint32_t flags, std::size_t size);
  base::Status find_doorbell(const Gpu& gpu, const kfd::CreatedQueue& created, DriverQueue* queue);
  base::Status make_event_page(const Gpu& gpu);

  kfd::Client client_;
  std::map<std::uint32_t, OpenedGpu> opened_;  // by node
  std::vector<Gpu> gpus_;
  std::uint64_t next_address_ = 0;
  std::uint64_t first_address_ = 0;
  std::uint64_t end_address_ = 0;
  Block event_page_;  // lives as long as the process: KFD does not give it back
  bool event_page_known_ = false;
};

// Bytes of a compute queue's save area, of all XCCs, with what a debugger needs.
[[nodiscard]] std::size_t save_area_size(const Gpu& gpu);

// The driver of a session that was opened with DriverKind::kIoctls.
[[nodiscard]] KfdDriver& ioctls_of(const Gpu& gpu);

}  // namespace kfdtest
