// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Values without pointers, which processes of a program send each other through a stream socket.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <type_traits>

#include "base/result.h"
#include "base/unique_fd.h"

namespace fieldtest {

template <typename Value>
base::Status send_value(const base::UniqueFd& socket, const Value& value) {
  static_assert(std::is_trivially_copyable_v<Value>);
  if (::send(socket.get(), &value, sizeof(value), MSG_NOSIGNAL) == ssize_t{sizeof(value)}) return {};
  return base::Error::from_errno(errno, "send");
}

// EPIPE: the other process has ended.
template <typename Value>
base::Result<Value> receive_value(const base::UniqueFd& socket) {
  static_assert(std::is_trivially_copyable_v<Value>);
  Value value{};
  const ssize_t got = ::recv(socket.get(), &value, sizeof(value), MSG_WAITALL);
  if (got == ssize_t{sizeof(value)}) return value;
  return got < 0 ? base::Error::from_errno(errno, "recv") : base::Error(EPIPE, "the other process has ended");
}

}  // namespace fieldtest
