// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header; docs/image-format.md has the layout.
#include "plugin/image/index.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "plugin/image/bytes.h"

namespace plugin::image {
namespace {

using base::Error;
using base::Result;

constexpr std::size_t kIndexHead = 24;
constexpr std::size_t kBoEntry = 48;
constexpr std::size_t kChunkEntry = 24;
constexpr std::size_t kPackedEntry = 32;
// Flags of a BO.
constexpr std::uint32_t kSharesContents = 1;
constexpr std::uint32_t kImported = 2;
constexpr std::uint32_t kStoredElsewhere = 4;
constexpr std::uint32_t kFlags = kSharesContents | kImported | kStoredElsewhere;

std::uint32_t flags_of(const BoRecord& record) {
  return (record.shares_contents ? kSharesContents : 0U) | (record.imported ? kImported : 0U) |
         (record.stored_elsewhere ? kStoredElsewhere : 0U);
}

void put_bo(std::span<std::byte> out, const BoRecord& record) {
  put(out, 0, record.bo.addr);
  put(out, 8, record.bo.size);
  put(out, 16, record.bo.mmap_offset);
  put(out, 24, record.inode);
  put(out, 32, record.bo.user_gpu_id);
  put(out, 36, record.bo.alloc_flags);
  put(out, 40, record.handle);
  put(out, 44, flags_of(record));
}

Result<BoRecord> get_bo(std::span<const std::byte> in) {
  BoRecord record;
  record.bo.addr = get<std::uint64_t>(in, 0);
  record.bo.size = get<std::uint64_t>(in, 8);
  record.bo.mmap_offset = get<std::uint64_t>(in, 16);
  record.inode = get<std::uint64_t>(in, 24);
  record.bo.user_gpu_id = get<std::uint32_t>(in, 32);
  record.bo.alloc_flags = get<std::uint32_t>(in, 36);
  record.handle = get<std::uint32_t>(in, 40);
  const auto flags = get<std::uint32_t>(in, 44);
  if ((flags & ~kFlags) != 0) return Error(EINVAL, "invalid image: unknown flags of a BO");
  record.shares_contents = (flags & kSharesContents) != 0;
  record.imported = (flags & kImported) != 0;
  record.stored_elsewhere = (flags & kStoredElsewhere) != 0;
  return record;
}

}  // namespace

bool is_packed(const Index& index) {
  return std::any_of(index.chunks.begin(), index.chunks.end(), [](const Chunk& chunk) { return chunk.packed != 0; });
}

std::vector<std::byte> encode_index(const Index& index) {
  const bool packed = is_packed(index);
  const std::size_t chunk_entry = packed ? kPackedEntry : kChunkEntry;
  std::vector<std::byte> bytes(kIndexHead + index.bos.size() * kBoEntry + index.chunks.size() * chunk_entry);
  put(std::span(bytes), 0, index.chunk_size);
  put(std::span(bytes), 4, index.piece_size);
  put(std::span(bytes), 8, static_cast<std::uint64_t>(index.bos.size()));
  put(std::span(bytes), 16, static_cast<std::uint64_t>(index.chunks.size()));
  auto rest = std::span(bytes).subspan(kIndexHead);
  for (const BoRecord& record : index.bos) {
    put_bo(rest, record);
    rest = rest.subspan(kBoEntry);
  }
  for (const Chunk& chunk : index.chunks) {
    put(rest, 0, chunk.offset);
    put(rest, 8, chunk.hash);
    put(rest, 16, chunk.stored);
    if (packed) put(rest, 24, chunk.packed);
    rest = rest.subspan(chunk_entry);
  }
  return bytes;
}

Result<Index> decode_index(std::span<const std::byte> bytes, bool packed) {
  const std::size_t chunk_entry = packed ? kPackedEntry : kChunkEntry;
  if (bytes.size() < kIndexHead) return Error(EINVAL, "invalid image: the index is shorter than its beginning");
  Index index;
  index.chunk_size = get<std::uint32_t>(bytes, 0);
  index.piece_size = get<std::uint32_t>(bytes, 4);
  const auto bos = get<std::uint64_t>(bytes, 8);
  const auto chunks = get<std::uint64_t>(bytes, 16);
  auto rest = bytes.subspan(kIndexHead);
  // Both numbers are compared with the length before they are multiplied, so no product can overflow.
  if (bos > rest.size() / kBoEntry || chunks > rest.size() / chunk_entry ||
      bos * kBoEntry + chunks * chunk_entry != rest.size())
    return Error(EINVAL, "invalid image: the index has not the length that its counts say");
  index.bos.reserve(bos);
  for (std::uint64_t i = 0; i < bos; ++i) {
    ASSIGN_OR_RETURN(const BoRecord record, get_bo(rest));
    index.bos.push_back(record);
    rest = rest.subspan(kBoEntry);
  }
  index.chunks.reserve(chunks);
  for (std::uint64_t i = 0; i < chunks; ++i) {
    index.chunks.push_back({get<std::uint64_t>(rest, 0), get<std::uint64_t>(rest, 8), get<std::uint64_t>(rest, 16),
                            packed ? get<std::uint64_t>(rest, 24) : 0});
    rest = rest.subspan(chunk_entry);
  }
  if (packed && !is_packed(index))
    return Error(EINVAL, "invalid image: an index of packed chunks, of which there is none");
  return index;
}

std::vector<std::uint64_t> begins_of(std::uint64_t pages_length, std::span<const Source> sources) {
  std::vector<std::uint64_t> begins = {pages_length};
  begins.reserve(sources.size() + 1);
  for (const Source& source : sources) begins.push_back(begins.back() + source.pages_length);
  return begins;
}

std::uint64_t pieces_length(const Chunk& chunk, std::uint64_t length, std::uint32_t piece_size) {
  if (chunk.stored == 0) return 0;
  const auto pieces = static_cast<std::uint64_t>(std::popcount(chunk.stored));
  const std::uint64_t last = chunk_count(length, piece_size) - 1;
  const bool has_last = ((chunk.stored >> last) & 1U) != 0;
  return pieces * piece_size - (has_last ? (last + 1) * piece_size - length : 0);
}

std::uint64_t stored_length(const Chunk& chunk, std::uint64_t length, std::uint32_t piece_size) {
  return chunk.packed != 0 ? chunk.packed : pieces_length(chunk, length, piece_size);
}

}  // namespace plugin::image
