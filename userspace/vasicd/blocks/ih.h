// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Interrupt handler block: writes entries to the ring in guest RAM, publishes the write pointer and signals the
// vector. While the ring is full, entries wait in a bounded queue on the host.
// Does not know why an interrupt is raised, what the chip calls it (ih_encode.h), nor who reads it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>

#include "packets/ih.h"
#include "vasic/vasic_abi.h"
#include "vasicd/context/context.h"
#include "vasicd/mem/guest_ram.h"
#include "vasicd/shm/region.h"

namespace vasicd {

// Signals the guest that the IH ring has entries.
class InterruptLine {
 public:
  virtual ~InterruptLine() = default;
  virtual void signal() = 0;
};

class Ih {
 public:
  enum class Flush { kIdle, kDelivered, kBadReadPointer };

  static constexpr std::uint64_t kMinRingEntries = 2;  // one entry is always left free
  static constexpr std::uint64_t kMaxRing = std::uint64_t{1} << 20;
  static constexpr std::size_t kMaxWaiting = 65536;

  // `format`: enum vasic_ih_format.
  Ih(std::uint32_t format, const Region& region, const GuestRam& ram, InterruptLine& line, Trace& trace)
      : is_cik_(format == VASIC_IH_CIK),
        entry_bytes_(is_cik_ ? packets::ih::kCikEntryBytes : packets::ih::kEntryBytes),
        region_(region),
        ram_(ram),
        line_(line),
        trace_(trace) {}

  // Points the block at a ring (VASIC_CMD_IH_SETUP); size 0 turns it off. Entries that still wait are dropped. False,
  // and the block is off, if the ring or the word is not inside RAM, is misaligned, or has a bad size.
  bool setup(std::uint64_t ring, std::uint64_t size, std::uint64_t wptr_word);
  void reset();

  // Queues an entry; dropped while the block is off. Call flush() to deliver. When the queue is full, an entry equal
  // to a waiting one is dropped (the guest will see that one), else the oldest is.
  void raise(const packets::ih::Entry& entry);
  // Moves waiting entries into the ring as long as it has space. kBadReadPointer: the guest's read pointer is not in
  // the ring, and the block turned itself off.
  Flush flush();

  // While held, entries go into the ring, but the guest is notified of them only when this ends.
  void hold(bool held);
  [[nodiscard]] bool held() const { return held_; }

  [[nodiscard]] bool waiting() const { return !waiting_.empty(); }
  [[nodiscard]] std::size_t waiting_count() const { return waiting_.size(); }
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

 private:
  using Words = std::array<std::uint32_t, packets::ih::kEntryDwords>;  // the tail of a short entry is 0
  // Two entries that differ in nothing but the time stamp are interchangeable: `identity` is encoded with time 0.
  struct Waiting {
    Words words;
    Words identity;
  };
  struct WordsHash {
    std::size_t operator()(const Words& words) const;
  };

  [[nodiscard]] Words encode(const packets::ih::Entry& entry) const;
  void pop_waiting();

  const bool is_cik_;
  const std::size_t entry_bytes_;
  const Region& region_;
  const GuestRam& ram_;
  InterruptLine& line_;
  Trace& trace_;

  std::span<std::byte> ring_;  // empty: off
  std::uint32_t* wptr_word_ = nullptr;
  std::uint32_t wptr_ = 0;
  std::deque<Waiting> waiting_;
  std::unordered_map<Words, std::uint32_t, WordsHash> identical_;
  std::uint64_t dropped_ = 0;
  bool held_ = false;
  bool signal_owed_ = false;  // entries went into the ring while held
};

}  // namespace vasicd
