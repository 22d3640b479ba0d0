// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "plugin/image/hash.h"

#include "plugin/image/format.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace plugin::image {
namespace {

using Hash = std::uint64_t (*)(const void* bytes, std::size_t size) noexcept;

Hash fastest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0) return hash_avx2;
#endif
  return hash_plain;
}

}  // namespace

std::uint64_t hash_plain(const void* bytes, std::size_t size) noexcept { return XXH3_64bits(bytes, size); }

std::uint64_t hash_bytes(std::span<const std::byte> bytes) {
  static const Hash hash = fastest();
  return hash(bytes.data(), bytes.size());
}

}  // namespace plugin::image
