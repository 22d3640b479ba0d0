// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The index of one KFD file or render node: its BOs and their chunks, outside of protobuf so that memory and time to
// read it are bounded by its length. Bytes <-> values; the file header is the reader's and the writer's.
#pragma once

#include <span>
#include <vector>

#include "plugin/image/format.h"

namespace plugin::image {

struct Index {
  std::uint32_t chunk_size = kChunkSize;
  std::uint32_t piece_size = kPieceSize;  // version 1 stores whole chunks: chunk_size
  std::vector<BoRecord> bos;
  std::vector<Chunk> chunks;  // of all BOs, in order
};

// Whether a chunk is packed. The index then has one word more for each chunk.
[[nodiscard]] bool is_packed(const Index& index);
[[nodiscard]] std::vector<std::byte> encode_index(const Index& index);
// Allocates less than three times the bytes; fails unless counts fit the length. Values are as found, see validate().
// `packed`: the file says that chunks are packed.
base::Result<Index> decode_index(std::span<const std::byte> bytes, bool packed = false);

// How many bytes the stored pieces of a chunk of `length` bytes have.
[[nodiscard]] std::uint64_t pieces_length(const Chunk& chunk, std::uint64_t length, std::uint32_t piece_size);

// How many bytes of the pages file a chunk of `length` bytes takes.
[[nodiscard]] std::uint64_t stored_length(const Chunk& chunk, std::uint64_t length, std::uint32_t piece_size);

// Where the pages files of the sources begin in the counting of Chunk::offset, and where the last one ends.
[[nodiscard]] std::vector<std::uint64_t> begins_of(std::uint64_t pages_length, std::span<const Source> sources);

// Sizes and addresses are possible; the chunks are those that the BOs need, and fill a pages file of this length, but
// for those that lie in the pages files of the sources, which validate() of the manifest has seen.
base::Status validate(const Index& index, std::uint64_t pages_length, Version version,
                      std::span<const Source> sources = {});

}  // namespace plugin::image
