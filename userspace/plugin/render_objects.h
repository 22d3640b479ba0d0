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
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "kfd/kfd.h"
#include "plugin/image/format.h"
#include "plugin/services.h"
#include "plugin/tree.h"

namespace plugin::render_objects {

// How a GEM object's memory may be another's, too.
struct Origin {
  bool is_import = false;        // the memory is another GPU's
  std::string why_not;           // see why_not() and why_not_with(); empty: the object can be created again
  std::uint64_t references = 0;  // to its DMA-buf, the reader's own descriptor included; 0: it has no DMA-buf
};

// What one open file has. `bos` is as image::RenderFile::bos, but without the GPU; `origins` is in the same order.
// Which BOs were imported is known after find_makers().
struct Found {
  image::RenderObjects objects;
  std::vector<image::BoRecord> bos;
  std::vector<Origin> origins;
  std::uint32_t vram_losses = 0;  // before anything was read
};

// ---- planning: makes no system call -----------------------------------------

// The references to the DMA-buf of an object that nobody else has: those of the object, of its handle, and of the one
// descriptor that is open while they are counted.
inline constexpr std::uint64_t kOwnReferences = 3;
// References that a handle of the memory's own GPU has, and one of another GPU: there the handle has an object of its
// own, which refers to the DMA-buf, and so does its attachment.
inline constexpr std::uint64_t kReferencesOfHandle = 1;
inline constexpr std::uint64_t kReferencesOfImport = 3;

// Whether an object can be given this handle.
[[nodiscard]] inline bool is_handle(std::uint32_t handle) { return handle != 0 && handle <= image::kMaxHandle; }
// Why the object cannot be created again; empty: it can.
[[nodiscard]] std::string why_not(const ListedGem& object);
// As why_not(), by RenderDriver::all_flags().
[[nodiscard]] std::string why_not_with(std::uint64_t all_flags);
[[nodiscard]] std::string why_not(const ListedContext& context);
[[nodiscard]] std::string why_not(const ListedSyncobj& syncobj);

// The lists that the entries are of. Fails for entries without a handle.
base::Result<std::vector<image::BoList>> group_bo_lists(std::span<const ListedBoListEntry> entries);

// Memory that BOs of KFD have, by inode. True: it was allocated for one of them.
using KfdMemories = std::map<std::uint64_t, bool>;

// Decides for which object memory is allocated at a restore that several files have, or KFD as well, and that the
// others import it. `found` is in the order of Tree::files. Fails when no object can be created again that has the
// memory.
base::Status find_makers(const Tree& tree, std::span<std::optional<Found>> found, const KfdMemories& of_kfd);
// The released ABI of KFD neither gives nor takes the memory of a BO.
base::Status refuse_shared_with_kfd(const Tree& tree, std::span<const std::optional<Found>> found,
                                    const KfdMemories& of_kfd);

// The references that the objects of all files have to their memory, by inode.
struct GemMemory {
  std::uint64_t references = 0;
  bool has_maker = false;  // the memory is allocated for one of the objects
};
[[nodiscard]] std::map<std::uint64_t, GemMemory> gem_memories(std::span<const std::optional<Found>> found);

// The index in `bos` of the BO that the whole range of offsets is in.
[[nodiscard]] std::optional<std::size_t> find_offset(std::span<const image::BoRecord> bos, std::uint64_t offset,
                                                     std::uint64_t size);
// Whether the mapping is of an object of a file that the task has open itself.
[[nodiscard]] bool is_of_object(const Tree& tree, std::span<const std::optional<Found>> found, std::size_t task,
                                const DeviceMapping& mapping);

// ---- dump -------------------------------------------------------------------

// In the order of Tree::files; nothing for files that are no render nodes or have no object. Waits for work in flight.
// On kernels that do not list all objects: refuses any.
base::Result<std::vector<std::optional<Found>>> read(const Services& services, const Tree& tree);

// Whether the kernel lists all objects of the render nodes of the programs; false without any.
base::Result<bool> are_listed(const Services& services, const Tree& tree);

// Fails if a reset has changed what was read since then, or the contents that were saved.
base::Status confirm(const Services& services, const Tree& tree, std::span<const std::optional<Found>> found);

// ---- restore ----------------------------------------------------------------

// The DMA-buf of memory of KFD that has this inode in the image.
using KfdMemory = std::function<base::Result<base::UniqueFd>(std::uint64_t inode)>;

// Creates all objects in a new file, without contents. `given` has the DMA-buf of a GEM object, by its index, whose
// memory exists already.
base::Status create(RenderDriver& driver, int fd, const image::RenderFile& render,
                    const std::map<std::size_t, int>& given, const KfdMemory& kfd_memory = {});

// How the CPU may use a DMA-buf.
enum class Access { kReadWrite, kReadOnly };

// Creates an object with its metadata, but without contents, and exports it: when the caller has closed the file, the
// memory exists by its DMA-buf alone.
base::Result<base::UniqueFd> make_apart(RenderDriver& driver, int fd, const image::GemObject& object,
                                        std::uint64_t size, Access access = Access::kReadWrite);

}  // namespace plugin::render_objects
