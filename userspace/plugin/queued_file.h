// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// An open file in the queue of a socket without a name. Tasks of a restore that have the socket get descriptors of the
// file until one of them empties the queue; from then on the socket refers to no file, however long it stays open.
// CRIU keeps what it is given until it ends, so it is given such a socket and not the file.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

namespace plugin {

// A socket with `file` in its queue. `file` stays the caller's.
base::Result<base::UniqueFd> queue_file(int file);

// A descriptor of the file in the queue, which stays there.
base::Result<base::UniqueFd> queued_file(int socket);

// Takes everything out of the queue. An empty queue is no failure.
base::Status empty_queue(int socket);

}  // namespace plugin
