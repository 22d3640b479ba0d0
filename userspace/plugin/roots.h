// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Where the plugin finds the operating system's files, so that tests bring their own.
#pragma once

#include <string>

namespace plugin {

struct Roots {
  std::string sys = "/sys";
  std::string dev = "/dev";
  std::string proc = "/proc";
};

}  // namespace plugin
