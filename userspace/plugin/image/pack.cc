// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "plugin/image/pack.h"

#include <lz4.h>

#include <algorithm>
#include <cerrno>

namespace plugin::image {
namespace {

constexpr std::size_t kLeastGain = 16;  // a part of so many

}  // namespace

std::vector<std::byte> pack(std::span<const std::byte> bytes) {
  std::vector<std::byte> packed(bytes.size() - bytes.size() / kLeastGain);
  // It ends at once when there is no room for the result.
  const int length =
      LZ4_compress_default(reinterpret_cast<const char*>(bytes.data()), reinterpret_cast<char*>(packed.data()),
                           static_cast<int>(bytes.size()), static_cast<int>(packed.size()));
  packed.resize(static_cast<std::size_t>(std::max(length, 0)));
  return packed;
}

base::Status unpack(std::span<const std::byte> packed, std::span<std::byte> out) {
  const int length =
      LZ4_decompress_safe(reinterpret_cast<const char*>(packed.data()), reinterpret_cast<char*>(out.data()),
                          static_cast<int>(packed.size()), static_cast<int>(out.size()));
  if (length < 0 || static_cast<std::size_t>(length) != out.size())
    return base::Error(EINVAL, "damaged: a chunk cannot be unpacked");
  return {};
}

bool PackPolicy::wants(bool disk_is_busy) {
  if (packing_ != Packing::kAuto) return packing_ == Packing::kAlways;
  if (!disk_is_busy) return false;
  const std::lock_guard lock(mutex_);
  if (pass_over_ == 0) return true;
  --pass_over_;
  return false;
}

void PackPolicy::learn(bool is_smaller) {
  const std::lock_guard lock(mutex_);
  last_ = is_smaller ? 0 : std::min(2 * last_ + 1, kMostPassedOver);
  pass_over_ = last_;
}

}  // namespace plugin::image
