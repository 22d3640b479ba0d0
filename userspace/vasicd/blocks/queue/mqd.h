// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A queue descriptor as a place to read from and write to: in GPU memory, or a private copy when the driver hands it
// over by value (VASIC_HQD_BY_VALUE). A store changes only the dwords, or the bits, that the caller names: the rest
// belongs to the driver. What the dwords mean is in packets/mqd.h.
#pragma once

#include <array>
#include <cstdint>

#include "base/result.h"
#include "packets/mqd.h"
#include "vasicd/mem/memory.h"

namespace vasicd {

class Mqd {
 public:
  // No descriptor, for a kernel ring: everything reads as 0 and stores do nothing.
  Mqd() = default;
  // A descriptor without an address, passed by value; words behind `words` are 0.
  explicit Mqd(packets::WordView words);
  // Reads a descriptor of `dwords` at `addr` in VMID 0. `memory` outlives this object.
  static base::Result<Mqd> at(Memory& memory, GpuAddr addr, std::size_t dwords);

  // An index of packets::mqd::kNone reads as 0 and is never stored to.
  [[nodiscard]] std::uint32_t get(std::size_t index) const;
  [[nodiscard]] std::uint64_t get64(std::size_t index_lo, std::size_t index_hi) const;
  MemoryResult<void> put(std::size_t index, std::uint32_t value);
  MemoryResult<void> put64(std::size_t index_lo, std::size_t index_hi, std::uint64_t value);
  MemoryResult<void> put_field(std::size_t index, packets::Field field, std::uint32_t value);

  // Its GPU address; 0: it has none.
  [[nodiscard]] GpuAddr addr() const { return addr_; }
  // Its present contents, for handing it back by value.
  [[nodiscard]] packets::WordView words() const { return packets::WordView(words_).first(dwords_); }

 private:
  Memory* memory_ = nullptr;
  GpuAddr addr_ = 0;
  std::size_t dwords_ = 0;
  std::array<std::uint32_t, packets::mqd::kMaxDwords> words_{};
};

}  // namespace vasicd
