// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "plugin/sharing.h"

#include <linux/kfd_ioctl.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

#include "kfd/abi.h"

namespace plugin::sharing {
namespace {

using base::Error;
using base::Result;
using base::Status;

constexpr std::uint32_t kVram = KFD_IOC_ALLOC_MEM_FLAGS_VRAM;

class Builder {
 public:
  Builder(std::span<const Process> processes, std::set<std::uint64_t> needed)
      : processes_(processes), needed_(std::move(needed)), waits_for_(processes.size()) {}

  Result<std::vector<Memory>> build() {
    std::map<std::uint64_t, std::vector<Place>> places;
    for (std::size_t p = 0; p < processes_.size(); ++p)
      for (std::size_t b = 0; b < processes_[p].bos.size(); ++b)
        if (const Bo& bo = processes_[p].bos[b]; bo.inode != 0) places[bo.inode].push_back({p, b});
    std::vector<Memory> memories;
    for (const auto& [inode, bos] : places) {
      const bool is_private = bos.front().process == bos.back().process && has_native(bos) && !needed_.contains(inode);
      if (is_private) continue;
      ASSIGN_OR_RETURN(Memory memory, describe(inode, bos));
      const bool is_of_render_node =
          std::any_of(bos.begin(), bos.end(), [this](const Place& place) { return is_render_node(place); });
      memory.has_provider = !is_of_render_node && has_native(bos) && provide(memory);
      memories.push_back(std::move(memory));
    }
    return memories;
  }

 private:
  [[nodiscard]] const Bo& at(const Place& place) const { return processes_[place.process].bos[place.bo]; }
  [[nodiscard]] const std::string& name_of(const Place& place) const { return processes_[place.process].name; }

  [[nodiscard]] bool is_render_node(const Place& place) const { return processes_[place.process].is_render_node; }

  [[nodiscard]] bool has_native(const std::vector<Place>& bos) const {
    return std::any_of(bos.begin(), bos.end(), [this](const Place& place) { return !at(place).imported; });
  }

  [[nodiscard]] Error impossible(const Place& place, const std::string& why) const {
    return Error(EINVAL, name_of(place) + ": a BO of " + std::to_string(at(place).size) +
                             " bytes shares its memory, but " + why);
  }

  Result<Memory> describe(std::uint64_t inode, const std::vector<Place>& bos) const {
    Memory memory{inode, at(bos.front()).size, bos.front(), false, false, {}};
    std::optional<Place> native;
    std::optional<Place> in_vram;  // of those that were imported
    std::optional<Place> of_kfd;   // of those that KFD imported; of two kinds, one that is VRAM
    for (const Place& place : bos) {
      const Bo& bo = at(place);
      if (bo.size != memory.size)
        return impossible(place, name_of(bos.front()) + " has " + std::to_string(memory.size) + " bytes of it");
      if ((bo.alloc_flags & kfd::abi::kMemoryKinds) == 0)
        return impossible(place, "is of a kind that cannot be shared");
      if (!bo.imported && native)
        return impossible(place, "it was allocated for this BO and for one of " + name_of(*native));
      const bool is_vram = (bo.alloc_flags & kVram) != 0;
      if (!bo.imported) native = place;
      if (bo.imported && is_vram && !in_vram) in_vram = place;
      if (bo.imported && !is_render_node(place) && (!of_kfd || (is_vram && (at(*of_kfd).alloc_flags & kVram) == 0)))
        of_kfd = place;
      if (memory.holders.empty() || memory.holders.back() != place.process) memory.holders.push_back(place.process);
    }
    if (native && in_vram && (at(*native).alloc_flags & kVram) == 0)
      return impossible(*in_vram, "it is VRAM, and " + name_of(*native) + " has allocated GTT");
    // Without the BO that it was allocated for, only a file of KFD says how (ForeignMemory).
    if (!native && !of_kfd) return impossible(bos.front(), "it was allocated for no BO, and KFD has no BO of it");
    // A BO of another GPU than that of the memory is GTT.
    memory.origin = native ? *native : *of_kfd;
    memory.is_gem = is_render_node(memory.origin);
    return memory;
  }

  // Lets the other holders wait for the provider, unless one of them might wait for ever.
  bool provide(const Memory& memory) {
    const std::size_t provider = memory.origin.process;
    if (processes_[provider].is_late) return false;
    const std::set<std::size_t> reached = reached_from(provider);
    for (const std::size_t holder : memory.holders)
      if (holder != provider && reached.contains(holder)) return false;
    for (const std::size_t holder : memory.holders)
      if (holder != provider) waits_for_[holder].insert(provider);
    return true;
  }

  // The processes that `process` waits for, and those that they wait for.
  [[nodiscard]] std::set<std::size_t> reached_from(std::size_t process) const {
    std::set<std::size_t> reached;
    std::vector<std::size_t> open{process};
    while (!open.empty()) {
      const std::size_t next = open.back();
      open.pop_back();
      for (const std::size_t target : waits_for_[next])
        if (reached.insert(target).second) open.push_back(target);
    }
    return reached;
  }

  std::span<const Process> processes_;
  std::set<std::uint64_t> needed_;
  std::vector<std::set<std::size_t>> waits_for_;
};

}  // namespace

Result<Plan> Plan::make(std::span<const Process> processes, std::set<std::uint64_t> needed) {
  Plan plan;
  ASSIGN_OR_RETURN(plan.memories_, Builder(processes, std::move(needed)).build());
  return plan;
}

std::optional<std::size_t> Plan::find(std::uint64_t inode) const {
  const auto found = std::lower_bound(memories_.begin(), memories_.end(), inode,
                                      [](const Memory& memory, std::uint64_t value) { return memory.inode < value; });
  if (found == memories_.end() || found->inode != inode) return std::nullopt;
  return static_cast<std::size_t>(found - memories_.begin());
}

Result<std::vector<Place>> find_contents(const Plan& plan, std::span<const Process> processes) {
  std::vector<std::optional<Place>> found(plan.memories().size());
  for (std::size_t p = 0; p < processes.size(); ++p) {
    for (std::size_t b = 0; b < processes[p].bos.size(); ++b) {
      const Bo& bo = processes[p].bos[b];
      const auto memory = bo.stored ? plan.find(bo.inode) : std::nullopt;
      if (!memory) continue;
      if (found[*memory])
        return Error(EINVAL, processes[p].name + ": the contents of shared memory of " + std::to_string(bo.size) +
                                 " bytes are stored with it and with " + processes[found[*memory]->process].name);
      found[*memory] = Place{p, b};
    }
  }
  std::vector<Place> places;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Memory& memory = plan.memories()[i];
    if (!found[i])
      return Error(EINVAL, processes[memory.origin.process].name + ": the contents of shared memory of " +
                               std::to_string(memory.size) + " bytes are not stored");
    places.push_back(*found[i]);
  }
  return places;
}

}  // namespace plugin::sharing
