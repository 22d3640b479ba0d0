// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// An image by the released ABI in the hands of a test, which may spoil it; and a process that restores it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "kfd/client.h"
#include "kfd/kfd.h"
#include "kfdtest-criu/env/gpu.h"

namespace kfdtest {

// Version 1 of the private data (amdkfd/kfd_priv.h, struct kfd_criu_*_priv_data): those in front of the objects.
inline constexpr std::size_t kProcessRecordSize = 8;
inline constexpr std::size_t kDeviceRecordSize = 8;
inline constexpr std::size_t kBoRecordSize = 272;
inline constexpr std::uint32_t kQueueObject = 0;
inline constexpr std::uint32_t kSvmObject = 2;

// struct kfd_criu_queue_priv_data; its MQDs and control stacks follow.
struct QueueRecord {
  std::uint32_t object_type;
  std::uint32_t padding;
  std::uint64_t ring_address;
  std::uint64_t ring_size;
  std::uint64_t read_pointer;
  std::uint64_t write_pointer;
  std::uint64_t doorbell;
  std::uint64_t eop_address;
  std::uint64_t save_area;
  std::uint32_t gpu_id;
  std::uint32_t type;  // KFD_QUEUE_TYPE_*
  std::uint32_t format;
  std::uint32_t queue_id;
  std::uint32_t priority;
  std::uint32_t percentage;
  std::uint32_t doorbell_id;
  std::uint32_t gws;
  std::uint32_t sdma_id;
  std::uint32_t eop_size;
  std::uint32_t save_area_size;
  std::uint32_t control_stack_size;
  std::uint32_t mqd_size;
  std::uint32_t tail;
};
static_assert(sizeof(QueueRecord) == 120);

class TakenImage {
 public:
  // Of this process, which goes on afterwards.
  static base::Result<TakenImage> take(const Session& session);

  [[nodiscard]] const std::vector<Gpu>& gpus() const { return gpus_; }
  // The private data from the first object on: queues, then events, then SVM ranges.
  [[nodiscard]] std::span<std::byte> objects();
  // The first object; EINVAL if that is no queue.
  base::Result<QueueRecord> first_queue();
  base::Status replace_first_queue(const QueueRecord& record);

  kfd::Checkpoint checkpoint;
  std::uint32_t num_objects = 0;

 private:
  std::vector<Gpu> gpus_;
};

// In a process that has nothing of a GPU yet (see run_with_successors()): files of its own.
class Restoree {
 public:
  static base::Result<Restoree> open(const TakenImage& image);
  [[nodiscard]] const kfd::Client& client() const { return client_; }
  // On the GPUs that the image is of.
  [[nodiscard]] kfd::RestoreRequest request(const TakenImage& image) const;
  // EIO if the kernel takes it.
  base::Status expect_refused(kfd::RestoreRequest request) const;

 private:
  explicit Restoree(kfd::Client client) : client_(std::move(client)) {}
  kfd::Client client_;
  std::vector<base::UniqueFd> render_nodes_;
};

}  // namespace kfdtest
