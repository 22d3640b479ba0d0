// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Test helpers: load kernels that clang compiled into a FlatMemory, and prepare one wave to run them. Source: chapters
// "Code object" and "Kernel descriptor" of LLVM's AMDGPU usage guide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gcn/fake_memory.h"

namespace gcn {

// The resources that a kernel's descriptor asks for.
struct Kernel {
  Address entry = 0;
  std::uint32_t lds_bytes = 0;
  std::uint32_t scratch_bytes = 0;  // for each lane
  std::uint32_t rsrc1 = 0;
  std::uint32_t rsrc2 = 0;
  std::uint32_t rsrc3 = 0;
  std::uint32_t properties = 0;
};

// An ELF file, read as far as these tests need. The project's own build makes it, so the reader does not report what is
// wrong with it: it finds no kernel.
class CodeObject {
 public:
  explicit CodeObject(const std::string& path);

  // Copies the file's segments to memory, from `base` on.
  void load(FlatMemory& memory, Address base);
  [[nodiscard]] std::optional<Kernel> find(const FlatMemory& memory, std::string_view name) const;

 private:
  template <typename T>
  [[nodiscard]] T at(std::size_t offset) const;
  [[nodiscard]] std::optional<std::uint64_t> symbol(std::string_view name) const;

  std::vector<std::byte> file_;
  Address base_ = 0;
};

// The addresses of a kernel's code, arguments and scratch memory.
struct Launch {
  Address arguments = 0;
  Address scratch = 0;            // the queue's scratch memory
  std::uint32_t wave_offset = 0;  // where this wave's scratch memory is in it
};

// Sets the registers of the first wave as hardware does before a kernel begins.
void prepare(const Kernel& kernel, const Launch& launch, Wave& wave);

}  // namespace gcn
