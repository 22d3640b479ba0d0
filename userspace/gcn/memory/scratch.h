// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Addresses of the lanes' private memory, for FLAT and SCRATCH instructions. flat.cc describes its layout.
#pragma once

#include <algorithm>

#include "gcn/memory/lane_memory.h"

namespace gcn {

class Scratch {
 public:
  explicit Scratch(const Wave& wave) : base_(wave.scalar64(operand::kFlatScratchLo)) {}

  // Adds the bytes of each lane from its offset on. Returns false after a fault.
  [[nodiscard]] bool add_lanes(LaneAccess& access, std::uint64_t lanes,
                               const std::array<std::uint32_t, kLanes>& offsets) const {
    LaneAddresses addresses;
    std::uint32_t alignment = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      addresses[lane] = address(lane, offsets[lane]);
      alignment |= offsets[lane];
    }
    // Aligned data of at most a dword is contiguous.
    if (access.bytes() <= 4 && alignment % access.bytes() == 0) return access.add_lanes(lanes, addresses);
    bool found = true;
    for_each_lane(lanes, [&](unsigned lane) { found = found && add(access, lane, offsets[lane]); });
    return found;
  }
  // Adds the bytes of `lane` from `offset` on. Returns false after a fault.
  [[nodiscard]] bool add(LaneAccess& access, unsigned lane, std::uint32_t offset) const {
    const unsigned bytes = access.bytes();
    if (offset % 4 + bytes <= 4) return access.add(lane, address(lane, offset));
    bool found = true;
    for (unsigned first = 0; first < bytes && found;) {
      const std::uint32_t at = offset + first;
      const unsigned size = std::min(4 - at % 4, bytes - first);
      found = access.add_part(lane, first, size, address(lane, at));
      first += size;
    }
    return found;
  }

 private:
  [[nodiscard]] Address address(unsigned lane, std::uint32_t offset) const {
    return base_ + Address{offset / 4} * (4 * kLanes) + 4 * lane + offset % 4;
  }

  Address base_;
};

}  // namespace gcn
