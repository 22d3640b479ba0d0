// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Processes that share memory of GPUs, or have descriptors of it, in one of several shapes. Before the checkpoint each
// memory gets contents; after it each process checks them with its GPU, then all write one after the other with their
// GPUs, and all others have to see it. The result is the same for all shapes and times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kfdtest-criu/demo/command_line.h"

namespace fieldtest {

inline constexpr std::uint64_t kMaxTimes = 1000;

// A process gives memory to another one. Whoever is the first giver of a memory allocates it.
struct Gift {
  std::size_t memory;
  std::size_t from;
  std::size_t to;
};

struct Shape {
  std::string_view name;
  std::size_t members;  // processes; number 0 is the parent of the others
  std::vector<Gift> gifts;
  bool owner_frees = false;       // whoever allocated a memory frees it
  std::size_t ends = 0;           // this process ends before the checkpoint; 0: none
  bool uses_other_gpus = false;   // processes with odd numbers have the second GPU
  bool opens_one_gpu = false;     // no process has opened a GPU that it does not use
  bool keeps_dmabufs = false;     // givers and takers keep the descriptors, and look at the memory through them
  bool leaves_in_queue = false;   // takers receive the descriptors after the checkpoint
  bool has_plain_parent = false;  // process 0 has no GPU: it has descriptors of memory, and nothing else
  bool is_described = false;      // givers give the memory metadata, through a GEM handle that they close
};

// Words of the command line; each sets `chosen`.
[[nodiscard]] kfdtest::CommandLine::Words shape_words(const Shape*& chosen);

struct ShapeOptions {
  const kfdtest::CommandLine& line;
  const Shape& shape;
  std::uint64_t times;  // copies of each memory
};

// The whole program, with all of its processes.
[[nodiscard]] base::Status be_shape(const ShapeOptions& options, const kfdtest::MessageFiles& messages);

}  // namespace fieldtest
