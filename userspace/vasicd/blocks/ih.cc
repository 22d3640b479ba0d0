// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Ring arithmetic, and the queue of entries that wait for space in the ring.
#include "vasicd/blocks/ih.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#include "vasicd/context/trace.h"

namespace vasicd {

std::size_t Ih::WordsHash::operator()(const Words& words) const {
  constexpr std::uint64_t kFnvOffset = 0xcbf29ce484222325;
  constexpr std::uint64_t kFnvPrime = 0x100000001b3;
  std::uint64_t hash = kFnvOffset;
  for (const std::uint32_t word : words) hash = (hash ^ word) * kFnvPrime;
  return static_cast<std::size_t>(hash);
}

bool Ih::setup(std::uint64_t ring, std::uint64_t size, std::uint64_t wptr_word) {
  reset();
  if (size == 0) return true;
  if (size < kMinRingEntries * entry_bytes_ || size > kMaxRing || !std::has_single_bit(size)) return false;
  if (ring % entry_bytes_ != 0 || wptr_word % sizeof(std::uint32_t) != 0) return false;
  const auto ring_bytes = ram_.at(ring, size);
  const auto word_bytes = ram_.at(wptr_word, sizeof(std::uint32_t));
  if (ring_bytes.size() != size || word_bytes.size() != sizeof(std::uint32_t)) return false;
  ring_ = ring_bytes;
  wptr_word_ = reinterpret_cast<std::uint32_t*>(word_bytes.data());
  std::atomic_ref(*wptr_word_).store(wptr_, std::memory_order_release);
  return true;
}

void Ih::reset() {
  ring_ = {};
  wptr_word_ = nullptr;
  wptr_ = 0;
  waiting_.clear();
  identical_.clear();
  signal_owed_ = false;
}

Ih::Words Ih::encode(const packets::ih::Entry& entry) const {
  if (!is_cik_) return packets::ih::encode(entry);
  Words words{};
  std::ranges::copy(packets::ih::encode_cik(entry), words.begin());
  return words;
}

void Ih::raise(const packets::ih::Entry& entry) {
  tracef(trace_, "ih: client=0x%x source=%u ring=%u vmid=%u pasid=%u data=0x%x,0x%x%s", entry.client_id,
         entry.source_id, entry.ring_id, entry.vmid, entry.pasid, entry.data[0], entry.data[1],
         ring_.empty() ? " dropped=off" : "");
  if (ring_.empty()) {
    ++dropped_;
    return;
  }
  auto timeless = entry;
  timeless.timestamp = 0;
  const Waiting waiting{.words = encode(entry), .identity = encode(timeless)};
  if (waiting_.size() == kMaxWaiting) {
    ++dropped_;
    if (identical_.contains(waiting.identity)) return;
    pop_waiting();
  }
  waiting_.push_back(waiting);
  ++identical_[waiting.identity];
}

void Ih::pop_waiting() {
  const auto count = identical_.find(waiting_.front().identity);
  if (--count->second == 0) identical_.erase(count);
  waiting_.pop_front();
}

Ih::Flush Ih::flush() {
  if (ring_.empty() || waiting_.empty()) return Flush::kIdle;
  const std::uint32_t rptr = region_.ih_rptr();
  if (rptr >= ring_.size() || rptr % entry_bytes_ != 0) {
    tracef(trace_, "ih: bad rptr=0x%x size=0x%zx", rptr, ring_.size());
    reset();
    return Flush::kBadReadPointer;
  }
  const auto mask = static_cast<std::uint32_t>(ring_.size() - 1);
  const std::uint32_t before = wptr_;
  while (!waiting_.empty() && ((wptr_ + entry_bytes_) & mask) != rptr) {
    std::memcpy(ring_.data() + wptr_, waiting_.front().words.data(), entry_bytes_);
    wptr_ = static_cast<std::uint32_t>((wptr_ + entry_bytes_) & mask);
    pop_waiting();
  }
  if (wptr_ == before) return Flush::kIdle;
  std::atomic_ref(*wptr_word_).store(wptr_, std::memory_order_release);
  if (held_) {
    signal_owed_ = true;
  } else {
    line_.signal();
  }
  return Flush::kDelivered;
}

void Ih::hold(bool held) {
  held_ = held;
  if (!held_ && std::exchange(signal_owed_, false)) line_.signal();
}

}  // namespace vasicd
