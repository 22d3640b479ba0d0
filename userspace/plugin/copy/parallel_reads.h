// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Reads BOs of several GPUs at once, by one thread: while it hands on what one GPU has read, the others read.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "plugin/copy/copier.h"

namespace plugin::copy {

// A BO, and where its contents go. The DMA-buf is closed as soon as the copier has begun to read it.
struct Read {
  base::UniqueFd dmabuf;
  std::uint64_t size = 0;
  std::string name;  // that of the BO in errors
  Sink sink;
};

class ParallelReads {
 public:
  // The next BO; nothing after the last one. It is asked for one when the copier has begun to read all of those before.
  using Next = std::function<base::Result<std::optional<Read>>()>;

  // `copier` (borrowed) reads what `next` answers, in this order. What other copiers read comes in between.
  void add(Copier& copier, Next next) { lanes_.push_back({&copier, std::move(next), 0}); }

  // Reads all. The copiers take turns, in each of which one begins about as many bytes as a slice has. After a failure,
  // which begins with the name of a BO, sinks are asked to settle when the copiers end, and are given nothing more.
  base::Status run();

 private:
  struct Lane {
    Copier* copier;
    Next next;
    std::uint64_t left;  // bytes of the BO that is being read which are not begun
  };

  // Whether the lane has ended.
  static base::Result<bool> take_turn(Lane& lane);

  std::vector<Lane> lanes_;
};

}  // namespace plugin::copy
