// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// File header, names, chunk arithmetic. The checks of values are in validate.cc.
#include "plugin/image/format.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace plugin::image {
namespace {

using base::Error;
using base::Result;

// Field offsets in the header; all little endian. The last field is the XXH3 of the bytes before it.
constexpr std::array<char, 8> kMagic = {'A', 'M', 'D', 'K', 'F', 'D', 'C', 'R'};
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kKindAt = 12;
constexpr std::size_t kPayloadAt = 16;
constexpr std::size_t kHashAt = 24;
constexpr std::size_t kHeaderHashAt = 32;

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

}  // namespace

std::uint64_t hash_bytes(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::array<std::byte, kHeaderSize> encode_header(const Header& header) {
  std::array<std::byte, kHeaderSize> bytes{};
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  put<std::uint32_t>(bytes, kVersionAt, kFormatVersion);
  put<std::uint32_t>(bytes, kKindAt, static_cast<std::uint32_t>(header.kind));
  put<std::uint64_t>(bytes, kPayloadAt, header.payload);
  put<std::uint64_t>(bytes, kHashAt, header.hash);
  put<std::uint64_t>(bytes, kHeaderHashAt, hash_bytes(std::span(bytes).first(kHeaderHashAt)));
  return bytes;
}

Result<Header> decode_header(std::span<const std::byte> bytes, FileKind expected) {
  if (bytes.size() < kHeaderSize) return Error(EINVAL, "truncated: shorter than its header");
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    return Error(EINVAL, "not an image of this plugin (bad magic)");
  const auto version = get<std::uint32_t>(bytes, kVersionAt);
  if (version != kFormatVersion)
    return Error(EINVAL, "unknown format version " + std::to_string(version) + ", this plugin reads " +
                             std::to_string(kFormatVersion) + "; restore with the plugin that dumped");
  if (get<std::uint64_t>(bytes, kHeaderHashAt) != hash_bytes(bytes.first(kHeaderHashAt)))
    return Error(EINVAL, "damaged: wrong checksum of the header");
  Header header;
  header.kind = static_cast<FileKind>(get<std::uint32_t>(bytes, kKindAt));
  if (header.kind != expected) return Error(EINVAL, "is another kind of image file than its name says");
  header.payload = get<std::uint64_t>(bytes, kPayloadAt);
  header.hash = get<std::uint64_t>(bytes, kHashAt);
  return header;
}

std::string metadata_name(std::uint32_t id) { return "amdgpu-" + std::to_string(id) + ".img"; }
std::string pages_name(std::uint32_t id) { return "amdgpu-pages-" + std::to_string(id) + ".img"; }
std::string manifest_name(std::uint32_t id) { return "amdgpu-manifest-" + std::to_string(id) + ".img"; }

std::uint64_t chunk_count(std::uint64_t size, std::uint32_t chunk_size) {
  return size / chunk_size + (size % chunk_size != 0 ? 1 : 0);
}

std::uint64_t chunk_length(std::uint64_t size, std::uint32_t chunk_size, std::uint64_t index) {
  return std::min<std::uint64_t>(chunk_size, size - index * chunk_size);
}

}  // namespace plugin::image
