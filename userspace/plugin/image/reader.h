// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Reads images back. What load() returns has passed every check but the chunks' checksums, which read_chunk() makes.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/unique_fd.h"
#include "plugin/image/format.h"

namespace plugin::image {

class Loaded {
 public:
  Loaded(Manifest manifest, File file, base::UniqueFd pages)
      : manifest_(manifest), file_(std::move(file)), pages_(std::move(pages)) {}

  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  [[nodiscard]] const File& file() const { return file_; }
  [[nodiscard]] const KfdFile* kfd() const { return std::get_if<KfdFile>(&file_.kind); }
  [[nodiscard]] const RenderFile* render() const { return std::get_if<RenderFile>(&file_.kind); }

  // Fills `out`, which has the chunk's length.
  base::Status read_chunk(const Chunk& chunk, std::span<std::byte> out) const;

 private:
  Manifest manifest_;
  File file_;
  base::UniqueFd pages_;  // invalid: no pages file
};

// Nothing when the directory has no image with this id; an error when it has one that is damaged or not committed.
base::Result<std::optional<Loaded>> load(int dir_fd, std::uint32_t id);

// Ids of all committed images in the directory, ascending.
base::Result<std::vector<std::uint32_t>> committed_ids(int dir_fd);

}  // namespace plugin::image
