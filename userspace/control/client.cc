// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Connecting, and lines.
#include "control/client.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <memory>
#include <thread>

namespace control {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* kPorts = "/sys/class/virtio-ports";
constexpr std::string_view kPortName = "vasic.control";
constexpr milliseconds kRetry{5};
constexpr std::size_t kMaxReplyLine = 64 * 1024;
constexpr std::string_view kErrorPrefix = "error: ";

base::Result<base::UniqueFd> connect_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return base::Error::from_errno(ENAMETOOLONG, path);
  path.copy(address.sun_path, path.size());
  base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return base::Error::from_errno(errno, path);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return base::Error::from_errno(errno, path);
  }
  if (::fcntl(fd.get(), F_SETFL, O_NONBLOCK) != 0) return base::Error::from_errno(errno, path);
  return fd;
}

base::Result<base::UniqueFd> open_port(const std::string& path, milliseconds timeout) {
  const auto end = steady_clock::now() + timeout;
  while (true) {
    base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    if (fd.valid()) return fd;
    if (errno != EBUSY || steady_clock::now() >= end) return base::Error::from_errno(errno, path);
    std::this_thread::sleep_for(kRetry);
  }
}

// Waits for `events`; false when the time is over.
base::Result<bool> wait_for(int fd, short events, milliseconds timeout) {
  pollfd wait{.fd = fd, .events = events, .revents = 0};
  const int ready = ::poll(&wait, 1, timeout.count() < 0 ? -1 : static_cast<int>(timeout.count()));
  if (ready < 0 && errno != EINTR) return base::Error::from_errno(errno, "poll");
  return ready > 0;
}

}  // namespace

base::Result<Client> Client::connect(const std::string& path, milliseconds timeout) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return base::Error::from_errno(errno, path);
  if (!S_ISCHR(info.st_mode)) {
    ASSIGN_OR_RETURN(base::UniqueFd fd, connect_socket(path));
    return Client(std::move(fd), timeout);
  }
  ASSIGN_OR_RETURN(base::UniqueFd fd, open_port(path, timeout));
  Client client(std::move(fd), timeout);
  if (auto skipped = client.skip_leftovers(); !skipped.ok()) return std::move(skipped).error().wrap(path);
  return client;
}

base::Result<Client> Client::connect_from_guest(milliseconds timeout) {
  const std::unique_ptr<DIR, int (*)(DIR*)> ports(::opendir(kPorts), ::closedir);
  while (const dirent* entry = ports ? ::readdir(ports.get()) : nullptr) {
    const std::string port = entry->d_name;
    std::string name;
    std::ifstream file(std::string(kPorts) + "/" + port + "/name");
    if (std::getline(file, name) && name == kPortName) return connect("/dev/" + port, timeout);
  }
  return base::Error(ENOENT, "no virtio-serial port " + std::string(kPortName));
}

base::Status Client::skip_leftovers() {
  const auto now = steady_clock::now().time_since_epoch().count();
  const std::string token = "echo " + std::to_string(::getpid()) + "-" + std::to_string(now);
  TRY(send("\n" + token));
  const auto end = steady_clock::now() + timeout_;
  while (true) {
    const auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now());
    ASSIGN_OR_RETURN(const std::string line, receive(std::max(left, milliseconds(0))));
    if (line == token) break;
  }
  return receive(timeout_).ok() ? base::Status() : base::Error(EPROTO, "no end of reply");
}

base::Status Client::send(std::string_view line) {
  std::string text = std::string(line) + "\n";
  const auto end = steady_clock::now() + timeout_;
  while (!text.empty()) {
    // Neither kind of connection raises SIGPIPE: a port never does, and a socket is asked not to.
    ssize_t sent = ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == ENOTSOCK) sent = ::write(fd_.get(), text.data(), text.size());
    if (sent >= 0) {
      text.erase(0, static_cast<std::size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return base::Error::from_errno(errno, "sending");
    const auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now());
    ASSIGN_OR_RETURN(const bool ready, wait_for(fd_.get(), POLLOUT, std::max(left, milliseconds(0))));
    if (!ready) return base::Error(ETIMEDOUT, "the server does not take the request");
  }
  return {};
}

base::Result<std::string> Client::receive(milliseconds timeout) {
  const auto end = steady_clock::now() + timeout;
  while (true) {
    if (const auto at = in_.find('\n'); at != std::string::npos) {
      std::string line = in_.substr(0, at);
      in_.erase(0, at + 1);
      return line;
    }
    if (in_.size() > kMaxReplyLine) return base::Error(EPROTO, "a line of the reply does not end");
    const auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now());
    ASSIGN_OR_RETURN(const bool ready,
                     wait_for(fd_.get(), POLLIN, timeout.count() < 0 ? timeout : std::max(left, milliseconds(0))));
    if (!ready) {
      if (timeout.count() >= 0 && steady_clock::now() >= end) return base::Error(ETIMEDOUT, "no reply in time");
      continue;
    }
    std::array<char, 4096> bytes;
    const ssize_t got = ::read(fd_.get(), bytes.data(), bytes.size());
    if (got == 0) return base::Error(ECONNRESET, "the server has closed the connection");
    if (got < 0 && errno != EAGAIN && errno != EINTR) return base::Error::from_errno(errno, "receiving");
    if (got > 0) in_.append(bytes.data(), static_cast<std::size_t>(got));
  }
}

base::Result<std::string> Client::request(std::string_view line) {
  TRY(send(line));
  std::string lines;
  while (true) {
    ASSIGN_OR_RETURN(const std::string reply, receive(timeout_));
    if (reply == "ok") return lines;
    if (reply.starts_with(kErrorPrefix)) return base::Error(EPERM, reply.substr(kErrorPrefix.size()));
    lines += reply + "\n";
  }
}

base::Status Client::stream(std::string_view line, const std::function<bool(std::string_view)>& take) {
  TRY(send(line));
  while (true) {
    ASSIGN_OR_RETURN(const std::string reply, receive(milliseconds(-1)));
    if (reply == "ok") return {};
    if (reply.starts_with(kErrorPrefix)) return base::Error(EPERM, reply.substr(kErrorPrefix.size()));
    if (!take(reply)) return {};
  }
}

}  // namespace control
