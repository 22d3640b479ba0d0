// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Who has the memory of a BO. Everybody who was given it has a reference to its DMA-buf: a descriptor, a mapping, a BO
// of KFD, a GEM handle of a render node, another device. The kernel tells how many there are, not whose they are, so
// memory has a holder outside of the programs being saved if it has more references than these programs explain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"

namespace plugin::memory_holders {

// The references to the DMA-buf behind `fd`, of which this descriptor is one. `proc` is where procfs is mounted.
base::Result<std::uint64_t> references_of(const std::string& proc, int fd);

struct Memory {
  std::uint64_t references = 0;
  std::uint64_t explained = 0;  // descriptors of this process, and BOs of the programs being saved
  // References that these programs may have beside: KFD imports a BO once for each further GPU that has ever mapped it.
  std::uint64_t possible = 0;
  // The BO that the memory was allocated for is of none of these programs, or does not exist any more.
  bool is_orphan = false;
  // An orphan of which these programs have BOs on other GPUs only.
  bool is_remote = false;
};

// The references that the kernel itself has to the DMA-buf of a BO that nobody else has.
std::uint64_t kernel_references(std::span<const Memory> memories);
// How many of these references `memory` has: the kernel drops one with the BO that the memory was allocated for, and
// all with the last BO on the memory's own GPU.
std::uint64_t kernel_references_of(const Memory& memory, std::uint64_t by_kernel);

// How many references these programs and the kernel may have; whatever is beyond is somebody else's.
std::uint64_t most_known(const Memory& memory, std::uint64_t by_kernel);

// Counts again, for half a second, while there are more references than `known`, and returns the last number.
// `references` is the first one. Whoever reads procfs has a reference for a moment, and a program that has ended gives
// back its memory a moment later.
base::Result<std::uint64_t> recount(std::uint64_t references, std::uint64_t known,
                                    const std::function<base::Result<std::uint64_t>()>& count);

}  // namespace plugin::memory_holders
