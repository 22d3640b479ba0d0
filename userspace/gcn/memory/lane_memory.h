// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The host bytes that the lanes of one instruction access. An instruction finds all of them before it accesses any, so
// that one that faults has changed nothing and can be executed again.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "gcn/isa/handler.h"

namespace gcn {

// Other waves, engines and the guest access the same bytes at the same time, so naturally aligned accesses of 1, 2, 4
// and 8 bytes are atomic, and so are aligned halves of 16 bytes. Hardware writes and reads a cache line at once.
// Programs such as RCCL rely on that: they store data with a flag behind it, and take what they load for new if the
// flag is. So bytes are stored upwards and loaded downwards, in this order, from lane to lane too: who sees a flag
// loads what was stored before it.
namespace host {

template <std::size_t kBytes>
struct Word;
template <>
struct Word<1> {
  using Type [[gnu::may_alias]] = std::uint8_t;
};
template <>
struct Word<2> {
  using Type [[gnu::may_alias]] = std::uint16_t;
};
template <>
struct Word<4> {
  using Type [[gnu::may_alias]] = std::uint32_t;
};
template <>
struct Word<8> {
  using Type [[gnu::may_alias]] = std::uint64_t;
};

[[nodiscard]] inline bool is_aligned(const std::byte* bytes, std::size_t alignment) {
  return (reinterpret_cast<std::uintptr_t>(bytes) & (alignment - 1)) == 0;
}

template <typename T>
[[nodiscard]] T load(const std::byte* bytes) {
  if (is_aligned(bytes, sizeof(T))) [[likely]] {
    return __atomic_load_n(reinterpret_cast<const typename Word<sizeof(T)>::Type*>(bytes), __ATOMIC_ACQUIRE);
  }
  T value = 0;
  for (unsigned i = 0; i < sizeof(T); ++i) value = static_cast<T>(value | T{load<std::uint8_t>(bytes + i)} << (8 * i));
  return value;
}

template <typename T>
void store(std::byte* bytes, T value) {
  if (is_aligned(bytes, sizeof(T))) [[likely]] {
    __atomic_store_n(reinterpret_cast<typename Word<sizeof(T)>::Type*>(bytes), value, __ATOMIC_RELEASE);
    return;
  }
  for (unsigned i = 0; i < sizeof(T); ++i) store(bytes + i, static_cast<std::uint8_t>(value >> (8 * i)));
}

// Dwords of one lane, of which words[i] has the i-th.
inline void load_pair(const std::byte* bytes, Vgpr* words, unsigned lane) {
  const auto pair = load<std::uint64_t>(bytes);
  words[1][lane] = static_cast<std::uint32_t>(pair >> 32);
  words[0][lane] = static_cast<std::uint32_t>(pair);
}
inline void store_pair(std::byte* bytes, const Vgpr* words, unsigned lane) {
  store(bytes, words[0][lane] | std::uint64_t{words[1][lane]} << 32);
}

template <unsigned kWords>
void load_words(const std::byte* bytes, Vgpr* words, unsigned lane) {
  if constexpr (kWords == 1) {
    words[0][lane] = load<std::uint32_t>(bytes);
  } else if (is_aligned(bytes, sizeof(std::uint64_t))) [[likely]] {
    if constexpr (kWords == 3) words[2][lane] = load<std::uint32_t>(bytes + 8);
    if constexpr (kWords == 4) load_pair(bytes + 8, words + 2, lane);
    load_pair(bytes, words, lane);
  } else {
    for (unsigned i = kWords; i-- > 0;) words[i][lane] = load<std::uint32_t>(bytes + 4 * i);
  }
}

template <unsigned kWords>
void store_words(std::byte* bytes, const Vgpr* words, unsigned lane) {
  if constexpr (kWords == 1) {
    store(bytes, words[0][lane]);
  } else if (is_aligned(bytes, sizeof(std::uint64_t))) [[likely]] {
    store_pair(bytes, words, lane);
    if constexpr (kWords == 3) store(bytes + 8, words[2][lane]);
    if constexpr (kWords == 4) store_pair(bytes + 8, words + 2, lane);
  } else {
    for (unsigned i = 0; i < kWords; ++i) store(bytes + 4 * i, words[i][lane]);
  }
}

}  // namespace host

template <typename F>
void for_each_lane(std::uint64_t lanes, F f) {
  for (; lanes != 0; lanes &= lanes - 1) f(static_cast<unsigned>(std::countr_zero(lanes)));
}

// To note the lanes first is faster than to look for the highest one each time.
template <typename F>
void for_each_lane_down(std::uint64_t lanes, F f) {
  if (lanes == ~std::uint64_t{0}) {
    for (unsigned lane = kLanes; lane-- > 0;) f(lane);
    return;
  }
  std::array<std::uint8_t, kLanes> noted;
  unsigned count = 0;
  for_each_lane(lanes, [&](unsigned lane) { noted[count++] = static_cast<std::uint8_t>(lane); });
  while (count > 0) f(unsigned{noted[--count]});
}

inline constexpr unsigned kMaxWords = 4;  // dwords that one lane can access
using LaneAddresses = std::array<Address, kLanes>;
using LaneWords = std::array<Vgpr, kMaxWords>;

// The places of the lanes' data. A lane that has no place is out of range: it reads zeroes and writes nothing.
class LaneAccess {
 public:
  // Each lane accesses `bytes` bytes, at most 16.
  LaneAccess(Memory& memory, Access access, unsigned bytes) : memory_(memory), access_(access), bytes_(bytes) {}
  LaneAccess(const LaneAccess&) = delete;
  LaneAccess& operator=(const LaneAccess&) = delete;

  [[nodiscard]] unsigned bytes() const { return bytes_; }
  // These two add lanes whose bytes are contiguous from their address on. They return false after a fault.
  [[nodiscard]] bool add_lanes(std::uint64_t lanes, const LaneAddresses& addresses);
  [[nodiscard]] bool add(unsigned lane, Address address) {
    const Address offset = address - run_address_;
    if (offset >= run_size_ || bytes_ > run_size_ - offset) return add_slowly(lane, address);
    add_host(lane, run_ + offset);
    return true;
  }
  // Adds bytes [first, first + size) of a lane whose bytes are not contiguous. Returns false after a fault.
  [[nodiscard]] bool add_part(unsigned lane, unsigned first, unsigned size, Address address);
  // Adds a lane whose host bytes the caller has found.
  void add_host(unsigned lane, std::byte* bytes) {
    whole_[lane] = bytes;
    whole_lanes_ |= std::uint64_t{1} << lane;
  }

  // Records the low bits of the addresses that the program sees, because atomics must be aligned to their size.
  void note_alignment(Address address) { alignment_ |= address; }
  [[nodiscard]] bool is_aligned(unsigned alignment) const { return (alignment_ & (alignment - 1)) == 0; }

  // The lanes whose bytes are contiguous, and the place of each.
  [[nodiscard]] std::uint64_t whole_lanes() const { return whole_lanes_; }
  [[nodiscard]] std::byte* whole(unsigned lane) const { return whole_[lane]; }
  [[nodiscard]] std::uint64_t split_lanes() const { return split_lanes_; }

  // Load or store the data of all lanes that were added. load() does not change the `words` of other lanes.
  template <unsigned kBytes>
  void load(LaneWords& words) const;
  template <unsigned kBytes>
  void store(const LaneWords& words) const;
  // Load or store the data of the lanes whose bytes are not contiguous.
  void load_split(LaneWords& words) const;
  void store_split(const LaneWords& words) const;

 private:
  struct Part {
    std::byte* bytes;
    std::uint8_t lane;
    std::uint8_t first;
    std::uint8_t size;
  };
  static constexpr unsigned kMaxParts = kLanes * kMaxWords * 4;

  bool add_slowly(unsigned lane, Address address);
  bool find_run(Address address, unsigned size);

  Memory& memory_;
  Access access_;
  unsigned bytes_;
  // The run of bytes that was mapped last: most neighbours are in it.
  Address run_address_ = 0;
  std::size_t run_size_ = 0;
  std::byte* run_ = nullptr;

  Address alignment_ = 0;
  std::uint64_t whole_lanes_ = 0;
  std::uint64_t split_lanes_ = 0;
  unsigned parts_ = 0;
  // Not initialised: only the lanes and parts that are counted above are used.
  std::array<std::byte*, kLanes> whole_;
  std::array<Part, kMaxParts> part_;
};

template <unsigned kBytes>
void LaneAccess::load(LaneWords& words) const {
  for_each_lane_down(whole_lanes_, [&](unsigned lane) {
    const std::byte* bytes = whole_[lane];
    if constexpr (kBytes == 1) {
      words[0][lane] = host::load<std::uint8_t>(bytes);
    } else if constexpr (kBytes == 2) {
      words[0][lane] = host::load<std::uint16_t>(bytes);
    } else {
      host::load_words<kBytes / 4>(bytes, words.data(), lane);
    }
  });
  if (split_lanes_ != 0) load_split(words);
}

template <unsigned kBytes>
void LaneAccess::store(const LaneWords& words) const {
  for_each_lane(whole_lanes_, [&](unsigned lane) {
    std::byte* bytes = whole_[lane];
    if constexpr (kBytes == 1) {
      host::store(bytes, static_cast<std::uint8_t>(words[0][lane]));
    } else if constexpr (kBytes == 2) {
      host::store(bytes, static_cast<std::uint16_t>(words[0][lane]));
    } else {
      host::store_words<kBytes / 4>(bytes, words.data(), lane);
    }
  });
  if (split_lanes_ != 0) store_split(words);
}

}  // namespace gcn
