// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Small readers for procfs, sysfs and directories of devices. All answer "nothing" for what is not there.
#pragma once

#include <sys/types.h>

#include <array>
#include <charconv>
#include <climits>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/os.h"
#include "base/text_file.h"

namespace plugin {

inline std::string base_name(std::string_view path) {
  const auto slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

inline std::string read_link(const std::string& path) {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = os::readlink(path.c_str(), target.data(), target.size());
  return length < 0 ? std::string() : std::string(target.data(), static_cast<std::size_t>(length));
}

inline std::string first_word(const std::string& path) {
  std::istringstream in(base::read_text_or_empty(path));
  std::string word;
  in >> word;
  return word;
}

template <typename T>
std::optional<T> parse_integer(std::string_view text, int radix = 10) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, radix);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Entries of a directory that are numbers.
template <typename T>
std::vector<T> numbers_in(const std::string& path) {
  std::vector<T> numbers;
  DIR* dir = os::opendir(path.c_str());
  if (dir == nullptr) return numbers;
  while (const dirent* entry = os::readdir(dir))
    if (const auto number = parse_integer<T>(entry->d_name)) numbers.push_back(*number);
  os::closedir(dir);
  return numbers;
}

// The rest of the line that begins with `key` and a colon.
inline std::string field(const std::string& path, std::string_view key) {
  std::istringstream in(base::read_text_or_empty(path));
  std::string line;
  while (std::getline(in, line))
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ':')
      return line.substr(key.size() + 1);
  return {};
}

inline std::vector<std::uint32_t> numbers_of(const std::string& text) {
  std::vector<std::uint32_t> numbers;
  std::istringstream in(text);
  for (std::uint32_t number = 0; in >> number;) numbers.push_back(number);
  return numbers;
}

}  // namespace plugin
