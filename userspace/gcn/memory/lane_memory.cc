// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The slow paths: lanes whose bytes are in another run than their neighbours' bytes, or in several runs.
#include "gcn/memory/lane_memory.h"

#include <algorithm>

namespace gcn {
namespace {

// How much is mapped at once: permissions and backing do not change within a page.
constexpr std::size_t kPage = 4096;

}  // namespace

bool LaneAccess::find_run(Address address, unsigned size) {
  const std::size_t limit = std::max<std::size_t>(kPage - address % kPage, size);
  const std::span<std::byte> run = memory_.map(address, limit, access_);
  run_ = run.data();
  run_address_ = address;
  run_size_ = run.size();
  return !run.empty();
}

// Locals stand for the members here, so that the compiler need not store them for each lane. The function begins a
// cache line, because the order of linking must not decide its speed: 16 bytes off, loads and stores are 12 % slower.
[[gnu::aligned(64)]] bool LaneAccess::add_lanes(std::uint64_t lanes, const LaneAddresses& addresses) {
  std::uint64_t in_runs = lanes;
  Address alignment = 0;
  for (std::uint64_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(rest));
    const Address address = addresses[lane];
    const Address offset = address - run_address_;
    alignment |= address;
    if (offset < run_size_ && bytes_ <= run_size_ - offset) [[likely]] {
      whole_[lane] = run_ + offset;
    } else {
      if (!add_slowly(lane, address)) return false;
      in_runs &= ~(std::uint64_t{1} << lane);
    }
  }
  whole_lanes_ |= in_runs;
  alignment_ |= alignment;
  return true;
}

bool LaneAccess::add_slowly(unsigned lane, Address address) {
  if (!find_run(address, bytes_)) return false;
  if (run_size_ < bytes_) return add_part(lane, 0, bytes_, address);
  add_host(lane, run_);
  return true;
}

bool LaneAccess::add_part(unsigned lane, unsigned first, unsigned size, Address address) {
  split_lanes_ |= std::uint64_t{1} << lane;
  while (size > 0) {
    if (address - run_address_ >= run_size_ && !find_run(address, size)) return false;
    const std::size_t offset = address - run_address_;
    const auto here = static_cast<unsigned>(std::min<std::size_t>(size, run_size_ - offset));
    part_[parts_++] = {run_ + offset, static_cast<std::uint8_t>(lane), static_cast<std::uint8_t>(first),
                       static_cast<std::uint8_t>(here)};
    first += here;
    size -= here;
    address += here;
  }
  return true;
}

// A part is an aligned dword of a lane or is copied byte by byte. Only the bytes of parts change in `words`.
void LaneAccess::load_split(LaneWords& words) const {
  for (unsigned n = 0; n < parts_; ++n) {
    const Part& part = part_[n];
    if (part.size == 4 && part.first % 4 == 0) {
      words[part.first / 4][part.lane] = host::load<std::uint32_t>(part.bytes);
      continue;
    }
    for (unsigned i = 0; i < part.size; ++i) {
      std::uint32_t& word = words[(part.first + i) / 4][part.lane];
      const unsigned shift = (part.first + i) % 4 * 8;
      word = (word & ~(0xffu << shift)) | std::uint32_t{host::load<std::uint8_t>(part.bytes + i)} << shift;
    }
  }
}

void LaneAccess::store_split(const LaneWords& words) const {
  for (unsigned n = 0; n < parts_; ++n) {
    const Part& part = part_[n];
    if (part.size == 4 && part.first % 4 == 0) {
      host::store(part.bytes, words[part.first / 4][part.lane]);
      continue;
    }
    for (unsigned i = 0; i < part.size; ++i) {
      const std::uint32_t word = words[(part.first + i) / 4][part.lane];
      host::store(part.bytes + i, static_cast<std::uint8_t>(word >> ((part.first + i) % 4 * 8)));
    }
  }
}

}  // namespace gcn
