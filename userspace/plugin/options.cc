// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// One row per option: its names, what its value may be, where it goes.
#include "plugin/options.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

namespace plugin {
namespace {

using base::Error;
using base::Result;
using base::Status;

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

bool set_flag(std::string_view text, bool& flag) {
  if (text != "0" && text != "1") return false;
  flag = text == "1";
  return true;
}

bool set_check_firmware(std::string_view text, Options& options) { return set_flag(text, options.check_firmware); }

bool set_check_device_id(std::string_view text, Options& options) { return set_flag(text, options.check_device_id); }

bool set_compress(std::string_view text, Options& options) {
  if (text == "auto")
    options.compress = image::Packing::kAuto;
  else if (text == "never")
    options.compress = image::Packing::kNever;
  else if (text == "always")
    options.compress = image::Packing::kAlways;
  else
    return false;
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
  std::string_view name;
  const char* variable;
  const char* values;
  bool (*set)(std::string_view, Options&);
};

constexpr std::array kTable = {
    Row{"check-device-id", "AMDGPU_PLUGIN_CHECK_DEVICE_ID", "0 or 1", set_check_device_id},
    Row{"check-firmware", "AMDGPU_PLUGIN_CHECK_FIRMWARE", "0 or 1", set_check_firmware},
    Row{"compress", "AMDGPU_PLUGIN_COMPRESS", "auto, never or always", set_compress},
    Row{"copy", "AMDGPU_PLUGIN_COPY", "auto, sdma or cpu", set_copy},
    Row{"fence-timeout", "AMDGPU_PLUGIN_FENCE_TIMEOUT", "seconds, 1 to 3600", set_fence_timeout},
    Row{"gpu-map", "AMDGPU_PLUGIN_GPU_MAP",
        "SOURCE:DESTINATION[,...], gpu_ids of the image and of this machine, each once", set_gpu_map},
};

const Row* find_row(std::string_view name) {
  for (const Row& row : kTable)
    if (row.name == name) return &row;
  return nullptr;
}

// What was said of an option, and where.
struct Setting {
  std::string value;
  std::string where;  // for messages, with the value
};
using Settings = std::map<const Row*, Setting>;

Status unknown_option(const std::string& where) {
  std::string names;
  for (const Row& row : kTable) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return Error(EINVAL, where + ": no such option; there are " + names);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// The first setting of an option stays.
Status add_setting(std::string_view text, const std::string& where, Settings& settings) {
  const auto equal = text.find('=');
  const Row* row = find_row(trimmed(text.substr(0, equal)));
  if (row == nullptr) return unknown_option(where);
  if (equal == std::string_view::npos) return Error(EINVAL, where + ": expected " + row->values);
  settings.emplace(row, Setting{std::string(trimmed(text.substr(equal + 1))), where});
  return {};
}

Status add_arguments(const std::vector<std::string>& arguments, Settings& settings) {
  for (auto argument = arguments.rbegin(); argument != arguments.rend(); ++argument) {
    for (const std::string_view prefix : {"--amdgpu.", "--amdgpu_plugin."}) {
      if (!argument->starts_with(prefix)) continue;
      const std::string where = "--plugin-option " + argument->substr(2);
      TRY(add_setting(std::string_view(*argument).substr(prefix.size()), where, settings));
    }
  }
  return {};
}

Status add_file(const std::string& file, Settings& settings) {
  std::istringstream in(file);
  Settings of_file;  // the last line of several counts
  for (std::string line; std::getline(in, line);) {
    const std::string_view text = trimmed(line);
    if (text.empty() || text.front() == '#') continue;
    Settings one;
    TRY(add_setting(text, std::string(kOptionsFile) + ": " + std::string(text), one));
    for (auto& [row, setting] : one) of_file[row] = std::move(setting);
  }
  settings.merge(of_file);
  return {};
}

void add_environment(const std::function<const char*(const char*)>& environment, Settings& settings) {
  for (const Row& row : kTable) {
    const char* value = environment(row.variable);
    if (value == nullptr || *value == '\0') continue;
    settings.emplace(&row, Setting{value, std::string(row.variable) + "=" + value});
  }
}

}  // namespace

Result<Options> read_options(const OptionSources& sources) {
  Settings settings;
  TRY(add_arguments(sources.arguments, settings));
  TRY(add_file(sources.file, settings));
  add_environment(sources.environment, settings);
  Options options;
  for (const auto& [row, setting] : settings)
    if (!row->set(setting.value, options)) return Error(EINVAL, setting.where + ": expected " + row->values);
  return options;
}

}  // namespace plugin
