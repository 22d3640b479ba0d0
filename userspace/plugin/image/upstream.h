// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Dumps by CRIU's own amdgpu plugin, as the same values that dumps by this plugin give, so that one restore serves
// both. Catalogue reads them when a directory has no dump of ours. Not here: their bytes (upstream_format).
#pragma once

#include <map>
#include <string_view>

#include "plugin/image/contents.h"

namespace plugin::image::upstream {

// For the log, once, when such a dump is restored.
inline constexpr std::string_view kNotice =
    "this dump was made by CRIU's own amdgpu plugin, whose images have no checksums: damage in the contents of GPU "
    "memory cannot be noticed";

// All their device files in the directory by id, each read and checked once; those that cannot be used with the reason.
// Files of different machines, of which all but one were left over, are in different sessions.
base::Result<std::map<std::uint32_t, base::Result<Loaded>>> read(int dir_fd);

// Opens all pages files of a file of kind kKfd, and checks their lengths again.
base::Result<Contents> open_contents(int dir_fd, const Loaded& loaded);

}  // namespace plugin::image::upstream
