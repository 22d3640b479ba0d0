// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "plugin/image/equal_chunks.h"

namespace plugin::image {

std::optional<EqualChunks::Place> EqualChunks::find(const Chunk& chunk, std::size_t size) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(chunk.hash);
  if (found == known_.end() || found->second.stored != chunk.stored || found->second.size != size) return std::nullopt;
  return found->second.place;
}

void EqualChunks::add(const Chunk& chunk, std::size_t size, Place place) {
  const std::lock_guard lock(mutex_);
  if (known_.size() < kMost) known_.try_emplace(chunk.hash, Known{chunk.stored, size, place});
}

}  // namespace plugin::image
