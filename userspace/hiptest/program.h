// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// A program: a computation on the GPU, its reference on the CPU, and the tolerance between both. Every run has an equal
// input.
#pragma once

#include <vector>

#include "base/result.h"

namespace hiptest {

class Program {
 public:
  virtual ~Program() = default;
  // Allocates and fills memory of the current device.
  virtual base::Status prepare() = 0;
  // Computes on the GPU from the input that prepare() made, and waits for the result.
  virtual base::Result<std::vector<double>> run() = 0;
  [[nodiscard]] virtual std::vector<double> reference() const = 0;
  // The permitted error of each value v, relative to max(|v|, 1). With 0 the results must be equal bit for bit.
  [[nodiscard]] virtual double tolerance() const { return 0; }
};

}  // namespace hiptest
