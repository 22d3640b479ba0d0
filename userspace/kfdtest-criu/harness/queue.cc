// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Units: PM4 pointers are dwords, SDMA pointers are bytes, AQL indices are packets. A read pointer may be reported
// modulo the ring, so rings are never filled to the last dword. What wraps and how wide a doorbell is: see Generation.
#include "kfdtest-criu/harness/queue.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace kfdtest {
namespace {

// amd_queue_t of the HSA ABI: where the two indices stand in it.
constexpr std::size_t kWriteDispatchId = 56;
constexpr std::size_t kReadDispatchId = 128;
constexpr std::size_t kReadDispatchIdOffsetField = 136;

constexpr std::uint32_t kAqlInvalidHeader = 1;  // HSA_PACKET_TYPE_INVALID

template <typename T>
T load_acquire(const T* word) {
  return std::atomic_ref<T>(*const_cast<T*>(word)).load(std::memory_order_acquire);
}
template <typename T>
void store_release(T* word, T value) {
  std::atomic_ref<T>(*word).store(value, std::memory_order_release);
}

}  // namespace

KfdQueue::KfdQueue(KfdQueue&& other) noexcept = default;
KfdQueue::~KfdQueue() = default;

base::Status KfdQueue::create(QueueSpec spec, const KfdEvent* error_event) {
  if (error_event != nullptr) {
    error_word_ = std::make_unique<std::uint64_t>(0);
    spec.error_reason = error_word_.get();
    spec.error_event_id = error_event->id();
  }
  spec.ring = ring_.bytes();
  spec.ring_address = ring_.gpu_address();
  settings_ = {.percentage = spec.percentage,
               .priority = spec.priority,
               .ring_address = spec.ring_address,
               .ring_size = spec.ring.size()};
  ASSIGN_OR_RETURN(queue_, gpu_.driver->create_queue(gpu_, spec));
  return {};
}

base::Status KfdQueue::update() { return queue_->update(settings_); }

base::Status KfdQueue::set_percentage(std::uint32_t percentage) {
  settings_.percentage = percentage;
  return update();
}

base::Status KfdQueue::set_priority(std::uint32_t priority) {
  settings_.priority = priority;
  return update();
}

void KfdQueue::ring_doorbell(std::uint64_t value) {
  if (gpu_.generation.doorbell_bytes == sizeof(std::uint32_t))
    store_release(reinterpret_cast<std::uint32_t*>(queue_->doorbell), static_cast<std::uint32_t>(value));
  else
    store_release(reinterpret_cast<std::uint64_t*>(queue_->doorbell), value);
}

base::Result<RingQueue> RingQueue::create(const Gpu& gpu, QueueKind kind, Options options) {
  ASSIGN_OR_RETURN(GpuMemory ring, GpuMemory::allocate(gpu, MemoryKind::kGtt, options.ring_size, MemoryUse::kRing));
  RingQueue queue(gpu, std::move(ring), kind);
  QueueSpec spec;
  spec.kind = kind;
  spec.percentage = options.percentage;
  spec.priority = options.priority;
  spec.sdma_engine = options.sdma_engine;
  spec.save_area = options.save_area;
  TRY(queue.KfdQueue::create(spec, options.error_event));
  return queue;
}

// The low 32 bits are enough: a ring's size divides 4 GiB, and PM4 reports no more.
std::uint64_t RingQueue::read_offset() const {
  const std::uint32_t pointer = load_acquire(reinterpret_cast<const std::uint32_t*>(queue_->read_pointer));
  return (kind_ == QueueKind::kPm4 ? pointer : pointer / sizeof(std::uint32_t)) % ring_dwords();
}

bool RingQueue::has_space(std::size_t dwords) const {
  const std::uint64_t pending = (written_ + ring_dwords() - read_offset()) % ring_dwords();
  return pending + dwords < ring_dwords();
}

base::Status RingQueue::submit(std::span<const std::uint32_t> dwords, Duration limit) {
  if (dwords.size() >= ring_dwords()) return base::Error(E2BIG, "submission larger than its ring");
  if (!wait_until([&] { return has_space(dwords.size()); }, limit)) return base::Error(ETIME, "the ring is full");
  ring_doorbell(append(dwords).value);
  return {};
}

RingQueue::Bell RingQueue::append(std::span<const std::uint32_t> dwords) {
  for (const std::uint32_t dword : dwords) {
    const std::size_t at = written_++ % ring_dwords();
    ring_.store32(at * sizeof(std::uint32_t), dword);
  }
  return {queue_->doorbell_offset, store_write_pointer()};
}

base::Status RingQueue::submit_again(std::size_t dwords, Duration limit) {
  if (!wait_until([&] { return has_space(dwords); }, limit)) return base::Error(ETIME, "the ring is full");
  written_ += dwords;
  publish();
  return {};
}

base::Status RingQueue::replace_ring() {
  ASSIGN_OR_RETURN(GpuMemory ring, GpuMemory::allocate(gpu_, MemoryKind::kGtt, ring_.size(), MemoryUse::kRing));
  settings_.ring_address = ring.gpu_address();
  TRY(update());
  ring_ = std::move(ring);
  return {};
}

void RingQueue::publish() { ring_doorbell(store_write_pointer()); }

// Returns the value to store in the doorbell.
std::uint64_t RingQueue::store_write_pointer() {
  const bool endless = gpu_.generation.endless_write_pointers;
  const std::uint64_t dwords = endless ? written_ : written_ % ring_dwords();
  const std::uint64_t pointer = kind_ == QueueKind::kPm4 ? dwords : dwords * sizeof(std::uint32_t);
  if (endless)
    store_release(reinterpret_cast<std::uint64_t*>(queue_->write_pointer), pointer);
  else
    store_release(reinterpret_cast<std::uint32_t*>(queue_->write_pointer), static_cast<std::uint32_t>(pointer));
  return pointer;
}

base::Status RingQueue::wait_idle(Duration limit) const {
  if (wait_until([this] { return idle(); }, limit)) return {};
  return base::Error(ETIME, "queue not consumed: read at dword " + std::to_string(read_offset()) + ", written to " +
                                std::to_string(written_ % ring_dwords()));
}

base::Result<AqlQueue> AqlQueue::create(const Gpu& gpu, std::size_t packets, const KfdEvent* error_event) {
  const std::size_t size = packets * kAqlPacketSize;
  const bool twice = gpu.generation.aql_ring_mapped_twice;
  ASSIGN_OR_RETURN(GpuMemory ring, GpuMemory::allocate(gpu, MemoryKind::kGtt, twice ? 2 * size : size,
                                                       twice ? MemoryUse::kAqlRing : MemoryUse::kRing));
  ASSIGN_OR_RETURN(GpuMemory control, GpuMemory::allocate(gpu, MemoryKind::kGtt, kPageSize));
  std::memset(ring.data(), 0, size);
  std::memset(control.data(), 0, control.size());
  for (std::size_t at = 0; at < size; at += kAqlPacketSize) ring.store32(at, kAqlInvalidHeader);
  control.store32(kReadDispatchIdOffsetField, kReadDispatchId);
  AqlQueue queue(gpu, std::move(ring), packets);
  QueueSpec spec;
  spec.kind = QueueKind::kAql;
  spec.read_pointer = control.gpu_address(kReadDispatchId);
  spec.write_pointer = control.gpu_address(kWriteDispatchId);
  queue.control_.emplace(std::move(control));
  TRY(queue.KfdQueue::create(spec, error_event));
  return queue;
}

void AqlQueue::publish(std::uint64_t index) {
  switch (gpu_.generation.aql_doorbell) {
    case AqlDoorbell::kLastPacket:
      return ring_doorbell(index);
    case AqlDoorbell::kPacketCount:
      return ring_doorbell(index + 1);
    case AqlDoorbell::kRingDwords:
      return ring_doorbell((index + 1) * kAqlPacketSize / sizeof(std::uint32_t) %
                           (ring_.size() / sizeof(std::uint32_t)));
  }
}

std::uint64_t AqlQueue::read_index() const { return control_->load64(kReadDispatchId); }

base::Status AqlQueue::submit(const AqlBytes& packet, Duration limit) {
  if (!wait_until([this] { return written_ - read_index() < capacity(); }, limit))
    return base::Error(ETIME, "the AQL queue is full");
  const std::uint64_t index = written_++;
  const std::size_t at = index % capacity() * kAqlPacketSize;
  control_->store64(kWriteDispatchId, written_);
  for (std::size_t word = 1; word < packet.size(); ++word) ring_.store32(at + word * sizeof(packet[0]), packet[word]);
  ring_.store32(at, packet[0]);  // the header makes the packet valid: last
  publish(index);
  return {};
}

base::Status AqlQueue::wait_idle(Duration limit) const {
  if (wait_until([this] { return idle(); }, limit)) return {};
  return base::Error(
      ETIME, "AQL queue not consumed: read " + std::to_string(read_index()) + " of " + std::to_string(written_));
}

}  // namespace kfdtest
