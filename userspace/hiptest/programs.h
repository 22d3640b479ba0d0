// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// All programs by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hiptest/program.h"

namespace hiptest {

[[nodiscard]] const std::vector<std::string>& program_names();
// Precondition: one of program_names().
[[nodiscard]] std::unique_ptr<Program> make_program(const std::string& name);

}  // namespace hiptest
