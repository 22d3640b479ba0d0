// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "plugin/image/catalogue.h"

namespace plugin::image {

using base::Error;
using base::Result;

Result<Catalogue> Catalogue::read(int dir_fd) {
  Catalogue catalogue;
  ASSIGN_OR_RETURN(const auto ids, list_ids(dir_fd));
  for (const std::uint32_t id : ids) {
    auto loaded = load(dir_fd, id);
    if (!loaded.ok())
      catalogue.images_.emplace(id, std::move(loaded).error());
    else if (*loaded)
      catalogue.images_.emplace(id, std::move(**loaded));
  }
  return catalogue;
}

Result<const Loaded*> Catalogue::find(std::uint32_t id) const {
  const auto found = images_.find(id);
  if (found == images_.end()) return static_cast<const Loaded*>(nullptr);
  if (!found->second.ok()) return Error(found->second.error());
  return &found->second.value();
}

std::vector<const Loaded*> Catalogue::intact() const {
  std::vector<const Loaded*> images;
  for (const auto& [id, loaded] : images_)
    if (loaded.ok()) images.push_back(&loaded.value());
  return images;
}

}  // namespace plugin::image
