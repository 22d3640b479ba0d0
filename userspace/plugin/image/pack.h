// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Compression of chunks by LZ4 (the block format, without a frame), and when it is worth while.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"

namespace plugin::image {

// The bytes of `bytes` packed; empty if these would not be at least a sixteenth fewer.
[[nodiscard]] std::vector<std::byte> pack(std::span<const std::byte> bytes);
// Fails unless `packed` is exactly what `out` has packed.
base::Status unpack(std::span<const std::byte> packed, std::span<std::byte> out);

// Whether chunks are stored packed. kAuto: as long as the disk is busy with what was written before, so that packing
// takes time in which the chunk would only wait for the disk.
enum class Packing { kAuto, kNever, kAlways };

// Says of each chunk whether to try to pack it. Used by several threads.
class PackPolicy {
 public:
  void choose(Packing packing) { packing_ = packing; }
  // `disk_is_busy`: see Packing::kAuto. After a chunk that does not become smaller it passes over some, more each time.
  [[nodiscard]] bool wants(bool disk_is_busy);
  // Tells what became of a chunk for which wants() answered true.
  void learn(bool is_smaller);

 private:
  static constexpr unsigned kMostPassedOver = 63;

  Packing packing_ = Packing::kAuto;
  std::mutex mutex_;
  unsigned pass_over_ = 0;  // the next so many chunks
  unsigned last_ = 0;       // how many were passed over after the last failure
};

}  // namespace plugin::image
