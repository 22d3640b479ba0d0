// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Passes an open file through a socket, with a byte.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/result.h"
#include "base/unique_fd.h"

namespace fieldtest {

union Control {
  cmsghdr head;  // for the alignment
  char bytes[CMSG_SPACE(sizeof(int))];
};

inline msghdr message_of(iovec& part, Control& control) {
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof(control.bytes);
  return message;
}

inline base::Status send_file(int socket, int file) {
  char byte = 0;
  iovec part{&byte, 1};
  Control control{};
  const msghdr message = message_of(part, control);
  control.head.cmsg_level = SOL_SOCKET;
  control.head.cmsg_type = SCM_RIGHTS;
  control.head.cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(&control.head), &file, sizeof(file));
  if (::sendmsg(socket, &message, 0) != 1) return base::Error::from_errno(errno, "sendmsg");
  return {};
}

inline base::Result<base::UniqueFd> receive_file(int socket) {
  char byte = 0;
  iovec part{&byte, 1};
  Control control{};
  msghdr message = message_of(part, control);
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) return base::Error::from_errno(errno, "recvmsg");
  if (message.msg_controllen < CMSG_LEN(sizeof(int))) return base::Error(EPROTO, "no file in the message");
  int file = -1;
  std::memcpy(&file, CMSG_DATA(&control.head), sizeof(file));
  return base::UniqueFd(file);
}

}  // namespace fieldtest
