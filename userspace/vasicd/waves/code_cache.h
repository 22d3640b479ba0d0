// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Decoded instructions of one worker. The words are read and compared each time, so code may change under it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gcn/decode/decode.h"
#include "gcn/execute.h"

namespace vasicd {

struct DecodedInstruction {
  std::array<std::uint32_t, 2> words = {};
  gcn::Handler handler = nullptr;  // nullptr: nothing executes it, or it is no instruction
  gcn::Instruction instruction;
};

class CodeCache {
 public:
  explicit CodeCache(gcn::Isa isa) : isa_(isa), entries_(kEntries) {}

  // The instruction at `pc`; nullptr: nothing is mapped there. Words that are no instruction have no handler. Valid
  // until the next call.
  const DecodedInstruction* at(gcn::Address pc, gcn::Memory& memory);

 private:
  static constexpr std::size_t kEntries = 8192;
  struct Entry {
    gcn::Address pc = ~gcn::Address{0};
    DecodedInstruction decoded;
  };

  bool fetch(gcn::Address pc, gcn::Memory& memory, std::array<std::uint32_t, 2>& words);

  gcn::Isa isa_;
  std::vector<Entry> entries_;
};

}  // namespace vasicd
