// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Contents of memory, for an image that is in memory itself.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "kfdtest-criu/harness/memory.h"

namespace kfdtest {

// Only pages that are not all zeros are kept: save areas are large and hardly used, new memory is zero.
class Contents {
 public:
  [[nodiscard]] static Contents of(std::span<const std::byte> bytes);
  // Into the memory of a DMA-buf of the same size.
  [[nodiscard]] base::Status write(int dmabuf) const;
  [[nodiscard]] bool empty() const { return pages_.empty(); }

 private:
  struct Page {
    std::size_t at = 0;
    std::array<std::byte, kPageSize> bytes{};
  };
  std::size_t size_ = 0;
  std::vector<Page> pages_;
};

}  // namespace kfdtest
