// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header.
#include "kfdtest-criu/harness/gem_image.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/mapping.h"

namespace kfdtest {
namespace {

base::Result<SavedGem> save_gem(int render, const ListedGem& object, std::span<const kfd::CheckpointedBo> bos) {
  SavedGem saved{.object = object, .inode = 0, .mmap_offset = 0, .mappings = {}, .contents = {}};
  ASSIGN_OR_RETURN(const base::UniqueFd dmabuf, gem::export_dmabuf(render, object.handle));
  struct stat found {};
  if (::fstat(dmabuf.get(), &found) != 0) return base::Error::from_errno(errno, "asking for the inode of a DMA-buf");
  saved.inode = found.st_ino;
  ASSIGN_OR_RETURN(saved.mmap_offset, gem::mmap_offset(render, object.handle));
  ASSIGN_OR_RETURN(saved.mappings, gem::mappings(render, object.handle));
  bool has_kfd = false;
  for (const kfd::CheckpointedBo& each : bos) {
    if (each.inode != saved.inode) continue;
    has_kfd = true;
    std::erase_if(saved.mappings, [&](const GemMapping& mapping) { return mapping.address == each.bo.addr; });
  }
  if (has_kfd) return saved;
  ASSIGN_OR_RETURN(const base::Mapping bytes,
                   base::Mapping::shared(dmabuf.get(), object.size, 0, "reading a GEM object"));
  saved.contents = Contents::of(bytes.bytes());
  return saved;
}

base::Result<std::uint64_t> restore_gem(int render, const SavedGem& saved, const ExistingMemory& existing) {
  const std::uint32_t handle = saved.object.handle;
  ASSIGN_OR_RETURN(const base::UniqueFd memory, existing(saved.inode));
  TRY(memory.valid() ? gem::import_at(render, handle, memory.get()) : gem::create_at(render, saved.object));
  for (const GemMapping& each : saved.mappings) TRY(gem::map(render, handle, each));
  if (!saved.contents.empty()) {
    ASSIGN_OR_RETURN(const base::UniqueFd dmabuf, gem::export_dmabuf(render, handle));
    TRY(saved.contents.write(dmabuf.get()));
  }
  return gem::mmap_offset(render, handle);
}

}  // namespace

base::Result<std::vector<SavedGem>> save_gems(int render, std::span<const kfd::CheckpointedBo> bos) {
  ASSIGN_OR_RETURN(const std::vector<ListedGem> objects, gem::list(render));
  std::vector<SavedGem> result;
  for (const ListedGem& each : objects) {
    ASSIGN_OR_RETURN(SavedGem saved, save_gem(render, each, bos));
    result.push_back(std::move(saved));
  }
  return result;
}

base::Result<std::vector<std::uint64_t>> restore_gems(int render, std::span<const SavedGem> gems,
                                                      const ExistingMemory& existing) {
  std::vector<std::uint64_t> offsets;
  for (const SavedGem& each : gems) {
    ASSIGN_OR_RETURN(const std::uint64_t offset, restore_gem(render, each, existing));
    offsets.push_back(offset);
  }
  return offsets;
}

}  // namespace kfdtest
