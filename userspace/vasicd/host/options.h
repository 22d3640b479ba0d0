// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The command line of vasicd as values. The only user of CLI11 (and of exceptions, which stay inside options.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vasic/vasic_abi.h"

namespace vasicd {

inline constexpr int kExitUsage = 64;

struct Options {
  std::string dir;
  std::uint64_t ram_size = 0;
  std::uint64_t ram_low = 0;
  std::vector<vasic_info> gpus;
  std::string trace;    // empty: off
  std::string control;  // path of the control socket; empty: none
  bool once = false;
  bool die_with_parent = false;
};

// Either options, or what to print (out for stdout, error for stderr; each ends with a newline) and the exit status.
struct ParsedOptions {
  std::optional<Options> options;
  std::string out;
  std::string error;
  int exit_status = 0;
};

ParsedOptions parse_options(const std::vector<std::string>& arguments);

}  // namespace vasicd
