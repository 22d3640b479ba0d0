// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Any words through the decoder and the disassembler of each chip: what is decoded is within its words, and has a text.
#include <array>

#include "fuzz/input.h"
#include "gcn/decode/decode.h"
#include "gcn/text/disassemble.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  while (!in.empty()) {
    const std::array<std::uint32_t, 2> words = {in.u32(), in.u32()};
    const auto isa = static_cast<gcn::Isa>(in.below(4));
    for (std::size_t n = 1; n <= words.size(); ++n) {
      const auto instruction = gcn::decode(isa, std::span(words).first(n));
      fuzz::check(!gcn::describe(isa, std::span(words).first(n)).empty(), "everything has a name");
      if (!instruction.has_value()) continue;
      fuzz::check(instruction->bytes == 4 || instruction->bytes == 8, "an instruction has one or two dwords");
      fuzz::check(instruction->bytes <= n * sizeof(std::uint32_t), "an instruction lies within its words");
      fuzz::check(!gcn::disassemble(*instruction, isa).empty(), "an instruction has a text");
    }
  }
  return 0;
}
