// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// See the header. The memory gets a handle in a file of this process for a moment.
#include "plugin/dmabuf_memory.h"

#include <cerrno>
#include <string>
#include <utility>

#include "plugin/render_objects.h"

namespace plugin::dmabuf_memory {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

constexpr std::uint32_t kHandle = 1;

std::string gpu_name(const topology::Node& node) {
  return "GPU " + std::to_string(node.gpu_id) + " (renderD" + std::to_string(node.render_minor()) + ")";
}

// What the kernel says of the memory when it has a handle; nothing: it is not of this GPU.
Result<std::optional<ListedGem>> look_at(RenderDriver& driver, int file) {
  ASSIGN_OR_RETURN(const std::vector<ListedGem> listed, driver.gem_objects(file));
  if (listed.size() != 1 || listed.front().is_import) return std::optional<ListedGem>();
  return std::optional<ListedGem>(listed.front());
}

}  // namespace

Result<bool> can_find(const Services& services, const std::vector<topology::Node>& nodes) {
  for (const topology::Node& node : nodes) {
    if (node.gpu_id == 0) continue;
    ASSIGN_OR_RETURN(const UniqueFd file, services.system.open_render(node.render_minor()));
    return services.render.driver->has_lists(file.get());
  }
  return false;
}

Result<std::optional<Found>> find(const Services& services, const std::vector<topology::Node>& nodes, int fd,
                                  const dmabuf_file::Info& info) {
  std::optional<Error> failure;  // of the first GPU that does not take the memory
  for (const topology::Node& node : nodes) {
    if (node.gpu_id == 0) continue;
    ASSIGN_OR_RETURN(const UniqueFd file, services.system.open_render(node.render_minor()));
    ASSIGN_OR_RETURN(const std::uint32_t losses, services.render.driver->vram_losses(file.get()));
    if (auto status = services.render.driver->import_gem(file.get(), kHandle, fd); !status.ok()) {
      if (!failure) failure = std::move(status).error().wrap("importing it on " + gpu_name(node));
      continue;
    }
    ASSIGN_OR_RETURN(std::optional<ListedGem> listed, look_at(*services.render.driver, file.get()));
    if (!listed) continue;
    RenderDriver& driver = *services.render.driver;
    if (const std::string reason = render_objects::why_not(*listed); !reason.empty()) return Error(EOPNOTSUPP, reason);
    Found found{&node, {0, static_cast<std::uint32_t>(listed->domains), listed->flags, listed->alignment}, {}};
    found.vram_losses = losses;
    found.record.inode = info.inode;
    found.record.bo.size = info.size;
    found.record.bo.user_gpu_id = node.gpu_id;
    found.record.bo.alloc_flags =
        (listed->domains & image::kGemVram) != 0 ? KFD_IOC_ALLOC_MEM_FLAGS_VRAM : KFD_IOC_ALLOC_MEM_FLAGS_GTT;
    ASSIGN_OR_RETURN(GemMetadata metadata, driver.metadata(file.get(), kHandle));
    found.object.metadata_flags = metadata.flags;
    found.object.tiling = metadata.tiling;
    found.object.metadata = std::move(metadata.bytes);
    ASSIGN_OR_RETURN(const std::uint64_t flags, driver.all_flags(file.get(), kHandle));
    if ((flags & render_file::kOnlyByKfd) != 0) {
      if (image::has_metadata(found.object))
        return Error(EOPNOTSUPP,
                     "KFD has allocated it, and it has metadata (tiling), which a restore could not give it");
      found.alloc_flags = found.record.bo.alloc_flags | render_file::attributes_of(flags);
    }
    return std::optional<Found>(std::move(found));
  }
  if (failure) return std::move(*failure);
  return std::optional<Found>();
}

Status confirm(const Services& services, const Found& memory) {
  ASSIGN_OR_RETURN(const UniqueFd file, services.system.open_render(memory.gpu->render_minor()));
  ASSIGN_OR_RETURN(const std::uint32_t losses, services.render.driver->vram_losses(file.get()));
  if (losses == memory.vram_losses) return {};
  return Error(ENOTRECOVERABLE,
               "what was saved is not its memory, because the GPU lost the contents of VRAM during the "
               "dump");
}

}  // namespace plugin::dmabuf_memory
