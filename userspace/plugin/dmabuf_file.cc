// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "plugin/dmabuf_file.h"

#include <linux/dma-buf.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "base/os.h"
#include "base/text_file.h"

namespace plugin::dmabuf_file {
namespace {

using base::Error;
using base::Result;
using base::Status;

// The name of a DMA-buf is the last line of its fdinfo, and may itself have ends of lines.
std::string name_in(const std::string& text) {
  constexpr std::string_view kStart = "\nname:\t";
  const auto at = text.find(kStart);
  if (at == std::string::npos) return {};
  std::string name = text.substr(at + kStart.size());
  if (name.ends_with('\n')) name.pop_back();
  return name;
}

// The value of a line "KEY:\tVALUE" of an fdinfo; empty if it has none.
std::string value_of(const std::string& text, const std::string& key) {
  const std::string start = "\n" + key + ":\t";
  const std::string lines = "\n" + text;
  const auto at = lines.find(start);
  if (at == std::string::npos) return {};
  const auto from = at + start.size();
  return lines.substr(from, lines.find('\n', from) - from);
}

}  // namespace

Result<std::optional<Info>> info_of(const std::string& proc, int fd) {
  const std::string number = std::to_string(fd);
  std::array<char, 16> link{};
  const ssize_t length = os::readlink((proc + "/self/fd/" + number).c_str(), link.data(), link.size());
  if (length < 0 || !std::string_view(link.data(), static_cast<std::size_t>(length)).starts_with(kPath))
    return std::optional<Info>();
  struct stat status {};
  if (os::fstat(fd, &status) != 0) return Error::from_errno(errno, "fstat of a DMA-buf");
  ASSIGN_OR_RETURN(const std::string text, base::read_text(proc + "/self/fdinfo/" + number));
  Info info;
  info.inode = status.st_ino;
  info.size = static_cast<std::uint64_t>(status.st_size);
  info.exporter = value_of(text, "exp_name");
  info.name = name_in(text);
  return std::optional<Info>(std::move(info));
}

Status set_name(int fd, const std::string& name) {
  // The argument of the ioctl is the address of the name itself, whatever the size in its number says.
  if (os::ioctl(fd, DMA_BUF_SET_NAME_B, const_cast<char*>(name.c_str())) == 0) return {};
  return Error::from_errno(errno, "DMA_BUF_SET_NAME");
}

}  // namespace plugin::dmabuf_file
