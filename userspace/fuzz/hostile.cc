// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What a hostile program does.
#include "fuzz/hostile.h"

namespace fuzz {

namespace {

constexpr unsigned kMaxActions = 200;
constexpr unsigned kMaxBeats = 16;
constexpr std::size_t kAqlSlot = 16;

}  // namespace

void Hostile::begin() {
  if (watched()) harness_.start_canary();
  loaded_ = harness_.load(queue_);
}

void Hostile::run() {
  begin();
  for (unsigned i = 0; i < kMaxActions && !in_.empty(); ++i) act();
  harness_.ring(queue_, queue_.wptr);
  if (watched()) harness_.beat();
  harness_.reset();
  if (watched()) {
    harness_.start_canary();
    harness_.beat();
  }
}

void Hostile::emit_to_ring() {
  packets::Words words;
  emit_(in_, word_, words);
  if (queue_.kind == Kind::kAql) words.resize(kAqlSlot);
  if (words.size() > queue_.ring_dwords) words.resize(queue_.ring_dwords);
  harness_.write(queue_, words);
  if (in_.below(4) != 0) harness_.ring(queue_, queue_.wptr);
}

// Writes a packet to a place that packets name as their indirect buffer.
void Hostile::emit_to_memory() {
  packets::Words words;
  for (unsigned n = 1 + in_.below(4); n > 0; --n) emit_(in_, word_, words);
  const std::size_t size = harness_.memory.size(queue_.vmid);
  std::uint64_t at = in_.u16() * std::uint64_t{32} % size;
  for (const std::uint32_t word : words) {
    if (at + 4 > size) break;
    harness_.memory.put(queue_.vmid, FuzzMemory::kBase + at, word);
    at += 4;
  }
}

void Hostile::scribble() {
  const std::size_t size = harness_.memory.size(queue_.vmid);
  const std::uint64_t at = in_.u32() % size;
  const auto bytes = in_.bytes(in_.u8());
  const std::size_t n = std::min<std::size_t>(bytes.size(), size - static_cast<std::size_t>(at));
  std::memcpy(harness_.memory.guest(queue_.vmid, FuzzMemory::kBase + at, n).data(), bytes.data(), n);
}

// Unmaps the queue and maps it again, as an eviction does; its descriptor may have been changed meanwhile.
void Hostile::reload() {
  constexpr std::array kModes = {vasicd::UnloadMode::kDrain, vasicd::UnloadMode::kSave, vasicd::UnloadMode::kReset};
  harness_.unload(queue_, in_.pick(std::span<const vasicd::UnloadMode>(kModes)));
  if (!queue_.kernel && in_.below(4) == 0) {
    const std::uint64_t index = in_.below(512);
    harness_.memory.put(0, queue_.mqd + index * 4, word_());
  }
  loaded_ = harness_.load(queue_);
}

void Hostile::act() {
  switch (in_.below(12)) {
    case 0:
      return emit_to_memory();
    case 1:
      return scribble();
    case 2:
      return harness_.ring(queue_, in_.flag() ? in_.u64() : queue_.wptr + in_.u8());
    case 3:
      return reload();
    case 4: {
      const std::pair<unsigned, std::uint64_t> page{queue_.vmid, FuzzMemory::kBase / FuzzMemory::kPage + in_.below(24)};
      if (!harness_.memory.bad_pages.erase(page)) harness_.memory.bad_pages.insert(page);
      return;
    }
    case 5:
      harness_.fakes.clock.now += in_.u32();
      return;
    case 6:
      if (watched()) harness_.beat();
      return;
    case 7:
    case 8:
      for (unsigned n = 1 + in_.below(kMaxBeats); n > 0; --n) harness_.step();
      return;
    default:
      return emit_to_ring();
  }
}

}  // namespace fuzz
