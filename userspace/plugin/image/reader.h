// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Reads images back. What load() returns has passed every check but those of its pages file, which open_contents() and
// Contents::read_chunk() make.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/unique_fd.h"
#include "plugin/image/format.h"

namespace plugin::image {

// The manifest and the metadata of one image. Holds no descriptor: CRIU closes those that a restored task inherits.
class Loaded {
 public:
  Loaded(Manifest manifest, File file) : manifest_(manifest), file_(std::move(file)) {}

  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  [[nodiscard]] const File& file() const { return file_; }
  [[nodiscard]] const KfdFile* kfd() const { return std::get_if<KfdFile>(&file_.kind); }
  [[nodiscard]] const RenderFile* render() const { return std::get_if<RenderFile>(&file_.kind); }

 private:
  Manifest manifest_;
  File file_;
};

// The open pages file of one image.
class Contents {
 public:
  Contents(std::uint32_t id, base::UniqueFd pages) : id_(id), pages_(std::move(pages)) {}

  // Fills `out`, which has the chunk's length.
  base::Status read_chunk(const Chunk& chunk, std::span<std::byte> out) const;

 private:
  std::uint32_t id_;
  base::UniqueFd pages_;  // invalid: the image has no pages file
};

// Nothing when the directory has no image with this id; an error when it has one that is damaged or not committed.
base::Result<std::optional<Loaded>> load(int dir_fd, std::uint32_t id);

base::Result<Contents> open_contents(int dir_fd, const Loaded& loaded);

// Ids of all images in the directory, ascending: committed ones, and those whose dump did not complete.
base::Result<std::vector<std::uint32_t>> list_ids(int dir_fd);

}  // namespace plugin::image
