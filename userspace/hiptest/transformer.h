// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// One layer of a transformer, with weights that a formula makes: layer norm, attention of several heads, projection,
// layer norm, two matrices with GELU between them.
#pragma once

#include <cstdint>
#include <memory>

#include "hiptest/program.h"

namespace hiptest {

class Transformer : public Program {
 public:
  // Launches the layer. With a gate its softmax waits, in the middle, until that is not 0.
  virtual base::Status begin(const std::uint32_t* gate) = 0;
  // Waits for what was begun.
  virtual base::Result<std::vector<double>> end() = 0;
};

[[nodiscard]] std::unique_ptr<Transformer> make_transformer();

}  // namespace hiptest
