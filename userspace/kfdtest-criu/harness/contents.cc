// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "kfdtest-criu/harness/contents.h"

#include <algorithm>
#include <cstring>

#include "base/mapping.h"

namespace kfdtest {
namespace {

bool is_zero(std::span<const std::byte> bytes) {
  return bytes.front() == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

}  // namespace

Contents Contents::of(std::span<const std::byte> bytes) {
  Contents contents;
  contents.size_ = bytes.size();
  for (std::size_t at = 0; at < bytes.size(); at += kPageSize) {
    const auto page = bytes.subspan(at, kPageSize);
    if (is_zero(page)) continue;
    contents.pages_.push_back({.at = at, .bytes = {}});
    std::ranges::copy(page, contents.pages_.back().bytes.begin());
  }
  return contents;
}

base::Status Contents::write(int dmabuf) const {
  ASSIGN_OR_RETURN(const base::Mapping bytes, base::Mapping::shared(dmabuf, size_, 0, "writing a buffer"));
  for (const Page& page : pages_)
    std::ranges::copy(page.bytes, bytes.bytes().begin() + static_cast<std::ptrdiff_t>(page.at));
  return {};
}

}  // namespace kfdtest
