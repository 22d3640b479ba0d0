// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The dwords with which isa_listing_test.cc tries the decoder.
#pragma once

#include <array>
#include <optional>
#include <random>
#include <vector>

#include "gcn/isa/op.h"

namespace gcn::listing {

struct Candidate {
  Encoding encoding;
  std::optional<Op> op;  // the operation that the dwords were made for; nothing if they are random
  unsigned count;        // dwords, 1 or 2
  std::array<std::uint32_t, 2> words;
};

// Returns for each row of opcodes.inc that `isa` has plain forms and forms with some bits changed, and for each
// encoding dwords with random opcodes and fields.
std::vector<Candidate> candidates(Isa isa, std::mt19937& random);

}  // namespace gcn::listing
