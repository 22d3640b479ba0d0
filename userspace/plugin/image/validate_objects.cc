// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The checks of the objects of a render node; see validate.cc.
#include <amdgpu_drm.h>
#include <linux/kfd_ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>

#include "kfd/abi.h"
#include "plugin/image/format.h"

namespace plugin::image {
namespace {

using base::Error;
using base::Status;

constexpr std::uint64_t kMaxGemBytes = 1ULL << 47;  // of all objects of a file
constexpr std::uint64_t kMaxAlignment = 1ULL << 40;
constexpr std::array kPriorities = {AMDGPU_CTX_PRIORITY_VERY_LOW, AMDGPU_CTX_PRIORITY_LOW, AMDGPU_CTX_PRIORITY_NORMAL,
                                    AMDGPU_CTX_PRIORITY_HIGH, AMDGPU_CTX_PRIORITY_VERY_HIGH};

Error invalid_object(std::string message) { return Error(EINVAL, "invalid image: " + std::move(message)); }

bool is_whole_pages(std::uint64_t value) { return value % kPageSize == 0; }

std::string name_of(const GemObject& object) { return "GEM object " + std::to_string(object.handle); }

Status validate_number(const char* what, std::uint32_t number, std::uint32_t most, std::set<std::uint32_t>& seen) {
  if (number == 0 || number > most || !seen.insert(number).second)
    return invalid_object(std::string(what) + " " + std::to_string(number) + " is impossible or there twice");
  return {};
}

std::string name_of(const KfdGem& object) { return "GEM object " + std::to_string(object.handle); }

bool is_range(const GemMapping& mapping) {
  return mapping.size != 0 && is_whole_pages(mapping.addr | mapping.size | mapping.offset) &&
         mapping.addr + (mapping.size - 1) >= mapping.addr && mapping.flags <= UINT32_MAX;
}

bool is_inside(const GemMapping& mapping, std::uint64_t size) {
  return is_range(mapping) && mapping.offset <= size && mapping.size <= size - mapping.offset;
}

Status validate_user_memory(const GemObject& object, std::uint64_t size) {
  if (object.user_flags == 0) return object.user_addr == 0 ? Status() : invalid_object("an address of no user memory");
  if ((object.user_flags & ~kUserFlags) != 0 || (object.user_flags & (kUserReadOnly | kUserRegister)) == 0 ||
      !is_whole_pages(object.user_addr) || object.user_addr == 0 || object.user_addr + size < object.user_addr)
    return invalid_object(name_of(object) + ": impossible user memory");
  return {};
}

Status validate_object(const GemObject& object, const BoRecord& record, std::uint32_t gpu_id) {
  const std::uint32_t kind = object.user_flags != 0             ? KFD_IOC_ALLOC_MEM_FLAGS_USERPTR
                             : (object.domains & kGemVram) != 0 ? KFD_IOC_ALLOC_MEM_FLAGS_VRAM
                                                                : KFD_IOC_ALLOC_MEM_FLAGS_GTT;
  if (object.domains == 0 || (object.domains & ~kGemDomains) != 0 || (object.flags & ~kGemFlags) != 0)
    return invalid_object(name_of(object) + ": unknown domains or flags");
  if (!is_whole_pages(object.alignment) || object.alignment > kMaxAlignment)
    return invalid_object(name_of(object) + ": impossible alignment");
  if (object.metadata.size() > kMaxGemMetadata)
    return invalid_object(name_of(object) + ": impossible length of its metadata");
  if (record.handle != object.handle || record.bo.user_gpu_id != gpu_id || record.bo.alloc_flags != kind ||
      record.bo.addr != 0 || !is_whole_pages(record.bo.size) || record.shares_contents ||
      record.imported != record.stored_elsewhere)
    return invalid_object(name_of(object) + ": its BO in the index is not one of it");
  TRY(validate_user_memory(object, record.bo.size));
  for (const GemMapping& mapping : object.mappings)
    if (!is_inside(mapping, record.bo.size)) return invalid_object(name_of(object) + ": impossible mapping");
  return {};
}

Status validate_addresses(const RenderObjects& objects) {
  std::vector<const GemMapping*> mappings;
  for (const GemObject& object : objects.gem)
    for (const GemMapping& mapping : object.mappings) mappings.push_back(&mapping);
  for (const KfdGem& object : objects.kfd_gem)
    for (const GemMapping& mapping : object.mappings) mappings.push_back(&mapping);
  for (const GemMapping& mapping : objects.sparse) {
    if (!is_range(mapping) || mapping.flags != kSparseFlags) return invalid_object("impossible sparse mapping");
    mappings.push_back(&mapping);
  }
  if (mappings.size() > kMaxGemMappings) return invalid_object("too many mappings of GEM objects");
  std::sort(mappings.begin(), mappings.end(), [](const auto* a, const auto* b) { return a->addr < b->addr; });
  for (std::size_t i = 1; i < mappings.size(); ++i)
    if (mappings[i]->addr - mappings[i - 1]->addr < mappings[i - 1]->size)
      return invalid_object("two mappings of GEM objects at address " + std::to_string(mappings[i]->addr));
  return {};
}

Status validate_gem(const RenderFile& render, std::set<std::uint32_t>& handles) {
  const auto& objects = render.objects.gem;
  if (objects.size() > kMaxGemObjects) return invalid_object("too many GEM objects");
  if (objects.size() != render.bos.size()) return invalid_object("another number of GEM objects than the index has");
  std::uint64_t bytes = 0;
  std::set<std::uint64_t> memories;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    TRY(validate_number("GEM object", objects[i].handle, kMaxHandle, handles));
    TRY(validate_object(objects[i], render.bos[i], render.gpu_id));
    if (render.bos[i].inode != 0 && !memories.insert(render.bos[i].inode).second)
      return invalid_object(name_of(objects[i]) + ": another object of this file has its memory");
    if (render.bos[i].bo.size > kMaxGemBytes - bytes) return invalid_object("GEM objects larger than any GPU's memory");
    bytes += render.bos[i].bo.size;
  }
  return {};
}

// That the process has such a BO is checked with all files of the session (kfd_objects::check()).
Status validate_kfd_gem(const RenderFile& render, std::set<std::uint32_t>& handles) {
  const auto& objects = render.objects.kfd_gem;
  if (objects.size() > kMaxGemObjects) return invalid_object("too many GEM objects of KFD");
  std::set<std::uint64_t> memories;
  for (const KfdGem& object : objects) {
    TRY(validate_number("GEM object", object.handle, kMaxHandle, handles));
    if (object.inode == 0 || object.size == 0 || !is_whole_pages(object.size))
      return invalid_object(name_of(object) + ": no memory of KFD has such a size or inode");
    if (!memories.insert(object.inode).second)
      return invalid_object(name_of(object) + ": another handle of the file has the same memory of KFD");
    if (object.metadata.size() > kMaxGemMetadata)
      return invalid_object(name_of(object) + ": impossible length of its metadata");
    for (const GemMapping& mapping : object.mappings)
      if (!is_inside(mapping, object.size)) return invalid_object(name_of(object) + ": impossible mapping");
  }
  return {};
}

Status validate_contexts(const std::vector<GpuContext>& contexts) {
  std::set<std::uint32_t> ids;
  for (const GpuContext& context : contexts) {
    TRY(validate_number("context", context.id, kMaxContext, ids));
    if (std::find(kPriorities.begin(), kPriorities.end(), context.priority) == kPriorities.end())
      return invalid_object("context " + std::to_string(context.id) + " has priority " +
                            std::to_string(context.priority));
    if (context.sequence == 0 || (context.sequence >> 63) != 0)
      return invalid_object("context " + std::to_string(context.id) + " has an impossible number of the next fence");
  }
  return {};
}

Status validate_bo_lists(const std::vector<BoList>& lists, const std::set<std::uint32_t>& objects) {
  if (lists.size() > kMaxBoLists) return invalid_object("too many BO lists");
  std::set<std::uint32_t> handles;
  std::size_t entries = 0;
  for (const BoList& list : lists) {
    TRY(validate_number("BO list", list.handle, kMaxHandle, handles));
    entries += list.entries.size();
    for (const BoListEntry& entry : list.entries)
      if (!objects.contains(entry.handle))
        return invalid_object("BO list " + std::to_string(list.handle) + " has GEM object " +
                              std::to_string(entry.handle) + ", which does not exist");
  }
  if (entries > kMaxBoListEntries) return invalid_object("too many entries of BO lists");
  return {};
}

Status validate_syncobjs(const std::vector<Syncobj>& syncobjs) {
  if (syncobjs.size() > kMaxSyncobjs) return invalid_object("too many synchronization objects");
  std::set<std::uint32_t> handles;
  for (const Syncobj& each : syncobjs) {
    TRY(validate_number("synchronization object", each.handle, kMaxHandle, handles));
    const bool is_timeline = each.state == SyncobjState::kTimeline;
    if ((!is_timeline && each.state != SyncobjState::kEmpty && each.state != SyncobjState::kSignaled) ||
        is_timeline != (each.point != 0))
      return invalid_object("synchronization object " + std::to_string(each.handle) + " is in an impossible state");
  }
  return {};
}

}  // namespace

Status validate_object(const DmabufFile& dmabuf) {
  if (dmabuf.bos.size() != (dmabuf.gpu_id == 0 ? 0U : 1U))
    return invalid_object("impossible number of BOs of a DMA-buf");
  if (dmabuf.gpu_id == 0) return {};
  const BoRecord& record = dmabuf.bos.front();
  if (record.inode != dmabuf.inode || record.bo.size != dmabuf.size || record.imported || !stores_contents(record))
    return invalid_object("the BO of a DMA-buf is not its memory");
  if (dmabuf.alloc_flags != 0 && (dmabuf.alloc_flags & ~kfd::abi::kMemoryAttributes) != record.bo.alloc_flags)
    return invalid_object("the memory of a DMA-buf is of no kind that KFD allocates");
  if (dmabuf.alloc_flags != 0 && has_metadata(dmabuf.object))
    return invalid_object("the memory of a DMA-buf has metadata, which KFD does not give what it allocates");
  return validate_object(dmabuf.object, record, dmabuf.gpu_id);
}

Status validate_objects(const RenderFile& render) {
  if (render.objects.empty()) return {};
  const bool is_of_kfd = render.binding == Binding::kKfd && render.owner != 0;
  if (!is_of_kfd && (render.binding != Binding::kOther || render.owner != 0))
    return invalid_object("objects of a render node, and it is unknown whose VM it has");
  if (!is_of_kfd && !render.objects.kfd_gem.empty())
    return invalid_object("memory of KFD in a render node whose VM KFD does not use");
  std::set<std::uint32_t> handles;
  TRY(validate_gem(render, handles));
  TRY(validate_kfd_gem(render, handles));
  TRY(validate_addresses(render.objects));
  TRY(validate_contexts(render.objects.contexts));
  TRY(validate_bo_lists(render.objects.bo_lists, handles));
  return validate_syncobjs(render.objects.syncobjs);
}

}  // namespace plugin::image
