// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
#include "plugin/peer.h"

#include <poll.h>

#include <cerrno>
#include <string>
#include <utility>

#include "base/os.h"

namespace plugin {
namespace {

constexpr int kPollMs = 1;

}  // namespace

base::Result<Peer> Peer::find(std::uint32_t pid, std::string_view what) {
  base::UniqueFd pidfd(os::pidfd_open(static_cast<pid_t>(pid), 0));
  if (!pidfd.valid() && errno != ESRCH)
    return base::Error::from_errno(errno, "watching process " + std::to_string(pid) + ", " + std::string(what));
  return Peer(std::move(pidfd));
}

bool Peer::is_alive() const {
  if (!pidfd_.valid()) return false;
  pollfd file{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
  return os::poll(&file, 1, kPollMs) == 0 || (file.revents & POLLIN) == 0;
}

}  // namespace plugin
