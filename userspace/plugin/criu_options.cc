// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header. The rules are those of CRIU's config.c.
#include "plugin/criu_options.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

namespace plugin::criu_options {
namespace {

constexpr std::string_view kConfig = "--config";
constexpr std::string_view kNoDefaults = "--no-default-config";

}  // namespace

std::vector<std::string> files(const std::vector<std::string>& arguments, const Environment& environment) {
  std::vector<std::string> paths;
  std::optional<std::string> given;  // the last one; CRIU reads no default file then
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == kConfig && i + 1 < arguments.size()) given = arguments[i + 1];
    if (argument.starts_with(std::string(kConfig) + "=")) given = argument.substr(kConfig.size() + 1);
  }
  if (!given && std::find(arguments.begin(), arguments.end(), kNoDefaults) == arguments.end()) {
    paths.emplace_back("/etc/criu/default.conf");
    if (const char* home = environment("HOME")) paths.push_back(std::string(home) + "/.criu/default.conf");
  }
  if (const char* file = environment("CRIU_CONFIG_FILE")) paths.emplace_back(file);
  if (given) paths.push_back(*given);
  return paths;
}

std::vector<std::string> options_in(const std::string& file) {
  std::vector<std::string> options;
  std::istringstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    if (words >> word && !word.starts_with('#')) options.push_back("--" + word);
  }
  return options;
}

std::vector<std::string> all(std::vector<std::string> arguments, const Environment& environment,
                             const ReadFile& text_of) {
  for (const std::string& path : files(arguments, environment)) {
    const auto text = text_of(path);
    if (!text.ok()) continue;  // CRIU passes over a file that it cannot open
    const std::vector<std::string> options = options_in(*text);
    arguments.insert(arguments.end(), options.begin(), options.end());
  }
  return arguments;
}

bool contains(const std::vector<std::string>& arguments, std::string_view name, std::string_view shortest) {
  return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
    const auto word = std::string_view(argument).substr(0, argument.find('='));
    return word.size() >= shortest.size() && name.starts_with(word);
  });
}

bool may_have_parent(const std::vector<std::string>& arguments) {
  const auto is_service = [](const std::string& argument) { return argument == "swrk" || argument == "service"; };
  return contains(arguments, "--prev-images-dir", "--prev") ||
         std::any_of(arguments.begin(), arguments.end(), is_service);
}

}  // namespace plugin::criu_options
