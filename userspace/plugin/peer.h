// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Another task of the restore, which this one waits for.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"

namespace plugin {

class Peer {
 public:
  // `what` it does for this task, for the error: "which allocates it".
  static base::Result<Peer> find(std::uint32_t pid, std::string_view what);

  // Waits a moment; false when it has ended, even if its parent does not know yet.
  [[nodiscard]] bool is_alive() const;

 private:
  explicit Peer(base::UniqueFd pidfd) : pidfd_(std::move(pidfd)) {}

  base::UniqueFd pidfd_;  // invalid: it had ended
};

}  // namespace plugin
