// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What can be learnt from a program's open render node without changing it: objects that no image describes, and
// whether KFD uses its VM. The ioctls are those of amdgpu since Linux 4.2; the file is the program's own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace plugin::render_file {

// The first GEM object or context that is found; empty: none. It looks at handles up to 4096, which the kernel gives
// out beginning with the lowest free one.
base::Result<std::string> objects_of(int fd);

// Whether the file may map the BO at this offset of its GPU: KFD permits it to the file whose VM it uses, and to no
// other. Nothing when there is no BO there.
base::Result<std::optional<bool>> may_map(int fd, std::uint64_t offset);

}  // namespace plugin::render_file
