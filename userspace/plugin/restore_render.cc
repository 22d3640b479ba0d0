// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The amdkfd-criu authors
//
// Render nodes with their objects in a task that is being restored: objects, contents, and the mappings of objects.
#include <cerrno>
#include <map>
#include <string>

#include "plugin/kfd_objects.h"
#include "plugin/render_objects.h"
#include "plugin/restore.h"
#include "plugin/restore_loader.h"
#include "plugin/topology/snapshot.h"

namespace plugin {
namespace {

using base::Error;
using base::Result;
using base::Status;
using base::UniqueFd;

Status start_object(RenderDriver& driver, Loader& loader, const image::Loaded& file, std::size_t index, int fd) {
  const std::uint32_t handle = file.render()->objects.gem[index].handle;
  const std::string object = "GEM object " + std::to_string(handle);
  const std::string name = object + ": " + Loader::name_of(index);
  const auto dmabuf = driver.export_gem(fd, handle);
  if (!dmabuf.ok()) return Error(dmabuf.error()).wrap(object);
  if (dmabuf->has_value()) return loader.start(file, index, file.render()->gpu_id, (*dmabuf)->get(), name);
  const auto offset = driver.mmap_offset(fd, handle);
  if (!offset.ok()) return Error(offset.error()).wrap(object);
  if (!offset->has_value()) return Error(EPERM, object + ": neither the CPU nor another VM can write it");
  return loader.load_by_mapping(file, index, fd, **offset, name);
}

}  // namespace

Status Restore::restore_objects(const RestorePlan& plan, const SavedFile& file, int fd,
                                const render_objects::KfdMemory& kfd_memory) {
  const image::RenderFile& render = *file.loaded->render();
  if (render.objects.empty()) return {};
  if (!criu_)
    return Error(
        EPROTO,
        "a render node has objects, and CRIU's images are not readable, which say whose it is; restore from the "
        "directory that the dump wrote");
  Loader loader(services_, plan, file);
  TRY(loader.open_contents(*file.loaded));
  RenderDriver& driver = *services_.render.driver;
  ASSIGN_OR_RETURN(const bool has_lists, driver.has_lists(fd));
  if (!has_lists)
    return Error(ENOTSUP,
                 "the program has objects of a render node, and this kernel cannot create them at given numbers "
                 "(patch series drm-handle-at)");
  const Shared& shared = *shared_.at(file.session_id);
  ASSIGN_OR_RETURN(Taken memories, take_memories(plan, shared, shared.session.index_of(file.id)));
  std::map<std::size_t, int> given;
  for (std::size_t i = 0; i < render.bos.size(); ++i)
    if (const auto found = memories.dmabufs.find(render.bos[i].inode); found != memories.dmabufs.end())
      given.emplace(i, found->second.get());
  TRY(render_objects::create(driver, fd, render, given, kfd_memory));
  memories.dmabufs.clear();
  std::vector<std::size_t> loaded;
  for (const MadeMemory& memory : memories.made) {
    TRY(start_loading(loader, shared, memory.index, memory.dmabuf.get()));
    loaded.push_back(memory.index);
  }
  for (std::size_t i = 0; i < render.bos.size(); ++i) {
    if (given.contains(i) || !image::stores_contents(render.bos[i])) continue;
    TRY(start_object(driver, loader, *file.loaded, i, fd));
  }
  TRY(finish_loading(loader, shared, loaded));
  loader.end();
  return {};
}

// Objects of the files whose VMs KFD uses: they are made when all BOs exist, and before the queues run.
Status Restore::restore_kfd_objects(Task& current, const RestorePlan& plan, int kfd_fd,
                                    std::vector<kfd::RestoredBo>& restored) {
  const SavedFile& process = *current.process;
  const image::KfdFile& kfd = *process.loaded->kfd();
  const auto memory = [&](std::uint64_t inode) -> Result<UniqueFd> {
    const auto bo = kfd_objects::bo_with(kfd, inode);
    if (!bo) return Error(EINVAL, "no BO of the process has its memory");
    return services_.kfd.export_restored(kfd_fd, kfd.bos[*bo].bo, restored[*bo]);
  };
  for (const SavedFile& file : files_) {
    const image::RenderFile* render = file.loaded->render();
    if (render == nullptr || render->binding != image::Binding::kKfd || render->objects.empty() ||
        file.owner != process.owner || file.session_id != process.session_id)
      continue;
    ASSIGN_OR_RETURN(const std::uint32_t gpu_id, plan.destination_of(render->gpu_id));
    ASSIGN_OR_RETURN(const HeldFiles::Key key, render_key(current, plan, gpu_id));
    if (auto status = restore_objects(plan, file, current.held.number(key), memory); !status.ok())
      return std::move(status).error().wrap("objects of the render node of GPU " + std::to_string(gpu_id));
  }
  return {};
}

// A mapping of an object of a render node that the task has open. CRIU has given it all its descriptors before. Objects
// exist since the file does, but not those in a VM that KFD uses: the process whose KFD it is makes them with its
// state, which may be later.
Result<std::optional<VmaAnswer>> Restore::locate_object(Task& current, std::string_view path, std::uint64_t addr,
                                                        std::uint64_t offset) {
  if (current.criu == nullptr) return std::optional<VmaAnswer>();
  const DeviceFile device = services_.system.identify_path(path);
  if (device.kind == DeviceKind::kKfd) return std::optional<VmaAnswer>();
  const ExternalFd* found = nullptr;
  std::uint32_t handle = 0;
  std::uint64_t inode = 0;
  std::uint64_t distance = 0;
  for (const ExternalFd& fd : current.criu->files) {
    const SavedFile* file = find_saved(fd.file_id);
    const image::RenderFile* render = file == nullptr ? nullptr : file->loaded->render();
    if (render == nullptr || render->objects.empty()) continue;
    ASSIGN_OR_RETURN(const RestorePlan* plan, plan_of(*file));
    const topology::Node* node = device.kind == DeviceKind::kRender
                                     ? topology::find_render_minor(plan->source(), device.minor)
                                     : topology::find_gpu(plan->source(), render->gpu_id);
    if (node == nullptr || node->gpu_id != render->gpu_id) continue;
    const auto index = render_objects::find_offset(render->bos, offset, 1);
    if (!index) continue;
    // Several files may have one object, and a mapping through one of them is as good as one through another.
    if (found != nullptr && (found->file_id == fd.file_id || (inode != 0 && inode == render->bos[*index].inode)))
      continue;
    if (found != nullptr)
      return Error(ENXIO, std::string(path) + " at " + std::to_string(addr) +
                              ": a mapping of a GEM object of one of several GPUs, and its path does not tell which");
    found = &fd;
    handle = render->objects.gem[*index].handle;
    inode = render->bos[*index].inode;
    distance = offset - render->bos[*index].bo.mmap_offset;
  }
  if (found == nullptr) return std::optional<VmaAnswer>();
  TRY(ready());
  if (const SavedFile& file = *find_saved(found->file_id);
      file.loaded->render()->binding == image::Binding::kKfd &&
      file.owner != static_cast<std::uint32_t>(services_.criu.pid()))
    TRY(wait_for(file.owner, Progress::kRestored,
                 "which makes GEM object " + std::to_string(handle) + " that this one has mapped"));
  ASSIGN_OR_RETURN(const std::optional<std::uint64_t> start,
                   services_.render.driver->mmap_offset(found->number, handle));
  if (!start) return Error(EPERM, "the CPU cannot map GEM object " + std::to_string(handle));
  const bool takes_fd = services_.criu.takes_vma_fd();
  if (is_last_mapping(current, addr)) current.held.release_all_but(std::nullopt);
  int number = found->number;
  if (takes_fd) {
    ASSIGN_OR_RETURN(number, taken_descriptor(current, number, addr));
  }
  return std::optional<VmaAnswer>(VmaAnswer{*start + distance, number});
}

}  // namespace plugin
