// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// kfd-criu, the program.
#include <iostream>

#include "kfd-criu/run.h"

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  return static_cast<int>(
      kfd_criu::run(std::vector<std::string>(argv + 1, argv + argc), {.out = std::cout, .error = std::cerr}));
}
