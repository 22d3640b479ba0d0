// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// One node of the KFD topology, as sysfs tells it: the unit of snapshot, image and match.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace plugin::topology {

// Values of a link's "type"; others exist and are compared for equality only.
inline constexpr std::uint32_t kLinkPcie = 2;
inline constexpr std::uint32_t kLinkXgmi = 11;

// Properties that the snapshot adds to those of sysfs: bytes of VRAM, and of them what the CPU can reach.
inline constexpr std::string_view kVramSize = "vram_size";
inline constexpr std::string_view kVramPublic = "vram_public";
inline constexpr std::string_view kRenderMinor = "drm_render_minor";

struct Link {
  std::uint32_t to = 0;  // node_id
  std::uint32_t type = 0;
  bool operator==(const Link&) const = default;
};

struct Node {
  std::uint32_t node_id = 0;
  std::uint32_t gpu_id = 0;  // 0: a CPU
  std::map<std::string, std::uint64_t, std::less<>> properties;
  std::vector<Link> links;
  bool operator==(const Node&) const = default;

  // 0 when this kernel does not have the property.
  [[nodiscard]] std::uint64_t property(std::string_view name) const {
    const auto found = properties.find(name);
    return found == properties.end() ? 0 : found->second;
  }
  [[nodiscard]] std::uint32_t render_minor() const { return static_cast<std::uint32_t>(property(kRenderMinor)); }
};

}  // namespace plugin::topology
