// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// One layer of a transformer, with weights that a formula makes: layer norm, attention of several heads, projection,
// layer norm, two matrices with GELU between them.
#pragma once

#include <memory>

#include "hiptest/program.h"

namespace hiptest {

[[nodiscard]] std::unique_ptr<Program> make_transformer();

}  // namespace hiptest
