// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What an open render node has beside what KFD knows of it, as plain values: GEM objects, contexts, BO lists and
// synchronization objects. A number is the one by which the program names the object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plugin::image {

inline constexpr std::uint32_t kMaxHandle = 0x7ffffffe;  // of everything but contexts
inline constexpr std::uint32_t kMaxContext = 4095;
inline constexpr std::size_t kMaxGemObjects = 1U << 16;  // of one file, and so on
inline constexpr std::size_t kMaxGemMappings = 1U << 17;
inline constexpr std::size_t kMaxGemMetadata = 256;  // bytes
inline constexpr std::size_t kMaxBoLists = 1U << 14;
inline constexpr std::size_t kMaxBoListEntries = 1U << 17;
inline constexpr std::size_t kMaxSyncobjs = 1U << 16;

// What restored objects may ask the driver for; validate_objects() refuses the rest.
inline constexpr std::uint32_t kGemDomains = 1U | 2U | 4U;  // AMDGPU_GEM_DOMAIN_CPU, _GTT, _VRAM
inline constexpr std::uint32_t kGemGtt = 2U;
inline constexpr std::uint32_t kGemVram = 4U;
inline constexpr std::uint64_t kGemNoCpuAccess = 1ULL << 1;    // AMDGPU_GEM_CREATE_NO_CPU_ACCESS
inline constexpr std::uint64_t kGemVmAlwaysValid = 1ULL << 6;  // AMDGPU_GEM_CREATE_VM_ALWAYS_VALID
// AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED, _NO_CPU_ACCESS, _CPU_GTT_USWC, _VRAM_CLEARED, _VM_ALWAYS_VALID,
// _EXPLICIT_SYNC, _DISCARDABLE.
inline constexpr std::uint64_t kGemFlags =
    1ULL << 0 | kGemNoCpuAccess | 1ULL << 2 | 1ULL << 3 | kGemVmAlwaysValid | 1ULL << 7 | 1ULL << 12;

// AMDGPU_GEM_USERPTR_READONLY, _ANONONLY, _VALIDATE, _REGISTER. The driver wants the first or the last.
inline constexpr std::uint32_t kUserFlags = 1U | 2U | 4U | 8U;
inline constexpr std::uint32_t kUserReadOnly = 1U;
inline constexpr std::uint32_t kUserRegister = 8U;

inline constexpr std::uint64_t kSparseFlags = 1ULL << 4;  // AMDGPU_VM_PAGE_PRT

// A part of an object in the GPU's address space.
struct GemMapping {
  std::uint64_t addr = 0;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;  // in the object
  std::uint64_t flags = 0;   // AMDGPU_VM_PAGE_*, AMDGPU_VM_MTYPE_*
  bool operator==(const GemMapping&) const = default;
};

// Size, mmap offset and inode are those of the BoRecord with the same index.
struct GemObject {
  std::uint32_t handle = 0;
  std::uint32_t domains = 0;  // AMDGPU_GEM_DOMAIN_*, preferred
  std::uint64_t flags = 0;    // AMDGPU_GEM_CREATE_*
  std::uint64_t alignment = 0;
  std::vector<GemMapping> mappings = {};
  // What DRM_AMDGPU_GEM_METADATA keeps; the driver does not interpret the bytes.
  std::uint64_t metadata_flags = 0;
  std::uint64_t tiling = 0;
  std::vector<std::byte> metadata = {};
  // Memory of the program that has the file, which CRIU saves: where it is, and AMDGPU_GEM_USERPTR_*; 0: it is not.
  std::uint64_t user_addr = 0;
  std::uint32_t user_flags = 0;
  bool operator==(const GemObject&) const = default;
};

[[nodiscard]] inline bool has_metadata(const GemObject& object) {
  return object.metadata_flags != 0 || object.tiling != 0 || !object.metadata.empty();
}

// A GEM object that is the memory of a BO of KFD. Contents are stored with the BO.
struct KfdGem {
  std::uint32_t handle = 0;
  std::uint64_t inode = 0;                // of the BO, which the process has whose KFD uses the file
  std::uint64_t size = 0;                 // of the BO
  std::vector<GemMapping> mappings = {};  // without those that KFD has made
  // As in GemObject.
  std::uint64_t metadata_flags = 0;
  std::uint64_t tiling = 0;
  std::vector<std::byte> metadata = {};
  bool operator==(const KfdGem&) const = default;
};

struct GpuContext {
  std::uint32_t id = 0;
  std::int32_t priority = 0;   // AMDGPU_CTX_PRIORITY_*
  std::uint64_t sequence = 0;  // what the next fence has at least
  bool operator==(const GpuContext&) const = default;
};

struct BoListEntry {
  std::uint32_t handle = 0;  // of a GEM object of the file, also one of KFD's memory
  std::uint32_t priority = 0;
  bool operator==(const BoListEntry&) const = default;
};

struct BoList {
  std::uint32_t handle = 0;
  std::vector<BoListEntry> entries = {};
  bool operator==(const BoList&) const = default;
};

enum class SyncobjState : std::uint32_t { kEmpty = 1, kSignaled = 2, kTimeline = 3 };

struct Syncobj {
  std::uint32_t handle = 0;
  SyncobjState state = SyncobjState::kEmpty;
  std::uint64_t point = 0;  // kTimeline: the last point, which is signaled
  bool operator==(const Syncobj&) const = default;
};

struct RenderObjects {
  std::vector<GemObject> gem = {};
  std::vector<GemMapping> sparse = {};  // of no object: AMDGPU_VM_PAGE_PRT
  std::vector<GpuContext> contexts = {};
  std::vector<BoList> bo_lists = {};
  std::vector<Syncobj> syncobjs = {};
  std::vector<KfdGem> kfd_gem = {};  // only in a file whose VM KFD uses

  [[nodiscard]] bool empty() const {
    return gem.empty() && sparse.empty() && contexts.empty() && bo_lists.empty() && syncobjs.empty() && kfd_gem.empty();
  }
  bool operator==(const RenderObjects&) const = default;
};

}  // namespace plugin::image
