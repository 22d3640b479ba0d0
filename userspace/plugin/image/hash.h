// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// XXH3 of 64 bits, compiled for several processors; hash_bytes() of format.h takes the fastest one. All have the same
// result.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plugin::image {

std::uint64_t hash_plain(const void* bytes, std::size_t size) noexcept;

#if defined(__x86_64__)
// Only for a processor with AVX2. There is none for AVX-512: it was slower than AVX2 where it was measured
// (hash_bench.cc), and both are faster than what else is done with the bytes.
std::uint64_t hash_avx2(const void* bytes, std::size_t size) noexcept;
#endif

}  // namespace plugin::image
