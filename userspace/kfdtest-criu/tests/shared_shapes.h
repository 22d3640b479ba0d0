// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The shapes of SharedRestoreTest: which processes have which memory of a GPU, in which way, and from whom.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kfdtest {

enum class As : std::uint8_t { kKfd, kGem };  // a BO of KFD, or a GEM object of a render node

inline constexpr std::size_t kNobody = SIZE_MAX;

// What a member has of a memory, and by which GPU it uses that. The first holding of a memory allocates it; each other
// one imports the DMA-buf of a holding before it.
struct Holding {
  std::size_t memory = 0;
  std::size_t member = 0;
  std::size_t from = kNobody;  // the holding that gives the memory
  As as = As::kKfd;
  std::size_t gpu = 0;      // whose BO or object it is
  std::size_t used_by = 0;  // the GPU that reads and writes; with another one than `gpu`, both have it mapped
};

struct Shape {
  std::string_view name;
  std::vector<Holding> holdings;

  [[nodiscard]] std::size_t members() const;
  [[nodiscard]] std::size_t memories() const;
  [[nodiscard]] std::size_t gpus() const;
  [[nodiscard]] const Holding& allocation(std::size_t memory) const;
  [[nodiscard]] bool has(std::size_t member, std::size_t memory) const;
  [[nodiscard]] bool is_shared(std::size_t memory) const;
};

[[nodiscard]] const std::vector<Shape>& shapes();

}  // namespace kfdtest
