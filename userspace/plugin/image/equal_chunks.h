// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Where a dump has stored which contents, so that it stores equal chunks of several BOs, GPUs and processes once.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "plugin/image/format.h"

namespace plugin::image {

class FileWriter;

class EqualChunks {
 public:
  // A chunk in the pages file of a FileWriter.
  struct Place {
    FileWriter* file = nullptr;
    std::uint64_t number = 0;  // as FileWriter counts chunks
    std::uint64_t offset = 0;
    std::uint64_t packed = 0;  // as Chunk has it
  };

  // The first chunk that was added with this checksum, and with as many bytes, stored in the same pieces. Its bytes
  // may be others, as checksums have 64 bits.
  std::optional<Place> find(const Chunk& chunk, std::size_t size) const;
  void add(const Chunk& chunk, std::size_t size, Place place);

 private:
  // Chunks that are kept in mind, each in about 64 bytes: those of one TiB.
  static constexpr std::size_t kMost = 1U << 20;

  struct Known {
    std::uint64_t stored = 0;
    std::size_t size = 0;
    Place place;
  };

  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, Known> known_;  // by checksum
};

}  // namespace plugin::image
