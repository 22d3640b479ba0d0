// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Files in the folder of a program, by which its processes tell each other, and the test, how far they are.
#pragma once

#include <fstream>
#include <string>

#include "kfdtest-criu/demo/command_line.h"

namespace fieldtest {

// The first line of the file, which is empty until somebody has written it.
inline std::string first_line(const kfdtest::CommandLine& program, const std::string& name) {
  std::ifstream file(program.folder() + "/" + name);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace fieldtest
