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

namespace base {

union FileControl {
  cmsghdr head;  // for the alignment
  char bytes[CMSG_SPACE(sizeof(int))];
};

inline msghdr file_message(iovec& part, FileControl& control) {
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof(control.bytes);
  return message;
}

inline Status send_file(int socket, int file) {
  char byte = 0;
  iovec part{&byte, 1};
  FileControl control{};
  const msghdr message = file_message(part, control);
  control.head.cmsg_level = SOL_SOCKET;
  control.head.cmsg_type = SCM_RIGHTS;
  control.head.cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(&control.head), &file, sizeof(file));
  if (::sendmsg(socket, &message, 0) != 1) return Error::from_errno(errno, "sendmsg");
  return {};
}

inline Result<UniqueFd> receive_file(int socket) {
  char byte = 0;
  iovec part{&byte, 1};
  FileControl control{};
  msghdr message = file_message(part, control);
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) return Error::from_errno(errno, "recvmsg");
  if (message.msg_controllen < CMSG_LEN(sizeof(int))) return Error(EPROTO, "no file in the message");
  int file = -1;
  std::memcpy(&file, CMSG_DATA(&control.head), sizeof(file));
  return UniqueFd(file);
}

}  // namespace base
