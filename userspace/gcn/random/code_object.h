// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// For tests: kernels that clang compiled, loaded into a FlatMemory and run by one wave. Source: chapters "Code object"
// and "Kernel descriptor" of LLVM's AMDGPU usage guide.
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

// What a kernel asks for.
struct Kernel {
  Address entry = 0;
  std::uint32_t lds_bytes = 0;
  std::uint32_t scratch_bytes = 0;  // of a lane
  std::uint32_t rsrc1 = 0;
  std::uint32_t rsrc2 = 0;
  std::uint32_t rsrc3 = 0;
  std::uint32_t properties = 0;
};

// An ELF file of which as much is understood as is needed. It comes from our own compiler: what is wrong with it is
// told by nothing being found.
class CodeObject {
 public:
  explicit CodeObject(const std::string& path);

  // Its segments, from `base` on.
  void load(FlatMemory& memory, Address base);
  [[nodiscard]] std::optional<Kernel> find(const FlatMemory& memory, std::string_view name) const;

 private:
  template <typename T>
  [[nodiscard]] T at(std::size_t offset) const;
  [[nodiscard]] std::optional<std::uint64_t> symbol(std::string_view name) const;

  std::vector<std::byte> file_;
  Address base_ = 0;
};

// Where in memory a kernel's things are.
struct Launch {
  Address arguments = 0;
  Address scratch = 0;            // of the queue
  std::uint32_t wave_offset = 0;  // of this wave's scratch memory in it
};

// The registers of the first wave, as hardware leaves them to a kernel.
void prepare(const Kernel& kernel, const Launch& launch, Wave& wave);

}  // namespace gcn
