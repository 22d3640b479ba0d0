// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The command line of vasicctl as values. The only user of CLI11 (and of exceptions, which stay inside options.cc).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace vasicctl {

inline constexpr int kExitRefused = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNoConnection = 3;

struct Options {
  std::string socket;  // empty: to be found
  std::string vm;      // name of a virtual machine of scripts/vm.sh
  std::optional<unsigned> gpu;
  double interval_s = 1;  // between two requests of --watch
  bool watch = false;     // repeat `status`
  std::string line;       // the request, without its end
};

// Either options, or what to print (out for stdout, error for stderr; each ends with a newline) and the exit status.
struct ParsedOptions {
  std::optional<Options> options;
  std::string out;
  std::string error;
  int exit_status = 0;
};

ParsedOptions parse_options(const std::vector<std::string>& arguments);

}  // namespace vasicctl
