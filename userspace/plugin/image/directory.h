// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Which files of ours an image directory has, by their names alone.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plugin/image/format.h"

namespace plugin::image {

// Everything that parse_name() knows, in the order of NameKind and id, so that manifests come first.
base::Result<std::vector<std::pair<Name, std::string>>> list_names(int dir_fd);

}  // namespace plugin::image
