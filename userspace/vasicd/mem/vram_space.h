// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What a VRAM offset means to one GPU: its own VRAM, and in an XGMI hive that of its peers, each node in a segment of
// its own (vasic_info.xgmi_segment_size). The spans live as long as the process and never change, so that GPUs may look
// into each other from their own threads without a lock. Does not know bus addresses (bus.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "vasic/vasic_abi.h"

namespace vasicd {

class VramSpace {
 public:
  // A GPU in no hive: offset 0 is its first byte. Implicit, because this is the usual meaning of VRAM.
  VramSpace(std::span<std::byte> own) : own_(own) {}
  // Node `node` of a hive; `nodes` is the VRAM of each, none larger than `segment`.
  VramSpace(std::vector<std::span<std::byte>> nodes, std::uint64_t node, std::uint64_t segment)
      : nodes_(std::move(nodes)), own_(nodes_[node]), segment_(segment), own_offset_(node * segment) {}

  [[nodiscard]] std::span<std::byte> own() const { return own_; }
  // Where its own VRAM begins.
  [[nodiscard]] std::uint64_t own_offset() const { return own_offset_; }

  // The longest run of bytes at `offset`, at most `limit`; empty if nothing is there.
  [[nodiscard]] std::span<std::byte> resolve(std::uint64_t offset, std::uint64_t limit) const {
    if (const auto run = part(own_, offset - own_offset_, limit); !run.empty() || segment_ == 0) return run;
    const std::uint64_t node = offset / segment_;
    return node < nodes_.size() ? part(nodes_[node], offset % segment_, limit) : std::span<std::byte>{};
  }

 private:
  static std::span<std::byte> part(std::span<std::byte> bytes, std::uint64_t offset, std::uint64_t limit) {
    if (offset >= bytes.size()) return {};
    const auto rest = bytes.subspan(static_cast<std::size_t>(offset));
    return rest.first(static_cast<std::size_t>(std::min<std::uint64_t>(rest.size(), limit)));
  }

  std::vector<std::span<std::byte>> nodes_;
  std::span<std::byte> own_;
  std::uint64_t segment_ = 0;  // 0: in no hive
  std::uint64_t own_offset_ = 0;
};

// The VRAM of the nodes of the hive that `gpus[index]` is in, by node; empty if it is in none. `vram` by GPU.
inline std::vector<std::span<std::byte>> hive_of(std::span<const vasic_info> gpus, std::size_t index,
                                                 std::span<const std::span<std::byte>> vram) {
  std::vector<std::span<std::byte>> nodes;
  if (gpus[index].xgmi_hive_id == 0) return nodes;
  for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu)
    if (gpus[gpu].xgmi_hive_id == gpus[index].xgmi_hive_id) nodes.push_back(vram[gpu]);
  return nodes;
}

}  // namespace vasicd
