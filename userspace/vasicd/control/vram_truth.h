// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Which pages of VRAM have changed, written by engines, by peers, or by the CPU through the BAR. Compares hashes of
// whole pages, because no block of the device sees all writes; a page that is written and then put back has not
// changed. Takes about 0.1 s for each GiB that was ever written; used on the device's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace vasicd::control {

class VramTruth {
 public:
  static constexpr std::uint64_t kPage = 4096;
  struct Range {
    std::uint64_t first = 0;  // page
    std::uint64_t count = 0;
  };

  // `vram` is the mapping of file `fd` from `offset` on. Pages that the file does not have are zero, and are found
  // without reading them.
  VramTruth(std::span<const std::byte> vram, int fd, std::uint64_t offset) : vram_(vram), fd_(fd), offset_(offset) {}

  [[nodiscard]] std::uint64_t pages() const { return vram_.size() / kPage; }
  [[nodiscard]] bool started() const { return !base_.empty(); }

  void start() { base_ = hashes(); }
  // Finds the pages that differ from the start.
  void read() { compare(hashes()); }
  // Finds the pages that differ from the start, and makes the present contents the new start.
  void diff();

  // The number of pages found by the last read() or diff().
  [[nodiscard]] std::uint64_t changed() const;
  // Returns at most `limit` ranges of changed pages, from page `from` on.
  [[nodiscard]] std::vector<Range> ranges(std::uint64_t from, std::size_t limit) const;

 private:
  [[nodiscard]] std::vector<std::uint64_t> hashes() const;
  void compare(const std::vector<std::uint64_t>& now);

  std::span<const std::byte> vram_;
  int fd_;
  std::uint64_t offset_;
  std::vector<std::uint64_t> base_;
  std::vector<bool> changed_;
};

}  // namespace vasicd::control
