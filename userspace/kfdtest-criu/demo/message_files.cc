// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "kfdtest-criu/demo/message_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "base/unique_fd.h"
#include "kfdtest-criu/env/deadline.h"

namespace kfdtest {
namespace {

base::Status write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return base::Error::from_errno(errno, "write");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

void MessageFiles::say(std::string_view phase) const {
  std::array<char, 32> time{};
  const std::uint64_t now = monotonic_ns();
  std::snprintf(time.data(), time.size(), "[%6llu.%03llu] ", static_cast<unsigned long long>(now / 1'000'000'000),
                static_cast<unsigned long long>(now / 1'000'000 % 1000));
  const std::string line = std::string(time.data()) + std::string(phase) + "\n";
  (void)write_all(STDOUT_FILENO, line);  // may be closed; the script that checkpoints the program reads the log
  const base::UniqueFd log(::open(path("log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (log.valid()) (void)write_all(log.get(), line);
}

base::Status MessageFiles::publish(std::string_view file, std::string_view text) const {
  const std::string temporary = path(file) + ".new";
  base::UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.valid()) return base::Error::from_errno(errno, temporary);
  TRY(write_all(fd.get(), std::string(text) + "\n"));
  fd.reset();
  if (::rename(temporary.c_str(), path(file).c_str()) != 0) return base::Error::from_errno(errno, path(file));
  return {};
}

base::Status MessageFiles::publish_result(std::string_view checksum) const {
  const std::string text = "RESULT " + std::string(checksum);
  say(text);
  return publish("result", text);
}

bool MessageFiles::told_to_go() const { return ::access(path("go").c_str(), F_OK) == 0; }

bool MessageFiles::take_beat() const { return ::unlink(path("beat").c_str()) == 0; }

int MessageFiles::fail(std::string_view message) const {
  say("failed: " + std::string(message));
  if (::access(path("state").c_str(), F_OK) != 0) (void)publish("state", "failed " + std::string(message));
  (void)publish("result", "FAILED " + std::string(message));
  return EXIT_FAILURE;
}

}  // namespace kfdtest
