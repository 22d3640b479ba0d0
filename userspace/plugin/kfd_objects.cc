// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "plugin/kfd_objects.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace plugin::kfd_objects {
namespace {

using base::Error;
using base::Status;
using render_objects::Found;

bool is_memory_of(const kfd::CheckpointedBo& bo, std::uint64_t inode) {
  return inode != 0 && kfd::has_contents(bo.bo) && bo.inode == inode;
}

// Whether KFD has made the mapping. A BO for an AQL queue is mapped a second time, directly behind.
bool is_made_by_kfd(const image::GemMapping& mapping, const kfd::CheckpointedBo& bo, std::uint32_t user_gpu_id) {
  if (std::find(bo.mapped.begin(), bo.mapped.end(), user_gpu_id) == bo.mapped.end()) return false;
  const bool is_twice = (bo.bo.alloc_flags & KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM) != 0;
  return mapping.offset == 0 && mapping.size == bo.bo.size &&
         (mapping.addr == bo.bo.addr || (is_twice && mapping.addr == bo.bo.addr + bo.bo.size));
}

image::KfdGem made_of(image::GemObject& object, const image::BoRecord& record, const kfd::Checkpoint& state,
                      std::uint32_t user_gpu_id) {
  image::KfdGem made{object.handle, record.inode, record.bo.size, std::move(object.mappings)};
  std::erase_if(made.mappings, [&](const image::GemMapping& mapping) {
    return std::any_of(state.bos.begin(), state.bos.end(), [&](const kfd::CheckpointedBo& bo) {
      return is_memory_of(bo, record.inode) && is_made_by_kfd(mapping, bo, user_gpu_id);
    });
  });
  made.metadata_flags = object.metadata_flags;
  made.tiling = object.tiling;
  made.metadata = std::move(object.metadata);
  return made;
}

// Leaves those at these indices.
template <typename T>
void keep(std::vector<T>& all, const std::vector<std::size_t>& indices) {
  std::vector<T> kept;
  for (const std::size_t index : indices) kept.push_back(std::move(all[index]));
  all = std::move(kept);
}

const image::KfdFile* find_process(std::span<const image::Loaded* const> files, std::uint32_t pid) {
  for (const image::Loaded* file : files)
    if (file->kfd() != nullptr && file->kfd()->pid == pid) return file->kfd();
  return nullptr;
}

Status check_memory(const image::KfdGem& object, const image::KfdFile& process) {
  const std::string name =
      "GEM object " + std::to_string(object.handle) + ", memory of KFD of " + std::to_string(object.size) + " bytes: ";
  const auto bo = bo_with(process, object.inode);
  if (!bo) return Error(EINVAL, name + "no BO of process " + std::to_string(process.pid) + " has it");
  const std::uint64_t size = process.bos[*bo].bo.size;
  if (size != object.size) return Error(EINVAL, name + "the BO has " + std::to_string(size) + " bytes");
  return {};
}

Status check_file(const image::RenderFile& render, std::span<const image::Loaded* const> files) {
  const image::KfdFile* process = find_process(files, render.owner);
  if (process == nullptr || std::none_of(process->devices.begin(), process->devices.end(),
                                         [&](const kfd::Device& device) { return device.actual_id == render.gpu_id; }))
    return Error(EINVAL, "objects of a render node in the VM of process " + std::to_string(render.owner) +
                             ", which has none on this GPU");
  for (const image::KfdGem& object : render.objects.kfd_gem) TRY(check_memory(object, *process));
  return {};
}

}  // namespace

Status take(Found& found, const kfd::Checkpoint& state, std::uint32_t user_gpu_id, References& references) {
  std::vector<std::size_t> others;
  std::set<std::uint64_t> seen;
  for (std::size_t i = 0; i < found.bos.size(); ++i) {
    const image::BoRecord& record = found.bos[i];
    const auto bo = std::find_if(state.bos.begin(), state.bos.end(),
                                 [&](const kfd::CheckpointedBo& each) { return is_memory_of(each, record.inode); });
    if (bo == state.bos.end()) {
      others.push_back(i);
      continue;
    }
    if (!seen.insert(record.inode).second)
      return Error(EOPNOTSUPP, "GEM object " + std::to_string(record.handle) +
                                   ": another handle of the file has the same memory of KFD, and a restore could give "
                                   "it only one");
    if (record.bo.size != bo->bo.size)
      return Error(EPROTO, "GEM object " + std::to_string(record.handle) + " has another size than its BO of KFD");
    references[record.inode] +=
        found.origins[i].is_import ? render_objects::kReferencesOfImport : render_objects::kReferencesOfHandle;
    found.objects.kfd_gem.push_back(made_of(found.objects.gem[i], record, state, user_gpu_id));
  }
  keep(found.objects.gem, others);
  keep(found.bos, others);
  keep(found.origins, others);
  return {};
}

std::optional<std::size_t> bo_with(const image::KfdFile& kfd, std::uint64_t inode) {
  for (std::size_t i = 0; i < kfd.bos.size(); ++i)
    if (kfd::has_contents(kfd.bos[i].bo) && kfd.bos[i].inode == inode) return i;
  return std::nullopt;
}

Status check(std::span<const image::Loaded* const> files) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;
  for (const image::Loaded* file : files) {
    const image::RenderFile* render = file->render();
    if (render == nullptr || render->objects.empty() || render->binding != image::Binding::kKfd) continue;
    auto status = check_file(*render, files);
    if (status.ok() && !seen.emplace(render->owner, render->gpu_id).second)
      status = Error(EINVAL, "a second render node of the same GPU with objects in the VM of process " +
                                 std::to_string(render->owner));
    if (!status.ok()) return std::move(status).error().wrap("file " + std::to_string(file->id())).wrap("invalid image");
  }
  return {};
}

}  // namespace plugin::kfd_objects
