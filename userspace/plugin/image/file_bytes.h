// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Bytes of an open file of an image at an offset. What they mean is the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace plugin::image {

// Fills `out`, or fails.
base::Status read_all(int fd, std::span<std::byte> out, std::uint64_t offset);

// Writes all bytes, or fails. A short write, or a full disk, is an error. `name` is that of the file in errors.
base::Status write_all(int fd, std::span<const std::byte> bytes, std::uint64_t offset, const std::string& name);

// Fails unless these bytes, at most a page, are all zero.
base::Status check_zeros(int fd, std::uint64_t offset, std::uint64_t length);

}  // namespace plugin::image
