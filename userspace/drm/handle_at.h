// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// The ioctls of the kernel series drm-handle-at, which libdrm's headers do not have: objects of DRM files are listed,
// and created with a number that the caller chooses. kernel/drm-handle-at/README.md.
#pragma once

#include <amdgpu_drm.h>
#include <drm.h>

#include <cstdint>

namespace drm_uapi {

// ---- lists ------------------------------------------------------------------

struct GemList {
  std::uint64_t entries;
  std::uint32_t num_entries;  // in: room; out: how many there are
  std::uint32_t padding;
};
struct GemListEntry {
  std::uint32_t handle;
  std::uint32_t flags;
  std::uint64_t size;
  std::uint64_t preferred_domains;
  std::uint64_t alloc_flags;
  std::uint64_t alignment;
};
inline constexpr std::uint32_t kGemIsImport = 1U << 0;
inline constexpr unsigned long kListGem = DRM_IOWR(DRM_COMMAND_BASE + 0x19, GemList);

// drm_amdgpu_gem_op with two members more.
struct GemOp {
  std::uint32_t handle;
  std::uint32_t op;
  std::uint64_t value;
  std::uint32_t num_entries;
  std::uint32_t padding;
};
struct GemVmEntry {
  std::uint64_t addr;
  std::uint64_t size;
  std::uint64_t offset;
  std::uint64_t flags;
};
inline constexpr std::uint32_t kGetMappingInfo = 2;  // handle 0: of sparse mappings, which no object has
inline constexpr unsigned long kGemOp = DRM_IOWR(DRM_COMMAND_BASE + DRM_AMDGPU_GEM_OP, GemOp);

struct ObjectList {
  std::uint32_t type;
  std::uint32_t entry_size;
  std::uint64_t entries;
  std::uint32_t count;  // in: room; out: how many there are
  std::uint32_t flags;
};
inline constexpr std::uint32_t kContexts = 1;
struct ContextEntry {
  std::uint32_t id;
  std::int32_t priority;
  std::uint32_t flags;
  std::uint32_t stable_pstate;
  std::uint64_t sequence;  // what the next fence has at least
};
inline constexpr std::uint32_t kContextGuilty = 1U << 0;
inline constexpr std::uint32_t kContextReset = 1U << 1;
inline constexpr std::uint32_t kContextBusy = 1U << 2;
inline constexpr std::uint32_t kContextOverridden = 1U << 3;
inline constexpr std::uint32_t kBoListEntries = 2;
struct ListedBo {
  std::uint32_t list;
  std::uint32_t handle;  // 0: the object has no handle any more
  std::uint32_t priority;
  std::uint32_t flags;
};
inline constexpr std::uint32_t kListIsEmpty = 1U << 0;
inline constexpr std::uint32_t kUserptrs = 3;
struct UserptrEntry {
  std::uint32_t handle;
  std::uint32_t flags;  // AMDGPU_GEM_USERPTR_*
  std::uint64_t addr;
  std::int32_t pid;
  std::uint32_t pad;
};
inline constexpr unsigned long kListObjects = DRM_IOWR(DRM_COMMAND_BASE + 0x50, ObjectList);

struct SyncobjEntry {
  std::uint32_t handle;
  std::uint32_t flags;
};
inline constexpr std::uint32_t kSyncobjShared = 1U << 0;
inline constexpr std::uint32_t kSyncobjEventfd = 1U << 1;
struct SyncobjList {
  std::uint64_t entries;
  std::uint32_t count;  // in: room; out: how many there are
  std::uint32_t pad;
};
inline constexpr unsigned long kListSyncobjs = DRM_IOWR(0xD5, SyncobjList);

// ---- objects at given numbers -----------------------------------------------

struct GemCreate {
  std::uint64_t size;
  std::uint64_t alignment;
  std::uint64_t domains;
  std::uint64_t flags;
  std::uint32_t handle;
  std::uint32_t pad;
};
static_assert(sizeof(GemCreate) > sizeof(drm_amdgpu_gem_create));
inline constexpr std::uint64_t kCreateAtHandle = 1ULL << 63;
inline constexpr unsigned long kGemCreate = DRM_IOWR(DRM_COMMAND_BASE + DRM_AMDGPU_GEM_CREATE, GemCreate);

inline constexpr std::uint32_t kUserptrAtHandle = 1U << 4;

struct PrimeHandleAt {
  std::uint32_t handle;
  std::uint32_t flags;
  std::int32_t fd;
  std::uint32_t pad;
};
inline constexpr unsigned long kPrimeFdToHandleAt = DRM_IOW(0xD4, PrimeHandleAt);

inline constexpr std::uint32_t kContextAllocAt = 8;
// The number for the next fence: flags has its lower half, priority the upper one.
inline constexpr std::uint32_t kContextSkipFences = 9;
inline constexpr std::uint32_t kBoListCreateAt = 8;
inline constexpr std::uint32_t kSyncobjCreateAt = 1U << 1;

}  // namespace drm_uapi
