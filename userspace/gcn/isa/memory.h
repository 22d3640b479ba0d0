// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What a wave sees of memory: GPU virtual addresses, as host bytes. The bytes are shared with other waves, with other
// engines and with the guest, and may change at any time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gcn {

using Address = std::uint64_t;

enum class Access : std::uint8_t { kRead, kWrite };  // an atomic is a write

class Memory {
 public:
  virtual ~Memory() = default;
  // Returns the longest run of contiguous host bytes that backs [address, address + limit): at least one byte and at
  // most `limit`. The run is empty if nothing is mapped there, or not for this kind of access. The implementation then
  // records the reason; the wave has changed nothing and can execute the instruction again. A run is valid until the
  // wave's turn ends.
  virtual std::span<std::byte> map(Address address, std::size_t limit, Access access) = 0;
};

}  // namespace gcn
