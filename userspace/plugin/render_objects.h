// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Objects of render nodes: reads those of the programs of a dump, and creates them again. What cannot be created again
// is refused by its name before anything is saved. Not here: single ioctls (render_driver.h), checks of images
// (image/validate_objects.cc).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "kfd/kfd.h"
#include "plugin/image/format.h"
#include "plugin/parts.h"
#include "plugin/tree.h"

namespace plugin::render_objects {

// What one open file has. `bos` is as image::RenderFile::bos, but without the GPU.
struct Found {
  image::RenderObjects objects;
  std::vector<image::BoRecord> bos;
  // How many references the DMA-buf of each BO has, the reader's own descriptor included; 0: it has no DMA-buf.
  std::vector<std::uint64_t> references;
  std::uint32_t vram_losses = 0;  // before anything was read
};

// ---- planning: makes no system call -----------------------------------------

// The references to the DMA-buf of an object that nobody else has: those of the object, of its handle, and of the one
// descriptor that is open while they are counted.
inline constexpr std::uint64_t kOwnReferences = 3;

// Why the object cannot be created again; empty: it can.
[[nodiscard]] std::string why_not(const ListedGem& object);
[[nodiscard]] std::string why_not(const ListedContext& context);
[[nodiscard]] std::string why_not(const ListedSyncobj& syncobj);

// The lists that the entries are of. Fails for entries without a handle.
base::Result<std::vector<image::BoList>> group_bo_lists(std::span<const ListedBoListEntry> entries);

// `found` is in the order of Tree::files. Fails when an object is one of several files, or of somebody outside.
base::Status refuse_shared(const Tree& tree, std::span<const std::optional<Found>> found);
// The object is memory of KFD's, which another BO has as well.
base::Status refuse_shared_with_kfd(const Tree& tree, std::span<const std::optional<Found>> found,
                                    std::span<const kfd::CheckpointedBo> bos);

// The index in `bos` of the BO that the whole range of offsets is in.
[[nodiscard]] std::optional<std::size_t> find_offset(std::span<const image::BoRecord> bos, std::uint64_t offset,
                                                     std::uint64_t size);
// Whether the mapping is of an object of a file that the task has open itself.
[[nodiscard]] bool is_of_object(const Tree& tree, std::span<const std::optional<Found>> found, std::size_t task,
                                const DeviceMapping& mapping);

// ---- dump -------------------------------------------------------------------

// In the order of Tree::files; nothing for files that are no render nodes or have no object. Waits for work in flight.
// On kernels that do not list all objects: refuses any.
base::Result<std::vector<std::optional<Found>>> read(const Parts& parts, const Tree& tree);

// Fails if a reset has changed what was read since then, or the contents that were saved.
base::Status confirm(const Parts& parts, const Tree& tree, std::span<const std::optional<Found>> found);

// ---- restore ----------------------------------------------------------------

// Creates all objects in a new file, without contents.
base::Status create(RenderDriver& driver, int fd, const image::RenderFile& render);

}  // namespace plugin::render_objects
