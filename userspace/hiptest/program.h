// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A program: what it computes on the GPU, the same by the CPU, and how close both are. Its input is the same each time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace hiptest {

class Program {
 public:
  virtual ~Program() = default;
  // Allocates and fills memory of the current device.
  virtual base::Status prepare() = 0;
  // From the same input each time; waits for the result.
  virtual base::Result<std::vector<double>> run() = 0;
  [[nodiscard]] virtual std::vector<double> reference() const = 0;
  // Of each value, relative to the larger of it and 1; 0: bit for bit.
  [[nodiscard]] virtual double tolerance() const { return 0; }
};

[[nodiscard]] const std::vector<std::string>& program_names();
// Precondition: one of program_names().
[[nodiscard]] std::unique_ptr<Program> make_program(const std::string& name);

}  // namespace hiptest
