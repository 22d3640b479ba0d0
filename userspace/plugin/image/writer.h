// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Writes the image of one device file: contents as they come, then metadata, then the manifest, which commits.
// Until commit() returns, a reader refuses the image. May be used again for the same id: nothing old survives.
#pragma once

#include <span>
#include <vector>

#include "base/unique_fd.h"
#include "plugin/image/format.h"

namespace plugin::image {

class Writer {
 public:
  // dir_fd is borrowed, for the life of the writer.
  static base::Result<Writer> create(int dir_fd, std::uint32_t id);

  // Appends the next part of a BO's contents to its chunk list. Every part but a BO's last is a multiple of kChunkSize.
  base::Status append(std::span<const std::byte> contents, std::vector<Chunk>& chunks);

  // Makes everything durable, then the manifest visible. Call once, last.
  base::Status commit(const File& file);

 private:
  Writer(int dir_fd, std::uint32_t id) : dir_fd_(dir_fd), id_(id) {}

  base::Status open_pages();
  base::Status finish_pages();

  int dir_fd_;
  std::uint32_t id_;
  base::UniqueFd pages_;            // opened by the first append()
  std::uint64_t pages_length_ = 0;  // 0: no pages file
};

}  // namespace plugin::image
