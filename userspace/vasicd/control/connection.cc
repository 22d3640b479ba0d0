// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Reading lines from a socket and writing replies to it.
#include "vasicd/control/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "vasicd/control/command.h"

namespace vasicd::control {
namespace {

// Some lines may wait while a request is executed; more stay in the socket.
constexpr std::size_t kMaxWaiting = 4 * kMaxLine;

}  // namespace

short Connection::events() const {
  short events = 0;
  if (!end_ && !closing_ && in_.size() < kMaxWaiting) events |= POLLIN;
  if (!out_.empty()) events |= POLLOUT;
  return events;
}

void Connection::receive() {
  if (end_ || closing_ || in_.size() >= kMaxWaiting) return;
  std::array<char, kMaxWaiting> bytes;
  const ssize_t got = ::recv(fd(), bytes.data(), kMaxWaiting - in_.size(), MSG_DONTWAIT);
  if (got > 0) {
    in_.append(bytes.data(), static_cast<std::size_t>(got));
  } else if (got == 0) {
    end_ = true;
  } else if (errno != EAGAIN && errno != EINTR) {
    broken_ = true;
  }
}

std::optional<std::string> Connection::take_line() {
  if (closing_ || broken_) return std::nullopt;
  const auto end = in_.find('\n');
  if (end == std::string::npos ? in_.size() > kMaxLine : end > kMaxLine) {
    send("error: line is longer than " + std::to_string(kMaxLine) + " bytes\n");
    close_when_sent();
    in_.clear();
    return std::nullopt;
  }
  if (end == std::string::npos) return std::nullopt;
  std::string line = in_.substr(0, end);
  in_.erase(0, end + 1);
  return line;
}

void Connection::flush() {
  while (!out_.empty() && !broken_) {
    const ssize_t sent = ::send(fd(), out_.data(), out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      broken_ = errno != EAGAIN && errno != EINTR;
      return;
    }
    out_.erase(0, static_cast<std::size_t>(sent));
  }
}

}  // namespace vasicd::control
