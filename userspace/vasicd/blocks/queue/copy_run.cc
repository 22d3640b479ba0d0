// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Streaming copy: four pages side by side, which keeps more memory channels busy than one after the other.
#include "vasicd/blocks/queue/copy_run.h"

#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace vasicd {

#if defined(__SSE2__)

namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kPages = 4;
constexpr std::size_t kBlock = kPage * kPages;
constexpr std::size_t kPrefetch = 4 * kLine;
constexpr std::size_t kStreamFrom = std::size_t{256} << 10;  // shorter runs are copied faster through the caches

bool overlap(const std::byte* a, const std::byte* b, std::size_t bytes) {
  const auto x = reinterpret_cast<std::uintptr_t>(a);
  const auto y = reinterpret_cast<std::uintptr_t>(b);
  return x < y ? y - x < bytes : x - y < bytes;
}

// `dst` is aligned to a line.
void stream_line(std::byte* dst, const std::byte* src) {
  const auto* from = reinterpret_cast<const __m128i*>(src);
  auto* to = reinterpret_cast<__m128i*>(dst);
  const __m128i a = _mm_loadu_si128(from);
  const __m128i b = _mm_loadu_si128(from + 1);
  const __m128i c = _mm_loadu_si128(from + 2);
  const __m128i d = _mm_loadu_si128(from + 3);
  _mm_stream_si128(to, a);
  _mm_stream_si128(to + 1, b);
  _mm_stream_si128(to + 2, c);
  _mm_stream_si128(to + 3, d);
}

void stream_block(std::byte* dst, const std::byte* src, std::size_t left) {
  for (std::size_t line = 0; line < kPage; line += kLine) {
    for (std::size_t at = line; at < kBlock; at += kPage) {
      if (at + kPrefetch < left) _mm_prefetch(reinterpret_cast<const char*>(src + at + kPrefetch), _MM_HINT_T0);
      stream_line(dst + at, src + at);
    }
  }
}

}  // namespace

void copy_run(std::byte* dst, const std::byte* src, std::size_t bytes) {
  if (bytes < kStreamFrom || overlap(dst, src, bytes)) {
    std::memmove(dst, src, bytes);
    return;
  }
  const std::size_t head = (kLine - reinterpret_cast<std::uintptr_t>(dst) % kLine) % kLine;
  std::memcpy(dst, src, head);
  std::size_t done = head;
  for (; done + kBlock <= bytes; done += kBlock) stream_block(dst + done, src + done, bytes - done);
  std::memcpy(dst + done, src + done, bytes - done);
  _mm_sfence();
}

#else

void copy_run(std::byte* dst, const std::byte* src, std::size_t bytes) { std::memmove(dst, src, bytes); }

#endif

}  // namespace vasicd
