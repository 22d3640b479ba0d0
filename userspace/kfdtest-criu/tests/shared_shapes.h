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

enum class As : std::uint8_t {
  kKfd,     // a BO of KFD
  kGem,     // a GEM object of a render node
  kViews,   // as HIP's virtual memory management has it; see GemViews
  kDmabuf,  // a descriptor that stays open: it is no object
};

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
  bool freed = false;       // before the checkpoint, when all have what they have
};

struct Shape {
  std::string_view name;
  std::vector<Holding> holdings;
  std::size_t ends = kNobody;  // this member ends before the checkpoint, and has freed all

  [[nodiscard]] std::size_t members() const;
  [[nodiscard]] std::size_t memories() const;
  [[nodiscard]] std::size_t gpus() const;
  // The member that makes the memory when it is restored: the first one that has it at the checkpoint.
  [[nodiscard]] std::size_t maker(std::size_t memory) const;
  // Whether a member has the memory at the checkpoint.
  [[nodiscard]] bool has(std::size_t member, std::size_t memory) const;
  // Whether no member can restore the memory alone: several have it, or who allocated it has freed it.
  [[nodiscard]] bool is_exchanged(std::size_t memory) const;
};

[[nodiscard]] const std::vector<Shape>& shapes();

}  // namespace kfdtest
