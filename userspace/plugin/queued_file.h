// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Open files in the queue of a socket without a name. Tasks of a restore that have the socket get descriptors of the
// files until one of them empties the queue; from then on the socket refers to no file, however long it stays open.
// CRIU keeps what it is given until it ends, so it is given such a socket and not the files.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace plugin {

// The kernel sends no more of them in one message (SCM_MAX_FD).
inline constexpr std::size_t kMaxQueuedFiles = 253;

// A socket with `files` in its queue, at most kMaxQueuedFiles. They stay the caller's.
base::Result<base::UniqueFd> queue_files(std::span<const int> files);

// Descriptors of the files in the queue, in their order. They stay there.
base::Result<std::vector<base::UniqueFd>> queued_files(int socket);

// Takes everything out of the queue. An empty queue is no failure.
base::Status empty_queue(int socket);

// How many messages with a descriptor, up to `wanted`, fit into the queue of a socket that this process enlarges as
// CRIU enlarges that of its fdstore: without a limit with CAP_NET_ADMIN, else to net.core.wmem_max.
base::Result<std::size_t> queue_capacity(std::size_t wanted);

}  // namespace plugin
