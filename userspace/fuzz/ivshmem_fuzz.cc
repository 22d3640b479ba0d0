// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The ivshmem server against clients that connect, send, half-close and vanish in any order: at most one is served,
// and after all of them have gone a proper client gets its handshake.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "fuzz/input.h"
#include "vasicd/shm/region.h"
#include "vasicd/transport/ivshmem.h"

namespace {

using fuzz::check;

constexpr std::size_t kClients = 3;
constexpr unsigned kMaxActions = 64;

template <typename T>
T must(base::Result<T> result) {
  check(result.ok(), "set-up works");
  return std::move(result).value();
}

struct Server {
  std::string path = "/tmp/vasicd-fuzz-" + std::to_string(::getpid()) + ".sock";
  vasicd::SharedMemory memory = must(vasicd::SharedMemory::create(4096, "fuzz"));
  vasicd::Vectors host = must(vasicd::create_vectors());
  vasicd::Vectors guest = must(vasicd::create_vectors());
  std::unique_ptr<vasicd::IvshmemServer> server = must(vasicd::IvshmemServer::listen(path));

  [[nodiscard]] vasicd::IvshmemOffer offer() const { return {.memory = memory.fd.get(), .host = host, .guest = guest}; }
};

base::UniqueFd connect_to(const std::string& path) {
  base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) fd.reset();
  return fd;
}

// How many bytes of a handshake wait to be read.
std::size_t drain(int fd) {
  std::array<char, 256> bytes;
  std::size_t total = 0;
  for (ssize_t n; (n = ::recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT)) > 0;) total += static_cast<std::size_t>(n);
  return total;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  static Server server;
  std::array<base::UniqueFd, kClients> clients;
  for (unsigned i = 0; i < kMaxActions && !in.empty(); ++i) {
    base::UniqueFd& client = clients[in.below(kClients)];
    switch (in.below(6)) {
      case 0:
        if (!client.valid()) client = connect_to(server.path);
        break;
      case 1:
        client.reset();
        break;
      case 2:
        if (client.valid()) {
          const auto bytes = in.bytes(in.u8());
          (void)::send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        }
        break;
      case 3:
        if (client.valid()) ::shutdown(client.get(), in.flag() ? SHUT_WR : SHUT_RD);
        break;
      case 4:
        (void)server.server->client_gone();
        break;
      default:
        (void)server.server->accept(server.offer());
        break;
    }
  }
  for (auto& client : clients) client.reset();
  // Clients that still wait in the backlog have disconnected too; each is accepted once and dropped.
  for (unsigned i = 0; i <= kMaxActions; ++i) {
    (void)server.server->client_gone();
    (void)server.server->accept(server.offer());
  }
  (void)server.server->client_gone();
  check(server.server->client() < 0, "nobody is served when all have gone");
  const base::UniqueFd proper = connect_to(server.path);
  check(proper.valid() && server.server->accept(server.offer()).ok() && server.server->client() >= 0,
        "a proper client is served after bad ones");
  constexpr std::size_t kMessages = 3 + 2 * VASIC_VECTORS;  // version, id, memory, vectors of both
  check(drain(proper.get()) >= kMessages * sizeof(std::int64_t), "a proper client gets its handshake");
  return 0;
}
