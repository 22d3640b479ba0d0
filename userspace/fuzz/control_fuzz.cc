// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The control socket's side of one client: bytes in pieces become lines, lines become requests. A refused line gets one
// line of reason; every value of an accepted request is within its bounds.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "fuzz/input.h"
#include "vasicd/control/command.h"
#include "vasicd/control/connection.h"

namespace {

using fuzz::check;
namespace control = vasicd::control;

void check_request(const control::Request& request) {
  if (request.gpu.has_value()) check(*request.gpu <= control::kMaxCount, "a GPU's number is bounded");
  if (const auto* step = std::get_if<control::Step>(&request.command); step != nullptr)
    check(step->packets >= 1 && step->packets <= control::kMaxSteps, "steps are bounded");
  if (const auto* drop = std::get_if<control::DropInterrupts>(&request.command); drop != nullptr)
    check(drop->count <= control::kMaxCount, "a count is bounded");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  std::array<int, 2> ends{};
  check(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0, "a socket pair");
  base::UniqueFd client(ends[0]);
  control::Connection connection{base::UniqueFd(ends[1])};
  while (!in.empty()) {
    const auto bytes = in.bytes(1u + in.u8());
    (void)::send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    connection.receive();
    while (const auto line = connection.take_line()) {
      check(line->size() <= control::kMaxLine && line->find('\n') == std::string::npos, "a line is a bounded line");
      const auto request = control::parse(*line);
      if (request.ok()) {
        check_request(*request);
        connection.send("ok\n");
      } else {
        const std::string& reason = request.error().message();
        check(!reason.empty() && reason.find('\n') == std::string::npos, "a refusal is one line");
        connection.send("error\n");
      }
    }
    connection.flush();
    std::array<char, 512> answer;
    while (::recv(client.get(), answer.data(), answer.size(), MSG_DONTWAIT) > 0) {
    }
  }
  client.reset();
  connection.receive();
  while (connection.take_line()) {
  }
  connection.flush();
  check(connection.finished() || connection.broken(), "a client that has gone is done with");
  return 0;
}
