// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header. The rules are those of CRIU's config.c.
#include "plugin/criu_options.h"

#include <algorithm>
#include <sstream>
#include <utility>

namespace plugin::criu_options {
namespace {

constexpr std::string_view kConfig = "--config";
constexpr std::string_view kNoDefaults = "--no-default-config";

}  // namespace

std::vector<std::string> files(const std::vector<std::string>& arguments, const Environment& environment) {
  std::vector<std::string> paths;
  if (std::find(arguments.begin(), arguments.end(), kNoDefaults) == arguments.end()) {
    paths.emplace_back("/etc/criu/default.conf");
    if (const char* home = environment("HOME")) paths.push_back(std::string(home) + "/.criu/default.conf");
  }
  if (const char* file = environment("CRIU_CONFIG_FILE")) paths.emplace_back(file);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == kConfig && i + 1 < arguments.size()) paths.push_back(arguments[i + 1]);
    if (argument.starts_with(std::string(kConfig) + "=")) paths.push_back(argument.substr(kConfig.size() + 1));
  }
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

base::Result<std::vector<std::string>> all(std::vector<std::string> arguments, const Environment& environment,
                                           const ReadFile& text_of) {
  for (const std::string& path : files(arguments, environment)) {
    ASSIGN_OR_RETURN(const std::string text, text_of(path));
    const std::vector<std::string> options = options_in(text);
    arguments.insert(arguments.end(), options.begin(), options.end());
  }
  return arguments;
}

bool contains(const std::vector<std::string>& arguments, std::string_view name, std::string_view shortest) {
  return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
    return argument.size() >= shortest.size() && name.starts_with(argument);
  });
}

}  // namespace plugin::criu_options
