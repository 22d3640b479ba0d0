// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// An image by the released ABI, in which a test can change values; and a process that restores it.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "kfd/client.h"
#include "kfd/kfd.h"
#include "kfdtest-criu/harness/gpu.h"
#include "kfdtest-criu/harness/session.h"

namespace kfdtest {

// Version 1 of the private data (amdkfd/kfd_priv.h, struct kfd_criu_*_priv_data): those in front of the objects.
inline constexpr std::size_t kProcessRecordSize = 8;
inline constexpr std::size_t kDeviceRecordSize = 8;
inline constexpr std::size_t kBoRecordSize = 272;
inline constexpr std::uint32_t kQueueObject = 0;
inline constexpr std::uint32_t kEventObject = 1;
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

// struct kfd_criu_event_priv_data without the exceptions at its end.
struct EventRecord {
  std::uint32_t object_type;
  std::uint32_t padding;
  std::uint64_t page_handle;
  std::uint32_t event_id;
  std::uint32_t auto_reset;
  std::uint32_t type;  // KFD_IOC_EVENT_*
  std::uint32_t signaled;
};
static_assert(sizeof(EventRecord) == 32);

// struct kfd_criu_svm_range_priv_data; its attributes follow.
struct SvmRecord {
  std::uint32_t object_type;
  std::uint32_t padding;
  std::uint64_t first_page;
  std::uint64_t pages;
};
static_assert(sizeof(SvmRecord) == 24);

class TakenImage {
 public:
  // Checkpoints this process, which runs on afterwards.
  static base::Result<TakenImage> take(const Session& session);
  // Checkpoints the process with these GPUs, whose open /dev/kfd is `fd`.
  static base::Result<TakenImage> take(int fd, std::vector<Gpu> gpus);

  [[nodiscard]] const std::vector<Gpu>& gpus() const { return gpus_; }
  // The private data from the first object on: queues, then events, then SVM ranges.
  [[nodiscard]] std::span<std::byte> objects();
  // The first object; EINVAL if it has another type.
  base::Result<QueueRecord> first_queue() { return first<QueueRecord>(kQueueObject); }
  base::Result<EventRecord> first_event() { return first<EventRecord>(kEventObject); }
  base::Result<SvmRecord> first_svm_range() { return first<SvmRecord>(kSvmObject); }
  // Overwrites the first object by one of its type.
  template <typename Record>
  base::Status replace_first(const Record& record) {
    TRY(first<Record>(record.object_type));
    std::memcpy(objects().data(), &record, sizeof(record));
    return {};
  }

  kfd::Checkpoint checkpoint;
  std::uint32_t num_objects = 0;

 private:
  template <typename Record>
  base::Result<Record> first(std::uint32_t object_type) {
    Record record{};
    if (objects().size() < sizeof(record)) return base::Error(EINVAL, "an image without such objects");
    std::memcpy(&record, objects().data(), sizeof(record));
    if (record.object_type != object_type) return base::Error(EINVAL, "an image that begins with other objects");
    return record;
  }

  std::vector<Gpu> gpus_;
};

// A process that restores an image: it has no GPU state before (see run_with_successors()), and opens its own files.
class Restoree {
 public:
  static base::Result<Restoree> open(const TakenImage& image);
  [[nodiscard]] const kfd::Client& client() const { return client_; }
  // A request to restore on the GPUs that the image comes from.
  [[nodiscard]] kfd::RestoreRequest request(const TakenImage& image) const;
  // EIO if the kernel accepts the request.
  base::Status expect_refused(kfd::RestoreRequest request) const;

 private:
  explicit Restoree(kfd::Client client) : client_(std::move(client)) {}
  kfd::Client client_;
  std::vector<base::UniqueFd> render_nodes_;
};

}  // namespace kfdtest
