// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A buffer resource descriptor (V#): four scalar registers that say where a buffer is and how it is laid out. Source:
// section "Buffer resource descriptor" of the ISA documents.
#pragma once

#include "gcn/scalar/scalar_operand.h"

namespace gcn {

class BufferResource {
 public:
  BufferResource(const Wave& wave, unsigned first) {
    for (unsigned i = 0; i < words_.size(); ++i) words_[i] = read_scalar(wave, (first & ~3u) + i);
  }

  [[nodiscard]] Address base() const { return words_[0] | Address{words_[1] & 0xffff} << 32; }
  // Returns the bytes from one index to the next. With ADD_TID the bits of the data format extend the stride.
  [[nodiscard]] std::uint64_t stride() const {
    const std::uint32_t low = words_[1] >> 16 & 0x3fff;
    return adds_lane() ? low | (words_[3] >> 15 & 15) << 14 : low;
  }
  [[nodiscard]] bool is_swizzled() const { return words_[1] >> 31 != 0; }
  [[nodiscard]] std::uint64_t records() const { return words_[2]; }
  // Returns how many indices are interleaved.
  [[nodiscard]] std::uint64_t index_stride() const { return 8u << (words_[3] >> 21 & 3); }
  // Returns ADD_TID: whether the lane's number is added to the index.
  [[nodiscard]] bool adds_lane() const { return (words_[3] >> 23 & 1) != 0; }

  // Returns the size for scalar instructions, which have no index: records are bytes, or as long as the stride.
  [[nodiscard]] std::uint64_t scalar_bytes() const {
    const std::uint64_t low = words_[1] >> 16 & 0x3fff;
    return low == 0 ? records() : records() * low;
  }

 private:
  std::array<std::uint32_t, 4> words_ = {};
};

}  // namespace gcn
