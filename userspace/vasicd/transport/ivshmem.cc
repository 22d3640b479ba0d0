// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Sockets and file descriptor passing.
#include "vasicd/transport/ivshmem.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace vasicd {
namespace {

constexpr std::int64_t kProtocolVersion = 0;
constexpr std::int64_t kMemoryFollows = -1;
constexpr int kBacklog = 4;
constexpr timeval kSendTimeout{.tv_sec = 2, .tv_usec = 0};
constexpr int kNoFd = -1;

static_assert(std::endian::native == std::endian::little, "the protocol is little endian");

// One message of the protocol: a number, perhaps with a file descriptor.
base::Status send_message(int socket, std::int64_t value, int fd) {
  iovec io{.iov_base = &value, .iov_len = sizeof(value)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &io;
  message.msg_iovlen = 1;
  if (fd != kNoFd) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof(int));
  }
  const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  if (sent < 0) return base::Error::from_errno(errno, "ivshmem handshake");
  if (sent != sizeof(value)) return base::Error(EPROTO, "ivshmem handshake: short write");
  return {};
}

base::Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return base::Error::from_errno(ENAMETOOLONG, path);
  path.copy(address.sun_path, path.size());
  return address;
}

}  // namespace

base::Result<Vectors> create_vectors() {
  Vectors vectors;
  for (auto& vector : vectors) {
    vector = base::UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!vector.valid()) return base::Error::from_errno(errno, "eventfd");
  }
  return vectors;
}

base::Status send_ivshmem_handshake(int socket, const IvshmemOffer& offer) {
  if (::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &kSendTimeout, sizeof(kSendTimeout)) != 0)
    return base::Error::from_errno(errno, "SO_SNDTIMEO");
  TRY(send_message(socket, kProtocolVersion, kNoFd));
  TRY(send_message(socket, VASIC_PEER_GUEST, kNoFd));
  TRY(send_message(socket, kMemoryFollows, offer.memory));
  for (const auto& vector : offer.host) TRY(send_message(socket, VASIC_PEER_HOST, vector.get()));
  for (const auto& vector : offer.guest) TRY(send_message(socket, VASIC_PEER_GUEST, vector.get()));
  return {};
}

base::Result<std::unique_ptr<IvshmemServer>> IvshmemServer::listen(std::string path) {
  ASSIGN_OR_RETURN(const sockaddr_un address, address_of(path));
  std::unique_ptr<IvshmemServer> server(new IvshmemServer(std::move(path)));
  const std::string& name = server->path_;
  server->listener_ = base::UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!server->listener_.valid()) return base::Error::from_errno(errno, name);

  struct stat existing {};
  if (::lstat(name.c_str(), &existing) == 0) {
    // Only a socket can be left over from an earlier vasicd; other files are not removed.
    if (!S_ISSOCK(existing.st_mode)) return base::Error(EEXIST, name + ": exists and is not a socket");
    if (::unlink(name.c_str()) != 0) return base::Error::from_errno(errno, name);
  }
  if (::bind(server->listener(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return base::Error::from_errno(errno, name);
  server->bound_ = true;
  if (::listen(server->listener(), kBacklog) != 0) return base::Error::from_errno(errno, name);
  return server;
}

IvshmemServer::~IvshmemServer() {
  if (bound_) ::unlink(path_.c_str());
}

base::Status IvshmemServer::accept(const IvshmemOffer& offer) {
  base::UniqueFd socket(::accept4(listener(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.valid()) {
    if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return {};
    return base::Error::from_errno(errno, path_);
  }
  if (client_.valid()) return base::Error(EBUSY, path_ + ": has a client already");
  if (auto sent = send_ivshmem_handshake(socket.get(), offer); !sent.ok()) return std::move(sent).error().wrap(path_);
  client_ = std::move(socket);
  return {};
}

bool IvshmemServer::client_gone() {
  if (!client_.valid()) return false;
  char byte = 0;
  const ssize_t got = ::recv(client(), &byte, sizeof(byte), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  // End of file, a reset, or data, which a client has no reason to send.
  client_.reset();
  return true;
}

}  // namespace vasicd
