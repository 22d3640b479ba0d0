// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// /dev/kmsg, non-blocking: one record per read; EPIPE says that records were overwritten, which is read over.
#include "kfdtest-criu/env/kernel_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace kfdtest {
namespace {

constexpr std::size_t kMaxRecord = 8192;

constexpr std::array<std::string_view, 9> kSplats = {
    "BUG:", "Call Trace:", "INFO: possible circular locking", "INFO: task ", "KASAN:",
    "Oops", "WARNING:",    "general protection fault",        "refcount_t:",
};

}  // namespace

bool is_splat(std::string_view line) {
  return std::any_of(kSplats.begin(), kSplats.end(),
                     [line](std::string_view sign) { return line.find(sign) != std::string_view::npos; });
}

std::string_view kmsg_text(std::string_view record) {
  const std::size_t header = record.find(';');
  if (header == std::string_view::npos) return {};
  std::string_view text = record.substr(header + 1);
  return text.substr(0, text.find('\n'));
}

base::Result<KernelLog> KernelLog::open() {
  base::UniqueFd fd(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd.valid()) return base::Error::from_errno(errno, "/dev/kmsg");
  if (::lseek(fd.get(), 0, SEEK_END) < 0) return base::Error::from_errno(errno, "seek in /dev/kmsg");
  return KernelLog(std::move(fd));
}

std::vector<std::string> KernelLog::new_lines() {
  std::vector<std::string> lines;
  std::array<char, kMaxRecord> record{};
  while (true) {
    const ssize_t got = ::read(fd_.get(), record.data(), record.size());
    if (got < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (got <= 0) return lines;
    lines.emplace_back(kmsg_text({record.data(), static_cast<std::size_t>(got)}));
  }
}

}  // namespace kfdtest
