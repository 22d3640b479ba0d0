// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// An image directory: which files of ours it has, by their names alone; the way to the dump before; changes of names.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "plugin/image/format.h"

namespace plugin::image {

// Everything that parse_name() knows, in the order of NameKind and id, so that manifests come first.
base::Result<std::vector<std::pair<Name, std::string>>> list_names(int dir_fd);

// The directory of the dump before, behind CRIU's link `parent`; ENOENT: there is none.
base::Result<base::UniqueFd> open_parent(int dir_fd);

base::Status remove_if_there(int dir_fd, const std::string& name);
// Makes new, removed and renamed files permanent.
base::Status sync_directory(int dir_fd);

}  // namespace plugin::image
