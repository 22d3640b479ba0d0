// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "kfd-criu/names.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>

namespace kfd_criu {
namespace {

template <typename... Arguments>
std::string format(const char* pattern, Arguments... arguments) {
  std::array<char, 64> text{};
  (void)std::snprintf(text.data(), text.size(), pattern, arguments...);
  return text.data();
}

}  // namespace

std::string hex(std::uint64_t number) { return format("%" PRIx64, number); }
std::string hex16(std::uint64_t number) { return format("%016" PRIx64, number); }

std::string size_text(std::uint64_t bytes) {
  constexpr std::array kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return std::to_string(bytes) + " " + kUnits[0];
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return format("%.1f ", value) + kUnits[unit];
}

std::string count_text(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : noun.ends_with('s') ? "es" : "s");
}

std::string gfx_name(const plugin::topology::Node& node) {
  const std::uint64_t version = node.property("gfx_target_version");
  if (version == 0) return "gfx?";
  return format("gfx%" PRIu64 "%" PRIx64 "%" PRIx64, version / 10000, version / 100 % 100, version % 100);
}

std::string_view bo_kind(const kfd::Bo& bo) {
  struct Kind {
    std::uint32_t flag;
    std::string_view name;
  };
  constexpr std::array kKinds = {
      Kind{KFD_IOC_ALLOC_MEM_FLAGS_VRAM, "VRAM"},       Kind{KFD_IOC_ALLOC_MEM_FLAGS_GTT, "GTT"},
      Kind{KFD_IOC_ALLOC_MEM_FLAGS_USERPTR, "userptr"}, Kind{KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL, "doorbell"},
      Kind{KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP, "MMIO"},
  };
  for (const Kind& kind : kKinds)
    if ((bo.alloc_flags & kind.flag) != 0) return kind.name;
  return "other";
}

std::string printable(std::string_view text) {
  std::string result = printable_lines(text);
  std::replace(result.begin(), result.end(), '\n', '?');
  return result;
}

std::string printable_lines(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    result += (byte >= 0x20 && byte < 0x7f) || c == '\n' ? c : '?';
  }
  return result;
}

}  // namespace kfd_criu
