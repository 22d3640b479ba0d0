// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The server side of QEMU's ivshmem-doorbell protocol (version 0) for one device: one client at a time on a UNIX
// socket. The client receives the BAR2 memory and the eventfds of both directions; afterwards the server only watches
// for its end. Does not know what is in the memory.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "vasic/vasic_abi.h"

namespace vasicd {

// One eventfd per vector; non-blocking.
using Vectors = std::array<base::UniqueFd, VASIC_VECTORS>;
base::Result<Vectors> create_vectors();

// What the client receives.
struct IvshmemOffer {
  int memory = -1;
  const Vectors& host;   // guest -> host
  const Vectors& guest;  // host -> guest
};

// Speaks the handshake on a connected socket. Bounded in time, whatever the client does.
base::Status send_ivshmem_handshake(int socket, const IvshmemOffer& offer);

// A listening socket whose path exists as long as this object.
class IvshmemServer {
 public:
  // Replaces a socket that a dead process left behind; the caller holds the directory's lock.
  static base::Result<std::unique_ptr<IvshmemServer>> listen(std::string path);
  ~IvshmemServer();
  IvshmemServer(const IvshmemServer&) = delete;
  IvshmemServer& operator=(const IvshmemServer&) = delete;

  [[nodiscard]] int listener() const { return listener_.get(); }
  // -1 while there is no client.
  [[nodiscard]] int client() const { return client_.get(); }

  // Accepts one connection. If there is a client already, the new connection is closed at once. An error concerns this
  // connection only.
  base::Status accept(const IvshmemOffer& offer);
  // Whether the client has disconnected or sent data; if so, its connection is closed. Does not block.
  bool client_gone();

 private:
  explicit IvshmemServer(std::string path) : path_(std::move(path)) {}

  std::string path_;
  bool bound_ = false;
  base::UniqueFd listener_;
  base::UniqueFd client_;
};

}  // namespace vasicd
