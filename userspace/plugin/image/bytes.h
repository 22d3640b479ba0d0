// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Little-endian integers of fixed size in bytes: file headers and the index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace plugin::image {

template <typename T>
void put(std::span<std::byte> bytes, std::size_t at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes[at + i] = static_cast<std::byte>((value >> (8 * i)) & 0xff);
}

template <typename T>
T get(std::span<const std::byte> bytes, std::size_t at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value = static_cast<T>(value | (static_cast<T>(std::to_integer<std::uint8_t>(bytes[at + i])) << (8 * i)));
  return value;
}

}  // namespace plugin::image
