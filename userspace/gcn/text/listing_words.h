// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Dwords to try a decoder with, for isa_listing_test.cc.
#pragma once

#include <array>
#include <optional>
#include <random>
#include <vector>

#include "gcn/isa/op.h"

namespace gcn::listing {

struct Candidate {
  Encoding encoding;
  std::optional<Op> op;  // what it was made for; nothing: at random
  unsigned count;        // dwords, 1 or 2
  std::array<std::uint32_t, 2> words;
};

// For each row of opcodes.inc that `isa` has: plain forms, and such with some bits changed. For each encoding: numbers
// and fields at random.
std::vector<Candidate> candidates(Isa isa, std::mt19937& random);

}  // namespace gcn::listing
