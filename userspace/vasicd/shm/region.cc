// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Accessors with their memory order.
#include "vasicd/shm/region.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include "uapi_layout.h"

namespace vasicd {
namespace {

static_assert(VASIC_DOORBELL_EMPTY == ~std::uint64_t{0} && VASIC_DOORBELL_EMPTY32 == ~std::uint32_t{0});

constexpr std::uint32_t kDoorbellDwords = VASIC_DOORBELL_SIZE / sizeof(std::uint32_t);

template <typename T>
T load_acquire(T& word) {
  return std::atomic_ref<T>(word).load(std::memory_order_acquire);
}

template <typename T>
void store_release(T& word, T value) {
  std::atomic_ref<T>(word).store(value, std::memory_order_release);
}

}  // namespace

base::Result<SharedMemory> SharedMemory::create(std::uint64_t size, const char* name) {
  SharedMemory memory;
  memory.fd = base::UniqueFd(::memfd_create(name, MFD_CLOEXEC));
  if (!memory.fd.valid()) return base::Error::from_errno(errno, name);
  if (::ftruncate(memory.fd.get(), static_cast<off_t>(size)) != 0) return base::Error::from_errno(errno, name);
  ASSIGN_OR_RETURN(memory.mapping, base::Mapping::shared(memory.fd.get(), size, 0, name));
  return memory;
}

base::Result<std::unique_ptr<Region>> Region::create(const vasic_info& info) {
  if (info.bar_size < VASIC_OFF_VRAM || info.vram_size > info.bar_size - VASIC_OFF_VRAM)
    return base::Error(EINVAL, "BAR2 is too small for its VRAM");
  ASSIGN_OR_RETURN(auto memory, SharedMemory::create(info.bar_size, "vasic-bar2"));
  std::unique_ptr<Region> region(new Region(std::move(memory)));
  region->vram_size_ = static_cast<std::size_t>(info.vram_size);
  region->has_32_bit_doorbells_ = info.doorbell_size == sizeof(std::uint32_t);
  TRY(region->power_on(info));
  return region;
}

base::Status Region::power_on(const vasic_info& info) {
  const auto size = static_cast<off_t>(memory_.mapping.size());
  if (::fallocate(fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, size) != 0)
    return base::Error::from_errno(errno, "clearing BAR2");
  std::memset(bytes().data() + VASIC_OFF_DOORBELL, 0xff, VASIC_DOORBELL_SIZE);
  at<vasic_info>(VASIC_OFF_INFO) = info;
  return {};
}

std::uint32_t Region::open_walk_epoch(std::uint32_t odd) {
  // Store and load are sequentially consistent, so the load cannot happen before the store. This pairs with the guest's
  // barrier between its store of tlb_gen and its load of walk_epoch: at least one side sees the other's store.
  std::atomic_ref(at<vasic_host_words>(VASIC_OFF_HOST).walk_epoch).store(odd, std::memory_order_seq_cst);
  return std::atomic_ref(at<vasic_guest_words>(VASIC_OFF_GUEST).tlb_gen).load(std::memory_order_seq_cst);
}

void Region::close_walk_epoch(std::uint32_t tlb_ack, std::uint32_t even) {
  auto& words = at<vasic_host_words>(VASIC_OFF_HOST);
  store_release(words.tlb_ack, tlb_ack);
  store_release(words.walk_epoch, even);
}

std::uint32_t Region::ih_rptr() const { return load_acquire(at<vasic_guest_words>(VASIC_OFF_GUEST).ih_rptr); }

void Region::set_state(vasic_host_state value) {
  store_release(at<vasic_host_words>(VASIC_OFF_HOST).state, static_cast<std::uint32_t>(value));
}
void Region::set_heartbeat(std::uint32_t value) {
  store_release(at<vasic_host_words>(VASIC_OFF_HOST).heartbeat, value);
}

std::optional<vasic_command> Region::command_after(std::uint32_t last_seq) const {
  auto& shared = at<vasic_command>(VASIC_OFF_COMMAND);
  const std::uint32_t seq = load_acquire(shared.seq);
  if (seq == last_seq) return std::nullopt;
  vasic_command copy = shared;
  copy.seq = seq;
  return copy;
}

packets::Words Region::mqd() const {
  packets::Words words(VASIC_MQD_MAX_SIZE / sizeof(std::uint32_t));
  std::memcpy(words.data(), memory_.mapping.data() + VASIC_OFF_MQD, VASIC_MQD_MAX_SIZE);
  return words;
}

void Region::put_mqd(packets::WordView words) {
  std::memcpy(memory_.mapping.data() + VASIC_OFF_MQD, words.data(),
              std::min<std::size_t>(words.size_bytes(), VASIC_MQD_MAX_SIZE));
}

void Region::answer(const vasic_reply& reply) {
  auto& shared = at<vasic_reply>(VASIC_OFF_REPLY);
  shared.status = reply.status;
  std::ranges::copy(reply.value, shared.value);
  store_release(shared.seq, reply.seq);
}

template <typename Slot>
std::optional<std::uint64_t> Region::take_slot(std::uint32_t dword_index) {
  constexpr Slot kEmpty = ~Slot{0};
  std::atomic_ref<Slot> slot(at<Slot>(VASIC_OFF_DOORBELL + sizeof(std::uint32_t) * dword_index));
  // Most polls find an empty slot. A load does not take the cache line away from the guest, an exchange would.
  if (slot.load(std::memory_order_relaxed) == kEmpty) return std::nullopt;
  const Slot value = slot.exchange(kEmpty, std::memory_order_acq_rel);
  if (value == kEmpty) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> Region::take(std::uint32_t dword_index) {
  if (!in_range(dword_index)) return std::nullopt;
  return has_32_bit_doorbells_ ? take_slot<std::uint32_t>(dword_index) : take_slot<std::uint64_t>(dword_index);
}

bool Region::in_range(std::uint32_t dword_index) const {
  return dword_index < kDoorbellDwords && (has_32_bit_doorbells_ || dword_index % 2 == 0);
}

}  // namespace vasicd
