// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Machine code of gfx9 in files of any kind: a library has code objects in its data, one behind the other or in bundles
// of clang, and a file of kernels is one or has some. A code object is an ELF file for AMD GPUs. Source: chapter "Code
// object" of LLVM's AMDGPU usage guide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "gcn/isa/op.h"

namespace gcn::survey {

// A function of a code object. Code and name lie in the bytes of the file.
struct Function {
  std::string_view name;
  std::span<const std::byte> code;
};

struct CodeObject {
  Isa isa = Isa::kGfx900;
  std::vector<Function> functions;
};

// The code objects that are whole, of chips that this project executes; all others are passed over. Code without a
// symbol is not seen.
[[nodiscard]] std::vector<CodeObject> find_code_objects(std::span<const std::byte> file);

}  // namespace gcn::survey
