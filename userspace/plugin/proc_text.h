// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Small readers for procfs, sysfs and directories of devices. All but read_link() answer "nothing" for what is not
// there; what cannot be read for another reason is an error.
#pragma once

#include <sys/types.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/os.h"
#include "base/result.h"
#include "base/text_file.h"

namespace plugin {

inline std::string base_name(std::string_view path) {
  const auto slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

// Where a symbolic link points to.
inline base::Result<std::string> read_link(const std::string& path) {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = os::readlink(path.c_str(), target.data(), target.size());
  if (length < 0) return base::Error::from_errno(errno, path);
  return std::string(target.data(), static_cast<std::size_t>(length));
}

inline base::Result<std::string> read_link_if_there(const std::string& path) {
  auto target = read_link(path);
  if (!target.ok() && base::is_absence(target.error())) return std::string();
  return target;
}

inline base::Result<std::string> first_word(const std::string& path) {
  ASSIGN_OR_RETURN(std::string text, base::read_text_if_there(path));
  std::istringstream in(std::move(text));
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

// Entries of a directory that are numbers, in no order.
template <typename T>
base::Result<std::vector<T>> numbers_in(const std::string& path) {
  std::vector<T> numbers;
  DIR* dir = os::opendir(path.c_str());
  if (dir == nullptr) {
    auto error = base::Error::from_errno(errno, path);
    if (base::is_absence(error)) return numbers;
    return error;
  }
  errno = 0;  // tells a failure from the end
  while (const dirent* entry = os::readdir(dir)) {
    if (const auto number = parse_integer<T>(entry->d_name)) numbers.push_back(*number);
    errno = 0;
  }
  const int code = errno;
  os::closedir(dir);
  if (code != 0) return base::Error::from_errno(code, path);
  return numbers;
}

// The rest of the line that begins with `key` and a colon.
inline base::Result<std::string> field(const std::string& path, std::string_view key) {
  ASSIGN_OR_RETURN(std::string text, base::read_text_if_there(path));
  std::istringstream in(std::move(text));
  std::string line;
  while (std::getline(in, line))
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ':')
      return line.substr(key.size() + 1);
  return std::string();
}

inline std::vector<std::uint32_t> numbers_of(const std::string& text) {
  std::vector<std::uint32_t> numbers;
  std::istringstream in(text);
  for (std::uint32_t number = 0; in >> number;) numbers.push_back(number);
  return numbers;
}

}  // namespace plugin
