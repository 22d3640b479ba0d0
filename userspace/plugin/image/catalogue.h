// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// All images of a directory, each read and validated once. CRIU's plugin makes it before the tree of processes, and
// each restored task inherits it. Holds no descriptor. Does not know which images belong to this restore: a damaged one
// may be left over from another dump, so find() returns its error only when asked for that image.
#pragma once

#include <map>
#include <vector>

#include "plugin/image/reader.h"

namespace plugin::image {

class Catalogue {
 public:
  static base::Result<Catalogue> read(int dir_fd);

  // Null when the directory has no image with this id; an error when the image is damaged or not committed. The image
  // lives as long as the catalogue.
  [[nodiscard]] base::Result<const Loaded*> find(std::uint32_t id) const;
  // The images that are not damaged, by ascending id.
  [[nodiscard]] std::vector<const Loaded*> intact() const;

 private:
  std::map<std::uint32_t, base::Result<Loaded>> images_;
};

}  // namespace plugin::image
