// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header. What can be decided without a system call.
#include "plugin/render_objects.h"

#include <algorithm>
#include <cerrno>
#include <map>

namespace plugin::render_objects {
namespace {

using base::Error;
using base::Result;
using base::Status;

constexpr std::uint64_t kDoorbell = 1ULL << 6;  // AMDGPU_GEM_DOMAIN_DOORBELL of newer headers
constexpr std::uint64_t kEncrypted = 1ULL << 10;

std::string gem_name(std::uint32_t handle) { return "GEM object " + std::to_string(handle); }

Error refusal(const std::string& what, const std::string& why) { return Error(EOPNOTSUPP, what + ": " + why); }

bool has_task(const OpenFile& file, std::size_t task) {
  return std::any_of(file.holders.begin(), file.holders.end(),
                     [task](const Holder& holder) { return holder.task == task; });
}

}  // namespace

std::string why_not(const ListedGem& object) {
  if (!is_handle(object.handle)) return "its number cannot be chosen at restore";
  if (object.is_import) return "its memory is another GPU's";
  if ((object.domains & kDoorbell) != 0) return "it is of doorbells, for user queues, which no kernel lists";
  if (object.domains == 0) return "it has no domain, and an image has no such object";
  if ((object.domains & ~std::uint64_t{image::kGemDomains}) != 0)
    return "it is memory inside the GPU (GDS, GWS or OA), which cannot be read";
  if ((object.flags & kEncrypted) != 0) return "it is encrypted";
  if ((object.flags & ~image::kGemFlags) != 0) return "it has flags that this plugin does not know";
  return {};
}

std::string why_not_with(std::uint64_t all_flags) {
  if ((all_flags & render_file::kOnlyByKfd) == 0) return {};
  return "its memory is contiguous, coherent or uncached, which a program can ask only KFD for, and no BO of KFD that "
         "these programs have has it any more";
}

std::string why_not(const ListedContext& context) {
  if (context.is_guilty) return "it is guilty of a GPU reset, and no new context could be";
  if (context.was_reset)
    return "the GPU was reset, or lost its memory, since it was created, and a new one would not know";
  if (context.is_overridden) return "the DRM master has given it another priority";
  if (context.stable_pstate != 0) return "it keeps the GPU's clocks stable";
  return {};
}

std::string why_not(const ListedSyncobj& syncobj) {
  if (syncobj.is_shared) return "another handle or descriptor refers to it, too";
  if (syncobj.has_eventfd) return "an eventfd waits for it";
  return {};
}

Result<std::vector<image::BoList>> group_bo_lists(std::span<const ListedBoListEntry> entries) {
  std::map<std::uint32_t, image::BoList> lists;
  for (const ListedBoListEntry& entry : entries) {
    image::BoList& list = lists[entry.list];
    list.handle = entry.list;
    if (entry.is_empty) continue;
    if (entry.handle == 0)
      return refusal("BO list " + std::to_string(entry.list), "it has an object whose handle was closed");
    list.entries.push_back({entry.handle, entry.priority});
  }
  std::vector<image::BoList> result;
  for (auto& [handle, list] : lists) result.push_back(std::move(list));
  return result;
}

namespace {

// An object, by indices.
struct Place {
  std::size_t file = 0;
  std::size_t object = 0;
};

std::map<std::uint64_t, std::vector<Place>> places_of(std::span<const std::optional<Found>> found) {
  std::map<std::uint64_t, std::vector<Place>> places;  // by inode
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i]) continue;
    for (std::size_t k = 0; k < found[i]->bos.size(); ++k)
      if (const std::uint64_t inode = found[i]->bos[k].inode; inode != 0) places[inode].push_back({i, k});
  }
  return places;
}

}  // namespace

Status find_makers(const Tree& tree, std::span<std::optional<Found>> found, const KfdMemories& of_kfd) {
  for (const auto& [inode, places] : places_of(found)) {
    const auto handle_of = [&found](const Place& place) { return found[place.file]->bos[place.object].handle; };
    const auto origin_of = [&found](const Place& place) -> const Origin& {
      return found[place.file]->origins[place.object];
    };
    const auto of_same_file = std::adjacent_find(places.begin(), places.end(),
                                                 [](const Place& a, const Place& b) { return a.file == b.file; });
    if (of_same_file != places.end())
      return refusal(tree.name_of(tree.files[of_same_file->file]),
                     gem_name(handle_of(*(of_same_file + 1))) + " is also " + gem_name(handle_of(*of_same_file)) +
                         " of this file, and no import gives an object two handles");
    const auto kfd = of_kfd.find(inode);
    const bool is_kfds = kfd != of_kfd.end() && kfd->second;
    const auto maker = is_kfds ? places.end() : std::find_if(places.begin(), places.end(), [&](const Place& place) {
      return origin_of(place).why_not.empty();
    });
    // KFD says how memory was allocated for a BO that is freed.
    if (maker == places.end() && kfd == of_kfd.end())
      return refusal(tree.name_of(tree.files[places.front().file]),
                     gem_name(handle_of(places.front())) + ": " + origin_of(places.front()).why_not);
    for (auto place = places.begin(); place != places.end(); ++place)
      found[place->file]->bos[place->object].imported = place != maker;
  }
  return {};
}

Status refuse_shared_with_kfd(const Tree& tree, std::span<const std::optional<Found>> found,
                              const KfdMemories& of_kfd) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i]) continue;
    for (const image::BoRecord& record : found[i]->bos)
      if (record.inode != 0 && of_kfd.contains(record.inode))
        return refusal(tree.name_of(tree.files[i]), gem_name(record.handle) +
                                                        " is memory that KFD has as well; the released ABI of KFD "
                                                        "would give each memory of its own");
  }
  return {};
}

std::map<std::uint64_t, GemMemory> gem_memories(std::span<const std::optional<Found>> found) {
  std::map<std::uint64_t, GemMemory> memories;
  for (const auto& [inode, places] : places_of(found)) {
    GemMemory& memory = memories[inode];
    for (const Place& place : places) {
      const bool is_import = found[place.file]->origins[place.object].is_import;
      memory.references += is_import ? kReferencesOfImport : kReferencesOfHandle;
      memory.has_maker = memory.has_maker || !found[place.file]->bos[place.object].imported;
    }
  }
  return memories;
}

std::optional<std::size_t> find_offset(std::span<const image::BoRecord> bos, std::uint64_t offset, std::uint64_t size) {
  for (std::size_t i = 0; i < bos.size(); ++i) {
    const kfd::Bo& bo = bos[i].bo;
    if (bo.mmap_offset != 0 && offset >= bo.mmap_offset && size <= bo.size && offset - bo.mmap_offset <= bo.size - size)
      return i;
  }
  return std::nullopt;
}

bool is_of_object(const Tree& tree, std::span<const std::optional<Found>> found, std::size_t task,
                  const DeviceMapping& mapping) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    const OpenFile& file = tree.files[i];
    if (!found[i] || file.device.minor != mapping.device.minor || !has_task(file, task)) continue;
    if (find_offset(found[i]->bos, mapping.offset, mapping.size)) return true;
  }
  return false;
}

}  // namespace plugin::render_objects
