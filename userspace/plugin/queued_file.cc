// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The socket is one end of a pair, whose other end is closed as soon as the message is sent: messages stay in the queue
// of the end that receives them. No limit is near, because each queue has one message of one byte.
#include "plugin/queued_file.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/os.h"

namespace plugin {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

struct Message {
  Message() {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
};

}  // namespace

Result<UniqueFd> queue_file(int file) {
  std::array<int, 2> pair{-1, -1};
  if (os::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair.data()) < 0)
    return Error::from_errno(errno, "socketpair");
  const UniqueFd sender(pair[0]);
  UniqueFd receiver(pair[1]);
  Message message;
  cmsghdr* control = CMSG_FIRSTHDR(&message.header);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(control), &file, sizeof(file));
  if (os::sendmsg(sender.get(), &message.header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
    return Error::from_errno(errno, "sending a descriptor");
  return receiver;
}

Result<UniqueFd> queued_file(int socket) {
  Message message;
  if (os::recvmsg(socket, &message.header, MSG_PEEK | MSG_CMSG_CLOEXEC | MSG_DONTWAIT) < 0)
    return Error::from_errno(errno, "receiving a descriptor");
  const cmsghdr* control = CMSG_FIRSTHDR(&message.header);
  // The kernel leaves out a descriptor for which this process has no number.
  if (control == nullptr || control->cmsg_type != SCM_RIGHTS)
    return Error(EMFILE, "receiving a descriptor: this process may have no more of them");
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(control), sizeof(fd));
  return UniqueFd(fd);
}

Status empty_queue(int socket) {
  Message message;
  // Without room for a descriptor the kernel drops the file, so that this process needs no number for it.
  message.header.msg_control = nullptr;
  message.header.msg_controllen = 0;
  while (os::recvmsg(socket, &message.header, MSG_DONTWAIT) >= 0) {
  }
  if (errno == EAGAIN) return {};
  return Error::from_errno(errno, "emptying the queue of a socket");
}

}  // namespace plugin
