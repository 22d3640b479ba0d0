// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Values of format.h <-> protobuf bytes. The only user of generated code.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "plugin/image/format.h"

namespace plugin::image {

[[nodiscard]] std::string encode(const File& file);
[[nodiscard]] std::string encode(const Manifest& manifest);
// Fail on bytes that are no such message or lack a kind; values are as found, see validate().
base::Result<File> decode_file(std::span<const std::byte> bytes);
base::Result<Manifest> decode_manifest(std::span<const std::byte> bytes);

}  // namespace plugin::image
