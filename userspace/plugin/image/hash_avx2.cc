// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Compiled with AVX2, so it must include nothing with inline functions that other files use: the linker keeps one of
// them, and would keep this one for processors without AVX2.
#include "plugin/image/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

std::uint64_t plugin::image::hash_avx2(const void* bytes, std::size_t size) noexcept {
  return XXH3_64bits(bytes, size);
}
