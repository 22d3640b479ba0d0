// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// One row per option: its variable, what its value may be, where it goes.
#include "plugin/options.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <set>
#include <string_view>

namespace plugin {
namespace {

using base::Error;
using base::Result;

constexpr std::uint32_t kMaxTimeout = 3600;

// Decimal, or hexadecimal after "0x".
bool parse_number(std::string_view text, std::uint32_t& value) {
  int radix = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    radix = 16;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, radix);
  return error == std::errc() && end == text.data() + text.size();
}

bool set_gpu_map(std::string_view text, Options& options) {
  std::set<std::uint32_t> destinations;
  while (true) {
    const auto comma = text.find(',');
    const std::string_view pair = text.substr(0, comma);
    const auto colon = pair.find(':');
    std::uint32_t source = 0;
    std::uint32_t destination = 0;
    if (colon == std::string_view::npos || !parse_number(pair.substr(0, colon), source) ||
        !parse_number(pair.substr(colon + 1), destination))
      return false;
    if (source == 0 || destination == 0 || !destinations.insert(destination).second ||
        !options.gpu_map.emplace(source, destination).second)
      return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

bool set_check_firmware(std::string_view text, Options& options) {
  if (text != "0" && text != "1") return false;
  options.check_firmware = text == "1";
  return true;
}

bool set_copy(std::string_view text, Options& options) {
  if (text == "auto")
    options.copy = CopyMethod::kAuto;
  else if (text == "sdma")
    options.copy = CopyMethod::kSdma;
  else if (text == "cpu")
    options.copy = CopyMethod::kCpu;
  else
    return false;
  return true;
}

bool set_fence_timeout(std::string_view text, Options& options) {
  std::uint32_t seconds = 0;
  if (!parse_number(text, seconds) || seconds == 0 || seconds > kMaxTimeout) return false;
  options.fence_timeout = std::chrono::seconds(seconds);
  return true;
}

struct Row {
  const char* variable;
  const char* values;
  bool (*set)(std::string_view, Options&);
};

constexpr std::array kTable = {
    Row{"AMDGPU_PLUGIN_CHECK_FIRMWARE", "0 or 1", set_check_firmware},
    Row{"AMDGPU_PLUGIN_COPY", "auto, sdma or cpu", set_copy},
    Row{"AMDGPU_PLUGIN_FENCE_TIMEOUT", "seconds, 1 to 3600", set_fence_timeout},
    Row{"AMDGPU_PLUGIN_GPU_MAP", "SOURCE:DESTINATION[,...], gpu_ids of the image and of this machine, each once",
        set_gpu_map},
};

}  // namespace

Result<Options> read_options(const std::function<const char*(const char*)>& get) {
  Options options;
  for (const Row& row : kTable) {
    const char* value = get(row.variable);
    if (value == nullptr || *value == '\0') continue;
    if (!row.set(value, options))
      return Error(EINVAL, std::string(row.variable) + "=" + value + ": expected " + row.values);
  }
  return options;
}

}  // namespace plugin
