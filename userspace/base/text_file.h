// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Files of sysfs and procfs as text, through the seam to the operating system.
// Not here: what the text means; files of a size worth a buffer.
#pragma once

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <string>

#include "base/os.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace base {

inline Result<std::string> read_text(const std::string& path) {
  const UniqueFd file(os::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return Error::from_errno(errno, path);
  std::string text;
  std::array<char, 4096> buffer{};
  while (true) {
    const ssize_t count = os::read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error::from_errno(errno, path);
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

// Whether the failure says that there is no such file or process. After any other failure nobody knows.
inline bool is_absence(const Error& error) {
  return error.code() == ENOENT || error.code() == ENOTDIR || error.code() == ESRCH;
}

// For files whose absence means the same as an empty one.
inline Result<std::string> read_text_if_there(const std::string& path) {
  auto text = read_text(path);
  if (!text.ok() && is_absence(text.error())) return std::string();
  return text;
}

// For messages and hints, where a file that cannot be read may be passed over.
inline std::string read_text_or_empty(const std::string& path) {
  auto text = read_text(path);
  return text.ok() ? std::move(text).value() : std::string();
}

}  // namespace base
