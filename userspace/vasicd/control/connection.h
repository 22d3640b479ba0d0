// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// One client of the control socket: its lines in and its bytes out, both bounded. Nothing here blocks.
// Does not know what a line means.
#pragma once

#include <optional>
#include <string>

#include "base/unique_fd.h"

namespace vasicd::control {

class Connection {
 public:
  // `fd` is a non-blocking stream socket.
  explicit Connection(base::UniqueFd fd) : fd_(std::move(fd)) {}

  [[nodiscard]] int fd() const { return fd_.get(); }
  // The events to poll for.
  [[nodiscard]] short events() const;

  // Reads as many bytes as the socket has and the buffer can take.
  void receive();
  // The next whole line, without its end. A line that is too long ends the connection after an error.
  std::optional<std::string> take_line();
  // Whether a line waits to be taken.
  [[nodiscard]] bool line_waits() const { return in_.find('\n') != std::string::npos; }

  void send(std::string_view text) { out_ += text; }
  void flush();
  [[nodiscard]] std::size_t unsent() const { return out_.size(); }

  // Whether every line has been taken and every byte of the replies has been sent.
  [[nodiscard]] bool finished() const { return out_.empty() && (closing_ || (end_ && !line_waits())); }
  // Whether the client has closed its sending side.
  [[nodiscard]] bool ended() const { return end_; }
  [[nodiscard]] bool broken() const { return broken_; }
  // Takes no more lines; replies that are not sent yet are still sent.
  void close_when_sent() { closing_ = true; }

 private:
  base::UniqueFd fd_;
  std::string in_;
  std::string out_;
  bool end_ = false;
  bool closing_ = false;
  bool broken_ = false;
};

}  // namespace vasicd::control
