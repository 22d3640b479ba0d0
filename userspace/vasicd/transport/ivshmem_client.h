// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// For tests: the client side of the ivshmem-doorbell protocol, as QEMU does it.
#pragma once

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace vasicd {

struct IvshmemMessage {
  std::int64_t value = 0;
  base::UniqueFd fd;
};

// The next message; nothing at the end of the stream or after ten seconds.
inline std::optional<IvshmemMessage> receive_ivshmem(int socket) {
  constexpr timeval kDeadline{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &kDeadline, sizeof(kDeadline));
  IvshmemMessage received;
  iovec io{.iov_base = &received.value, .iov_len = sizeof(received.value)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &io;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  if (::recvmsg(socket, &message, MSG_WAITALL) != sizeof(received.value)) return std::nullopt;
  if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    received.fd = base::UniqueFd(fd);
  }
  return received;
}

// All messages of the handshake; empty if the server closes the connection before the last one.
inline std::vector<IvshmemMessage> receive_handshake(int socket) {
  constexpr int kMessages = 3 + 2 * 2;
  std::vector<IvshmemMessage> messages;
  for (int i = 0; i < kMessages; ++i) {
    auto message = receive_ivshmem(socket);
    if (!message) return {};
    messages.push_back(std::move(*message));
  }
  return messages;
}

inline base::UniqueFd connect_ivshmem(const std::string& path) {
  base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) socket.reset();
  return socket;
}

}  // namespace vasicd
