// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// User-mode queues: ring, write pointer, doorbell. RingQueue carries PM4 or SDMA dwords, AqlQueue 64-byte packets.
// Order of a submission: packets, write pointer, doorbell. Not here: what the packets mean; see userspace/packets.
// A queue is used by one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/result.h"
#include "kfdtest-criu/env/deadline.h"
#include "kfdtest-criu/harness/event.h"
#include "kfdtest-criu/harness/memory.h"

namespace kfdtest {

inline constexpr std::uint32_t kFullPercentage = 100;
inline constexpr std::uint32_t kStopped = 0;  // a queue with percentage 0 is not on the hardware

// The KFD queue and its ring; what RingQueue and AqlQueue share.
class KfdQueue {
 public:
  KfdQueue(const KfdQueue&) = delete;
  KfdQueue& operator=(const KfdQueue&) = delete;
  KfdQueue& operator=(KfdQueue&&) = delete;
  KfdQueue(KfdQueue&& other) noexcept;
  ~KfdQueue();

  // 0 takes the queue off the hardware, 100 puts it back.
  base::Status set_percentage(std::uint32_t percentage);
  base::Status set_priority(std::uint32_t priority);
  [[nodiscard]] std::uint32_t id() const { return queue_->id; }
  [[nodiscard]] const Gpu& gpu() const { return gpu_; }
  [[nodiscard]] const GpuMemory& ring() const { return ring_; }
  // The exception word that KFD reports queue errors in; null unless the queue was made with an error event.
  [[nodiscard]] const volatile std::uint64_t* error_reason() const { return error_word_.get(); }

 protected:
  KfdQueue(const Gpu& gpu, GpuMemory ring) : gpu_(gpu), ring_(std::move(ring)) {}
  base::Status create(QueueSpec spec, const KfdEvent* error_event);
  void ring_doorbell(std::uint64_t value);
  base::Status update();

  Gpu gpu_;
  GpuMemory ring_;
  // amd_queue_t of an AQL queue, with the two dispatch ids. Declared before queue_, which must be destroyed first.
  std::optional<GpuMemory> control_;
  DriverQueue::Settings settings_;

 private:
  std::unique_ptr<std::uint64_t> error_word_;

 protected:
  std::unique_ptr<DriverQueue> queue_;
};

class RingQueue : public KfdQueue {
 public:
  struct Options {
    std::size_t ring_size = 64 * kKiB;  // a power of two
    const KfdEvent* error_event = nullptr;
    std::uint32_t percentage = kFullPercentage;
    std::uint32_t priority = 7;
    std::uint32_t sdma_engine = 0;  // which engine, for QueueKind::kSdmaByEngine
    SaveArea save_area = SaveArea::kBo;
  };
  // A queue of any kind but kAql.
  static base::Result<RingQueue> create(const Gpu& gpu, QueueKind kind) { return create(gpu, kind, Options{}); }
  static base::Result<RingQueue> create(const Gpu& gpu, QueueKind kind, Options options);

  // Appends dwords, then publishes them. Waits for space; an error if there is none before the deadline.
  base::Status submit(std::span<const std::uint32_t> dwords, Duration limit = kDeadline);

  // Submits without ringing the doorbell: returns what the caller has to store, and where in the process's doorbells.
  struct Bell {
    std::uint64_t offset = 0;
    std::uint64_t value = 0;
  };
  Bell append(std::span<const std::uint32_t> dwords);
  // Publishes dwords that lie in the ring already, behind those submitted last.
  base::Status submit_again(std::size_t dwords, Duration limit = kDeadline);
  // Replaces the ring; the next submission has the position that it would have had in the old one. Precondition: idle.
  base::Status replace_ring();

  // Everything submitted has been fetched; whether it has completed is what fences tell.
  [[nodiscard]] bool idle() const { return read_offset() == written_ % ring_dwords(); }
  base::Status wait_idle(Duration limit = kDeadline) const;
  // Dwords submitted so far.
  [[nodiscard]] std::uint64_t written() const { return written_; }
  [[nodiscard]] std::size_t ring_dwords() const { return ring_.size() / sizeof(std::uint32_t); }

 private:
  RingQueue(const Gpu& gpu, GpuMemory ring, QueueKind kind) : KfdQueue(gpu, std::move(ring)), kind_(kind) {}
  // The device's read position in the ring, dwords.
  [[nodiscard]] std::uint64_t read_offset() const;
  [[nodiscard]] bool has_space(std::size_t dwords) const;
  void publish();
  std::uint64_t store_write_pointer();

  QueueKind kind_;
  std::uint64_t written_ = 0;  // dwords, never wraps
};

// One AQL packet; the first 16 bits are its header.
inline constexpr std::size_t kAqlPacketSize = 64;
using AqlBytes = std::array<std::uint32_t, kAqlPacketSize / sizeof(std::uint32_t)>;

class AqlQueue : public KfdQueue {
 public:
  static constexpr std::size_t kDefaultPackets = 256;
  static base::Result<AqlQueue> create(const Gpu& gpu, std::size_t packets = kDefaultPackets,
                                       const KfdEvent* error_event = nullptr);

  base::Status submit(const AqlBytes& packet, Duration limit = kDeadline);
  [[nodiscard]] bool idle() const { return read_index() == written_; }
  base::Status wait_idle(Duration limit = kDeadline) const;

 private:
  AqlQueue(const Gpu& gpu, GpuMemory ring, std::size_t packets) : KfdQueue(gpu, std::move(ring)), capacity_(packets) {}
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  void publish(std::uint64_t index);
  [[nodiscard]] std::uint64_t read_index() const;

  std::size_t capacity_;
  std::uint64_t written_ = 0;  // packets
};

}  // namespace kfdtest
