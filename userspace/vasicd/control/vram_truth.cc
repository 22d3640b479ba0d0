// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "vasicd/control/vram_truth.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace vasicd::control {

std::vector<std::uint64_t> VramTruth::hashes() const {
  static constexpr std::array<std::byte, kPage> kZeros{};
  std::vector<std::uint64_t> all(pages(), XXH3_64bits(kZeros.data(), kPage));
  const std::uint64_t end = offset_ + vram_.size();
  std::uint64_t at = offset_;
  while (at < end) {
    const off_t data = ::lseek(fd_, static_cast<off_t>(at), SEEK_DATA);
    if (data < 0 || static_cast<std::uint64_t>(data) >= end) break;  // only holes are left
    const off_t hole = ::lseek(fd_, data, SEEK_HOLE);
    const std::uint64_t stop = hole < 0 ? end : std::min(static_cast<std::uint64_t>(hole), end);
    for (std::uint64_t page = (static_cast<std::uint64_t>(data) - offset_) / kPage;
         page < (stop - offset_ + kPage - 1) / kPage && page < all.size(); ++page) {
      all[page] = XXH3_64bits(vram_.data() + page * kPage, kPage);
    }
    at = stop;
  }
  return all;
}

void VramTruth::compare(const std::vector<std::uint64_t>& now) {
  changed_.assign(now.size(), false);
  for (std::size_t page = 0; page < now.size(); ++page) changed_[page] = now[page] != base_[page];
}

void VramTruth::diff() {
  auto now = hashes();
  compare(now);
  base_ = std::move(now);
}

std::uint64_t VramTruth::changed() const {
  return static_cast<std::uint64_t>(std::count(changed_.begin(), changed_.end(), true));
}

std::vector<VramTruth::Range> VramTruth::ranges(std::uint64_t from, std::size_t limit) const {
  std::vector<Range> found;
  auto at = changed_.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(from, changed_.size()));
  while (found.size() < limit) {
    at = std::find(at, changed_.end(), true);
    if (at == changed_.end()) break;
    const auto end = std::find(at, changed_.end(), false);
    found.push_back({static_cast<std::uint64_t>(at - changed_.begin()), static_cast<std::uint64_t>(end - at)});
    at = end;
  }
  return found;
}

}  // namespace vasicd::control
