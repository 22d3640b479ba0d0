// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// How the execution of one packet ends, and how much a queue may do in one step of the device.
#pragma once

#include <algorithm>
#include <cstdint>

namespace vasicd {

enum class PacketStatus : std::uint8_t {
  kDone,      // the queue continues behind the packet
  kMore,      // out of budget; the rest of the packet is done in the next step
  kWait,      // the condition of the packet does not hold yet; it is tried again in the next step
  kLink,      // the link is busy; the packet is tried again in the next step, and the queue is not idle
  kEnterIb,   // the packet stays current until the indirect buffer is done
  kDispatch,  // the packet stays current until its waves are done
};

// What one queue may do in one step.
struct Budget {
  static constexpr unsigned kPackets = 64;
  static constexpr std::uint64_t kBytes = std::uint64_t{4} << 20;
  unsigned packets = kPackets;
  std::uint64_t bytes = kBytes;

  // Enough for one packet to its end, at whatever speed of the link: the longest copy has this size. A packet that is
  // longer was changed by the guest while it was executed, and begins again.
  static constexpr std::uint64_t kLongestCopy = std::uint64_t{1} << 30;
  static Budget whole_packet() { return {.packets = 1, .bytes = kLongestCopy}; }
  [[nodiscard]] bool obeys_link() const { return bytes <= kBytes; }
  [[nodiscard]] bool left() const { return packets > 0 && bytes > 0; }
  void spend_bytes(std::uint64_t n) { bytes = n < bytes ? bytes - n : 0; }
};

// How much remains of a packet of `bytes`, `done` of which were moved in earlier steps. The packet lies in the guest's
// memory and is read again in each step, so the guest may have made it shorter than `done`.
[[nodiscard]] constexpr std::uint64_t bytes_left(std::uint64_t bytes, std::uint64_t done) {
  return bytes - std::min(bytes, done);
}

}  // namespace vasicd
