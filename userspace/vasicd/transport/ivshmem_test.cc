// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The ivshmem-doorbell server against a client that does what QEMU does.
#include "vasicd/transport/ivshmem.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "vasicd/transport/ivshmem_client.h"

namespace vasicd::ivshmem_test {

struct IvshmemTest : testing::Test {
  std::string dir = testing::TempDir() + "/ivshmem-XXXXXX";
  std::string path;
  base::UniqueFd memory{::memfd_create("test", MFD_CLOEXEC)};
  Vectors host = std::move(create_vectors()).value();
  Vectors guest = std::move(create_vectors()).value();
  IvshmemOffer offer{memory.get(), host, guest};

  void SetUp() override {
    ASSERT_NE(::mkdtemp(dir.data()), nullptr);
    path = dir + "/gpu0.sock";
  }
  void TearDown() override {
    ::unlink(path.c_str());
    ::rmdir(dir.c_str());
  }
  bool exists() const {
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0;
  }
};

// Whether two descriptors are the same open eventfd: what is written to one can be read from the other.
bool same_eventfd(int a, int b) {
  eventfd_t value = 0;
  return ::eventfd_write(a, 3) == 0 && ::eventfd_read(b, &value) == 0 && value == 3;
}

TEST_F(IvshmemTest, the_handshake_is_version_id_memory_host_vectors_own_vectors) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const base::UniqueFd server(pair[0]);
  const base::UniqueFd client(pair[1]);
  ASSERT_TRUE(send_ivshmem_handshake(server.get(), offer).ok());
  const auto messages = receive_handshake(client.get());
  ASSERT_EQ(messages.size(), 7u);
  const std::int64_t values[] = {0, VASIC_PEER_GUEST, -1, 0, 0, 1, 1};
  for (std::size_t i = 0; i < messages.size(); ++i) {
    EXPECT_EQ(messages[i].value, values[i]) << i;
    EXPECT_EQ(messages[i].fd.valid(), i >= 2) << i;
  }
  struct stat theirs {
  }, ours{};
  ASSERT_EQ(::fstat(messages[2].fd.get(), &theirs), 0);
  ASSERT_EQ(::fstat(memory.get(), &ours), 0);
  EXPECT_EQ(theirs.st_ino, ours.st_ino);
  for (std::size_t vector = 0; vector < VASIC_VECTORS; ++vector) {
    EXPECT_TRUE(same_eventfd(messages[3 + vector].fd.get(), host[vector].get()));
    EXPECT_TRUE(same_eventfd(messages[5 + vector].fd.get(), guest[vector].get()));
  }
}

TEST_F(IvshmemTest, a_peer_that_hangs_up_during_the_handshake_is_an_error_not_a_signal) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const base::UniqueFd server(pair[0]);
  ::close(pair[1]);
  EXPECT_FALSE(send_ivshmem_handshake(server.get(), offer).ok());
}

TEST_F(IvshmemTest, a_client_is_served_and_its_end_is_noticed) {
  auto server = std::move(IvshmemServer::listen(path)).value();
  auto client = connect_ivshmem(path);
  ASSERT_TRUE(server->accept(offer).ok());
  EXPECT_GE(server->client(), 0);
  EXPECT_EQ(receive_handshake(client.get()).size(), 7u);
  EXPECT_FALSE(server->client_gone());
  client.reset();
  EXPECT_TRUE(server->client_gone());
  EXPECT_EQ(server->client(), -1);
  EXPECT_FALSE(server->client_gone()) << "reported once";
}

TEST_F(IvshmemTest, a_second_client_is_turned_away_and_the_first_not_disturbed) {
  auto server = std::move(IvshmemServer::listen(path)).value();
  const auto first = connect_ivshmem(path);
  ASSERT_TRUE(server->accept(offer).ok());
  const auto second = connect_ivshmem(path);
  EXPECT_FALSE(server->accept(offer).ok());
  EXPECT_TRUE(receive_handshake(second.get()).empty());
  EXPECT_FALSE(server->client_gone());
}

TEST_F(IvshmemTest, a_client_that_talks_is_dropped) {
  auto server = std::move(IvshmemServer::listen(path)).value();
  const auto client = connect_ivshmem(path);
  ASSERT_TRUE(server->accept(offer).ok());
  ASSERT_EQ(::send(client.get(), "x", 1, MSG_NOSIGNAL), 1);
  EXPECT_TRUE(server->client_gone());
}

TEST_F(IvshmemTest, accept_without_a_connection_does_nothing) {
  auto server = std::move(IvshmemServer::listen(path)).value();
  EXPECT_TRUE(server->accept(offer).ok());
  EXPECT_EQ(server->client(), -1);
}

TEST_F(IvshmemTest, the_socket_file_lives_as_long_as_the_server) {
  auto server = std::move(IvshmemServer::listen(path)).value();
  EXPECT_TRUE(exists());
  server.reset();
  EXPECT_FALSE(exists());
}

TEST_F(IvshmemTest, a_stale_socket_is_replaced) {
  {
    base::UniqueFd stale(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    ASSERT_EQ(::bind(stale.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  ASSERT_TRUE(exists());
  auto server = IvshmemServer::listen(path);
  ASSERT_TRUE(server.ok());
  EXPECT_TRUE(connect_ivshmem(path).valid());
}

TEST_F(IvshmemTest, a_file_that_is_no_socket_is_left_alone) {
  std::ofstream(path) << "precious";
  EXPECT_FALSE(IvshmemServer::listen(path).ok());
  EXPECT_TRUE(exists());
}

TEST_F(IvshmemTest, a_path_too_long_for_a_socket_is_an_error) {
  EXPECT_FALSE(IvshmemServer::listen(dir + "/" + std::string(200, 'x')).ok());
}

}  // namespace vasicd::ivshmem_test
