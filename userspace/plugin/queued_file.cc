// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The socket is one end of a pair, whose other end is closed as soon as the message is sent: messages stay in the queue
// of the end that receives them. No limit is near, because each queue has one message of one byte. A message counts
// with the memory that the kernel needs for it (768 bytes on 64 bits), however many descriptors it has.
#include "plugin/queued_file.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "base/os.h"

namespace plugin {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

// With room for as many descriptors as the kernel sends at once.
struct Message {
  Message() {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  void put(std::span<const int> files) {
    header.msg_controllen = CMSG_SPACE(files.size_bytes());
    cmsghdr* const first = CMSG_FIRSTHDR(&header);
    first->cmsg_level = SOL_SOCKET;
    first->cmsg_type = SCM_RIGHTS;
    first->cmsg_len = CMSG_LEN(files.size_bytes());
    std::memcpy(CMSG_DATA(first), files.data(), files.size_bytes());
  }

  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxQueuedFiles * sizeof(int))> control{};
  msghdr header{};
};

struct Pair {
  UniqueFd sender;
  UniqueFd receiver;
};

Result<Pair> make_pair() {
  std::array<int, 2> pair{-1, -1};
  if (os::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair.data()) < 0)
    return Error::from_errno(errno, "socketpair");
  return Pair{UniqueFd(pair[0]), UniqueFd(pair[1])};
}

}  // namespace

Result<UniqueFd> queue_files(std::span<const int> files) {
  ASSIGN_OR_RETURN(Pair pair, make_pair());
  Message message;
  message.put(files);
  if (os::sendmsg(pair.sender.get(), &message.header, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
    return Error::from_errno(errno, "sending descriptors");
  return std::move(pair.receiver);
}

Result<std::vector<UniqueFd>> queued_files(int socket) {
  Message message;
  if (os::recvmsg(socket, &message.header, MSG_PEEK | MSG_CMSG_CLOEXEC | MSG_DONTWAIT) < 0)
    return Error::from_errno(errno, "receiving descriptors");
  std::vector<UniqueFd> files;
  const cmsghdr* control = CMSG_FIRSTHDR(&message.header);
  if (control != nullptr && control->cmsg_type == SCM_RIGHTS) {
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= control->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, reinterpret_cast<const char*>(control) + at, sizeof(fd));
      files.emplace_back(fd);
    }
  }
  // The kernel leaves out those for which this process has no number.
  if (files.empty() || (message.header.msg_flags & MSG_CTRUNC) != 0)
    return Error(EMFILE, "receiving descriptors: this process may have no more of them");
  return files;
}

Status empty_queue(int socket) {
  Message message;
  // Without room for a descriptor the kernel drops the files, so that this process needs no numbers for them.
  message.header.msg_control = nullptr;
  message.header.msg_controllen = 0;
  while (os::recvmsg(socket, &message.header, MSG_DONTWAIT) >= 0) {
  }
  if (errno == EAGAIN) return {};
  return Error::from_errno(errno, "emptying the queue of a socket");
}

Result<std::size_t> queue_capacity(std::size_t wanted) {
  ASSIGN_OR_RETURN(const Pair pair, make_pair());
  const UniqueFd file(os::open("/", O_PATH | O_CLOEXEC));
  if (!file.valid()) return Error::from_errno(errno, "opening /");
  const int size = INT_MAX / 2;  // the kernel doubles it
  if (os::setsockopt(pair.sender.get(), SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) != 0 &&
      os::setsockopt(pair.sender.get(), SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) != 0)
    return Error::from_errno(errno, "enlarging the queue of a socket");
  Message message;
  const int number = file.get();
  message.put(std::span(&number, 1));
  std::size_t sent = 0;
  while (sent < wanted && os::sendmsg(pair.sender.get(), &message.header, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) ++sent;
  if (sent == wanted || errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS) return std::size_t{sent};
  return Error::from_errno(errno, "sending descriptors");
}

}  // namespace plugin
