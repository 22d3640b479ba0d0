// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "plugin/image/file_bytes.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/os.h"
#include "plugin/image/format.h"

namespace plugin::image {

namespace {

using base::Error;
using base::Status;

}  // namespace

Status read_all(int fd, std::span<std::byte> out, std::uint64_t offset) {
  while (!out.empty()) {
    const ssize_t count = os::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error::from_errno(errno, "reading");
    if (count == 0) return Error(EINVAL, "truncated");
    out = out.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return {};
}

Status write_all(int fd, std::span<const std::byte> bytes, std::uint64_t offset, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t written = os::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Error::from_errno(errno, "writing " + name);
    if (written == 0) return Error(EIO, "writing " + name + ": wrote nothing");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

Status check_zeros(int fd, std::uint64_t offset, std::uint64_t length) {
  std::array<std::byte, kPageSize> page{};
  const auto bytes = std::span(page).first(length);
  TRY(read_all(fd, bytes, offset));
  if (std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; }))
    return Error(EINVAL, "damaged: bytes that belong to no chunk are not zero");
  return {};
}

}  // namespace plugin::image
