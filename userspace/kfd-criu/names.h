// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Numbers of an image as people write them. Not here: what is printed where.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kfd/kfd.h"
#include "plugin/topology/node.h"

namespace kfd_criu {

[[nodiscard]] std::string hex(std::uint64_t number);                               // no prefix
[[nodiscard]] std::string hex16(std::uint64_t number);                             // no prefix, 16 digits
[[nodiscard]] std::string size_text(std::uint64_t bytes);                          // "12.5 MiB"
[[nodiscard]] std::string count_text(std::uint64_t count, std::string_view noun);  // "1 BO", "2 BOs"
// "gfx90a" of the property gfx_target_version; "gfx?" of a node without it.
[[nodiscard]] std::string gfx_name(const plugin::topology::Node& node);
// VRAM, GTT, userptr, doorbell, MMIO, or "other".
[[nodiscard]] std::string_view bo_kind(const kfd::Bo& bo);
// The text with a "?" for everything that a terminal might obey: control characters and bytes beyond ASCII. The second
// one keeps line breaks, for messages of several lines.
[[nodiscard]] std::string printable(std::string_view text);
[[nodiscard]] std::string printable_lines(std::string_view text);

}  // namespace kfd_criu
