// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// What amdgpu is asked about the objects of an open render node, and told to create there, as a typed interface;
// RealRenderDriver issues the ioctls. Not here: which objects can be saved, and the order of operations
// (render_objects.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "plugin/image/render_objects.h"

namespace plugin {

// A GEM object as the driver lists it.
struct ListedGem {
  std::uint32_t handle = 0;
  std::uint64_t size = 0;
  std::uint64_t domains = 0;
  std::uint64_t flags = 0;
  std::uint64_t alignment = 0;
  bool is_import = false;  // the memory is another GPU's
};

// A GEM object of memory of a program.
struct ListedUserptr {
  std::uint32_t handle = 0;
  std::uint32_t flags = 0;  // AMDGPU_GEM_USERPTR_*
  std::uint64_t addr = 0;
  pid_t pid = 0;  // of the process whose memory it is; 0: it has ended or called execve()
};

struct ListedContext {
  std::uint32_t id = 0;
  std::int32_t priority = 0;
  bool is_guilty = false;
  bool was_reset = false;      // a reset, or lost VRAM, since it was created
  bool is_busy = false;        // it has work that is not finished
  bool is_overridden = false;  // the DRM master has given it another priority
  std::uint32_t stable_pstate = 0;
  std::uint64_t sequence = 1;  // what the next fence has at least
};

struct ListedBoListEntry {
  std::uint32_t list = 0;
  std::uint32_t handle = 0;  // 0: the object has no handle any more
  std::uint32_t priority = 0;
  bool is_empty = false;  // no entry: the list has none
};

struct GemMetadata {
  std::uint64_t flags = 0;
  std::uint64_t tiling = 0;
  std::vector<std::byte> bytes;
};

struct ListedSyncobj {
  std::uint32_t handle = 0;
  bool is_shared = false;    // another handle or a descriptor has it, too
  bool has_eventfd = false;  // an eventfd waits for it
};

// Nothing: it waits for something that has not happened.
using SyncobjNow = std::optional<image::Syncobj>;

// `fd` is an open render node, also another process's. Every object is one of this file.
class RenderDriver {
 public:
  RenderDriver() = default;
  RenderDriver(const RenderDriver&) = delete;
  RenderDriver& operator=(const RenderDriver&) = delete;
  virtual ~RenderDriver() = default;

  // Whether the kernel lists all kinds of objects. Else the other functions are of no use.
  virtual base::Result<bool> has_lists(int fd) = 0;

  virtual base::Result<std::vector<ListedGem>> gem_objects(int fd) = 0;
  // AMDGPU_GEM_CREATE_* of the object's memory, also those that gem_objects() leaves out: the kernel lists only flags
  // that a program may ask a render node for.
  virtual base::Result<std::uint64_t> all_flags(int fd, std::uint32_t handle) = 0;
  virtual base::Result<std::vector<ListedUserptr>> userptrs(int fd) = 0;
  // Handle 0: sparse mappings, which no object has. So in map().
  virtual base::Result<std::vector<image::GemMapping>> mappings(int fd, std::uint32_t handle) = 0;
  virtual base::Result<GemMetadata> metadata(int fd, std::uint32_t handle) = 0;
  // Nothing: the CPU cannot map the object.
  virtual base::Result<std::optional<std::uint64_t>> mmap_offset(int fd, std::uint32_t handle) = 0;
  // The object's DMA-buf. Nothing: the driver gives none, because the object is bound to the file's VM, or is memory of
  // the program.
  virtual base::Result<std::optional<base::UniqueFd>> export_gem(int fd, std::uint32_t handle) = 0;
  // With a descriptor that the CPU cannot write through, if the object has no DMA-buf yet.
  virtual base::Result<std::optional<base::UniqueFd>> export_read_only(int fd, std::uint32_t handle) = 0;
  virtual base::Result<bool> is_idle(int fd, std::uint32_t handle) = 0;
  // How often the GPU has lost the contents of VRAM.
  virtual base::Result<std::uint32_t> vram_losses(int fd) = 0;
  virtual base::Result<std::vector<ListedContext>> contexts(int fd) = 0;
  virtual base::Result<std::vector<ListedBoListEntry>> bo_lists(int fd) = 0;
  virtual base::Result<std::vector<ListedSyncobj>> syncobjs(int fd) = 0;
  virtual base::Result<SyncobjNow> syncobj(int fd, std::uint32_t handle) = 0;

  // Each fails if its number is taken.
  virtual base::Status create_gem(int fd, const image::GemObject& object, std::uint64_t size) = 0;
  // The memory is that of this process, and need not be there yet.
  virtual base::Status create_userptr(int fd, const image::GemObject& object, std::uint64_t size) = 0;
  // The object behind a DMA-buf, which has no other handle in this file.
  virtual base::Status import_gem(int fd, std::uint32_t handle, int dmabuf) = 0;
  virtual base::Status set_metadata(int fd, const image::GemObject& object) = 0;
  virtual base::Status map(int fd, std::uint32_t handle, const image::GemMapping& mapping) = 0;
  virtual base::Status create_context(int fd, const image::GpuContext& context) = 0;
  virtual base::Status create_bo_list(int fd, const image::BoList& list) = 0;
  virtual base::Status create_syncobj(int fd, const image::Syncobj& syncobj) = 0;
};

class RealRenderDriver final : public RenderDriver {
 public:
  base::Result<bool> has_lists(int fd) override;
  base::Result<std::vector<ListedGem>> gem_objects(int fd) override;
  base::Result<std::uint64_t> all_flags(int fd, std::uint32_t handle) override;
  base::Result<std::vector<ListedUserptr>> userptrs(int fd) override;
  base::Result<std::vector<image::GemMapping>> mappings(int fd, std::uint32_t handle) override;
  base::Result<GemMetadata> metadata(int fd, std::uint32_t handle) override;
  base::Result<std::optional<std::uint64_t>> mmap_offset(int fd, std::uint32_t handle) override;
  base::Result<std::optional<base::UniqueFd>> export_gem(int fd, std::uint32_t handle) override;
  base::Result<std::optional<base::UniqueFd>> export_read_only(int fd, std::uint32_t handle) override;
  base::Result<bool> is_idle(int fd, std::uint32_t handle) override;
  base::Result<std::uint32_t> vram_losses(int fd) override;
  base::Result<std::vector<ListedContext>> contexts(int fd) override;
  base::Result<std::vector<ListedBoListEntry>> bo_lists(int fd) override;
  base::Result<std::vector<ListedSyncobj>> syncobjs(int fd) override;
  base::Result<SyncobjNow> syncobj(int fd, std::uint32_t handle) override;
  base::Status create_gem(int fd, const image::GemObject& object, std::uint64_t size) override;
  base::Status create_userptr(int fd, const image::GemObject& object, std::uint64_t size) override;
  base::Status import_gem(int fd, std::uint32_t handle, int dmabuf) override;
  base::Status set_metadata(int fd, const image::GemObject& object) override;
  base::Status map(int fd, std::uint32_t handle, const image::GemMapping& mapping) override;
  base::Status create_context(int fd, const image::GpuContext& context) override;
  base::Status create_bo_list(int fd, const image::BoList& list) override;
  base::Status create_syncobj(int fd, const image::Syncobj& syncobj) override;
};

}  // namespace plugin
