// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The command line of kfd-criu as values. The only user of CLI11 (and of exceptions, which stay inside options.cc).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace kfd_criu {

// Exit statuses, which are part of the interface: kfd-criu(1).
enum class Exit { kGood = 0, kDiffers = 1, kUnreadable = 2, kUsage = 64 };

enum class Command { kShow, kVerify, kDiff, kTopology, kFlatten };

struct Options {
  Command command = Command::kShow;
  std::string directory;   // with images; empty for `topology` of this machine only
  std::string other;       // the second one of `diff`
  std::string root = "/";  // folder with the sys and dev of the machine that `topology` is about
  bool json = false;
  bool every_bo = false;  // `show` lists each BO
  bool timing = false;    // `show` says how long the dump took
};

// Either options, or what to print (out for stdout, error for stderr; each ends with a newline) and the exit status.
struct ParsedOptions {
  std::optional<Options> options;
  std::string out;
  std::string error;
  Exit status = Exit::kGood;
};

ParsedOptions parse_options(const std::vector<std::string>& arguments);

}  // namespace kfd_criu
