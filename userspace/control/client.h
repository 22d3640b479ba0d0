// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The client side of vasicd's control socket (userspace/vasicd/control/README.md), for vasicctl on the host and for
// tests in the guest, which reach the same socket through a virtio-serial port. Does not know any command.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace control {

inline constexpr std::chrono::seconds kDefaultTimeout{10};

class Client {
 public:
  // `path` is a UNIX socket, or a character device: a port, which one process at a time may have open (others wait for
  // their turn, up to the time limit). Replies to the process that used the port before are skipped.
  static base::Result<Client> connect(const std::string& path, std::chrono::milliseconds timeout = kDefaultTimeout);
  // The port of the guest that scripts/vm.sh runs; fails with ENOENT where there is none.
  static base::Result<Client> connect_from_guest(std::chrono::milliseconds timeout = kDefaultTimeout);

  // Sends one line; the lines of the reply, each with its end, without the last one, "ok". A refusal is an error with
  // code EPERM whose message is what the server said; other errors are about the connection.
  base::Result<std::string> request(std::string_view line);

  // Sends one line and hands each line of the reply to `take`, without a time limit, until the reply ends or `take`
  // returns false; after that the connection is of no more use.
  base::Status stream(std::string_view line, const std::function<bool(std::string_view)>& take);

 private:
  Client(base::UniqueFd fd, std::chrono::milliseconds timeout) : fd_(std::move(fd)), timeout_(timeout) {}

  base::Status send(std::string_view line);
  // The next line, without its end. A negative time limit is none.
  base::Result<std::string> receive(std::chrono::milliseconds timeout);
  base::Status skip_leftovers();

  base::UniqueFd fd_;
  std::chrono::milliseconds timeout_;
  std::string in_;
};

}  // namespace control
