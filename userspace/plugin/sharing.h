// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Memory that several processes of a dump have, or several open files of render nodes: who has it, who allocates it
// again at restore, and who then waits for whom. Arithmetic on what the kernel said at the dump, or what an image says;
// makes no system call.
//
// One BO at most is the one that the memory was allocated for. At restore its process is the provider: it allocates the
// memory with the rest of its state and gives it to the others, which wait for it. Memory is made apart, by whoever
// needs it first and for nobody's BO, if nobody of the dump allocated it (the process that did has freed it or ended),
// or if waiting for its provider might never end. Memory that a file of a render node has is always made apart: CRIU
// decides when a task opens such a file, so what a task that waits in it has already given to others is not known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace plugin::sharing {

struct Bo {
  std::uint64_t inode = 0;  // 0: it shares no memory
  std::uint64_t size = 0;
  std::uint32_t alloc_flags = 0;
  bool imported = false;  // the memory was allocated for another BO
  bool stored = false;    // contents are stored with this BO
};

// A process is restored late if CRIU asks another one for its file of /dev/kfd: then it is restored when it has all of
// its files and CRIU opens those of its mappings. Until then it may wait for others to open its files, and CRIU also
// makes it wait for the processes that it shares anonymous memory with, whichever these are. So nobody may wait for it.
//
// An open file of a render node with GEM objects is one of these, too: its BOs are its objects.
struct Process {
  std::string name;  // for errors
  bool is_late = false;
  std::vector<Bo> bos;
  bool is_render_node = false;
};

struct Place {
  std::size_t process = 0;  // indices
  std::size_t bo = 0;
  bool operator==(const Place&) const = default;
};

struct Memory {
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  // The BO whose GPU and kind the memory has: the one that it was allocated for, if a process of the dump has that.
  Place origin;
  bool is_gem = false;               // it was allocated for a GEM object of a render node, and not by KFD
  bool has_provider = false;         // the process of origin; else it is made apart
  std::vector<std::size_t> holders;  // indices of processes, ascending; the provider is one of them
};

// The plan has all memory that several processes have. It has memory that only one process has if that memory was
// allocated for none of the BOs of this process, or if a task that has no BO of it needs it too.
class Plan {
 public:
  // Fails for processes that no kernel has, and names one. `needed`: inodes of memory that tasks without a BO of it
  // need. These may wait for any provider, if they restore their own state before.
  static base::Result<Plan> make(std::span<const Process> processes, std::set<std::uint64_t> needed = {});

  [[nodiscard]] std::span<const Memory> memories() const { return memories_; }
  // The index of a memory.
  [[nodiscard]] std::optional<std::size_t> find(std::uint64_t inode) const;

 private:
  std::vector<Memory> memories_;  // by ascending inode
};

// For each memory of the plan the BO that its contents are stored with. Fails unless there is one for each.
base::Result<std::vector<Place>> find_contents(const Plan& plan, std::span<const Process> processes);

}  // namespace plugin::sharing
