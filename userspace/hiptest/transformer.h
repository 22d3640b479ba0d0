// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// One layer of a transformer, whose weights come from seeds: layer norm, attention of several heads, projection,
// layer norm, two matrices with GELU between them.
#pragma once

#include <cstdint>
#include <memory>

#include "hiptest/program.h"

namespace hiptest {

class Transformer : public Program {
 public:
  // Launches the layer. If `gate` is not null, its softmax waits in the middle until the gate's value is not 0.
  virtual base::Status begin(const std::uint32_t* gate) = 0;
  // Waits for the layer that begin() launched and returns its result.
  virtual base::Result<std::vector<double>> end() = 0;
};

[[nodiscard]] std::unique_ptr<Transformer> make_transformer();

}  // namespace hiptest
